package main

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// A Grant is a write of the Lease that the hub cluster's API server has granted.
type Grant struct {
	// Process that asked for it.
	Process string
	// At is when the request came in. The process may act until At+Duration.
	At       time.Time
	Duration time.Duration
	// Holder in the record; empty: the Lease was given up.
	Holder string
}

// An Eviction is what a replica has asked for.
type Eviction struct {
	Process, Member, Namespace, Pod string
	// UID of the pod that is meant, if the request names one.
	UID string
	At  time.Time
	// Unread: its body could not be read.
	Unread bool
}

// A tape is what the proxies have seen. It may be read while it is written.
type tape struct {
	mu        sync.Mutex
	grants    []Grant
	evictions []Eviction
}

func (t *tape) read() (grants []Grant, evictions []Eviction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(grants, t.grants...), append(evictions, t.evictions...)
}

// identity is the name that a process was last seen to write into the Lease.
func (t *tape) identity(process string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(t.grants) - 1; i >= 0; i-- {
		if t.grants[i].Process == process && t.grants[i].Holder != "" {
			return t.grants[i].Holder
		}
	}
	return ""
}

// leaseName is the hub's, by default.
const leaseName = "plimsoll-hub"

// leases is the recorder of the hub cluster's proxy.
func (t *tape) leases(process string, r *http.Request) func(status int) {
	at := time.Now()
	writes := r.Method == http.MethodPut || r.Method == http.MethodPost
	if !writes || !strings.Contains(r.URL.Path, "/namespaces/"+fleet.Namespace+"/leases") {
		return nil
	}
	lease, ok := bodyOf(r).(*coordinationv1.Lease)
	if !ok || lease.Name != leaseName {
		return nil
	}
	grant := Grant{
		Process: process, At: at, Holder: ptr.Deref(lease.Spec.HolderIdentity, ""),
		Duration: time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0)) * time.Second,
	}
	return func(status int) {
		if status >= http.StatusMultipleChoices {
			return
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.grants = append(t.grants, grant)
	}
}

// evicted returns the recorder of a member's proxy.
func (t *tape) evicted(member string) recorder {
	return func(process string, r *http.Request) func(status int) {
		path := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // api/v1/namespaces/NAMESPACE/pods/POD/eviction
		if r.Method != http.MethodPost || len(path) != 7 || path[6] != "eviction" {
			return nil
		}
		asked := Eviction{Process: process, Member: member, Namespace: path[3], Pod: path[5], At: time.Now()}
		eviction, ok := bodyOf(r).(*policyv1.Eviction)
		asked.Unread = !ok
		if ok && eviction.DeleteOptions != nil && eviction.DeleteOptions.Preconditions != nil {
			asked.UID = string(ptr.Deref(eviction.DeleteOptions.Preconditions.UID, ""))
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.evictions = append(t.evictions, asked)
		return nil
	}
}

// bodyOf reads the object in a request and leaves the request as it is; nil when there is none that we know.
func bodyOf(r *http.Request) runtime.Object {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	r.Body = io.NopCloser(bytes.NewReader(content))
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	if err != nil {
		return nil
	}
	return object
}
