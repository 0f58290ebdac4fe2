package cli

import (
	"strings"
	"testing"
)

func TestKindsAreTakenAsKubectlTakesThem(t *testing.T) {
	for text, want := range map[string]string{
		"deploy": "Deployment", "StatefulSets": "StatefulSet", "rs": "ReplicaSet", "ReplicaSet": "ReplicaSet",
		"rollout.argoproj.io": "Rollout.argoproj.io", "CloneSet.apps.kruise.io": "CloneSet.apps.kruise.io", "Rollout.ArgoProj.io": "Rollout.argoproj.io",
	} {
		key, err := parseWorkload("prod", "shop/"+text+"/cart", "")
		if err != nil || key.kind != want {
			t.Errorf("%s: %s, %v, want %s", text, key.kind, err, want)
		}
	}
	for _, text := range []string{"daemonset", "rollout", ".argoproj.io", "rollout."} {
		if key, err := parseWorkload("prod", "shop/"+text+"/cart", ""); err == nil {
			t.Errorf("%s is taken for %s", text, key.kind)
		}
	}
}

// Every command about a workload takes kubectl's forms: kind/name and -n, in place of namespace/kind/name.
func TestEveryCommandTakesAWorkloadAsKubectlDoes(t *testing.T) {
	h := startHub(t)
	for command, flags := range map[string]string{
		"explain": "", "describe workload": "", "workload": "", "what-if": " --spot-percentage 30", "requeue": "",
	} {
		want := h.run(t, strings.Fields(command+" prod-eu shop/deployment/cart"+flags)...)
		if want.code != exitOK || want.out == "" {
			t.Errorf("%s: %+v", command, want)
		}
		for _, form := range []string{"deployment/cart -n shop", "deploy/cart --namespace shop", "deployment.apps/cart -n shop", "deploy cart -n shop"} {
			if got := h.run(t, strings.Fields(command+" prod-eu "+form+flags)...); got != want {
				t.Errorf("%s %s: %+v, want %+v", command, form, got, want)
			}
		}
	}
}
