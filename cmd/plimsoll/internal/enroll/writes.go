package enroll

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
)

// written are the resources that reconcilers of other modules write, by their group and plural.
func (r Registration) written() (all []schema.GroupResource) {
	for _, name := range r.Writes {
		all = append(all, schema.ParseGroupResource(name))
	}
	return all
}

// validateWrites says which of them cannot be.
func (r Registration) validateWrites() error {
	for i, written := range r.written() {
		if len(validation.IsDNS1035Label(written.Resource)) > 0 || written.Group != "" && len(validation.IsDNS1123Subdomain(written.Group)) > 0 {
			return fmt.Errorf("written resource %q: must be a plural and a group, as in configmaps or certificates.cert-manager.io", r.Writes[i])
		}
		if why := confine.Unwritable(written); why != "" {
			return fmt.Errorf("written resource %q: %s", r.Writes[i], why)
		}
	}
	return nil
}

// writeRules are about what reconcilers of other modules write, status and finalizers included.
func (r Registration) writeRules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, written := range r.written() {
		rules = append(rules,
			rbacv1.PolicyRule{APIGroups: []string{written.Group}, Resources: []string{written.Resource}, Verbs: append([]string{"create", "update", "patch", "delete"}, read()...)})
		if strings.Contains(written.Group, ".") { // Kubernetes' own groups of that form have nothing that is written there
			rules = append(rules, rbacv1.PolicyRule{
				APIGroups: []string{written.Group}, Resources: []string{written.Resource + "/status", written.Resource + "/finalizers"}, Verbs: []string{"update", "patch"}})
		}
	}
	return rules
}
