package integration

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

func TestWebAppsOnARealControlPlane(t *testing.T) {
	fleets.beside(t)
	f := startFleet(t, "eu")
	h := startHub(t, f, "webapps", fleet.Settings{"modules.webapp.imagePolicy": "deny", "modules.webapp.maxReplicas": 50})
	before, err := webAppCondition(t.Context(), h, "eu")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(before.GetReason()).To(Equal("Missing"), "a member without WebApps is as ready as any")
	s := newWebAppSite(t, f, h)
	for name, spec := range map[string]func(*webApps){
		"a WebApp lives from its creation to its end":                           webAppLifeSpec,
		"a WebApp waits for what its environment comes from":                    webAppEnvironmentSpec,
		"a port that is taken stalls it, until it is free":                      webAppPortSpec,
		"a quota stalls it, until it is raised":                                 webAppQuotaSpec,
		"what is somebody else's is left alone":                                 webAppForeignSpec,
		"what somebody changes or deletes is set right":                         webAppHealSpec,
		"an autoscaler keeps the replicas, and gives them back":                 webAppAutoscalerSpec,
		"older versions are served, and lose nothing":                           webAppVersionSpec,
		"what cannot be is refused, with field, value and rule":                 webAppRefusalSpec,
		"every rule of the definition is reported when it is broken":            webAppRulesSpec,
		"every bound of the definition is reported when it is broken":           webAppBoundsSpec,
		"what the hub may not do stalls it, until the hub may":                  webAppForbiddenSpec,
		"pods that a quota refuses stall it, until it is raised":                webAppPodQuotaSpec,
		"its replicas are placed, where the namespace's owner wants that":       webAppPlacedSpec,
		"in a namespace that is not enabled it runs, and says that it is alone": webAppNotEnabledSpec,
	} {
		t.Run(name, func(t *testing.T) { spec(s.begin(t, labelsOfSpec(name))) })
	}
	t.Run("a definition of a newer Plimsoll is left alone", func(t *testing.T) { webAppNewerSpec(s.begin(t, nil)) })
}

func labelsOfSpec(name string) map[string]string {
	if strings.Contains(name, "placed") {
		return map[string]string{fleet.Keys.Enabled(): "true"}
	}
	return nil
}

func webAppLifeSpec(s *webApps) {
	events, err := s.client.Watch(s.ctx, &v1.WebAppList{}, client.InNamespace(s.namespace))
	s.Expect(err).NotTo(HaveOccurred())
	defer events.Stop()
	read := s.create(func(app *v1.WebApp) {
		app.Spec.PodDisruptionBudget = &v1.PodDisruptionBudget{MaxUnavailable: new(intstr.FromInt32(1))}
	})
	s.Eventually(read).Should(And(webAppReady, is("Created", "True", "Created", "all of its objects exist"),
		HaveField("Status.AvailableReplicas", BeEquivalentTo(2)), HaveField("Status.ObservedGeneration", BeEquivalentTo(1)),
		HaveField("Status.Selector", "apps.plimsoll.dev/webapp=shop"), HaveField("Labels", HaveKeyWithValue("app.kubernetes.io/name", "shop"))))

	parts := []client.Object{&v1.WebApp{}, &appsv1.Deployment{}, &corev1.Service{}, &corev1.ServiceAccount{}, &policyv1.PodDisruptionBudget{}}
	s.Eventually(func() bool { // until the last event of its birth has been heard
		first := s.versions(parts[:3]...)
		s.ask(read, "settled")
		second := s.versions(parts[1:3]...)
		return first["*v1.Deployment"] == second["*v1.Deployment"]
	}).Should(BeTrue())
	still := s.versions(parts[1:]...)
	s.ask(read, "again")
	s.Expect(s.versions(parts[1:]...)).To(Equal(still), "a reconcile that finds nothing to do writes nothing")

	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 4}}
	app, err := read()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.client.SubResource("scale").Update(s.ctx, app, client.WithSubResourceBody(scale))).To(Succeed())
	s.Eventually(read).Should(And(webAppReady, HaveField("Status.AvailableReplicas", BeEquivalentTo(4))))
	s.change(read, func(app *v1.WebApp) { app.Spec.Containers[0].Image = "shop:2" })
	s.Eventually(read).Should(And(webAppReady, HaveField("Status.ObservedGeneration", BeEquivalentTo(3))))
	s.Expect(part(s, &appsv1.Deployment{})()).To(HaveField("Spec.Template.Spec.Containers", ContainElement(HaveField("Image", "shop:2"))))

	const hold = "test.plimsoll.dev/hold" // it must not be gone before the hub has reported that it goes
	s.change(read, func(app *v1.WebApp) { app.Finalizers = append(app.Finalizers, hold) })
	app, err = read()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.client.Delete(s.ctx, app, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	s.Eventually(read).Should(is("Ready", "False", "Deleting", ""))
	s.Eventually(func() error { // the garbage collector takes off one of its own meanwhile
		app, err := read()
		if err != nil {
			return err
		}
		before := app.DeepCopy()
		app.Finalizers = slices.DeleteFunc(app.Finalizers, func(name string) bool { return name == hold })
		return s.client.Patch(s.ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}).Should(Succeed())
	for _, object := range parts {
		s.Eventually(func() bool { _, err := part(s, object)(); return apierrors.IsNotFound(err) }).Should(BeTrue())
	}
	var reasons []string
	for event := range events.ResultChan() {
		seen, ok := event.Object.(*v1.WebApp)
		s.Expect(ok).To(BeTrue())
		for _, c := range seen.Status.Conditions {
			if c.Type == "Ready" && (len(reasons) == 0 || reasons[len(reasons)-1] != c.Reason) {
				reasons = append(reasons, c.Reason)
			}
		}
		if event.Type == "DELETED" {
			break
		}
	}
	s.Expect(slices.Compact(reasons)).To(HaveExactElements("WaitingForPods", "Ready", "Scaling", "Ready", "WaitingForPods", "Ready", "Deleting"))
}

// ask has the WebApp reconciled, and waits until it was.
func (s *webApps) ask(read func() (*v1.WebApp, error), when string) {
	s.t.Helper()
	s.change(read, func(app *v1.WebApp) {
		if app.Annotations == nil {
			app.Annotations = map[string]string{}
		}
		app.Annotations["plimsoll.dev/requested-at"] = when
	})
	s.Eventually(read).Should(HaveField("Status.LastHandledRequest", when))
}

func webAppEnvironmentSpec(s *webApps) {
	read := s.create(func(app *v1.WebApp) {
		app.Spec.EnvFrom = []v1.EnvFrom{{Secret: "db"}, {ConfigMap: "more", Optional: true}}
	})
	s.Eventually(read).Should(And(is("Ready", "False", "DependencyNotReady", "waits for Secret "+s.namespace+"/db: it does not exist"),
		is("Reconciling", "True", "DependencyNotReady", "db")))
	s.Expect(s.client.Create(s.ctx, secret(s.namespace, "db"))).To(Succeed())
	s.Eventually(read).Should(webAppReady)
	s.Expect(s.client.Delete(s.ctx, secret(s.namespace, "db"))).To(Succeed())
	s.Eventually(read).Should(is("Ready", "False", "DependencyNotReady", "waits for Secret "+s.namespace+"/db: it does not exist"))
	s.Expect(s.client.Create(s.ctx, secret(s.namespace, "db"))).To(Succeed())
	s.Eventually(read).Should(webAppReady)
}

func webAppPortSpec(s *webApps) {
	const taken = 30777
	other := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "other"}}
	other.Spec.Type, other.Spec.Ports = corev1.ServiceTypeNodePort, []corev1.ServicePort{{Port: 80, NodePort: taken}}
	s.Expect(s.client.Create(s.ctx, other)).To(Succeed())
	read := s.create(func(app *v1.WebApp) {
		app.Spec.Service = &v1.Service{Type: "NodePort"}
		app.Spec.Containers[0].Ports[0].NodePort = new(int32(taken))
	})
	s.Eventually(read).Should(And(is("Stalled", "True", "Invalid", "provided port is already allocated"), is("Ready", "False", "Invalid", "30777"),
		is("Created", "False", "Creating", "")))
	s.Expect(part(s, &appsv1.Deployment{})()).NotTo(BeNil(), "what can be made is made")
	s.Expect(s.client.Delete(s.ctx, other)).To(Succeed())
	s.Eventually(read).Should(webAppReady)
}

// quota allows the namespace so much of a resource, from when it returns.
func (s *webApps) quota(name string, of corev1.ResourceName, most string) *corev1.ResourceQuota {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	quota.Spec.Hard = corev1.ResourceList{of: resource.MustParse(most)}
	s.Expect(s.client.Create(s.ctx, quota)).To(Succeed())
	s.Eventually(func() (*corev1.ResourceQuota, error) {
		return quota, s.client.Get(s.ctx, client.ObjectKeyFromObject(quota), quota)
	}).Should(HaveField("Status.Hard", Not(BeEmpty())))
	return quota
}

func webAppQuotaSpec(s *webApps) {
	quota := s.quota("none", corev1.ResourceServices, "0")
	read := s.create()
	s.Eventually(read).Should(is("Stalled", "True", "Forbidden", "exceeded quota: none"))
	s.Expect(s.client.Delete(s.ctx, quota)).To(Succeed())
	s.Eventually(read).Should(webAppReady)
}

func webAppPodQuotaSpec(s *webApps) {
	quota := s.quota("few", corev1.ResourcePods, "1")
	read := s.create()
	s.Eventually(read).Should(And(is("Stalled", "True", "PodsRefused", "exceeded quota: few"), is("Ready", "False", "PodsRefused", "exceeded quota: few"),
		is("Created", "True", "Created", "")))
	s.Expect(s.client.Delete(s.ctx, quota)).To(Succeed())
	s.Eventually(read).Should(webAppReady)
}

// webAppForbiddenSpec takes from the hub's role what only this spec needs while it runs, and gives it back.
func webAppForbiddenSpec(s *webApps) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-webapps"}}
	s.Expect(s.client.Get(s.ctx, client.ObjectKeyFromObject(role), role)).To(Succeed())
	before := role.DeepCopy()
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, "services") {
			role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(role.Rules[i].Verbs), func(verb string) bool { return verb == "create" })
		}
	}
	s.Expect(s.client.Update(s.ctx, role)).To(Succeed())
	giveBack := func(ctx context.Context) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
				return err
			}
			role.Rules = before.Rules
			return s.client.Update(ctx, role)
		})
	}
	s.t.Cleanup(func() { _ = giveBack(context.Background()) }) // for the specs after one that failed
	read := s.create()
	s.Eventually(read).Should(And(is("Stalled", "True", "Forbidden", `cannot create resource "services"`), is("Created", "False", "Creating", "")))
	s.Expect(giveBack(s.ctx)).To(Succeed())
	s.Eventually(read).Should(webAppReady)
}

func webAppForeignSpec(s *webApps) {
	theirs := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}}
	theirs.Spec.Ports = []corev1.ServicePort{{Port: 9999}}
	s.Expect(s.client.Create(s.ctx, theirs)).To(Succeed())
	read := s.create()
	s.Eventually(read).Should(And(is("Stalled", "True", "Terminal", "v1 Service "+s.namespace+"/shop"), is("Ready", "False", "Terminal", "it exists and has no controller, so the hub does not change it")))
	s.Expect(part(s, &corev1.Service{})()).To(HaveField("ResourceVersion", theirs.ResourceVersion))
	s.Expect(s.client.Delete(s.ctx, theirs)).To(Succeed())
	s.Eventually(read).Should(webAppReady)
}

func webAppHealSpec(s *webApps) {
	read := s.create()
	s.Eventually(read).Should(webAppReady)
	service, err := part(s, &corev1.Service{})()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.client.Delete(s.ctx, service)).To(Succeed())
	s.Eventually(part(s, &corev1.Service{})).Should(HaveField("UID", Not(Equal(service.UID))))

	deployment, err := part(s, &appsv1.Deployment{})()
	s.Expect(err).NotTo(HaveOccurred())
	before := deployment.DeepCopy()
	deployment.Spec.Template.Spec.Containers[0].Image = "somebody:else"
	deployment.Labels["their"] = "own"
	s.Expect(s.client.Patch(s.ctx, deployment, client.StrategicMergeFrom(before))).To(Succeed())
	s.Eventually(part(s, &appsv1.Deployment{})).Should(And(
		HaveField("Spec.Template.Spec.Containers", ContainElement(HaveField("Image", "shop:1"))), HaveField("Labels", HaveKeyWithValue("their", "own"))))

	service, err = part(s, &corev1.Service{})()
	s.Expect(err).NotTo(HaveOccurred())
	unmarked := service.DeepCopy()
	delete(unmarked.Labels, v1.LabelWebApp) // it leaves the hub's cache
	s.Expect(s.client.Patch(s.ctx, unmarked, client.MergeFrom(service))).To(Succeed())
	s.Eventually(part(s, &corev1.Service{})).Should(HaveField("Labels", HaveKeyWithValue(v1.LabelWebApp, "shop")))
	s.Eventually(read).Should(webAppReady)
}

func webAppAutoscalerSpec(s *webApps) {
	read := s.create(func(app *v1.WebApp) {
		app.Spec.Containers[0].Resources = &v1.Resources{Requests: v1.ResourceList{corev1.ResourceCPU: {Quantity: resource.MustParse("0.1")}}}
	})
	s.Eventually(read).Should(webAppReady)
	s.change(read, func(app *v1.WebApp) { app.Spec.Autoscaling = &v1.Autoscaling{MinReplicas: 1, MaxReplicas: 6} })
	s.Eventually(part(s, &autoscalingv2.HorizontalPodAutoscaler{})).Should(HaveField("Spec.MaxReplicas", BeEquivalentTo(6)))
	s.Expect(part(s, &appsv1.Deployment{})()).To(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(2))), "handing over takes no pod away")
	deployment, err := part(s, &appsv1.Deployment{})()
	s.Expect(err).NotTo(HaveOccurred())
	scale := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 5}} // as an autoscaler does
	s.Expect(s.client.SubResource("scale").Update(s.ctx, deployment, client.WithSubResourceBody(scale))).To(Succeed())
	s.Eventually(read).Should(And(webAppReady, HaveField("Status.AvailableReplicas", BeEquivalentTo(5))))
	s.ask(read, "again")
	s.Expect(part(s, &appsv1.Deployment{})()).To(HaveField("Spec.Replicas", HaveValue(BeEquivalentTo(5))))
	s.change(read, func(app *v1.WebApp) { app.Spec.Autoscaling = nil })
	s.Eventually(read).Should(And(webAppReady, HaveField("Status.AvailableReplicas", BeEquivalentTo(2))))
	s.Eventually(func() bool {
		_, err := part(s, &autoscalingv2.HorizontalPodAutoscaler{})()
		return apierrors.IsNotFound(err)
	}).Should(BeTrue())
}

func webAppVersionSpec(s *webApps) {
	old := &v1alpha1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "shop"}}
	old.Spec = v1alpha1.WebAppSpec{Image: "shop:1", Port: new(int32(8080)), Replicas: new(int32(1))}
	s.Expect(s.client.Create(s.ctx, old)).To(Succeed())
	read := part(s, &v1.WebApp{})
	s.Eventually(read).Should(And(webAppReady, HaveField("Spec.Containers", ConsistOf(And(HaveField("Name", "app"), HaveField("Image", "shop:1"))))))
	s.change(read, func(app *v1.WebApp) {
		app.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", Value: "b"}}
		app.Spec.PodDisruptionBudget = &v1.PodDisruptionBudget{MaxUnavailable: new(intstr.FromString("50%"))}
	})
	seen, err := part(s, &v1alpha1.WebApp{})()
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(seen.Annotations).To(HaveKey(v1.CarryAnnotation))
	before := seen.DeepCopy()
	seen.Spec.Image = "shop:2"
	s.Expect(s.client.Patch(s.ctx, seen, client.MergeFrom(before))).To(Succeed())
	s.Expect(read()).To(And(
		HaveField("Spec.Containers", ConsistOf(And(HaveField("Image", "shop:2"), HaveField("Env", HaveLen(1))))),
		HaveField("Spec.PodDisruptionBudget.MaxUnavailable.StrVal", "50%"), HaveField("Annotations", Not(HaveKey(v1.CarryAnnotation)))))
	s.Eventually(read).Should(And(webAppReady, HaveField("Status.ObservedGeneration", BeNumerically(">=", 3))))
}

func webAppRefusalSpec(s *webApps) {
	for name, test := range map[string]struct {
		change func(*v1.WebApp)
		want   string
	}{
		"no containers":    {func(app *v1.WebApp) { app.Spec.Containers = []v1.Container{} }, "spec.containers: Invalid value: 0: spec.containers in body should have at least 1 items"},
		"a name":           {func(app *v1.WebApp) { app.Name = "1shop" }, "metadata.name must be a DNS label that begins with a letter"},
		"too few":          {func(app *v1.WebApp) { app.Spec.Replicas = new(int32(-1)) }, "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0"},
		"too many":         {func(app *v1.WebApp) { app.Spec.Replicas = new(int32(10001)) }, "spec.replicas: Invalid value: 10001: spec.replicas in body should be less than or equal to 10000"},
		"a container":      {func(app *v1.WebApp) { app.Spec.Containers[0].Name = "Web" }, "spec.containers[0].name: Invalid value: \"Web\": spec.containers[0].name in body should match"},
		"an empty image":   {func(app *v1.WebApp) { app.Spec.Containers[0].Image = "" }, "spec.containers[0].image: Invalid value: \"\": spec.containers[0].image in body should be at least 1 chars long"},
		"a port":           {func(app *v1.WebApp) { app.Spec.Containers[0].Ports[0].ContainerPort = 70000 }, "spec.containers[0].ports[0].containerPort: Invalid value: 70000"},
		"a node port":      {func(app *v1.WebApp) { app.Spec.Containers[0].Ports[0].NodePort = new(int32(30000)) }, "nodePort needs service.type NodePort or LoadBalancer"},
		"a readiness":      {func(app *v1.WebApp) { app.Spec.Containers[0].Readiness = &v1.Readiness{Path: "/", Port: "admin"} }, "readiness.port must be the name of a port of the container"},
		"a readiness path": {func(app *v1.WebApp) { app.Spec.Containers[0].Readiness = &v1.Readiness{Path: "ready", Port: "http"} }, "spec.containers[0].readiness.path: Invalid value: \"ready\""},
		"an env":           {func(app *v1.WebApp) { app.Spec.Containers[0].Env = []v1.EnvVar{{Name: "1A"}} }, "spec.containers[0].env[0].name: Invalid value: \"1A\""},
		"a service type":   {func(app *v1.WebApp) { app.Spec.Service = &v1.Service{Type: "External"} }, "spec.service.type: Unsupported value: \"External\": supported values: \"ClusterIP\", \"NodePort\", \"LoadBalancer\""},
		"headless":         {func(app *v1.WebApp) { app.Spec.Service = &v1.Service{Type: "NodePort", Headless: true} }, "headless needs type ClusterIP"},
		"envFrom of both":  {func(app *v1.WebApp) { app.Spec.EnvFrom = []v1.EnvFrom{{Secret: "a", ConfigMap: "b"}} }, "exactly one of secret and configMap must be set"},
		"two budgets": {func(app *v1.WebApp) {
			app.Spec.PodDisruptionBudget = &v1.PodDisruptionBudget{MinAvailable: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(1))}
		}, "exactly one of minAvailable and maxUnavailable must be set"},
		"a budget": {func(app *v1.WebApp) {
			app.Spec.PodDisruptionBudget = &v1.PodDisruptionBudget{MinAvailable: new(intstr.FromString("half"))}
		}, "must be a number from 0, or 0% to 100%"},
		"no cpu request": {func(app *v1.WebApp) { app.Spec.Autoscaling = &v1.Autoscaling{MaxReplicas: 3} }, "autoscaling needs resources.requests.cpu of every container"},
		"more than most": {func(app *v1.WebApp) { app.Spec.Autoscaling = &v1.Autoscaling{MinReplicas: 5, MaxReplicas: 3} }, "minReplicas must not be more than maxReplicas"},
		"a percentage":   {func(app *v1.WebApp) { app.Spec.Spot = &v1.Spot{Percentage: new(int32(120))} }, "spec.spot.percentage: Invalid value: 120"},
		"half a window":  {func(app *v1.WebApp) { app.Spec.Spot = &v1.Spot{DisruptionSchedule: "0 2 * * *"} }, "disruptionSchedule and disruptionDuration must be set both, or neither"},
		"two ports of a name": {func(app *v1.WebApp) {
			app.Spec.Containers = append(app.Spec.Containers, v1.Container{Name: "side", Image: "side:1", Ports: []v1.Port{{Name: "http", ContainerPort: 9}}})
		}, "the names of ports must differ over all containers"},
		"no tag (the hub's policy)":   {func(app *v1.WebApp) { app.Spec.Containers[0].Image = "nginx" }, "spec.containers[0].image: Invalid value: \"nginx\": must have a tag or a digest"},
		"too many (the hub's policy)": {func(app *v1.WebApp) { app.Spec.Replicas = new(int32(51)) }, "spec.replicas: Invalid value: 51: must be at most 50 (modules.webapp.maxReplicas of the hub)"},
		"a wrong schedule (the hub's policy)": {func(app *v1.WebApp) {
			app.Spec.Spot = &v1.Spot{DisruptionSchedule: "every night", DisruptionDuration: "1h"}
		}, "spec.spot.disruptionSchedule: Invalid value: \"every night\""},
	} {
		s.Eventually(func() error { return s.client.Create(s.ctx, s.shop(test.change), client.DryRunAll) }).Should(MatchError(ContainSubstring(test.want)), name)
	}
	read := s.create()
	app, err := read()
	s.Expect(err).NotTo(HaveOccurred())
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"service": map[string]any{"headless": true}}})
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(s.client.Patch(s.ctx, app, client.RawPatch("application/merge-patch+json", patch))).To(
		MatchError(ContainSubstring("service.headless cannot be changed: Kubernetes cannot change the cluster IP of a Service")))
	tooMany := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 51}}
	s.Expect(s.client.SubResource("scale").Update(s.ctx, app, client.WithSubResourceBody(tooMany))).To(MatchError(ContainSubstring("must be at most 50")))
}

func webAppPlacedSpec(s *webApps) {
	read := s.create(func(app *v1.WebApp) {
		app.Spec.Replicas = new(int32(4))
		app.Spec.Spot = &v1.Spot{Percentage: new(int32(50)), MinOnDemand: new(int32(1))}
	})
	s.Eventually(read).Should(And(webAppReady, is("Placed", "True", "Placed", "2 of 2 replicas on spot capacity, 2 of 2 on on-demand capacity"),
		HaveField("Status.SpotReplicas", HaveValue(BeEquivalentTo(2))), HaveField("Status.OnDemandReplicas", HaveValue(BeEquivalentTo(2)))))
	s.change(read, func(app *v1.WebApp) { app.Spec.Spot = nil })
	s.Eventually(read).Should(And(webAppReady, HaveField("Status.SpotReplicas", BeNil())))
	s.Expect(part(s, &appsv1.Deployment{})()).To(HaveField("Annotations", Not(HaveKey(fleet.Keys.SpotPercentage()))))
}

func webAppNotEnabledSpec(s *webApps) {
	read := s.create(func(app *v1.WebApp) { app.Spec.Spot = &v1.Spot{Percentage: new(int32(50))} })
	s.Eventually(read).Should(And(webAppReady, is("Placed", "False", "NamespaceNotEnabled", "namespace "+s.namespace+" has no label")))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	patch := []byte(`{"metadata":{"labels":{"` + fleet.Keys.Enabled() + `":"true"}}}`)
	s.Expect(s.client.Patch(s.ctx, namespace, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
	s.Eventually(read).Should(is("Placed", "True", "Placed", "1 of 1"))
}

func webAppNewerSpec(s *webApps) {
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd.Name}}
	set := func(annotation, value string) {
		patch := []byte(`{"metadata":{"annotations":{"` + annotation + `":` + value + `}}}`)
		s.Expect(s.client.Patch(s.ctx, definition, client.RawPatch("application/merge-patch+json", patch))).To(Succeed())
	}
	set(crd.RevisionAnnotation, `"99"`)
	s.Eventually(s.condition).WithContext(s.ctx).Should(And(HaveField("Status", "False"), HaveField("Reason", "Refused"),
		HaveField("Message", ContainSubstring("a newer Plimsoll wrote revision 99"))))
	set(crd.KeepAnnotation, `"false"`)
	set(crd.RevisionAnnotation, `"0"`)
	s.Eventually(s.condition).WithContext(s.ctx).Should(And(HaveField("Reason", "Outdated"), HaveField("Message", ContainSubstring("revision"))))
	set(crd.KeepAnnotation, `null`)
	s.Eventually(s.condition).WithContext(s.ctx).Should(HaveField("Reason", "Current"))
	s.Eventually(func() (map[string]string, error) {
		err := s.client.Get(s.ctx, client.ObjectKeyFromObject(definition), definition)
		return definition.Annotations, err
	}).Should(HaveKeyWithValue(crd.RevisionAnnotation, "1"))
}
