package enroll

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// What the hub may do in a member. Tests hold these rules to what the hub says that it needs, and pin them: whoever changes
// a line here asks every owner of a cluster, or every tenant of one, for another right.

// memberRules are those in a member that is a whole cluster.
func memberRules() []rbacv1.PolicyRule {
	return append(placementRules(), append([]rbacv1.PolicyRule{
		// Which namespaces are enabled, and who the cluster is (the UID of kube-system).
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: read()},
		// Which nodes Karpenter has launched: pods wait for those. Without it the hub goes by the Events on pods.
		// And which capacity types its nodes can have: reserved capacity is used before it has a node.
		{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodeclaims", "nodepools"}, Verbs: []string{"list"}},
	}, commonRules(WebhookConfiguration)...)...)
}

// placementRules are about what lives in namespaces: a tenant grants them in its own.
func placementRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		// Workloads, and the ReplicaSets between Deployments and their pods.
		{APIGroups: []string{"apps"}, Resources: []string{"deployments", "statefulsets", "replicasets"}, Verbs: read()},
		// Slots are labels of pods.
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: append([]string{"patch"}, read()...)},
		// Moves respect PodDisruptionBudgets: pods are evicted, never deleted.
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{"create"}},
		// Which budgets moves wait for, and whether a Service would lose a pod that is released before it moves.
		{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}, Verbs: read()},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"list"}},
		// What was done, and why not; and which nodes autoscalers say that they bring.
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "list"}},
	}
}

// workloadRules are about the kinds that the hub's configuration names beside Kubernetes' own.
func (r Registration) workloadRules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, resource := range r.WorkloadResources {
		plural, group, _ := strings.Cut(resource, ".")
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{plural}, Verbs: read()})
	}
	return rules
}

// clusterRules are those of the account's role for the whole cluster.
func (r Registration) clusterRules() []rbacv1.PolicyRule {
	if len(r.Namespaces) > 0 {
		return append(tenantRules(r.Namespaces, r.names().webhook), r.definitionRules()...)
	}
	return slices.Concat(memberRules(), r.workloadRules(), r.fleetRules(), r.writeRules(), r.keepRules(), r.definitionRules())
}

// definitionRules let the hub see when the cluster gets one of these kinds. A definition is the whole cluster's, and so is the right.
func (r Registration) definitionRules() []rbacv1.PolicyRule {
	if len(r.WorkloadResources) == 0 {
		return nil
	}
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: r.WorkloadResources, Verbs: read(),
	}}
}

// fleetRules let fleet placement set how many replicas workloads have; of the kinds that the hub's configuration names, too.
func (r Registration) fleetRules() []rbacv1.PolicyRule {
	if !r.Fleet {
		return nil
	}
	rules := fleetRules(r.Kinds)
	for _, resource := range r.WorkloadResources {
		plural, group, _ := strings.Cut(resource, ".")
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{plural + "/scale"}, Verbs: []string{"get", "update"}})
	}
	return rules
}

func fleetRules(kinds []Kind) []rbacv1.PolicyRule {
	scale := []string{"get", "update"}
	// Nothing of a workload but its number of replicas.
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments/scale", "statefulsets/scale", "replicasets/scale"}, Verbs: scale}}
	for i := range kinds {
		if kind := &kinds[i]; !kind.Workload.Empty() {
			rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{kind.Group}, Resources: []string{kind.Plural + "/scale"}, Verbs: scale})
		}
	}
	// What another autoscaler scales is left alone.
	return append(rules, rbacv1.PolicyRule{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}, Verbs: []string{"list"}})
}

// probeRules are about the pause pods that find out whether there is spot capacity again. They are granted in one namespace.
func probeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete"}}}
}

// tokenRules let the account renew its own token, and no other.
func tokenRules(account string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{account}, Verbs: []string{"create"}}}
}

// identityRules let the account show that its registration leads to the cluster that another one leads to.
func identityRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{clusters.IdentityLease}, Verbs: []string{"get", "patch"},
	}}
}

// tenantRules are what a tenant grants beyond its namespaces: the nodes, and single objects by their names.
func tenantRules(namespaces []string, webhook string) []rbacv1.PolicyRule {
	return append([]rbacv1.PolicyRule{
		// Whether its namespaces are enabled; the right to list and watch one by its name shows no other.
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: namespaces, Verbs: read()},
		// Who the cluster is, so that no namespace of it is registered twice.
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}},
	}, commonRules(webhook)...)
}

// commonRules are about what has no namespace.
func commonRules(webhook string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		// What capacity nodes are of.
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: read()},
		// The one configuration that register makes. The hub can neither make nor delete any.
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"mutatingwebhookconfigurations"},
			ResourceNames: []string{webhook}, Verbs: append([]string{"update", "patch"}, read()...),
		},
		// Health probes; most clusters allow them to everybody, hardened ones do not.
		{NonResourceURLs: []string{"/readyz", "/version"}, Verbs: []string{"get"}},
	}
}

func read() []string { return []string{"get", "list", "watch"} }
