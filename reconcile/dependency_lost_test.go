package reconcile

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// losable is a source whose lists and watches can be taken away; reads stay.
type losable struct {
	*source
	mu   sync.Mutex
	lost error // nil: lists and watches work
	open []apiwatch.Interface
}

var (
	errMayNotWatch = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
	errNotReady    = apierrors.NewServiceUnavailable("etcd is away")
)

func (l *losable) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (apiwatch.Interface, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return nil, l.lost
	}
	w, err := l.source.Watch(ctx, list, opts...)
	if err == nil {
		l.open = append(l.open, w)
	}
	return w, err
}

func (l *losable) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	return l.source.List(ctx, list, opts...)
}

// cut ends all watches; lost is what lists and further watches fail with, nil: they work.
func (l *losable) cut(lost error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = lost
	for _, w := range l.open {
		w.Stop()
	}
	l.open = nil
}

type losableCluster struct {
	*sourceCluster
	losable *losable
}

func (c *losableCluster) WatchClient() client.WithWatch { return c.losable }

// enterLosable makes a member join whose watches of dependencies can be taken away, with one object to reconcile.
func (s *site) enterLosable(name string) *losable {
	inner, _ := s.enter("without " + name)
	cl := &losableCluster{&sourceCluster{newFakeCluster(s.ctx, &corev1.ConfigMap{}), inner.api}, &losable{source: inner.api}}
	s.engage(s.ctx, s.c, name, cl)
	cl.add(configMap("one"))
	return cl.losable
}

func password() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "password"}}
}

func onPassword(*corev1.ConfigMap) []Dependency {
	return []Dependency{OnSecret(types.NamespacedName{Name: "password"})}
}

func TestADependencyWhoseWatchIsLostIsLookedAtLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, onPassword)
		member := s.enterLosable("a")
		time.Sleep(10 * time.Second)
		member.cut(errMayNotWatch) // somebody takes "watch secrets" away; "get" stays
		time.Sleep(time.Second)
		if err := member.Create(s.ctx, password()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * insideAgain)
		if r, _ := s.Lookup(keyOf("c", "a", "one")); s.seen.count() == 0 {
			t.Errorf("the Secret is there, and the object waits: %q", r.Reason)
		}
		s.cancel()
	})
}

// Whatever becomes of the watch and of what is depended on: the object is reconciled when it is there, and waits when the
// watch says that it is not.
func TestTheAnswerOfADependencyIsTheMembersWhateverBecomesOfItsWatch(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			s := newSite(t, onPassword)
			member := s.enterLosable("a")
			there, lost, history := false, false, ""
			for range 40 {
				step := random.IntN(4)
				switch step {
				case 0, 1:
					lost = step == 1
					member.cut(map[bool]error{true: errMayNotWatch}[lost])
				case 2:
					if err := member.Create(s.ctx, password()); err == nil {
						there = true
					}
				case 3:
					if err := member.Delete(s.ctx, password()); err == nil {
						there = false
					}
				}
				history += fmt.Sprint(step)
				time.Sleep(refusedAgain + 2*insideAgain)
				r, _ := s.Lookup(keyOf("c", "a", "one"))
				if met := r.State == StateIdle; there && !met || !there && !lost && met {
					t.Fatalf("seed %d, after %s: there %t, watch lost %t, and it is %s, %q", seed, history, there, lost, r.State, r.Reason)
				}
			}
			member.cut(nil)
			s.cancel()
		})
	}
}

func TestAWatchForDependenciesIsOpenedAgainWithinASecondOnceTheMemberAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, onPassword)
		member := s.enterLosable("a")
		age := func() float64 { return s.value("plimsoll_dependency_watch_age_seconds", "member=a") }
		time.Sleep(10 * time.Second)
		if got := age(); got != 0 {
			t.Fatalf("the watch is open, and its age is %g s", got)
		}
		member.cut(errNotReady)
		time.Sleep(10 * time.Minute)
		if got := age(); got < 9*60 {
			t.Errorf("the watch is closed for ten minutes, and its age is %g s", got)
		}
		member.cut(nil)
		time.Sleep(lostAgain)
		if got := age(); got != 0 {
			t.Errorf("the member has answered for a second, and the watch is closed for %g s", got)
		}
		s.cancel()
	})
}

// hiding is a member where Secrets may be neither watched nor read, with so many objects to reconcile.
func (s *site) hiding(objects int) *sourceCluster {
	cl := &sourceCluster{newFakeCluster(s.ctx, &corev1.ConfigMap{}), &source{
		forbidden: true, WithWatch: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(),
	}}
	cl.api.hidden.Store("", true)
	s.engage(s.ctx, s.c, "a", cl)
	for i := range objects {
		cl.add(configMap(fmt.Sprint("cm-", i)))
	}
	return cl
}

// Each name by itself would be a read every 5 s, by a worker that waits for it: 200 objects with 32 names are 1,280 reads a second.
func TestWhereSecretsMayNotBeReadTheMemberIsNotAskedForEachName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(cm *corev1.ConfigMap) (all []Dependency) {
			for i := range 32 {
				all = append(all, OnSecret(types.NamespacedName{Name: fmt.Sprint(cm.Name, "-", i)}))
			}
			return all
		})
		member := s.hiding(50)
		time.Sleep(time.Minute)
		s.waits("a", "cm-7", "waits for Secret default/cm-7-0: the hub may not read it; Secret default/cm-7-1: the hub may not read it; "+
			"Secret default/cm-7-2: the hub may not read it; Secret default/cm-7-3: the hub may not read it; "+
			"Secret default/cm-7-4: the hub may not read it, and 27 more")
		if n := member.api.gets.count(); n == 0 || n > 100 {
			t.Errorf("%d reads in a minute of 1600 names in one namespace that may not be read; want a few for each try of the watch", n)
		}
		member.api.hidden.Clear() // somebody gives the right to read; that to watch is not given
		time.Sleep(refusedAgain + 2*insideAgain)
		s.waits("a", "cm-7", "waits for Secret default/cm-7-0: it does not exist; Secret default/cm-7-1: it does not exist; "+
			"Secret default/cm-7-2: it does not exist; Secret default/cm-7-3: it does not exist; "+
			"Secret default/cm-7-4: it does not exist, and 27 more")
		s.cancel()
	})
}

func TestASecretThatMayBeReadIsAlsoWhereOthersMayNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, func(cm *corev1.ConfigMap) []Dependency {
			return []Dependency{OnSecret(types.NamespacedName{Name: cm.Name})}
		})
		member := s.hiding(2)
		member.api.hidden.Clear()
		time.Sleep(time.Minute)
		member.api.hidden.Store("cm-0", true) // rights are for names
		time.Sleep(time.Minute)
		s.waits("a", "cm-0", "waits for Secret default/cm-0: the hub may not read it")
		must(t, member.api.Create(t.Context(), secret("cm-1")))
		time.Sleep(insideAgain)
		s.waits("a", "cm-1", "")
		s.cancel()
	})
}

// Rights may be for names: who has one of fifty is asked for in its turn, and not only if it happens to be the first to be asked for.
func TestASecretThatMayBeReadIsFoundAmongThoseThatMayNot(t *testing.T) {
	for _, readable := range []string{"cm-0", "cm-23", "cm-49"} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, func(cm *corev1.ConfigMap) []Dependency {
				return []Dependency{OnSecret(types.NamespacedName{Name: cm.Name})}
			})
			member := s.hiding(0)
			member.api.hidden.Clear()
			must(t, member.api.Create(t.Context(), secret(readable)))
			for i := range 50 {
				name := fmt.Sprint("cm-", i)
				if name != readable {
					member.api.hidden.Store(name, true)
				}
				member.add(configMap(name))
			}
			const windows = 5 // of refusedAgain on the clock of synctest; 16 of the 50 names have their turn in each
			time.Sleep(windows * refusedAgain)
			s.waits("a", readable, "")
			if n := member.api.gets.count(); n > 50+windows*(16+5) { // the readable one is read again every 5 s once it was found
				t.Errorf("%d reads of 50 names", n)
			}
			s.cancel()
		})
	}
}
