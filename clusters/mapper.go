package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapper knows which resource serves a kind in one member. It asks for one group and version at a time, never under its
// lock, where controller-runtime's keeps the whole discovery of every member in memory and locks while it asks.
type mapper struct {
	// RESTMapper answers the questions without a version, which nothing on the hub's paths asks.
	meta.RESTMapper

	prober  *prober
	timeout time.Duration

	mu    sync.RWMutex
	known map[schema.GroupVersionKind]*meta.RESTMapping
}

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

// forget makes the next question about gvk go to the member.
func (m *mapper) forget(gvk schema.GroupVersionKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, gvk)
}

func (m *mapper) discover(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	path := "/apis/" + gvk.GroupVersion().String()
	if gvk.Group == "" {
		path = "/api/" + gvk.Version
	}
	body, err := m.prober.get(ctx, path)
	if err != nil {
		return nil, noMatchIfNotFound(err, gvk)
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("discover %s: not a list of resources", gvk.GroupVersion())
	}
	for _, resource := range list.APIResources {
		if resource.Kind != gvk.Kind || strings.Contains(resource.Name, "/") {
			continue
		}
		mapping := &meta.RESTMapping{
			Resource: gvk.GroupVersion().WithResource(resource.Name), GroupVersionKind: gvk, Scope: meta.RESTScopeRoot,
		}
		if resource.Namespaced {
			mapping.Scope = meta.RESTScopeNamespace
		}
		return mapping, nil
	}
	return nil, noKind(gvk)
}
