package capacity

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestNodesOfEveryProviderAreRecognised(t *testing.T) {
	c := mustLabels(t)
	for _, tc := range []struct {
		labels map[string]string
		want   Type
	}{
		{map[string]string{"karpenter.sh/capacity-type": "spot"}, Spot},
		{map[string]string{"karpenter.sh/capacity-type": "on-demand"}, OnDemand},
		{map[string]string{"karpenter.sh/capacity-type": "strange"}, Unknown},
		{map[string]string{"eks.amazonaws.com/capacityType": "SPOT"}, Spot},
		{map[string]string{"eks.amazonaws.com/capacityType": "ON_DEMAND"}, OnDemand},
		{map[string]string{"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-spot": "true"}, Spot},
		{map[string]string{"cloud.google.com/gke-nodepool": "a"}, OnDemand},
		{map[string]string{"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-provisioning": "preemptible"}, Spot},
		{map[string]string{"cloud.google.com/gke-nodepool": "a", "cloud.google.com/gke-preemptible": "true"}, Spot},
		{map[string]string{"kubernetes.azure.com/agentpool": "a", "kubernetes.azure.com/scalesetpriority": "spot"}, Spot},
		{map[string]string{"kubernetes.azure.com/agentpool": "a"}, OnDemand},
		{map[string]string{"kubernetes.io/hostname": "x"}, Unknown},
		{nil, Unknown},
	} {
		if got := c.OfNode(tc.labels); got != tc.want {
			t.Errorf("%v: %q, want %q", tc.labels, got, tc.want)
		}
	}
}

func TestTheConfiguredLabelComesFirstAndSteers(t *testing.T) {
	c := mustLabels(t, NodeLabel{Key: "example.com/market", Spot: []string{"cheap", "idle"}, OnDemand: []string{"firm"}})
	if key, value := steersBy(c, Spot); key != "example.com/market" || value != "cheap" {
		t.Errorf("steers to spot by %s=%s", key, value)
	}
	if key, value := steersBy(c, OnDemand); key != "example.com/market" || value != "firm" {
		t.Errorf("steers to on-demand by %s=%s", key, value)
	}
	labels := map[string]string{"example.com/market": "idle", "karpenter.sh/capacity-type": "on-demand"}
	if got := c.OfNode(labels); got != Spot {
		t.Errorf("%v is %q", labels, got)
	}
	if c.Keys()[0] != "example.com/market" {
		t.Errorf("keys %v", c.Keys())
	}
}

func TestBadNodeLabelsAreNamed(t *testing.T) {
	for want, label := range map[string]NodeLabel{
		"a b":      {Key: "a b", Spot: []string{"s"}, OnDemand: []string{"o"}},
		"one":      {Key: "k", Spot: []string{"s"}},
		"both":     {Key: "k", Spot: []string{"s"}, OnDemand: []string{"s"}},
		"no value": {Key: "k", Spot: []string{"no value"}, OnDemand: []string{"o"}},
	} {
		if _, err := NewLabels(label); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", label, err)
		}
	}
	twice := NodeLabel{Key: "k", Spot: []string{"s"}, OnDemand: []string{"o"}}
	if _, err := NewLabels(twice, twice); err == nil {
		t.Error("a label named twice is accepted")
	}
}

func TestAPodSpecTellsItsCapacityBySelectorElseByRequiredAffinity(t *testing.T) {
	const key = "karpenter.sh/capacity-type"
	zone := requirement("zone", corev1.NodeSelectorOpIn, "a")
	onSpot, onDemand := requirement(key, corev1.NodeSelectorOpIn, "spot"), requirement(key, corev1.NodeSelectorOpIn, "on-demand")
	c := mustLabels(t)
	for name, tc := range map[string]struct {
		selector map[string]string
		required *corev1.NodeSelector
		want     Type
	}{
		"nothing":                {nil, nil, Unknown},
		"selector":               {map[string]string{key: "spot", "disk": "ssd"}, required(term(onDemand)), Spot},
		"foreign selector":       {map[string]string{"disk": "ssd"}, required(term(zone, onDemand)), OnDemand},
		"either":                 {nil, required(term(requirement(key, corev1.NodeSelectorOpIn, "spot", "on-demand"))), Unknown},
		"alternatives agree":     {nil, required(term(zone, onSpot), term(onSpot)), Spot},
		"alternatives disagree":  {nil, required(term(onSpot), term(onDemand)), Unknown},
		"one alternative is mum": {nil, required(term(onSpot), term(zone)), Unknown},
		"not spot":               {nil, required(term(requirement(key, corev1.NodeSelectorOpNotIn, "spot"))), OnDemand},
		"not on-demand":          {nil, required(term(requirement(key, corev1.NodeSelectorOpNotIn, "reserved", "on-demand"))), Spot},
		"no spot label at all":   {nil, required(term(requirement("cloud.google.com/gke-spot", corev1.NodeSelectorOpDoesNotExist))), OnDemand},
		"no terms":               {nil, required(), Unknown},
		"one is not possible":    {nil, required(term(onDemand, onSpot), term(onSpot)), Spot},
		"one has no demands":     {nil, required(term(), term(onSpot)), Spot},
		"reserved too":           {nil, required(term(requirement(key, corev1.NodeSelectorOpIn, "on-demand", "reserved"))), OnDemand},
	} {
		if got := c.OfPodSpec(tc.selector, tc.required); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
