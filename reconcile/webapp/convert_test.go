package webapp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1beta1"
)

// What the API server's schema admits, in each version.

var (
	anyName   = rapid.SampledFrom([]string{"web", "app", "cache", "log-shipper", "x"})
	anyImage  = rapid.SampledFrom([]string{"nginx:1.27", "ghcr.io/acme/shop@sha256:0123", "shop"})
	anyPort   = rapid.Int32Range(1, 65535)
	anyCount  = rapid.Int32Range(0, 10000)
	anyTarget = rapid.Int32Range(1, 1000)
	anyText   = rapid.StringMatching(`[a-z0-9 ]{0,12}`)
)

func maybe[T any](t *rapid.T, label string, g *rapid.Generator[T]) *T {
	if !rapid.Bool().Draw(t, label+"?") {
		return nil
	}
	return new(g.Draw(t, label))
}

func names(t *rapid.T, label string) []string {
	return rapid.SliceOfNDistinct(anyName, 1, 4, rapid.ID).Draw(t, label)
}

func drawMeta(t *rapid.T) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: anyName.Draw(t, "name"), Namespace: "shop", Generation: 3, UID: "a-uid"}
	if rapid.Bool().Draw(t, "annotations?") {
		meta.Annotations = map[string]string{"example.com/note": anyText.Draw(t, "annotation")}
	}
	if rapid.Bool().Draw(t, "labels?") {
		meta.Labels = map[string]string{"team": "shop"}
	}
	return meta
}

func drawConditions(t *rapid.T) []metav1.Condition {
	if !rapid.Bool().Draw(t, "conditions?") {
		return nil
	}
	return []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", Message: anyText.Draw(t, "message")}}
}

func drawIntOrPercent(t *rapid.T, label string) *intstr.IntOrString {
	if rapid.Bool().Draw(t, label+" percent?") {
		return new(intstr.FromString("30%"))
	}
	return new(intstr.FromInt32(rapid.Int32Range(0, 50).Draw(t, label)))
}

func drawV1(t *rapid.T) *v1.WebApp {
	w := &v1.WebApp{ObjectMeta: drawMeta(t)}
	w.APIVersion, w.Kind = v1.GroupVersion.String(), v1.Kind
	w.Spec.Replicas = maybe(t, "replicas", anyCount)
	for i, name := range names(t, "containers") {
		w.Spec.Containers = append(w.Spec.Containers, drawContainer(t, i, name))
	}
	for range rapid.IntRange(0, 4).Draw(t, "envFrom") {
		from := v1.EnvFrom{Prefix: rapid.SampledFrom([]string{"", "DB_"}).Draw(t, "prefix"), Optional: rapid.Bool().Draw(t, "optional")}
		if rapid.Bool().Draw(t, "secret?") {
			from.Secret = anyName.Draw(t, "secret")
		} else {
			from.ConfigMap = anyName.Draw(t, "configMap")
		}
		w.Spec.EnvFrom = append(w.Spec.EnvFrom, from)
	}
	if rapid.Bool().Draw(t, "service?") {
		w.Spec.Service = &v1.Service{Type: rapid.SampledFrom([]v1.ServiceType{"", "ClusterIP", "NodePort"}).Draw(t, "type"), Headless: rapid.Bool().Draw(t, "headless")}
	}
	if rapid.Bool().Draw(t, "autoscaling?") {
		w.Spec.Autoscaling = &v1.Autoscaling{MinReplicas: rapid.Int32Range(1, 5).Draw(t, "min"), MaxReplicas: rapid.Int32Range(5, 9).Draw(t, "max"), TargetCPUUtilization: anyTarget.Draw(t, "target")}
	}
	switch rapid.IntRange(0, 2).Draw(t, "budget") {
	case 1:
		w.Spec.PodDisruptionBudget = &v1.PodDisruptionBudget{MinAvailable: drawIntOrPercent(t, "minAvailable")}
	case 2:
		w.Spec.PodDisruptionBudget = &v1.PodDisruptionBudget{MaxUnavailable: drawIntOrPercent(t, "maxUnavailable")}
	}
	if rapid.Bool().Draw(t, "spot?") {
		w.Spec.Spot = &v1.Spot{Percentage: maybe(t, "percentage", rapid.Int32Range(0, 100)), MinOnDemand: maybe(t, "minOnDemand", anyCount)}
		if rapid.Bool().Draw(t, "window?") {
			w.Spec.Spot.DisruptionSchedule, w.Spec.Spot.DisruptionDuration = "0 2 * * *", "2h"
		}
	}
	w.Spec.SetDefaults() // as the API server does before anything is converted
	w.Status = v1.WebAppStatus{
		Status:   reconcile.Status{ObservedGeneration: rapid.Int64Range(0, 9).Draw(t, "observed"), Conditions: drawConditions(t), LastHandledRequest: anyText.Draw(t, "handled")},
		Replicas: anyCount.Draw(t, "status.replicas"), ReadyReplicas: anyCount.Draw(t, "ready"), AvailableReplicas: anyCount.Draw(t, "available"),
		SpotReplicas: maybe(t, "spotReplicas", anyCount), OnDemandReplicas: maybe(t, "onDemandReplicas", anyCount),
		Selector: anyText.Draw(t, "selector"),
	}
	return w
}

func drawContainer(t *rapid.T, i int, name string) v1.Container {
	c := v1.Container{Name: name, Image: anyImage.Draw(t, "image")}
	if rapid.Bool().Draw(t, "command?") {
		c.Command, c.Args = []string{"serve"}, []string{anyText.Draw(t, "arg")}
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "ports") {
		c.Ports = append(c.Ports, v1.Port{
			Name: "p" + strings.Repeat("a", n) + string(rune('a'+i)), ContainerPort: anyPort.Draw(t, "port"),
			ServicePort: maybe(t, "servicePort", anyPort), NodePort: maybe(t, "nodePort", anyPort),
		})
	}
	if len(c.Ports) > 0 && rapid.Bool().Draw(t, "readiness?") {
		c.Readiness = &v1.Readiness{Path: "/ready", Port: c.Ports[0].Name}
	}
	for _, name := range rapid.SliceOfNDistinct(anyName, 0, 3, rapid.ID).Draw(t, "env") {
		c.Env = append(c.Env, v1.EnvVar{Name: name, Value: anyText.Draw(t, "value")})
	}
	if rapid.Bool().Draw(t, "resources?") {
		c.Resources = &v1.Resources{Requests: v1.ResourceList{corev1.ResourceCPU: {Quantity: resource.MustParse("250m")}, corev1.ResourceMemory: {Quantity: resource.MustParse("1Gi")}}}
	}
	return c
}

func drawV1beta1(t *rapid.T) *v1beta1.WebApp {
	w := &v1beta1.WebApp{ObjectMeta: drawMeta(t)}
	w.APIVersion, w.Kind = v1beta1.GroupVersion.String(), v1.Kind
	w.Spec = drawV1beta1Spec(t)
	w.Status = v1beta1.WebAppStatus{Status: reconcile.Status{ObservedGeneration: 2, Conditions: drawConditions(t)}, Replicas: anyCount.Draw(t, "status.replicas"), Selector: anyText.Draw(t, "selector")}
	return w
}

// drawV1beta1Spec draws one with every default set.
func drawV1beta1Spec(t *rapid.T) v1beta1.WebAppSpec {
	s := v1beta1.WebAppSpec{Replicas: new(anyCount.Draw(t, "replicas"))}
	for _, name := range names(t, "containers") {
		c := v1beta1.Container{Name: name, Image: anyImage.Draw(t, "image"), Port: maybe(t, "port", anyPort)}
		for _, name := range rapid.SliceOfNDistinct(anyName, 0, 3, rapid.ID).Draw(t, "env") {
			if c.Env == nil {
				c.Env = map[string]string{}
			}
			c.Env[name] = anyText.Draw(t, "value")
		}
		s.Containers = append(s.Containers, c)
	}
	if rapid.Bool().Draw(t, "autoscaling?") {
		s.MinReplicas, s.MaxReplicas, s.TargetCPUPercent = new(rapid.Int32Range(1, 5).Draw(t, "min")), new(rapid.Int32Range(5, 9).Draw(t, "max")), new(anyTarget.Draw(t, "target"))
	}
	if rapid.Bool().Draw(t, "budget?") {
		s.MinAvailable = drawIntOrPercent(t, "minAvailable")
	}
	s.SpotPercentage, s.MinOnDemand = maybe(t, "percentage", rapid.Int32Range(0, 100)), maybe(t, "minOnDemand", anyCount)
	if rapid.Bool().Draw(t, "configMaps?") {
		s.ConfigMaps = names(t, "configMaps")
	}
	if rapid.Bool().Draw(t, "secrets?") {
		s.Secrets = names(t, "secrets")
	}
	return s
}

func drawV1alpha1(t *rapid.T) *v1alpha1.WebApp {
	w := &v1alpha1.WebApp{ObjectMeta: drawMeta(t)}
	w.APIVersion, w.Kind = v1alpha1.GroupVersion.String(), v1.Kind
	w.Spec = drawV1alpha1Spec(t)
	w.Status = v1alpha1.WebAppStatus{Replicas: anyCount.Draw(t, "status.replicas"), AvailableReplicas: anyCount.Draw(t, "available"), Selector: anyText.Draw(t, "selector")}
	return w
}

func drawV1alpha1Spec(t *rapid.T) v1alpha1.WebAppSpec {
	return v1alpha1.WebAppSpec{
		Image: anyImage.Draw(t, "image"), Port: new(rapid.Int32Range(0, 65535).Draw(t, "port")), Replicas: new(anyCount.Draw(t, "replicas")),
		SpotPercentage: maybe(t, "percentage", rapid.Int32Range(0, 100)),
	}
}

// convert converts an object and reads the answer.
func convert[T any](t rapid.TB, object any, version string) *T {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := Convert(text, version)
	if err != nil {
		t.Fatal(err)
	}
	into := new(T)
	if err := json.Unmarshal(answer, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func same(t rapid.TB, got, want any) {
	t.Helper()
	if !equality.Semantic.DeepEqual(got, want) {
		g, _ := json.MarshalIndent(got, "", " ")
		w, _ := json.MarshalIndent(want, "", " ")
		t.Fatalf("got %s\nwant %s", g, w)
	}
}

var (
	stable = v1.GroupVersion.String()
	beta   = v1beta1.GroupVersion.String()
	alpha  = v1alpha1.GroupVersion.String()
)

func TestWhatIsStoredSurvivesTheWayThroughEveryOlderVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawV1(t)
		same(t, convert[v1.WebApp](t, convert[v1beta1.WebApp](t, want, beta), stable), want)
		same(t, convert[v1.WebApp](t, convert[v1alpha1.WebApp](t, want, alpha), stable), want)
		same(t, convert[v1.WebApp](t, convert[v1alpha1.WebApp](t, convert[v1beta1.WebApp](t, want, beta), alpha), stable), want)
	})
}

func TestWhatWasWrittenInAnOlderVersionIsReadBackAsItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawV1beta1(t)
		same(t, convert[v1beta1.WebApp](t, convert[v1.WebApp](t, b, stable), beta), b)
		same(t, convert[v1beta1.WebApp](t, convert[v1alpha1.WebApp](t, b, alpha), beta), b)
		a := drawV1alpha1(t)
		same(t, convert[v1alpha1.WebApp](t, convert[v1.WebApp](t, a, stable), alpha), a)
		same(t, convert[v1alpha1.WebApp](t, convert[v1beta1.WebApp](t, a, beta), alpha), a)
	})
}

func TestAnEditThroughAnOlderVersionWinsForTheFieldsThatItHas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hub := drawV1(t)
		b := convert[v1beta1.WebApp](t, hub, beta)
		b.Spec = drawV1beta1Spec(t)
		same(t, convert[v1beta1.WebApp](t, convert[v1.WebApp](t, b, stable), beta).Spec, b.Spec)
		a := convert[v1alpha1.WebApp](t, hub, alpha)
		a.Spec = drawV1alpha1Spec(t)
		same(t, convert[v1alpha1.WebApp](t, convert[v1.WebApp](t, a, stable), alpha).Spec, a.Spec)
	})
}

func TestAnEditThroughAnOlderVersionLeavesTheRestAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawV1(t)
		a := convert[v1alpha1.WebApp](t, want, alpha)
		a.Spec.Image, a.Spec.Replicas = "nginx:2", new(int32(7))
		b := convert[v1beta1.WebApp](t, want, beta)
		b.Spec.Containers[0].Image, b.Spec.Replicas = "nginx:2", new(int32(7))
		want.Spec.Containers[0].Image, want.Spec.Replicas = "nginx:2", new(int32(7))
		same(t, convert[v1.WebApp](t, a, stable), want)
		same(t, convert[v1.WebApp](t, b, stable), want)
	})
}

func TestOlderVersionsCarryOnlyWhatTheyCannotExpress(t *testing.T) {
	g := NewWithT(t)
	simple := &v1alpha1.WebApp{TypeMeta: metav1.TypeMeta{APIVersion: alpha, Kind: "WebApp"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	simple.Spec = v1alpha1.WebAppSpec{Image: "shop:1", Port: new(int32(8080))}
	hub := convert[v1.WebApp](t, simple, stable)
	g.Expect(hub.Annotations).To(BeEmpty())
	g.Expect(hub.Spec.Containers).To(Equal([]v1.Container{{Name: "app", Image: "shop:1", Ports: []v1.Port{{Name: "http", ContainerPort: 8080}}}}))
	g.Expect(convert[v1alpha1.WebApp](t, hub, alpha).Annotations).To(BeEmpty())

	hub.Spec.EnvFrom = []v1.EnvFrom{{Secret: "db"}}
	g.Expect(convert[v1alpha1.WebApp](t, hub, alpha).Annotations).To(HaveKey(v1.CarryAnnotation))
	g.Expect(convert[v1beta1.WebApp](t, hub, beta).Annotations).To(BeEmpty())
	g.Expect(convert[v1beta1.WebApp](t, hub, beta).Spec.Secrets).To(Equal([]string{"db"}))
}

func TestAnImageAloneGetsPort80AndAService(t *testing.T) {
	g := NewWithT(t)
	alone := &v1alpha1.WebApp{TypeMeta: metav1.TypeMeta{APIVersion: alpha, Kind: "WebApp"}, ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	alone.Spec = v1alpha1.WebAppSpec{Image: "shop:1", Replicas: new(int32(2))}
	hub := convert[v1.WebApp](t, alone, stable)
	g.Expect(hub.Spec.Containers[0].Ports).To(Equal([]v1.Port{{Name: "http", ContainerPort: v1alpha1.DefaultPort}}))
	g.Expect(find[*corev1.Service](Desire(hub, keys, true).Others).Spec.Ports).To(HaveExactElements(HaveField("Port", BeEquivalentTo(80))))

	alone.Spec.Port = new(int32(0))
	hub = convert[v1.WebApp](t, alone, stable)
	g.Expect(hub.Spec.Containers[0].Ports).To(BeEmpty())
	g.Expect(convert[v1alpha1.WebApp](t, hub, alpha).Spec.Port).To(HaveValue(BeZero()))
	for _, version := range crd.New().Spec.Versions {
		if version.Name == v1alpha1.GroupVersion.Version {
			g.Expect(string(version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["port"].Default.Raw)).To(Equal("80"))
		}
	}
}

func TestWhatCannotBeConvertedIsRefusedInWords(t *testing.T) {
	for name, test := range map[string]struct{ object, desired, want string }{
		"no JSON":                {`{"apiVersion":`, stable, "not a Kubernetes object: no JSON at byte"},
		"not an object":          {`[]`, stable, "not a Kubernetes object"},
		"another kind":           {`{"apiVersion":"apps.plimsoll.dev/v1","kind":"Shop"}`, beta, `kind: "Shop": must be WebApp`},
		"a version of nobody":    {`{"apiVersion":"apps.plimsoll.dev/v9","kind":"WebApp"}`, beta, `apiVersion: "apps.plimsoll.dev/v9": is not a version of WebApp`},
		"to a version of nobody": {`{"apiVersion":"apps.plimsoll.dev/v1","kind":"WebApp"}`, "apps/v1", `desiredAPIVersion: "apps/v1": is not a version of WebApp`},
		"a wrong type":           {`{"apiVersion":"apps.plimsoll.dev/v1alpha1","kind":"WebApp","metadata":{"namespace":"n","name":"x"},"spec":{"image":7}}`, stable, "WebApp n/x: spec.image: must be string"},
		"a spoilt annotation": {`{"apiVersion":"apps.plimsoll.dev/v1alpha1","kind":"WebApp","metadata":{"name":"x","annotations":{"apps.plimsoll.dev/conversion-data":"s3cret"}},"spec":{"image":"i"}}`, stable,
			"metadata.annotations[apps.plimsoll.dev/conversion-data]: not written by a conversion"},
		"an annotation that no object can have": {`{"apiVersion":"apps.plimsoll.dev/v1alpha1","kind":"WebApp","metadata":{"name":"x","annotations":{"apps.plimsoll.dev/conversion-data":"{` +
			strings.Repeat(" ", 256<<10) + `}"}},"spec":{"image":"i"}}`, stable, "metadata.annotations[apps.plimsoll.dev/conversion-data]: must have at most 262144 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := Convert([]byte(test.object), test.desired)
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("s3cret"))
		})
	}
}

// The CRD permits no more than this in an annotation; what is carried has a bound as well, which must not be in its way.
func TestTheLargestWebAppSurvivesTheWayThroughAnOlderVersion(t *testing.T) {
	largest := &v1.WebApp{TypeMeta: metav1.TypeMeta{APIVersion: stable, Kind: v1.Kind}}
	for i := range 16 {
		c := v1.Container{Name: fmt.Sprint("c", i), Image: "i", Command: slices.Repeat([]string{"a"}, 128), Args: slices.Repeat([]string{","}, 128)}
		for j := range 16 {
			c.Ports = append(c.Ports, v1.Port{Name: fmt.Sprint("p", j), ContainerPort: 80, ServicePort: new(int32(80)), NodePort: new(int32(80))})
		}
		for j := range 256 {
			c.Env = append(c.Env, v1.EnvVar{Name: fmt.Sprint("e", j), Value: "1"})
		}
		c.Resources = &v1.Resources{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}
		for j := range 32 {
			name := corev1.ResourceName(fmt.Sprint("r", j))
			c.Resources.Requests[name], c.Resources.Limits[name] = v1.Quantity{}, v1.Quantity{}
		}
		largest.Spec.Containers = append(largest.Spec.Containers, c)
	}
	for range 32 {
		largest.Spec.EnvFrom = append(largest.Spec.EnvFrom, v1.EnvFrom{Secret: "s", Prefix: "p", Optional: true})
	}
	largest.Spec.SetDefaults()
	same(t, convert[v1.WebApp](t, convert[v1alpha1.WebApp](t, largest, alpha), stable), largest)
	same(t, convert[v1.WebApp](t, convert[v1beta1.WebApp](t, largest, beta), stable), largest)
}

func FuzzConvert(f *testing.F) {
	for _, version := range []string{stable, beta, alpha} {
		f.Add([]byte(`{"apiVersion":"`+version+`","kind":"WebApp","metadata":{"name":"x","annotations":{"apps.plimsoll.dev/conversion-data":"{}"}},"spec":{"image":"i","port":1,"containers":[{"name":"a","image":"i"}]}}`), beta)
	}
	f.Fuzz(func(t *testing.T, object []byte, desired string) {
		once, err := Convert(object, desired)
		if err != nil {
			return
		}
		again, err := Convert(once, desired)
		if err != nil {
			t.Fatalf("what was converted cannot be read: %v", err)
		}
		if string(once) != string(again) {
			t.Fatalf("converting to its own version changed it:\n%s\n%s", once, again)
		}
	})
}
