package reconcile

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// sourceCluster is a fakeCluster whose API server has what objects depend on.
type sourceCluster struct {
	*fakeCluster
	api *source
}

func (c *sourceCluster) WatchClient() client.WithWatch { return c.api }
func (c *sourceCluster) GetClient() client.Client      { return c.api }
func (c *sourceCluster) GetAPIReader() client.Reader   { return c.api }

// source is an API server that counts reads, and may refuse lists. Its lists and watches know no field selectors.
type source struct {
	client.WithWatch
	gets      calls
	forbidden bool
	hidden    sync.Map // names of Secrets of which reads are forbidden; "": of all
}

func (s *source) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	s.gets.add(fmt.Sprintf("%T", obj), key.String())
	_, all := s.hidden.Load("")
	if _, one := s.hidden.Load(key.Name); one || all {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
	}
	return s.WithWatch.Get(ctx, key, obj, opts...)
}

func (s *source) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if s.forbidden {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
	}
	return s.WithWatch.List(ctx, list, withoutFields(opts))
}

func (s *source) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (apiwatch.Interface, error) {
	w, err := s.WithWatch.Watch(ctx, list, withoutFields(opts))
	if err != nil {
		return nil, err
	}
	return apiwatch.Filter(w, func(e apiwatch.Event) (apiwatch.Event, bool) {
		e.Object = itemOf(list, e.Object)
		return e, true
	}), nil
}

// itemOf is what an API server would send of an object that a list of this kind is watched for; the fake sends its own.
func itemOf(list client.ObjectList, obj runtime.Object) runtime.Object {
	gvk := list.GetObjectKind().GroupVersionKind()
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	if _, whole := list.(*unstructured.UnstructuredList); whole {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			panic(err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(gvk)
		return u
	}
	o := obj.(client.Object)
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion(),
	}}
	m.SetGroupVersionKind(gvk)
	return m
}

func withoutFields(opts []client.ListOption) client.ListOption {
	var o client.ListOptions
	o.ApplyOptions(opts)
	return &client.ListOptions{Namespace: o.Namespace}
}

// site has one controller of ConfigMaps in a member with Secrets, ConfigMaps and Deployments to depend on.
type site struct {
	*hub
	c    *Controller
	seen *calls
}

func newSite(t *testing.T, dependsOn func(*corev1.ConfigMap) []Dependency) *site {
	t.Helper()
	s := &site{hub: newHub(t, Options{Resync: -1}), seen: &calls{}}
	s.c = launch(s.hub, For(s.Runtime, "c", counting(s.seen)).DependsOn(dependsOn))
	return s
}

// enter makes a member join that has these objects to depend on.
func (s *site) enter(name string, objects ...client.Object) (cl *sourceCluster, leave func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.ctx)
	cl = &sourceCluster{newFakeCluster(ctx, &corev1.ConfigMap{}), &source{
		WithWatch: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).WithStatusSubresource(&appsv1.Deployment{}).Build(),
	}}
	s.engage(ctx, s.c, name, cl)
	synctest.Wait()
	return cl, cancel
}

// waits checks that an object waits with a reason; empty: that it does not wait.
func (s *site) waits(member, name, reason string) {
	s.t.Helper()
	synctest.Wait()
	r, ok := s.Lookup(keyOf("c", member, name))
	switch {
	case !ok:
		s.t.Errorf("%s in %s is not in the ledger, want %q", name, member, reason)
	case r.Reason != reason:
		s.t.Errorf("%s in %s waits with\n%q, want\n%q", name, member, r.Reason, reason)
	}
}

// idle checks that nothing is left of what was depended on.
func (s *site) idle() {
	s.t.Helper()
	synctest.Wait()
	if n := s.dependencies.Size(); n > 0 {
		s.t.Errorf("%d things are left of what was depended on", n)
	}
}

func secret(name string, data ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{}}
	for _, key := range data {
		s.Data[key] = []byte(canary)
	}
	return s
}

// What the documentation says about when dependencies are looked at again.
const (
	insideAgain  = 5 * time.Second
	outsideAgain = 30 * time.Second
	refusedAgain = 30 * time.Second
	lostAgain    = time.Second
)

func onDB(*corev1.ConfigMap) []Dependency {
	return []Dependency{OnSecret(types.NamespacedName{Name: "db"})}
}

func TestAnObjectSaysWhatItWaitsForAndRunsAtOnceWhenItIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, onDB)
		a, _ := s.enter("a")
		a.add(configMap("one"))
		s.waits("a", "one", "waits for Secret default/db: it does not exist")
		if s.seen.count() != 0 {
			t.Error("reconciled without what it depends on")
		}
		began := time.Now()
		must(t, a.api.Create(t.Context(), secret("other")))
		synctest.Wait()
		must(t, a.api.Create(t.Context(), secret("db")))
		s.waits("a", "one", "")
		if s.seen.count() != 1 || time.Since(began) != 0 {
			t.Errorf("%d reconciles after %s, want one at once", s.seen.count(), time.Since(began))
		}
		must(t, a.api.Delete(t.Context(), secret("db")))
		s.waits("a", "one", "waits for Secret default/db: it does not exist")
		s.cancel()
	})
}

func TestAnUnmetDependencyIsLookedAtAgainAfterFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, onDB)
		ctx, cancel := context.WithCancel(s.ctx)
		defer cancel()
		blind := &sourceCluster{newFakeCluster(ctx, &corev1.ConfigMap{}), &source{forbidden: true,
			WithWatch: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()}}
		s.engage(ctx, s.c, "a", blind)
		blind.add(configMap("one"))
		s.waits("a", "one", "waits for Secret default/db: it does not exist")
		r, _ := s.Lookup(keyOf("c", "a", "one"))
		if wait := time.Until(r.NextTry); wait != insideAgain {
			t.Errorf("next try in %s, want %s", wait, insideAgain)
		}
		must(t, blind.api.Create(t.Context(), secret("db")))
		synctest.Wait()
		if s.seen.count() != 0 {
			t.Error("it was seen though it cannot be watched")
		}
		time.Sleep(insideAgain)
		s.waits("a", "one", "")
		if s.seen.count() != 1 {
			t.Errorf("%d reconciles, want 1", s.seen.count())
		}
		s.cancel()
	})
}

func TestKeysOfASecretAreRequiredAndItsValuesKeptNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(*corev1.ConfigMap) []Dependency {
			return []Dependency{OnSecret(inDefault("db"), "user", "password"), OnConfigMap(inDefault("settings"), "tier")}
		})
		a, _ := s.enter("a", secret("db", "user"),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}, BinaryData: map[string][]byte{"tier": nil}})
		a.add(configMap("one"))
		s.waits("a", "one", `waits for Secret default/db: it has no key "password"`)
		whole := secret("db", "user", "password")
		must(t, a.api.Update(t.Context(), whole))
		s.waits("a", "one", "")
		must(t, a.api.Update(t.Context(), secret("db")))
		s.waits("a", "one", `waits for Secret default/db: it has none of the keys "password", "user"`)
		s.cancel()
	})
}

func TestWhatIsWatchedIsNotReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(*corev1.ConfigMap) []Dependency {
			return []Dependency{OnSecret(inDefault("db"), "user"), OnConfigMap(inDefault("settings"))}
		})
		a, _ := s.enter("a", secret("db", "user"), configMap("settings"))
		for i := range 20 {
			a.add(configMap(fmt.Sprintf("cm-%d", i)))
		}
		synctest.Wait()
		// Those that came before the watch of what they need did are looked at once more when it opens.
		before, reconciled := a.api.gets.count(), s.seen.count()
		for i := range 20 {
			changed := configMap(fmt.Sprintf("cm-%d", i))
			changed.Labels = map[string]string{"a": "b"}
			a.modify(changed)
		}
		synctest.Wait()
		if n := s.seen.count() - reconciled; n != 20 {
			t.Errorf("%d reconciles of 20 changes", n)
		}
		if n := a.api.gets.count(); n != before || n > 4 {
			t.Errorf("%d reads at first and %d later: want one of each, and none later", before, n-before)
		}
		s.cancel()
	})
}

func available(name string, status corev1.ConditionStatus) *appsv1.Deployment {
	d := deployment(name)
	d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: status}}
	return d
}

func TestADependencyInAnotherMemberIsFollowedThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(cm *corev1.ConfigMap) []Dependency {
			if cm.Name != "front" {
				return nil
			}
			return []Dependency{OnCondition(deploymentKind, inDefault("back"), "Available", metav1.ConditionTrue).In("b")}
		})
		a, _ := s.enter("a")
		a.add(configMap("front"))
		s.waits("a", "front", "waits for Deployment default/back in member b: the member is not there")
		b, leave := s.enter("b", available("back", corev1.ConditionFalse))
		s.waits("a", "front", "waits for Deployment default/back in member b: its condition Available is False, not True")
		now := available("back", corev1.ConditionTrue)
		must(t, b.api.Status().Update(t.Context(), now))
		s.waits("a", "front", "")
		runs := s.seen.count()
		now.Labels = map[string]string{"changed": "elsewhere"}
		must(t, b.api.Update(t.Context(), now))
		synctest.Wait()
		if s.seen.count() != runs {
			t.Error("a change that has nothing to do with the condition woke it")
		}
		leave()
		s.waits("a", "front", "waits for Deployment default/back in member b: the member is not there")
		again, _ := s.enter("b", available("back", corev1.ConditionTrue))
		s.waits("a", "front", "")
		must(t, again.api.Delete(t.Context(), deployment("back")))
		s.waits("a", "front", "waits for Deployment default/back in member b: it does not exist")
		s.cancel()
	})
}

func TestNothingIsLeftOfDependenciesThatAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		needed := true
		s := newSite(t, func(cm *corev1.ConfigMap) []Dependency {
			if !needed && cm.Name == "changes" {
				return nil
			}
			return append(onDB(cm), OnCondition(deploymentKind, inDefault("back"), "Available", metav1.ConditionTrue).In("b"))
		})
		a, leave := s.enter("a", secret("db"))
		_, leaveB := s.enter("b", available("back", corev1.ConditionTrue))
		for _, name := range []string{"goes", "changes", "leaves"} {
			a.add(configMap(name))
		}
		synctest.Wait()
		a.remove(configMap("goes"))
		needed = false
		changed := configMap("changes")
		changed.Labels = map[string]string{"a": "b"}
		a.modify(changed)
		synctest.Wait()
		if n := s.c.queue.flows["a"].needs.Dependents(); n != 1 {
			t.Errorf("%d dependents, want the one that is left", n)
		}
		leave()
		s.idle()
		leaveB()
		s.idle()
		s.cancel()
	})
}

func TestACircleOfDependenciesIsToldAndDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := map[string]string{"x": "y", "y": "z", "z": "x", "self": "self", "ahead": "x"}
		s := newSite(t, func(cm *corev1.ConfigMap) []Dependency {
			return []Dependency{OnCondition(settingsKind, inDefault(next[cm.Name]), "Ready", metav1.ConditionTrue)}
		})
		a, _ := s.enter("a", configMap("x"), configMap("y"), configMap("z"), configMap("self"))
		for name := range next {
			a.add(configMap(name))
		}
		time.Sleep(time.Minute) // every one has looked again since the last came
		s.waits("a", "x", "waits for ConfigMap default/y: it has no condition Ready (a circle of dependencies: "+
			"ConfigMap default/x → ConfigMap default/y → ConfigMap default/z → ConfigMap default/x)")
		s.waits("a", "self", "waits for ConfigMap default/self: it has no condition Ready (a circle of dependencies: "+
			"ConfigMap default/self → ConfigMap default/self)")
		s.waits("a", "ahead", "waits for ConfigMap default/x: it has no condition Ready")
		before, _ := s.Lookup(keyOf("c", "a", "x"))
		time.Sleep(10 * outsideAgain)
		after, _ := s.Lookup(keyOf("c", "a", "x"))
		if tries := after.Runs - before.Runs; tries > 10 {
			t.Errorf("%d tries in %s: a circle need not hurry", tries, 10*outsideAgain)
		}
		s.cancel()
	})
}

func TestAnObjectThatIsBeingDeletedWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, onDB)
		a, _ := s.enter("a")
		dying := configMap("one")
		dying.DeletionTimestamp, dying.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/theirs"}
		a.add(dying)
		synctest.Wait()
		if s.seen.count() != 1 {
			t.Errorf("%d reconciles, want 1", s.seen.count())
		}
		s.cancel()
	})
}

func TestARequirementInTheMiddleOfAReconcileWakesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &site{hub: newHub(t, Options{Resync: -1}), seen: &calls{}}
		fails := false
		s.c = launch(s.hub, For(s.Runtime, "c", reconciler(func(ctx context.Context, req Request[*corev1.ConfigMap]) (Result, error) {
			s.seen.add(req.Member, req.Object.Name)
			if fails {
				return Done(), fmt.Errorf("broken before it requires anything")
			}
			if unmet := req.Require(ctx, OnSecret(inDefault("db"))); unmet != nil {
				return WaitFor(unmet), nil
			}
			return Done(), nil
		})))
		a, _ := s.enter("a")
		a.add(configMap("one"))
		s.waits("a", "one", "waits for Secret default/db: it does not exist")
		fails = true
		must(t, s.requeue("one"))
		synctest.Wait()
		fails = false
		runs := s.seen.count()
		must(t, a.api.Create(t.Context(), secret("db")))
		synctest.Wait()
		if s.seen.count() != runs+1 {
			t.Error("a reconcile that failed forgot what its object depends on")
		}
		s.cancel()
	})
}

func (s *site) requeue(name string) error {
	_, err := s.Requeue(keyOf("c", "a", name))
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWaitingForNothingIsDone(t *testing.T) {
	if diff := cmp.Diff(Done(), WaitFor(nil), cmp.AllowUnexported(Result{})); diff != "" {
		t.Error(diff)
	}
}
