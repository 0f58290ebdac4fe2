package spot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// kindByKind is a member whose kinds are cached, empty and synced, as a test says.
type kindByKind struct {
	Cluster
	cached map[string]chan struct{} // by kind; closed when it is lost
}

func newKindByKind() *kindByKind { return &kindByKind{cached: map[string]chan struct{}{}} }

func (k *kindByKind) Watch(obj client.Object) (<-chan struct{}, bool) {
	gvk, err := apiutil.GVKForObject(obj, scheme.Scheme)
	if err != nil {
		panic(err)
	}
	done, ok := k.cached[gvk.Kind]
	return done, ok
}

func (k *kindByKind) GetCache() cache.Cache { return emptyCache{} }

func (k *kindByKind) Live() client.Reader { return &eventServer{} }

type emptyCache struct{ cache.Cache }

func (emptyCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return emptyInformer{}, nil
}

type emptyInformer struct{ cache.Informer }

func (emptyInformer) AddEventHandler(toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return synced{}, nil
}

func (emptyInformer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return nil
}

type synced struct{}

func (synced) HasSynced() bool                          { return true }
func (synced) HasSyncedChecker() toolscache.DoneChecker { return synced{} }
func (synced) Name() string                             { return "empty" }
func (synced) Done() <-chan struct{}                    { done := make(chan struct{}); close(done); return done }

func TestADirectoryIsPublishedWhenWhatItNeedsIsThereAndNotDroppedForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newShell(t, nil, false)
		site := newKindByKind()
		m := newMember(s.Engine, testMember, site)
		s.members[testMember] = m
		go m.run(ctx)
		synctest.Wait()
		join := func(kinds ...string) *directory {
			for _, kind := range kinds {
				site.cached[kind] = make(chan struct{})
			}
			m.kick()
			synctest.Wait()
			return m.directory.Load()
		}

		if join("Namespace", "Node", "Pod") != nil {
			t.Error("a directory was published without any kind of workload")
		}
		first := join("Deployment", "ReplicaSet")
		if first == nil {
			t.Fatal("no directory was published when the kinds of Deployments were there")
		}
		if join("StatefulSet") != first {
			t.Error("a complete directory was dropped because a further kind came")
		}
		pods := site.cached["Pod"]
		delete(site.cached, "Pod")
		close(pods)
		synctest.Wait()
		if m.directory.Load() != nil {
			t.Error("the directory stayed when the pods were lost")
		}
		again := join("Pod")
		if again == nil || again == first {
			t.Fatal("the directory was not built again when the pods were back")
		}
		if !first.replaces.IsZero() || !again.replaces.Equal(time.Now()) {
			t.Errorf("the first directory replaces another until %v, and the second until %v: it knows of nothing that was promised before it", first.replaces, again.replaces)
		}
		cancel()
		synctest.Wait()
	})
}

func TestAnAdmissionAndAReconcileWaitForTheDirectoryAndGoOnWhenItIsPublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShell(t, nil, false)
		m := newMember(s.Engine, testMember, newKindByKind())
		s.members[testMember] = m
		began := time.Now()
		go func() {
			time.Sleep(300 * time.Millisecond)
			m.publish(s.follower.directory)
		}()
		s.cache(namespace("true", nil), deployment(1, "true", map[string]string{"plimsoll.dev/spot-percentage": "100"}), replicaSet(1, 1))
		if placed := s.place(incoming(1)); placed.Outcome != OutcomeSpot {
			t.Errorf("outcome %q, want it placed once the directory is there", placed.Outcome)
		}
		if waited := time.Since(began); waited != 300*time.Millisecond {
			t.Errorf("the admission waited %s, want exactly until the directory was published", waited)
		}
		m.withdraw()
		if placed := s.place(incoming(2)); placed.Outcome != OutcomeWarming {
			t.Errorf("outcome %q of a member without a directory, want %q", placed.Outcome, OutcomeWarming)
		}
	})
}
