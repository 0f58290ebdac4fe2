package enroll

import rbacv1 "k8s.io/api/rbac/v1"

// memberRules are what the hub may do in a member. A test holds them to what the hub says that it needs, and pins them:
// whoever changes a line here asks every owner of a cluster for another right.
func memberRules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		// Workloads, and the ReplicaSets between Deployments and their pods.
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "replicasets"}, Verbs: read},
		// Which namespaces are enabled, what capacity nodes are of, and who the cluster is (the UID of kube-system).
		{APIGroups: []string{""}, Resources: []string{"namespaces", "nodes"}, Verbs: read},
		// Slots are labels of pods.
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: append([]string{"patch"}, read...)},
		// Moves respect PodDisruptionBudgets: pods are evicted, never deleted.
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		// What was done, and why not.
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		// The one configuration that register makes. The hub can neither make nor delete any.
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"},
			ResourceNames: []string{WebhookConfiguration}, Verbs: append([]string{"update", "patch"}, read...),
		},
		// Health probes; most clusters allow them to everybody, hardened ones do not.
		{NonResourceURLs: []string{"/readyz", "/version"}, Verbs: []string{"get"}},
	}
}
