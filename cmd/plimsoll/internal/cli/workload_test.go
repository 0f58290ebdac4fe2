package cli

import "testing"

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
