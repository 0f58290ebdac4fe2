package confine_test

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

// asked is a request that policies are asked about.
type asked struct {
	operation, resource string
	object, old, params any
	options             metav1.DeleteOptions
}

// refusals are the messages of a policy's validations that a request does not pass. An error of an expression refuses as well.
func (r asked) refusals(t *testing.T, a confine.Account, suffix string) (messages []string) {
	t.Helper()
	env, err := cel.NewEnv(cel.OptionalTypes(), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		cel.Variable("params", cel.DynType),
		cel.Variable("request", cel.DynType), cel.Variable("variables", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]any{}
	known := map[string]any{
		"object": asJSON(t, r.object), "oldObject": asJSON(t, r.old), "params": asJSON(t, r.params), "variables": variables,
		"request": asJSON(t, map[string]any{
			"operation": r.operation, "namespace": "shop", "resource": map[string]any{"resource": r.resource}, "options": r.options,
		}),
	}
	evaluate := func(expression string) any {
		t.Helper()
		compiled, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v", expression, issues.Err())
		}
		program, err := env.Program(compiled)
		if err != nil {
			t.Fatal(err)
		}
		value, _, err := program.Eval(known)
		if err != nil {
			return err
		}
		return value
	}
	for _, made := range confine.Policies(a) {
		if made.Policy.Name != a.Name+"-"+suffix {
			continue
		}
		if r.object != nil { // as API servers do, no earlier than an expression needs it
			for _, v := range made.Policy.Spec.Variables {
				variables[v.Name] = evaluate(v.Expression)
			}
		}
		for _, v := range made.Policy.Spec.Validations {
			if evaluate(v.Expression) != types.True {
				messages = append(messages, v.Message)
			}
		}
		return messages
	}
	t.Fatalf("there is no policy %s", suffix)
	return nil
}

func asJSON(t *testing.T, object any) (fields any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

// account is the hub's in a member with WebApps.
func account() confine.Account {
	return confine.Account{
		Namespace: "plimsoll-system", Name: "plimsoll-hub", Webhook: webhook.ConfigurationName,
		Resources: []module.Resource{webapp.Resource(webapp.Policy{})}, URL: &url.URL{Scheme: "https", Host: "hub.example.com"},
	}
}

// deployed is the Deployment of a WebApp as the hub applies it.
func deployed(security v1.PodSecurity, changes ...func(*appsv1.Deployment)) *appsv1.Deployment {
	app := &v1.WebApp{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "a-uid"}}
	app.Spec.Containers = []v1.Container{{Name: "web", Image: "web:1", Ports: []v1.Port{{Name: "http", ContainerPort: 8080}}}}
	app.Spec.PodSecurity = security
	app.Spec.SetDefaults()
	d := webapp.Desire(app, policy.Keys{Prefix: policy.DefaultPrefix}, false).Deployment
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1.GroupVersion.String(), Kind: v1.Kind, Name: app.Name, UID: app.UID, Controller: ptr.To(true)}}
	for _, change := range changes {
		change(d)
	}
	return d
}

func TestPartsMayHaveNothingByWhichTheyWouldStay(t *testing.T) {
	stay := func(d *appsv1.Deployment) { d.Finalizers = []string{"example.com/stay"} }
	owned := func(version string) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) { d.OwnerReferences[0].APIVersion = v1.GroupVersion.Group + "/" + version }
	}
	const ofWebApp = "what a WebApp of the same name controls"
	for name, test := range map[string]struct {
		asked
		refused string
	}{
		"its own Deployment":               {asked{operation: "CREATE", object: deployed("")}, ""},
		"its own Deployment, less bound":   {asked{operation: "CREATE", object: deployed(v1.PodSecurityBaseline)}, ""},
		"a finalizer":                      {asked{operation: "CREATE", object: deployed("", stay)}, "add a finalizer"},
		"a finalizer later":                {asked{operation: "UPDATE", object: deployed("", stay), old: deployed("")}, "add a finalizer"},
		"a finalizer that is there":        {asked{operation: "UPDATE", object: deployed("", stay), old: deployed("", stay)}, ""},
		"a finalizer that is no more":      {asked{operation: "UPDATE", object: deployed(""), old: deployed("", stay)}, ""},
		"a version that is not served":     {asked{operation: "CREATE", object: deployed("", owned("v999"))}, ofWebApp},
		"such a version later":             {asked{operation: "UPDATE", object: deployed("", owned("v999")), old: deployed("")}, ofWebApp},
		"such a version that stays":        {asked{operation: "UPDATE", object: deployed("", owned("v1beta1")), old: deployed("", owned("v1beta1"))}, ofWebApp},
		"such a version that is no more":   {asked{operation: "UPDATE", object: deployed(""), old: deployed("", owned("v1beta1"))}, ""},
		"a deletion of such a version":     {asked{operation: "DELETE", old: deployed("", owned("v1beta1"))}, ""},
		"a deletion":                       {asked{operation: "DELETE", old: deployed("")}, ""},
		"a deletion with what is below it": {asked{operation: "DELETE", old: deployed(""), options: metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}}, ""},
		"a deletion that leaves its pods": {
			asked{operation: "DELETE", old: deployed(""), options: metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationOrphan)}}, "leave what they control",
		},
		"a deletion that leaves its pods, by the older option": {
			asked{operation: "DELETE", old: deployed(""), options: metav1.DeleteOptions{OrphanDependents: ptr.To(true)}}, "leave what they control", //nolint:staticcheck // API servers still obey it
		},
		"pods with a finalizer": {asked{operation: "CREATE", object: deployed("", func(d *appsv1.Deployment) {
			d.Spec.Template.Finalizers = []string{"example.com/stay"}
		})}, "keep the pods of Deployments"},
	} {
		test.resource = "deployments"
		expect(t, name, test.refusals(t, account(), "webapps"), test.refused)
	}
}

func TestPodsOfPartsKeepToTheBaseline(t *testing.T) {
	inPod := func(security corev1.PodSecurityContext) func(*corev1.PodTemplateSpec) {
		return func(template *corev1.PodTemplateSpec) { template.Spec.SecurityContext = &security }
	}
	inContainer := func(change func(*corev1.Container)) func(*corev1.PodTemplateSpec) {
		return func(template *corev1.PodTemplateSpec) { change(&template.Spec.Containers[0]) }
	}
	const refused = "reach nothing of their node"
	for name, test := range map[string]struct {
		change  func(*corev1.PodTemplateSpec)
		refused string
	}{
		"a level of SELinux":     {inPod(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1,c2"}}), ""},
		"a user of SELinux":      {inPod(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: "root"}}), refused},
		"a type of SELinux":      {inPod(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"}}), refused},
		"a container's type":     {inPod(corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "container_t"}}), ""},
		"a sysctl":               {inPod(corev1.PodSecurityContext{Sysctls: []corev1.Sysctl{{Name: "kernel.msgmax", Value: "1"}}}), refused},
		"seccomp of the runtime": {inPod(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}), ""},
		"no seccomp":             {inPod(corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}}), refused},
		"no AppArmor":            {inPod(corev1.PodSecurityContext{AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}}), refused},
		"an annotation of others": {func(template *corev1.PodTemplateSpec) {
			template.Annotations = map[string]string{"example.com/x": "unconfined"}
		}, ""},
		"no AppArmor, by an annotation": {func(template *corev1.PodTemplateSpec) {
			template.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/web": "unconfined"}
		}, refused},
		"all of /proc, in an init container": {func(template *corev1.PodTemplateSpec) {
			template.Spec.InitContainers = []corev1.Container{{Name: "init", SecurityContext: &corev1.SecurityContext{ProcMount: ptr.To(corev1.UnmaskedProcMount)}}}
		}, refused},
		"the usual /proc": {inContainer(func(c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{ProcMount: ptr.To(corev1.DefaultProcMount)}
		}), ""},
		"a check of another host": {inContainer(func(c *corev1.Container) {
			c.StartupProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "10.0.0.1"}}}
		}), refused},
		"a hook of another host": {inContainer(func(c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{HTTPGet: &corev1.HTTPGetAction{Host: "10.0.0.1"}}}
		}), refused},
	} {
		d := deployed(v1.PodSecurityBaseline, func(d *appsv1.Deployment) { test.change(&d.Spec.Template) })
		expect(t, name, asked{operation: "CREATE", resource: "deployments", object: d}.refusals(t, account(), "webapps"), test.refused)
	}
}

func TestEventsStayTheHubs(t *testing.T) {
	event := func(source, reporting string) *corev1.Event {
		return &corev1.Event{Source: corev1.EventSource{Component: source}, ReportingController: reporting}
	}
	own := event("plimsoll/webapp", "plimsoll/webapp")
	const refused = "its own Events"
	for name, test := range map[string]struct {
		asked
		refused string
	}{
		"its own":                          {asked{operation: "CREATE", object: own}, ""},
		"its own, of a former hub":         {asked{operation: "UPDATE", object: event("plimsoll", ""), old: event("plimsoll", "")}, ""},
		"its own, by the other group":      {asked{operation: "CREATE", object: event("", "plimsoll-hub")}, ""},
		"another's":                        {asked{operation: "CREATE", object: event("kubelet", "kubelet")}, refused},
		"one that another reports":         {asked{operation: "CREATE", object: event("plimsoll/webapp", "kubelet")}, refused},
		"one that nobody reports":          {asked{operation: "CREATE", object: event("", "")}, refused},
		"its own, counted":                 {asked{operation: "UPDATE", object: own, old: own}, ""},
		"its own, which becomes another's": {asked{operation: "UPDATE", object: event("kubelet", "plimsoll/webapp"), old: own}, refused},
		"another's, which becomes its own": {asked{operation: "UPDATE", object: own, old: event("kubelet", "kubelet")}, refused},
	} {
		test.resource = "events"
		expect(t, name, test.refusals(t, account(), "events"), test.refused)
	}
}

func TestATenantsWebhooksAreCalledAboutItsNamespacesOnly(t *testing.T) {
	a := account()
	kind := &a.Resources[0]
	wanted := webhook.Wanted{BaseURL: a.URL, EnabledLabel: policy.DefaultPrefix + "/enabled", Only: []string{"cart", "shop"}}
	// what the hub writes, for some namespaces
	written := func(only ...string) *admissionregistrationv1.MutatingWebhookConfiguration {
		wanted := wanted
		wanted.Only = only
		return &admissionregistrationv1.MutatingWebhookConfiguration{
			Webhooks: append(webhook.Desired(wanted, "team", "token"), kinds.Defaults(kind, wanted, "team", "token")),
		}
	}
	for name, test := range map[string]struct {
		namespaces, only []string
		refused          string
	}{
		"a whole cluster":       {nil, nil, ""},
		"its namespaces":        {wanted.Only, wanted.Only, ""},
		"one of its namespaces": {wanted.Only, []string{"shop"}, ""},
		"every namespace":       {wanted.Only, nil, "the namespaces cart, shop"},
		"one of another":        {wanted.Only, []string{"shop", "pay"}, "the namespaces cart, shop"},
	} {
		a.Namespaces = test.namespaces
		expect(t, name, asked{operation: "UPDATE", object: written(test.only...), old: written(wanted.Only...)}.refusals(t, a, "webhooks"), test.refused)
	}
	a.Namespaces = wanted.Only
	second := written(wanted.Only...)
	second.Webhooks[1].NamespaceSelector = nil
	expect(t, "the second webhook", asked{operation: "UPDATE", object: second, old: written(wanted.Only...)}.refusals(t, a, "webhooks"), "the namespaces cart, shop")
}

func TestAnAutoscalerScalesWhatItsWebAppControls(t *testing.T) {
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: deployed("").ObjectMeta}
	autoscaler.Spec.ScaleTargetRef = autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
	others := *autoscaler.DeepCopy()
	others.OwnerReferences = nil
	foreign := func(d *appsv1.Deployment) { d.OwnerReferences = nil }
	const refused = "that no WebApp controls"
	for name, test := range map[string]struct {
		asked
		refused string
	}{
		"its own Deployment":         {asked{operation: "CREATE", object: autoscaler, params: deployed("")}, ""},
		"another Deployment":         {asked{operation: "CREATE", object: autoscaler, params: deployed("", foreign, func(d *appsv1.Deployment) { d.Name = "api" })}, ""},
		"another's, of its name":     {asked{operation: "CREATE", object: autoscaler, params: deployed("", foreign)}, refused},
		"another's, later":           {asked{operation: "UPDATE", object: autoscaler, old: autoscaler, params: deployed("", foreign)}, refused},
		"one that does not control":  {asked{operation: "CREATE", object: autoscaler, params: deployed("", func(d *appsv1.Deployment) { d.OwnerReferences[0].Controller = nil })}, refused},
		"of another WebApp":          {asked{operation: "CREATE", object: autoscaler, params: deployed("", func(d *appsv1.Deployment) { d.OwnerReferences[0].Name = "api" })}, refused},
		"an autoscaler of no WebApp": {asked{operation: "CREATE", object: &others, params: deployed("", foreign)}, ""}, // which the policy of parts refuses
	} {
		test.resource = "horizontalpodautoscalers"
		expect(t, name, test.refusals(t, account(), "webapps-autoscalers"), test.refused)
	}
}

// An API server calls the webhooks that change a pod one after the other, and waits for each.
func TestWebhooksHoldPodsUpNoLongerThanTheHubHasThemDo(t *testing.T) {
	a := account()
	kind := &a.Resources[0]
	wanted := webhook.Wanted{BaseURL: a.URL, EnabledLabel: policy.DefaultPrefix + "/enabled"}
	written := append(webhook.Desired(wanted, "team", "token"), kinds.Defaults(kind, wanted, "team", "token"))
	pods := written[0]
	slow, unsaid := *pods.DeepCopy(), *pods.DeepCopy()
	slow.TimeoutSeconds, unsaid.TimeoutSeconds = ptr.To(*pods.TimeoutSeconds+1), nil
	for name, test := range map[string]struct {
		webhooks []admissionregistrationv1.MutatingWebhook
		refused  string
	}{
		"what the hub writes": {written, ""},
		"one more":            {append(slices.Clone(written), pods), ""},
		"too many":            {[]admissionregistrationv1.MutatingWebhook{pods, pods, pods, pods}, "at most 3 webhooks"},
		"too slow":            {[]admissionregistrationv1.MutatingWebhook{pods, slow}, "timeoutSeconds at most 2"},
		"ten seconds, unsaid": {[]admissionregistrationv1.MutatingWebhook{unsaid}, "timeoutSeconds at most 2"},
	} {
		object := &admissionregistrationv1.MutatingWebhookConfiguration{Webhooks: test.webhooks}
		expect(t, name, asked{operation: "UPDATE", object: object, old: object}.refusals(t, a, "webhooks"), test.refused)
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{
		Webhooks: []admissionregistrationv1.ValidatingWebhook{kinds.Validation(kind, wanted, "team", "token")},
	}
	expect(t, "validations", asked{operation: "UPDATE", object: validating, old: validating}.refusals(t, a, "webhooks"), "")
}

// expect compares what was refused with a part of the one message; "": nothing.
func expect(t *testing.T, name string, refused []string, want string) {
	t.Helper()
	if (want == "") != (len(refused) == 0) || !strings.Contains(strings.Join(refused, ";"), want) || len(refused) > 1 {
		t.Errorf("%s: refused: %q, want %q", name, refused, want)
	}
}
