package simulated

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/webhook"
)

// A Member is one simulated cluster. Its methods may be called concurrently.
type Member struct {
	// Name of the member.
	Name string

	url       string
	authority []byte

	mu       sync.Mutex
	delay    time.Duration
	fault    Fault
	version  int                                  // the resource version of the last change
	objects  map[string]map[string]map[string]any // by path of the collection and name
	watches  map[*watch]struct{}
	requests map[string]int // by kind of request
}

func newMember(name, url string, authority []byte) *Member {
	m := &Member{
		Name: name, url: url, authority: authority, version: 100,
		objects: map[string]map[string]map[string]any{}, watches: map[*watch]struct{}{}, requests: map[string]int{},
	}
	m.put("/api/v1/namespaces", "kube-system", map[string]any{"apiVersion": "v1", "kind": "Namespace"})
	m.put("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", webhook.ConfigurationName,
		map[string]any{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"})
	return m
}

// put sets an object; the caller holds mu, or nobody else has m yet.
func (m *Member) put(path, name string, object map[string]any) {
	m.version++
	object["metadata"] = map[string]any{
		"name": name, "uid": m.Name + "/" + name, "resourceVersion": strconv.Itoa(m.version), "creationTimestamp": "2026-01-01T00:00:00Z",
	}
	if m.objects[path] == nil {
		m.objects[path] = map[string]map[string]any{}
	}
	m.objects[path][name] = object
}

// Kubeconfig leads to the member.
func (m *Member) Kubeconfig() []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: member, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: hub, user: {token: simulated}}]
contexts: [{name: member, context: {cluster: member, user: hub}}]
current-context: member
`, m.url, base64.StdEncoding.EncodeToString(m.authority))
}

// Delay makes the member take so long before it answers any request; 0: it answers at once. Watches that are open go on.
func (m *Member) Delay(by time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = by
}

// Requests returns how many requests the member got, by kind: probe, discovery, review, list, watch, other.
func (m *Member) Requests() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := make(map[string]int, len(m.requests))
	for kind, n := range m.requests {
		counts[kind] = n
	}
	return counts
}

// ServeHTTP answers a request as the member's API server.
func (m *Member) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.requests[requestKind(r)]++
	delay := m.delay
	m.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
		return
	}
	list, discovered := served[r.URL.Path]
	switch path := r.URL.Path; {
	case path == "/readyz":
		_, _ = io.WriteString(w, "ok")
	case path == "/version":
		write(w, map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.1"})
	case discovered:
		write(w, list)
	case strings.HasSuffix(path, "/selfsubjectrulesreviews"):
		everything := authorizationv1.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
		write(w, authorizationv1.SelfSubjectRulesReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
			Status:   authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{everything}},
		})
	default:
		m.serveObjects(w, r)
	}
}

func requestKind(r *http.Request) string {
	_, discovered := served[r.URL.Path]
	switch path := r.URL.Path; {
	case path == "/readyz", path == "/version", strings.HasSuffix(path, "/kube-system"):
		return "probe"
	case discovered:
		return "discovery"
	case strings.HasPrefix(path, "/apis/authorization.k8s.io/"):
		return "review"
	case isWatch(r):
		return "watch"
	}
	if c, ok := collectionOf(r.URL.Path); ok && c.name == "" && r.Method == http.MethodGet {
		return "list"
	}
	return "other"
}

func (m *Member) serveObjects(w http.ResponseWriter, r *http.Request) {
	c, ok := collectionOf(r.URL.Path)
	switch {
	case !ok:
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case isWatch(r):
		m.serveWatch(w, r, c)
	case r.Method == http.MethodPatch:
		m.patch(w, r, c)
	case r.Method != http.MethodGet: // Events
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	case c.name != "":
		m.get(w, c)
	default:
		m.list(w, r, c)
	}
}

func (m *Member) get(w http.ResponseWriter, c collection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if object, ok := m.objects[c.path][c.name]; ok {
		write(w, object)
		return
	}
	refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
}

func (m *Member) list(w http.ResponseWriter, r *http.Request, c collection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	items := m.selected(r, c)
	write(w, map[string]any{
		"apiVersion": c.kind.GroupVersion().String(), "kind": c.kind.Kind + "List",
		"metadata": map[string]string{"resourceVersion": strconv.Itoa(m.version)}, "items": items,
	})
}

// selected are the objects that a list or watch is about; the caller holds mu. Objects have no labels.
func (m *Member) selected(r *http.Request, c collection) []map[string]any {
	items := []map[string]any{}
	only, named := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	if selector := r.URL.Query().Get("labelSelector"); selector != "" {
		return items
	}
	for name, object := range m.objects[c.path] {
		if !named || name == only {
			items = append(items, object)
		}
	}
	return items
}

// patch merges an object field by field at the top, which is all that a hub needs of an empty member, and shows the change
// to watches.
func (m *Member) patch(w http.ResponseWriter, r *http.Request, c collection) {
	var change map[string]any
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before, ok := m.objects[c.path][c.name]
	if !ok {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	after := map[string]any{}
	for _, fields := range []map[string]any{before, change} {
		for field, value := range fields {
			after[field] = value
		}
	}
	m.put(c.path, c.name, after)
	for open := range m.watches {
		if open.of.path == c.path && !open.none && (open.only == "" || open.only == c.name) {
			open.offer("MODIFIED", after)
		}
	}
	write(w, after)
}

func write(w http.ResponseWriter, object any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(status(code, reason))
}

func status(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: code, Reason: reason,
	}
}
