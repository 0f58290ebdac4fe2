package reconcile

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// finalizerModel is one object, something outside that its reconciler made for it, and everybody who pulls at them. Our side
// looks through a cache that may be behind, and its calls may be refused, lost on the way there or on the way back, or find
// a member that is dead.
type finalizerModel struct {
	t       *rapid.T
	adapter *adapter[*gadget]
	e       *engagement
	live    client.WithWatch
	cache   *gadget // what our side sees; nil: nothing
	made    map[types.UID]bool
	others  map[string]bool // finalizers of others that must be there
	byHand  map[types.UID]bool
	born    int
	version int // the highest resourceVersion that was ever read

	fault    fault
	meddle   bool // somebody writes right before our next call
	dead     bool
	cleaning int // Finalize answers Pending so many times more
	notOurs  bool
}

type fault uint8

const (
	faultNone      fault = iota
	faultRefused         // the call fails
	faultForbidden       // the call is refused for now
	faultLost            // it is made, and we do not hear of it: a crash
	faults
)

var errFault = errors.New("fault")

func newFinalizerModel(t *rapid.T) *finalizerModel {
	m := &finalizerModel{t: t, made: map[types.UID]bool{}, others: map[string]bool{}, byHand: map[types.UID]bool{}}
	m.live = fake.NewClientBuilder().WithScheme(gadgetScheme).WithStatusSubresource(&gadget{}).Build()
	rt, err := NewRuntime(Options{Scheme: gadgetScheme})
	if err != nil {
		t.Fatal(err)
	}
	rt.holdAll(HoldOwnership, "no events in this model")
	c, err := For[*gadget](rt, "c", m).Register()
	if err != nil {
		t.Fatal(err)
	}
	m.e = c.engage(context.Background(), "a", &modelCluster{m: m})
	m.adapter = &adapter[*gadget]{controller: c, reconciler: m, deadline: time.Hour, finalizeDeadline: time.Hour,
		primary: &primary{finalizer: ourFinalizer, status: true}}
	return m
}

// modelCluster is the member as our side has it.
type modelCluster struct {
	fakeCluster
	m *finalizerModel
}

func (c *modelCluster) GetCache() cache.Cache { return modelCache{m: c.m} }

func (c *modelCluster) GetClient() client.Client {
	return interceptor.NewClient(c.m.live, interceptor.Funcs{
		Patch: func(ctx context.Context, w client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return c.m.call(func() error { return w.Patch(ctx, obj, patch, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, w client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return c.m.call(func() error { return w.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

func (c *modelCluster) GetAPIReader() client.Reader {
	return interceptor.NewClient(c.m.live, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return c.m.call(func() error { return w.Get(ctx, key, obj, opts...) })
		},
	})
}

// call makes one call of ours, with whatever goes wrong with it.
func (m *finalizerModel) call(do func() error) error {
	fault := m.fault
	m.fault = faultNone
	if m.meddle {
		m.meddle = false
		m.changeLive(func(g *gadget) {
			g.Labels = map[string]string{"n": rapid.StringN(1, 8, -1).Draw(m.t, "label")}
		})
	}
	if m.dead || fault == faultRefused {
		return errFault
	}
	if fault == faultForbidden {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "gadgets"}, "one", nil)
	}
	err := do()
	if fault == faultLost {
		return errFault
	}
	return err
}

type modelCache struct {
	fakeCache
	m *finalizerModel
}

func (c modelCache) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	if c.m.cache == nil {
		return c.m.live.Get(context.Background(), client.ObjectKey{Namespace: "none", Name: "none"}, out)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(c.m.cache.DeepCopyObject()).Elem())
	return nil
}

// Reconcile makes the thing outside. It must never do so for an object that the API server does not know to be held by us.
func (m *finalizerModel) Reconcile(_ context.Context, req Request[*gadget]) (Result, error) {
	g := m.read()
	if g != nil && g.UID == req.Object.UID && !slices.Contains(g.Finalizers, ourFinalizer) && !m.byHand[g.UID] {
		m.t.Fatalf("reconciled %s without our finalizer", g.UID)
	}
	if g == nil || g.UID != req.Object.UID {
		if !m.byHand[req.Object.UID] {
			m.t.Fatalf("reconciled %s, which went without us", req.Object.UID)
		}
		return Done(), nil
	}
	m.made[req.Object.UID] = true
	return Done(), nil
}

// Finalize takes it away again.
func (m *finalizerModel) Finalize(_ context.Context, req Request[*gadget]) (FinalizeResult, error) {
	switch {
	case m.dead:
		return FinalizeResult{}, errFault
	case m.cleaning > 0:
		m.cleaning--
		return Pending(time.Minute, "not yet"), nil
	case m.notOurs:
		delete(m.made, req.Object.UID)
		return NotOurs("detached"), nil
	}
	delete(m.made, req.Object.UID)
	return CleanedUp(), nil
}

// read is the object as the API server has it; nil: it has none.
func (m *finalizerModel) read() *gadget {
	g := &gadget{}
	if err := m.live.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "one"}, g); err != nil {
		return nil
	}
	if version, err := strconv.Atoi(g.ResourceVersion); err == nil {
		m.version = max(m.version, version)
	}
	return g
}

func (m *finalizerModel) changeLive(f func(*gadget)) {
	if g := m.read(); g != nil {
		f(g)
		if err := m.live.Update(context.Background(), g); err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *finalizerModel) reconcile(*rapid.T) {
	end := m.adapter.run(context.Background(), m.e, types.NamespacedName{Namespace: "default", Name: "one"})
	if v := judge(end, 0, retry.Usual, 0.5); end.err != nil && v.next != nextRetry {
		m.t.Fatalf("%v, and nothing tries it again: %+v", end.err, v)
	}
	m.fault, m.meddle = faultNone, false
}

func (m *finalizerModel) sync(*rapid.T) { m.cache = m.read() }

func (m *finalizerModel) create(t *rapid.T) {
	if m.read() != nil {
		t.Skip("it is there")
	}
	m.born++
	g := newGadget("one")
	g.UID = types.UID(string(rune('a'+m.born%26)) + time.Duration(m.born).String())
	m.others = map[string]bool{}
	if err := m.live.Create(context.Background(), g); err != nil {
		t.Fatal(err)
	}
	// The fake begins to count versions again, and would take a patch made from the object before for one of this object.
	for before := m.version; m.version <= before; {
		m.changeLive(func(g *gadget) { g.Labels = map[string]string{"version": g.ResourceVersion} })
		m.read()
	}
}

func (m *finalizerModel) deleteIt(t *rapid.T) {
	if g := m.read(); g != nil && g.DeletionTimestamp == nil {
		if err := m.live.Delete(context.Background(), g); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *finalizerModel) otherAdds(t *rapid.T) {
	g := m.read()
	if g == nil || g.DeletionTimestamp != nil {
		t.Skip("not now")
	}
	name := rapid.SampledFrom([]string{"other/a", "other/b", "plimsoll.dev/cc"}).Draw(t, "name")
	if m.others[name] {
		t.Skip("it is there")
	}
	m.others[name] = true
	at := rapid.IntRange(0, len(g.Finalizers)).Draw(t, "place")
	m.changeLive(func(g *gadget) { g.Finalizers = slices.Insert(g.Finalizers, at, name) })
}

func (m *finalizerModel) otherRemoves(t *rapid.T) {
	if len(m.others) == 0 {
		t.Skip("there is none")
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(m.others))).Draw(t, "name")
	delete(m.others, name)
	m.changeLive(func(g *gadget) {
		g.Finalizers = slices.DeleteFunc(g.Finalizers, func(f string) bool { return f == name })
	})
}

// takeOff is somebody who removes our finalizer by hand; what is left behind then is not our doing.
func (m *finalizerModel) takeOff(t *rapid.T) {
	g := m.read()
	if g == nil || rapid.IntRange(0, 3).Draw(t, "rare") > 0 {
		t.Skip("not now")
	}
	m.byHand[g.UID] = true
	m.changeLive(func(g *gadget) {
		g.Finalizers = slices.DeleteFunc(g.Finalizers, func(f string) bool { return f == ourFinalizer })
	})
}

func (m *finalizerModel) trouble(t *rapid.T) {
	m.fault = fault(rapid.IntRange(0, int(faults)-1).Draw(t, "fault"))
	m.meddle = rapid.Bool().Draw(t, "meddle")
	m.cleaning = rapid.IntRange(0, 2).Draw(t, "cleaning")
	m.notOurs = rapid.IntRange(0, 5).Draw(t, "notOurs") == 0
}

func (m *finalizerModel) die(*rapid.T)    { m.dead = true }
func (m *finalizerModel) revive(*rapid.T) { m.dead = false }

// check holds at every moment.
func (m *finalizerModel) check(t *rapid.T) {
	g := m.read()
	for uid := range m.made {
		if (g == nil || g.UID != uid) && !m.byHand[uid] {
			t.Fatalf("%s is gone, and what was made for it is not", uid)
		}
	}
	if g == nil {
		return
	}
	have := map[string]bool{}
	for _, f := range g.Finalizers {
		if have[f] {
			t.Fatalf("finalizers %v: one is there twice", g.Finalizers)
		}
		have[f] = true
	}
	delete(have, ourFinalizer)
	if !maps.Equal(have, m.others) {
		t.Fatalf("finalizers %v, want those of others to be %v", g.Finalizers, m.others)
	}
}

// settle is what must come true when the trouble ends.
func (m *finalizerModel) settle(t *rapid.T) {
	m.dead, m.fault, m.meddle, m.cleaning = false, faultNone, false, 0
	m.deleteIt(t)
	for name := range m.others {
		delete(m.others, name)
		m.changeLive(func(g *gadget) {
			g.Finalizers = slices.DeleteFunc(g.Finalizers, func(f string) bool { return f == name })
		})
	}
	for range 3 {
		m.sync(t)
		m.reconcile(t)
		m.check(t)
	}
	if g := m.read(); g != nil {
		t.Fatalf("it is never gone: finalizers %v", g.Finalizers)
	}
}

func TestNoFinalizerIsLostAndNothingGoesBeforeItIsCleanedUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newFinalizerModel(t)
		m.create(t)
		t.Repeat(map[string]func(*rapid.T){
			"reconcile": m.reconcile, "reconcile again": m.reconcile, "sync": m.sync, "sync again": m.sync,
			"create": m.create, "delete": m.deleteIt, "other adds": m.otherAdds, "other removes": m.otherRemoves,
			"take off": m.takeOff, "trouble": m.trouble, "die": m.die, "revive": m.revive, "": m.check,
		})
		m.settle(t)
	})
}
