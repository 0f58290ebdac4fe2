package integration

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

func TestDependenciesOnARealAPIServer(t *testing.T) {
	fleets.beside(t)
	c := kube.New(t, kube.Options{Name: "dependencies", Minimal: true})
	t.Run("Secrets are watched by namespace, names only, as long as somebody depends on one", func(t *testing.T) { secretWatchSpec(t, c) })
	t.Run("a member that lets nobody list Secrets is asked for each, again and again", func(t *testing.T) { unlistedSecretSpec(t, c) })
	t.Run("an endpoint on the hub's own machine is not called, unless the configuration allows it", func(t *testing.T) { endpointSpec(t, c) })
	t.Run("owned objects and declared fields are found by index", func(t *testing.T) { indexSpec(t, c) })
}

// needing makes a controller whose ConfigMaps labelled needs=NAME depend on that Secret.
func needing(s *reconcileSite, of ...reconcile.Dependency) {
	s.mustRegister(reconcile.For(s.runtime, "needing", satisfied).DependsOn(func(cm *corev1.ConfigMap) []reconcile.Dependency {
		if name := cm.Labels["needs"]; name != "" {
			return append(of, reconcile.OnSecret(types.NamespacedName{Name: name}, "password"))
		}
		return nil
	}).Register())
}

// need creates a ConfigMap that depends on a Secret.
func (s *reconcileSite) need(name, secret string) *corev1.ConfigMap {
	s.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: map[string]string{"needs": secret}}}
	s.g.Expect(s.client.Create(s.ctx, cm)).To(Succeed())
	return cm
}

func (s *reconcileSite) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, StringData: map[string]string{"password": "s3cr3t-canary"}}
}

func (s *reconcileSite) reason(controller, member, name string) func() string {
	return func() string { return s.record(controller, member, name).Reason }
}

func secretWatchSpec(t *testing.T, c *kube.Cluster) {
	s := newReconcileSite(t, c, func(s *reconcileSite) { needing(s) })
	mark, err := c.Audit().Mark()
	s.g.Expect(err).NotTo(HaveOccurred())
	s.join("a")
	one, two := s.need("one", "db"), s.need("two", "db")
	s.g.Eventually(s.reason("needing", "a", "one")).Should(Equal("waits for Secret " + s.namespace + "/db: it does not exist"))
	s.g.Expect(s.client.Create(s.ctx, s.secret("unrelated"))).To(Succeed())
	s.g.Expect(s.client.Create(s.ctx, s.secret("db"))).To(Succeed())
	s.g.Eventually(s.state("needing", "a", "one")).Should(Equal(reconcile.StateIdle))
	s.g.Eventually(s.state("needing", "a", "two")).Should(Equal(reconcile.StateIdle))

	asked := func() []kube.AuditEvent {
		events, err := c.Audit().Since(mark, kube.OnResource("secrets"), kube.ByUserAgent("plimsoll-hub"),
			func(e kube.AuditEvent) bool { return !strings.Contains(e.URI, "plimsoll.dev%2Fmember") })
		s.g.Expect(err).NotTo(HaveOccurred())
		return events
	}
	watches := 0
	for _, e := range asked() {
		s.g.Expect(e.Namespace).To(Equal(s.namespace), e.URI)
		s.g.Expect(e.Name).NotTo(Equal("unrelated"))
		if e.Verb == "watch" {
			watches++
		}
	}
	s.g.Expect(watches).To(Equal(1), "two objects that depend on one Secret share a watch")

	s.g.Expect(s.client.Delete(s.ctx, one)).To(Succeed())
	s.g.Expect(s.client.Delete(s.ctx, two)).To(Succeed())
	s.g.Eventually(func() int { return s.runtime.Watched("a") }).Should(BeZero(), "nobody depends on anything any more")
	s.g.Expect(s.shown()).NotTo(ContainSubstring("s3cr3t-canary"))
}

func unlistedSecretSpec(t *testing.T, c *kube.Cluster) {
	s := newReconcileSite(t, c, func(s *reconcileSite) { needing(s) })
	var refused atomic.Int32
	strict, err := kube.NewProxy(c, kube.ProxyOptions{Name: "strict", ClusterUID: s.namespace + "-strict", Intercept: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/secrets") {
				refused.Add(1)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	s.g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(strict.Close)
	s.register("strict", s.kubeconfig(strict))
	s.need("one", "db")
	s.g.Eventually(s.reason("needing", "strict", "one")).Should(ContainSubstring("it does not exist"))
	s.g.Expect(s.client.Create(s.ctx, s.secret("db"))).To(Succeed())
	s.g.Eventually(s.state("needing", "strict", "one")).Should(Equal(reconcile.StateIdle))
	s.g.Expect(refused.Load()).To(BeNumerically(">", 0), "the list was tried")
}

func endpointSpec(t *testing.T, c *kube.Cluster) {
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	s := newReconcileSite(t, c, func(s *reconcileSite) { needing(s, reconcile.OnEndpoint(server.URL+"/healthz?token=s3cr3t-canary")) })
	s.join("a")
	s.g.Expect(s.client.Create(s.ctx, s.secret("db"))).To(Succeed())
	s.need("one", "db")
	s.g.Eventually(s.reason("needing", "a", "one")).Should(Equal("waits for " + server.URL + "/healthz: address 127.0.0.1: " +
		"loopback addresses are not allowed, unless they are listed in the allowed networks"))
	s.g.Expect(asked.Load()).To(BeZero())
	s.g.Expect(s.shown()).NotTo(ContainSubstring("s3cr3t-canary"))
}

func indexSpec(t *testing.T, c *kube.Cluster) {
	found := make(chan []string, 100)
	s := newReconcileSite(t, c, func(s *reconcileSite) {
		look := deployments(func(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
			var owned, blue corev1.ServiceList
			if err := req.ListOwned(ctx, &owned); err != nil {
				return reconcile.Done(), err
			}
			if err := req.Client.List(ctx, &blue, client.InNamespace(req.Object.Namespace), client.MatchingFields{"color": "blue"}); err != nil {
				return reconcile.Done(), err
			}
			names := []string{}
			for _, service := range append(owned.Items, blue.Items...) {
				names = append(names, service.Name)
			}
			found <- names
			return reconcile.Done(), nil
		})
		s.mustRegister(reconcile.For(s.runtime, "looking", look).Owns(clusters.Kind{Object: &corev1.Service{}}).
			Index(&corev1.Service{}, "color", func(obj client.Object) []string { return []string{obj.GetLabels()["color"]} }).Register())
	})
	s.join("a")
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app:1"}}}}}}
	s.g.Expect(s.client.Create(s.ctx, web)).To(Succeed())
	for name, labels := range map[string]map[string]string{"owned": nil, "blue": {"color": "blue"}, "red": {"color": "red"}} {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, Labels: labels},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		if name == "owned" {
			service.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(web, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
			service.OwnerReferences[0].APIVersion = "apps/v1beta7"
		}
		s.g.Expect(s.client.Create(s.ctx, service)).To(Succeed())
	}
	s.g.Eventually(func() []string {
		_, _ = s.runtime.Requeue(s.key("looking", "a", "web")) // not in the ledger yet, at first
		select {
		case names := <-found:
			return names
		default:
			return nil
		}
	}).Should(Equal([]string{"owned", "blue"}))
}

// deployments is a reconciler made of a function.
type deployments func(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error)

func (f deployments) Reconcile(ctx context.Context, req reconcile.Request[*appsv1.Deployment]) (reconcile.Result, error) {
	return f(ctx, req)
}
