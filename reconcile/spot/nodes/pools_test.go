package nodes

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

// nodePoolOf is a NodePool whose nodes have one of these capacity types.
func nodePoolOf(operator corev1.NodeSelectorOperator, values ...any) unstructured.Unstructured {
	pool := unstructured.Unstructured{Object: map[string]any{}}
	requirements := []any{map[string]any{"key": spottest.SteerKey, "operator": string(operator), "values": values}}
	_ = unstructured.SetNestedSlice(pool.Object, requirements, "spec", "template", "spec", "requirements")
	return pool
}

// steeredByPools is how pods of a member go on-demand that has these NodePools, and nodes with these labels.
func steeredByPools(t *testing.T, c *Census, server *signServer, nodes ...map[string]string) string {
	t.Helper()
	d := newSignWorld(t, server)
	values, err := d.signs.PoolValues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range nodes {
		c.Replace(nil, labels)
	}
	c.Expect(values)
	return c.Steering().OnDemand.String()
}

const (
	byKarpentersLabel = "the nodeSelector karpenter.sh/capacity-type=on-demand"
	byReserved        = "required node affinity: karpenter.sh/capacity-type In (on-demand, reserved)"
)

func TestReservedCapacityOfANodePoolIsUsedBeforeItsFirstNode(t *testing.T) {
	labelled := unstructured.Unstructured{Object: map[string]any{}}
	_ = unstructured.SetNestedStringMap(labelled.Object, map[string]string{spottest.SteerKey: "reserved"}, "spec", "template", "metadata", "labels")
	for name, c := range map[string]struct {
		pools []unstructured.Unstructured
		nodes []map[string]string
		want  string
	}{
		"no NodePool":               {nil, nil, byKarpentersLabel},
		"spot and on-demand":        {[]unstructured.Unstructured{nodePoolOf("In", "spot", "on-demand")}, nil, byKarpentersLabel},
		"reserved beside on-demand": {[]unstructured.Unstructured{nodePoolOf("In", "on-demand", "reserved")}, nil, byReserved},
		"a pool of reserved alone": {[]unstructured.Unstructured{nodePoolOf("In", "on-demand"), nodePoolOf("In", "reserved")},
			[]map[string]string{{spottest.SteerKey: "on-demand"}, {spottest.SteerKey: "spot"}}, byReserved},
		"by a label of the template": {[]unstructured.Unstructured{labelled}, nil, byReserved},
		"reserved left out":          {[]unstructured.Unstructured{nodePoolOf("NotIn", "reserved")}, nil, byKarpentersLabel},
		"nobody names it":            {[]unstructured.Unstructured{nodePoolOf("Exists")}, nil, byKarpentersLabel},
	} {
		census := &Census{}
		census.Begin(spottest.MustLabels(t), nil, nil)
		if got := steeredByPools(t, census, &signServer{claims: c.pools}, c.nodes...); got != c.want {
			t.Errorf("%s: on-demand pods go by %s, want %s", name, got, c.want)
		}
	}
}

func TestANodePoolThatGoesTakesItsReservedCapacityWithIt(t *testing.T) {
	told := 0
	c := &Census{}
	c.Begin(spottest.MustLabels(t), nil, func(*capacity.Steering) { told++ })
	reserved := &signServer{claims: []unstructured.Unstructured{nodePoolOf("In", "reserved")}}
	for range 2 {
		if got := steeredByPools(t, c, reserved); got != byReserved {
			t.Fatal(got)
		}
	}
	if got := steeredByPools(t, c, &signServer{}); got != byKarpentersLabel || told != 2 {
		t.Errorf("on-demand pods go by %s after %d changes", got, told)
	}
}

// Where Karpenter has no nodes and another's nodes carry their own labels, on-demand pods go to nodes of any of them that are not spot.
func TestANodePoolDoesNotHideTheNodesOfAnotherProvider(t *testing.T) {
	const eks = "eks.amazonaws.com/capacityType"
	c := &Census{}
	c.Begin(spottest.MustLabels(t), nil, nil)
	pools := &signServer{claims: []unstructured.Unstructured{nodePoolOf("In", "reserved")}}
	got := steeredByPools(t, c, pools, map[string]string{eks: "SPOT"}, map[string]string{eks: "ON_DEMAND"})
	if !strings.Contains(got, "NotIn") || !strings.Contains(got, eks) {
		t.Errorf("on-demand pods go by %s", got)
	}
}

func TestAMemberWithoutNodePoolsHasNoneAndOneThatHidesThemSaysSo(t *testing.T) {
	d := newSignWorld(t, &signServer{refuses: noSuchKind()})
	if values, err := d.signs.PoolValues(t.Context()); err != nil || len(values) > 0 {
		t.Errorf("no such kind: %v, %v", values, err)
	}
	d = newSignWorld(t, &signServer{refuses: forbiddenClaims()})
	if _, err := d.signs.PoolValues(t.Context()); err == nil {
		t.Error("forbidden: no error")
	}
}
