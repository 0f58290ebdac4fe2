package spot

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
)

func TestNamespacesThatAreExcludedByNameAreNotWatched(t *testing.T) {
	for selector, want := range map[string]string{
		"":                                     "",
		"team=a":                               "",
		"kubernetes.io/metadata.name":          "",
		"kubernetes.io/metadata.name=a":        "metadata.namespace=a",
		"kubernetes.io/metadata.name in(a)":    "metadata.namespace=a",
		"kubernetes.io/metadata.name in (a,b)": "", // no list asks for two
		"kubernetes.io/metadata.name!=kube-system":             "metadata.namespace!=kube-system",
		"kubernetes.io/metadata.name notin (b,a),team in (c)":  "metadata.namespace!=a,metadata.namespace!=b",
		"kubernetes.io/metadata.name notin (b,a),!team,tier>1": "metadata.namespace!=a,metadata.namespace!=b",
	} {
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if found := withoutExcluded(parsed); found != nil {
			got = found.String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", selector, got, want)
		}
	}
}

func TestOnlyReplicaSetsAreCachedByTheNamesOfNamespaces(t *testing.T) {
	namespaces, err := labels.Parse("kubernetes.io/metadata.name!=kube-system")
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{options: Options{Namespaces: namespaces}}
	for _, kind := range e.narrowed(Kinds(spottest.DefaultKeys, spottest.MustLabels(t), nodes.Interruptions{})) {
		want := ""
		if _, is := kind.Object.(*appsv1.ReplicaSet); is {
			want = "metadata.namespace!=kube-system"
		}
		got := ""
		if kind.Needed != nil {
			got = kind.Needed.String()
		}
		if got != want {
			t.Errorf("%T is cached by %q, want %q", kind.Object, got, want)
		}
	}
	e.options.Namespaces = labels.Everything()
	for _, kind := range e.narrowed([]clusters.Kind{{Object: &appsv1.ReplicaSet{}}}) {
		if kind.Needed != nil {
			t.Errorf("nothing is excluded, and %s is asked for", kind.Needed)
		}
	}
}
