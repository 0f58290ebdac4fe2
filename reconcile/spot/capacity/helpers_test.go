package capacity_test

import corev1 "k8s.io/api/core/v1"

const testZone = corev1.LabelTopologyZone

// spreading is a pod spec with constraints over a key that must hold.
func spreading(key string, change func(*corev1.TopologySpreadConstraint)) *corev1.PodSpec {
	c := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule}
	if change != nil {
		change(&c)
	}
	return &corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{c}}
}

const labelGKEPool = "cloud.google.com/gke-nodepool"
