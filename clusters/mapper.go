package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
)

// mapper knows which resource serves a kind in one member. It asks for one group and version at a time, never under its
// lock, where controller-runtime's keeps the whole discovery of every member in memory and locks while it asks.
type mapper struct {
	// RESTMapper answers the questions without a version, which nothing on the hub's paths asks.
	meta.RESTMapper

	prober  *prober
	timeout time.Duration

	retryMin, retryMax time.Duration // between two questions about a group that the member does not serve
	flights            singleflight.Group

	mu      sync.RWMutex
	known   map[schema.GroupVersionKind]*meta.RESTMapping
	served  map[schema.GroupVersion]served
	missing map[schema.GroupVersion]missing
}

// served is what a member said that it serves of one group and version.
type served struct {
	resources []servedResource
	at        time.Time
}

// servedResource is what counts of a resource.
type servedResource struct {
	name, kind string
	namespaced bool
}

// missing is a group and version that a member does not serve.
type missing struct {
	err   error
	until time.Time // when it may be asked about again
	wait  time.Duration
}

const (
	// servedFresh is how long an answer is good for the other kinds of its group: those of one join come together.
	servedFresh = 5 * time.Second
	// maxServed is how many resources a member may serve of one group and version; Kubernetes' largest group has 50.
	maxServed = 2000
)

// RESTMapping returns the resource that serves kind in the first of versions that has it.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) == 0 || versions[0] == "" {
		return m.RESTMapper.RESTMapping(kind, versions...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), m.timeout)
	defer cancel()
	for _, version := range versions {
		mapping, err := m.resolve(ctx, kind.WithVersion(version))
		if err == nil || !meta.IsNoMatchError(err) {
			return mapping, err
		}
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind, SearchedVersions: versions}
}

// resolve returns the resource of gvk from memory, else from the member.
func (m *mapper) resolve(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m.mu.RLock()
	mapping := m.known[gvk]
	m.mu.RUnlock()
	if mapping != nil {
		return mapping, nil
	}
	mapping, err := m.discover(ctx, gvk)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[gvk] = mapping
	return mapping, nil
}

// forget makes the next question about gvk go to the member, unless its group is not served at all.
func (m *mapper) forget(gvk schema.GroupVersionKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[gvk] != nil {
		delete(m.known, gvk)
		delete(m.served, gvk.GroupVersion())
	}
}

// expect makes the next question about a group and version go to the member, though the member may not have served it before.
func (m *mapper) expect(gv schema.GroupVersion) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.missing, gv)
	delete(m.served, gv)
}

// resources returns what the member serves of a group and version: it is asked once for all kinds that are asked about at
// about the same time, and less and less often for a group that it does not serve.
func (m *mapper) resources(ctx context.Context, gv schema.GroupVersion) ([]servedResource, error) {
	m.mu.RLock()
	have, gone := m.served[gv], m.missing[gv]
	m.mu.RUnlock()
	switch {
	case !have.at.IsZero() && time.Since(have.at) < servedFresh:
		return have.resources, nil
	case gone.err != nil && time.Now().Before(gone.until):
		return nil, gone.err
	}
	answer := m.flights.DoChan(gv.String(), func() (any, error) {
		resources, err := m.ask(context.WithoutCancel(ctx), gv) // within the limits of the transport
		m.note(gv, resources, err)
		return resources, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-answer:
		return a.Val.([]servedResource), a.Err
	}
}

// missingFactor is how many times retryMax a group that is not served waits at most for the next question.
const missingFactor = 10

func (m *mapper) note(gv schema.GroupVersion, resources []servedResource, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		maps.DeleteFunc(m.served, func(_ schema.GroupVersion, s served) bool { return time.Since(s.at) >= servedFresh })
		m.served[gv] = served{resources, time.Now()}
		delete(m.missing, gv)
	case apierrors.IsNotFound(err):
		wait := min(max(2*m.missing[gv].wait, m.retryMin), missingFactor*m.retryMax)
		m.missing[gv] = missing{err: err, until: time.Now().Add(wait), wait: wait}
		delete(m.served, gv)
	}
}

func (m *mapper) ask(ctx context.Context, gv schema.GroupVersion) ([]servedResource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	body, err := m.prober.get(ctx, path)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("discover %s: not a list of resources", gv)
	}
	if len(list.APIResources) > maxServed {
		return nil, fmt.Errorf("discover %s: the member serves %d resources, of which %d are read", gv, len(list.APIResources), maxServed)
	}
	var resources []servedResource
	for i := range list.APIResources {
		if r := &list.APIResources[i]; r.Kind != "" && !strings.Contains(r.Name, "/") { // no subresource
			resources = append(resources, servedResource{strings.Clone(r.Name), strings.Clone(r.Kind), r.Namespaced})
		}
	}
	return resources, nil
}

func (m *mapper) discover(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	resources, err := m.resources(ctx, gvk.GroupVersion())
	if err != nil {
		return nil, caching.NoMatchIfNotFound(err, gvk)
	}
	for _, resource := range resources {
		if resource.kind != gvk.Kind {
			continue
		}
		mapping := &meta.RESTMapping{
			Resource: gvk.GroupVersion().WithResource(resource.name), GroupVersionKind: gvk, Scope: meta.RESTScopeRoot,
		}
		if resource.namespaced {
			mapping.Scope = meta.RESTScopeNamespace
		}
		return mapping, nil
	}
	return nil, caching.NoKind(gvk)
}
