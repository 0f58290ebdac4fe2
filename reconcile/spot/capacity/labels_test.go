package capacity_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/spottest"
)

func TestNodesOfEveryProviderAreRecognised(t *testing.T) {
	c := spottest.MustLabels(t)
	for _, tc := range []struct {
		labels map[string]string
		want   capacity.Type
	}{
		{map[string]string{"karpenter.sh/capacity-type": "spot"}, capacity.Spot},
		{map[string]string{"karpenter.sh/capacity-type": "on-demand"}, capacity.OnDemand},
		{map[string]string{"karpenter.sh/capacity-type": "strange"}, capacity.Unknown},
		{map[string]string{"eks.amazonaws.com/capacityType": "SPOT"}, capacity.Spot},
		{map[string]string{"eks.amazonaws.com/capacityType": "ON_DEMAND"}, capacity.OnDemand},
		{map[string]string{"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-spot": "true"}, capacity.Spot},
		{map[string]string{"cloud.google.com/gke-nodepool": "a"}, capacity.OnDemand},
		{map[string]string{"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-provisioning": "preemptible"}, capacity.Spot},
		{map[string]string{"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-preemptible": "true"}, capacity.Spot},
		{map[string]string{"kubernetes.azure.com/agentpool": "a", "kubernetes.azure.com/scalesetpriority": "spot"}, capacity.Spot},
		{map[string]string{"kubernetes.azure.com/agentpool": "a"}, capacity.OnDemand},
		{map[string]string{"kubernetes.io/hostname": "x"}, capacity.Unknown},
		{nil, capacity.Unknown},
	} {
		if got := c.OfNode(tc.labels); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.labels, got, tc.want)
		}
	}
}

func TestTheConfiguredLabelComesFirstAndSteers(t *testing.T) {
	c := spottest.MustLabels(t, capacity.NodeLabel{Key: "example.com/market", Spot: []string{"cheap", "idle"}, OnDemand: []string{"firm"}})
	if key, value := spottest.SteersBy(c, capacity.Spot); key != "example.com/market" || value != "cheap" {
		t.Errorf("steers to spot by %s=%s", key, value)
	}
	if key, value := spottest.SteersBy(c, capacity.OnDemand); key != "example.com/market" || value != "firm" {
		t.Errorf("steers to on-demand by %s=%s", key, value)
	}
	labels := map[string]string{"example.com/market": "idle", "karpenter.sh/capacity-type": "on-demand"}
	if got := c.OfNode(labels); got != capacity.Spot {
		t.Errorf("%v is %q", labels, got)
	}
	if c.Keys()[0] != "example.com/market" {
		t.Errorf("keys %v", c.Keys())
	}
}

func TestBadNodeLabelsAreNamed(t *testing.T) {
	for want, label := range map[string]capacity.NodeLabel{
		"a b":      {Key: "a b", Spot: []string{"s"}, OnDemand: []string{"o"}},
		"one":      {Key: "k", Spot: []string{"s"}},
		"both":     {Key: "k", Spot: []string{"s"}, OnDemand: []string{"s"}},
		"no value": {Key: "k", Spot: []string{"no value"}, OnDemand: []string{"o"}},
	} {
		if _, err := capacity.NewLabels(label); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", label, err)
		}
	}
	twice := capacity.NodeLabel{Key: "k", Spot: []string{"s"}, OnDemand: []string{"o"}}
	if _, err := capacity.NewLabels(twice, twice); err == nil {
		t.Error("a label named twice is accepted")
	}
}

func TestAPodSpecTellsItsCapacityBySelectorElseByRequiredAffinity(t *testing.T) {
	const key = "karpenter.sh/capacity-type"
	zone := spottest.Requirement("zone", corev1.NodeSelectorOpIn, "a")
	onSpot, onDemand := spottest.Requirement(key, corev1.NodeSelectorOpIn, "spot"), spottest.Requirement(key, corev1.NodeSelectorOpIn, "on-demand")
	c := spottest.MustLabels(t)
	for name, tc := range map[string]struct {
		selector map[string]string
		required *corev1.NodeSelector
		want     capacity.Type
	}{
		"nothing":                {nil, nil, capacity.Unknown},
		"selector":               {map[string]string{key: "spot", "disk": "ssd"}, spottest.Required(spottest.Term(onDemand)), capacity.Spot},
		"foreign selector":       {map[string]string{"disk": "ssd"}, spottest.Required(spottest.Term(zone, onDemand)), capacity.OnDemand},
		"either":                 {nil, spottest.Required(spottest.Term(spottest.Requirement(key, corev1.NodeSelectorOpIn, "spot", "on-demand"))), capacity.Unknown},
		"alternatives agree":     {nil, spottest.Required(spottest.Term(zone, onSpot), spottest.Term(onSpot)), capacity.Spot},
		"alternatives disagree":  {nil, spottest.Required(spottest.Term(onSpot), spottest.Term(onDemand)), capacity.Unknown},
		"one alternative is mum": {nil, spottest.Required(spottest.Term(onSpot), spottest.Term(zone)), capacity.Unknown},
		"not spot":               {nil, spottest.Required(spottest.Term(spottest.Requirement(key, corev1.NodeSelectorOpNotIn, "spot"))), capacity.OnDemand},
		"not on-demand":          {nil, spottest.Required(spottest.Term(spottest.Requirement(key, corev1.NodeSelectorOpNotIn, "reserved", "on-demand"))), capacity.Spot},
		"no spot label at all":   {nil, spottest.Required(spottest.Term(spottest.Requirement("cloud.google.com/gke-spot", corev1.NodeSelectorOpDoesNotExist))), capacity.OnDemand},
		"no terms":               {nil, spottest.Required(), capacity.Unknown},
		"one is not possible":    {nil, spottest.Required(spottest.Term(onDemand, onSpot), spottest.Term(onSpot)), capacity.Spot},
		"one has no demands":     {nil, spottest.Required(spottest.Term(), spottest.Term(onSpot)), capacity.Spot},
		"reserved too":           {nil, spottest.Required(spottest.Term(spottest.Requirement(key, corev1.NodeSelectorOpIn, "on-demand", "reserved"))), capacity.OnDemand},
	} {
		if got := c.OfPodSpec(tc.selector, tc.required); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
