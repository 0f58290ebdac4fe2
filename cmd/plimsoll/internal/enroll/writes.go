package enroll

import (
	"errors"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
)

// kept are the custom kinds of other modules of which the hub keeps the definition, and about which the member asks it.
func (r Registration) kept() (all []schema.GroupResource) {
	for _, name := range r.Keeps {
		all = append(all, schema.ParseGroupResource(name))
	}
	return all
}

// validateKeeps says which of them cannot be.
func (r Registration) validateKeeps() error {
	for i, kept := range r.kept() {
		if len(validation.IsDNS1035Label(kept.Resource)) > 0 || !strings.Contains(kept.Group, ".") || len(validation.IsDNS1123Subdomain(kept.Group)) > 0 {
			return fmt.Errorf("kept kind %q: must be the name of a CustomResourceDefinition, as in bundles.example.com", r.Keeps[i])
		}
		if strings.HasSuffix(kept.Group, ".k8s.io") {
			return fmt.Errorf("kept kind %q: it is a built-in kind of Kubernetes", r.Keeps[i])
		}
	}
	if len(r.Keeps) > 0 && len(r.Namespaces) > 0 {
		return errors.New("--keeps: a definition is cluster-scoped, and cannot be kept for single namespaces")
	}
	return nil
}

// keepRules let the hub change the definitions and the configuration by which the member asks it, and make or delete none.
func (r Registration) keepRules() []rbacv1.PolicyRule {
	if len(r.Keeps) == 0 {
		return nil
	}
	return keepRules(r.Keeps...)
}

func keepRules(definitions ...string) []rbacv1.PolicyRule {
	keep := append([]string{"patch"}, read()...)
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, ResourceNames: definitions, Verbs: keep},
		{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"},
			ResourceNames: []string{WebhookConfiguration}, Verbs: keep,
		},
	}
}

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
