package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/reconciletest"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// TestStories runs the scripts of testdata/stories: members alpha and beta, each with an API server of its own, in which a
// controller gives every Deployment a Service once it has what its annotations say that it needs.
func TestStories(t *testing.T) {
	fleets.beside(t)
	stories, err := filepath.Glob(filepath.Join("testdata", "stories", "*.txtar"))
	if err != nil || len(stories) < 3 {
		t.Fatalf("%d stories: %v", len(stories), err)
	}
	s := newStorySite(t)
	for _, path := range stories {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(strings.ReplaceAll(name, "-", " "), func(t *testing.T) {
			if err := s.scenario(t).RunFile(t.Context(), path); err != nil {
				t.Error(err)
			}
			if shown := s.shown(); strings.Contains(shown, "s3cr3t-canary") {
				t.Error("a value of a Secret is in the log or the metrics")
			}
		})
	}
}

// storySite has a controller at work in two members.
type storySite struct {
	*reconcileSite
	members map[string]*kube.Cluster
	proxies map[string]*kube.Proxy
}

const storyController = "stories"

func newStorySite(t *testing.T) *storySite {
	alpha := kube.New(t, kube.Options{Name: "alpha", Minimal: true})
	beta := kube.New(t, kube.Options{Name: "beta", Minimal: true})
	s := &storySite{members: map[string]*kube.Cluster{"alpha": alpha, "beta": beta}, proxies: map[string]*kube.Proxy{}}
	s.reconcileSite = newReconcileSite(t, alpha, func(s *reconcileSite) {
		s.mustRegister(reconcile.For(s.runtime, storyController, exposer{}).
			Owns(clusters.Kind{Object: &corev1.Service{}}).DependsOn(neededBy).Register())
	})
	for name, c := range s.members {
		proxy, err := kube.NewProxy(c, kube.ProxyOptions{Name: name, ClusterUID: s.namespace + "-" + name})
		s.g.Expect(err).NotTo(HaveOccurred())
		t.Cleanup(proxy.Close)
		s.proxies[name] = proxy
		s.register(name, proxy.Kubeconfig(c.Kubeconfig()))
	}
	s.awaitReady("alpha")
	s.awaitReady("beta")
	return s
}

// neededBy are the dependencies that a Deployment names in its annotations.
func neededBy(d *appsv1.Deployment) (all []reconcile.Dependency) {
	if name := d.Annotations["needs-secret"]; name != "" {
		keys := strings.Split(d.Annotations["needs-keys"], ",")
		all = append(all, reconcile.OnSecret(types.NamespacedName{Name: name}, keys...))
	}
	if name := d.Annotations["needs-deployment"]; name != "" {
		other := types.NamespacedName{Namespace: d.Namespace, Name: name}
		all = append(all, reconcile.OnCondition(appsv1.SchemeGroupVersion.WithKind("Deployment"), other, "Available", metav1.ConditionTrue).
			In(d.Annotations["needs-member"]))
	}
	return all
}

// exposer gives a Deployment a Service.
type exposer struct{}

func (exposer) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	_, err := req.Apply(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name},
		Spec: corev1.ServiceSpec{
			Selector: req.Object.Spec.Selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 443, Protocol: corev1.ProtocolTCP}},
		},
	})
	return reconcile.Done(), err
}

// scenario is what a script needs, in a namespace of its own in both members.
func (s *storySite) scenario(t *testing.T) *reconciletest.Scenario {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	s.g.Expect(s.client.Create(t.Context(), ns)).To(Succeed())
	same := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}}
	s.g.Expect(s.members["beta"].Client().Create(t.Context(), same)).To(Succeed())
	told := &reconciletest.Scenario{Env: map[string]string{"NS": ns.Name}, Members: map[string]reconciletest.Target{}, Patience: memberPatience}
	for name, c := range s.members {
		told.Members[name] = reconciletest.Target{Client: c.Client(), Writes: writesOf(c, ns.Name)}
	}
	told.Commands = map[string]reconciletest.Command{
		"ledger": func(ctx context.Context, args []string) error {
			return reconciletest.Until(ctx, func(context.Context) error { return s.says(args[0], ns.Name, args[1], args[2]) })
		},
		"requeue": func(ctx context.Context, args []string) error { return s.requeue(ctx, args[0], ns.Name, args[1]) },
		"partition": func(_ context.Context, args []string) error {
			s.proxies[args[0]].Refuse()
			return nil
		},
		"heal": func(_ context.Context, args []string) error { return s.proxies[args[0]].Restore() },
	}
	return told
}

// writesOf notes what the hub writes in a namespace, by the API server's audit log.
func writesOf(c *kube.Cluster, namespace string) func() (func(context.Context) ([]string, error), error) {
	return func() (func(context.Context) ([]string, error), error) {
		mark, err := c.Audit().Mark()
		return func(context.Context) ([]string, error) {
			events, err := c.Audit().Since(mark, kube.InNamespace(namespace), kube.Writes, kube.ByUserAgent("plimsoll-hub"))
			var writes []string
			for _, e := range events {
				writes = append(writes, fmt.Sprint(e.Verb, " ", e.Resource, "/", e.Name))
			}
			return writes, err
		}, err
	}
}

func (s *storySite) storyKey(member, namespace, name string) reconcile.Key {
	return reconcile.Key{Controller: storyController, Member: member, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// says reports whether the ledger has a reason that holds the text; empty: whether nothing is left to do.
func (s *storySite) says(member, namespace, name, text string) error {
	record, ok := s.runtime.Lookup(s.storyKey(member, namespace, name))
	switch {
	case !ok:
		return errors.New("it is not in the ledger")
	case text == "" && record.State == reconcile.StateIdle && record.LastOutcome == reconcile.OutcomeDone:
		return nil
	case text != "" && strings.Contains(record.Reason, text):
		return nil
	}
	return fmt.Errorf("it is %s, last %s %s", record.State, record.LastOutcome, cmp.Or(record.Reason, record.LastError))
}

// requeue has an object reconciled, and waits for the end of it.
func (s *storySite) requeue(ctx context.Context, member, namespace, name string) error {
	operation, err := s.runtime.Requeue(s.storyKey(member, namespace, name))
	if err != nil {
		return err
	}
	return reconciletest.Until(ctx, func(context.Context) error {
		if now, ok := s.runtime.Operation(operation.ID); !ok || !now.Done {
			return fmt.Errorf("the reconcile has not ended: %+v", now.Record)
		}
		return nil
	})
}
