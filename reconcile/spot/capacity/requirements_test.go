package capacity_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

func TestAShapeIsWhatTheSchedulerAdds(t *testing.T) {
	spec := &corev1.PodSpec{
		InitContainers: []corev1.Container{
			{Resources: requests("100m", "1Mi"), RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			{Resources: requests("2", "1Mi")},
		},
		Containers: []corev1.Container{{Resources: requests("500m", "10Mi")}, {Resources: requests("1", "20Mi")}},
		Overhead:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("5Mi")},
	}
	got := capacity.RequirementsOf(spec, "shop", "", spottest.MustLabels(t))
	if got.CPU != 2100 || got.Memory != 36<<20 {
		t.Errorf("%+v", got)
	}
	spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), "example.com/gpu": resource.MustParse("2")}}
	if got := capacity.RequirementsOf(spec, "shop", "", spottest.MustLabels(t)); got.CPU != 3000 || got.Memory != 36<<20 || !cmp.Equal(got.Other, []capacity.Request{{"example.com/gpu", 2}}) {
		t.Errorf("%+v", got)
	}
}

// constrained is a pod spec with every constraint there is.
func constrained(steering string) *corev1.PodSpec {
	term := func(labels ...string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": labels[0]}}}
	}
	return &corev1.PodSpec{
		NodeSelector:  map[string]string{steering: "spot", "disk": "ssd"},
		SchedulerName: "other",
		Priority:      new(int32(7)),
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: "spot", Operator: corev1.TolerationOpExists},
		},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: steering, Operator: corev1.NodeSelectorOpIn, Values: []string{"spot"}},
					{Key: "arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"arm64"}},
				},
			}}}},
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("cache")}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("web")}},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}, {MaxSkew: 1, TopologyKey: "host", WhenUnsatisfiable: corev1.ScheduleAnyway},
		},
		Containers: []corev1.Container{{Resources: requests("1", "1Gi"), Ports: []corev1.ContainerPort{{HostPort: 80, ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-db-12"}}},
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		},
	}
}

func TestAShapeHasEveryConstraintButTheSteering(t *testing.T) {
	labels := spottest.MustLabels(t)
	steering, _ := spottest.SteersBy(labels, capacity.Spot)
	got := capacity.RequirementsOf(constrained(steering), "shop", "db-12", labels)
	want := []string{
		`apart:{"labelSelector":{"matchLabels":{"app":"web"}},"namespaces":["shop"],"topologyKey":"zone"}`,
		`near:{"labelSelector":{"matchLabels":{"app":"cache"}},"namespaces":["shop"],"topologyKey":"zone"}`,
		`node:{"key":"arch","operator":"In","values":["arm64"]}`,
		`port:TCP/80`,
		`scheduler:other`,
		`select:disk=ssd`,
		`spread:shop/{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}`,
		`volume:shop/data-db-`,
	}
	if diff := cmp.Diff(want, got.Constraints); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`{"key":"spot","operator":"Exists"}`}, got.Tolerations); diff != "" || got.Priority != 7 {
		t.Error(diff)
	}
	parsed, err := capacity.ParseRequirements(got.String())
	if err != nil || !cmp.Equal(parsed, got) {
		t.Errorf("%v: %+v", err, parsed)
	}
}

// Where a probe lacks a constraint of the replicas, its word that there is room is worth less.
func TestWhatNoProbeCanHaveIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		beyond bool
	}{
		"a volume": {func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		}, true},
		"a device": {func(s *corev1.PodSpec) {
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
		}, true},
		"a topology spread": {func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule}}
		}, true},
		"a topology spread that need not hold": {func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.ScheduleAnyway}}
		}, false},
		"another scheduler": {func(s *corev1.PodSpec) { s.SchedulerName = "other" }, true},
		"what a probe has": {func(s *corev1.PodSpec) {
			*s = *constrained("")
			s.SchedulerName, s.TopologySpreadConstraints, s.Volumes = "", nil, nil
		}, false},
	} {
		var spec corev1.PodSpec
		c.change(&spec)
		if got := capacity.RequirementsOf(&spec, "shop", "", spottest.MustLabels(t)); got.BeyondProbes() != c.beyond {
			t.Errorf("%s: %t: %v", name, got.BeyondProbes(), got.Constraints)
		}
	}
}

// A probe is a pod with the requirements of the decision, as far as a pod of another namespace can be.
func TestAProbeIsAsHardToPlaceAsItsShape(t *testing.T) {
	labels := spottest.MustLabels(t)
	steering, _ := spottest.SteersBy(labels, capacity.Spot)
	requirements := capacity.RequirementsOf(constrained(steering), "shop", "db-12", labels)
	spec := requirements.PodSpec()
	probe := capacity.RequirementsOf(&spec, "plimsoll", "probe", labels)
	want := requirements
	want.Priority = 0
	want.Constraints = []string{}
	for _, c := range requirements.Constraints {
		if c[:5] != "sprea" && c[:5] != "volum" {
			want.Constraints = append(want.Constraints, c)
		}
	}
	if diff := cmp.Diff(want, probe); diff != "" {
		t.Error(diff)
	}
	terms := constrained(steering)
	required := terms.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "arch", Operator: corev1.NodeSelectorOpIn, Values: []string{"amd64"}}}})
	requirements = capacity.RequirementsOf(terms, "shop", "db-12", labels)
	spec = requirements.PodSpec()
	if got := len(spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms); got != 2 {
		t.Errorf("%d alternatives are left of 2", got)
	}
}

func TestAnAlternativeThatAsksForNothingIsNoConstraint(t *testing.T) {
	labels := spottest.MustLabels(t)
	steering, _ := spottest.SteersBy(labels, capacity.Spot)
	spec := constrained(steering)
	required := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: steering, Operator: corev1.NodeSelectorOpExists}}})
	for _, c := range capacity.RequirementsOf(spec, "shop", "", labels).Constraints {
		if c[:4] == "node" {
			t.Errorf("%s", c)
		}
	}
}

// The pool is the template's own demand, although it shows that the node is on-demand where the label of spot is missing.
func TestANodePoolThatATemplateAsksForIsAConstraint(t *testing.T) {
	spec := corev1.PodSpec{NodeSelector: map[string]string{labelGKEPool: "large"}}
	if diff := cmp.Diff([]string{"select:" + labelGKEPool + "=large"}, capacity.RequirementsOf(&spec, "shop", "", spottest.MustLabels(t)).Constraints); diff != "" {
		t.Error(diff)
	}
}

func TestShapesHaveAPartialOrder(t *testing.T) {
	words := []string{"a", "b", "c"}
	draw := func(t *rapid.T) capacity.Requirements {
		s := capacity.Requirements{CPU: int64(rapid.IntRange(0, 2).Draw(t, "cpu")), Memory: int64(rapid.IntRange(0, 2).Draw(t, "memory")), Priority: int32(rapid.IntRange(0, 1).Draw(t, "priority"))}
		for _, w := range words {
			if rapid.Bool().Draw(t, w) {
				s.Constraints = append(s.Constraints, w)
			}
			if rapid.Bool().Draw(t, w) {
				s.Tolerations = append(s.Tolerations, w)
			}
			if n := rapid.IntRange(0, 2).Draw(t, w); n > 0 {
				s.Other = append(s.Other, capacity.Request{w, int64(n)})
			}
		}
		return s
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := draw(t), draw(t), draw(t)
		if !a.AtLeast(a) {
			t.Fatal("not reflexive")
		}
		if a.AtLeast(b) && b.AtLeast(a) && a.String() != b.String() {
			t.Fatalf("not antisymmetric: %s, %s", a, b)
		}
		if a.AtLeast(b) && b.AtLeast(c) && !a.AtLeast(c) {
			t.Fatalf("not transitive: %s, %s, %s", a, b, c)
		}
	})
}

func TestATextThatIsNoShapeIsAnError(t *testing.T) {
	for _, text := range []string{"", "x", `{"cpu":"1"}`, string(make([]byte, 1<<17))} {
		if _, err := capacity.ParseRequirements(text); err == nil {
			t.Errorf("%.20q is accepted", text)
		}
	}
}

// Admission sets the policy on pods, and a drought of theirs is one of their template's.
func TestThePolicyOfAConstraintIsNoPartOfThePodsShape(t *testing.T) {
	labels := spottest.MustLabels(t)
	plain := capacity.RequirementsOf(spreading(testZone, nil), "shop", "web-1", labels)
	all := spreading(testZone, func(c *corev1.TopologySpreadConstraint) { c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore) })
	if got := capacity.RequirementsOf(all, "shop", "web-1", labels); got.String() != plain.String() {
		t.Errorf("%s, want %s", got, plain)
	}
	if template := capacity.RequirementsOf(all, "shop", "", labels); !template.AtLeast(plain) {
		t.Errorf("a decision on pods says nothing of their template: %s", template)
	}
}

// Whoever may create a ReplicaSet chooses both numbers, and no pod is needed.
func TestWhatInitContainersNeedIsReadOnceForEach(t *testing.T) {
	always, one := corev1.ContainerRestartPolicyAlways, resource.MustParse("1")
	spec := func(inits int) *corev1.PodSpec {
		sidecar := corev1.Container{RestartPolicy: &always, Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}
		for n := range 500 {
			sidecar.Resources.Requests[corev1.ResourceName(fmt.Sprint("example.com/r", n))] = one
		}
		made := &corev1.PodSpec{InitContainers: []corev1.Container{sidecar}}
		for range inits {
			made.InitContainers = append(made.InitContainers, corev1.Container{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/r7": one}}})
		}
		return made
	}
	read := func(spec *corev1.PodSpec) float64 {
		return testing.AllocsPerRun(1, func() {
			if r := capacity.RequirementsOf(spec, "shop", "", capacity.Labels{}); len(r.Other) != 500 || r.Other[slices.IndexFunc(r.Other, func(r capacity.Request) bool { return r.Name == "example.com/r7" })].Amount != 2 {
				t.Errorf("%+v", r)
			}
		})
	}
	if few, many := read(spec(1)), read(spec(500)); many > few+500 {
		t.Errorf("500 init containers beside 500 resources make %.0f allocations, and one %.0f", many, few)
	}
}
