package enroll

import (
	"fmt"
	"strings"
	"testing"
)

func TestWhatReconcilersOfOthersWriteIsGrantedByRoleAndPolicy(t *testing.T) {
	r := Registration{Name: "eu", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, Writes: []string{"configmaps", "certificates.cert-manager.io"}}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	rules := r.writeRules()
	for _, right := range [][3]string{
		{"", "configmaps", "delete"}, {"", "configmaps", "watch"}, {"cert-manager.io", "certificates", "create"}, {"cert-manager.io", "certificates/status", "patch"},
	} {
		if !grant(rules, right[0], right[1], "", right[2]) {
			t.Errorf("%v is not granted", right)
		}
	}
	if grant(rules, "", "configmaps/status", "", "patch") {
		t.Error("ConfigMaps have no status")
	}
	objects, err := memberObjects(r, false)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := memberObjects(Registration{Name: r.Name, Namespace: r.Namespace, MemberNamespace: r.MemberNamespace}, false)
	if err != nil {
		t.Fatal(err)
	}
	var changed []string
	for i := range objects {
		if fmt.Sprint(objects[i].body.Object) != fmt.Sprint(plain[i].body.Object) {
			changed = append(changed, objects[i].String())
		}
	}
	if want := "validatingadmissionpolicy/plimsoll-hub-kinds clusterrole/plimsoll-member"; strings.Join(changed, " ") != want {
		t.Errorf("it changes %v, want %s", changed, want)
	}
	tenant := r
	tenant.Namespaces = []string{"shop"}
	inNamespace, err := memberObjects(tenant, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range inNamespace {
		if text := fmt.Sprint(o.body.Object["rules"]); strings.Contains(text, "[configmaps]") && o.resource.Resource != "roles" {
			t.Errorf("a tenant grants it in its namespaces alone, not by %s", o)
		}
	}
}

func TestNobodyIsLetWriteWhatWouldBeAnyRight(t *testing.T) {
	for name, allowed := range map[string]bool{
		"configmaps": true, "networkpolicies.networking.k8s.io": true, "resourcequotas": true, "deployments.example.com": true,
		"secrets": false, "pods": false, "jobs.batch": false, "deployments.apps": false, "clusterroles.rbac.authorization.k8s.io": false,
		"validatingadmissionpolicies.admissionregistration.k8s.io": false, "customresourcedefinitions.apiextensions.k8s.io": false,
		"configmaps/status": false, "": false, "Config Maps": false,
	} {
		r := Registration{Name: "eu", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, Writes: []string{name}}
		err := r.Validate()
		if allowed != (err == nil) {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: the error does not name it: %v", name, err)
		}
	}
}

func TestAKindOfOthersIsKeptByRoleAndPolicy(t *testing.T) {
	r := Registration{Name: "eu", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, Keeps: []string{"bundles.example.com"}}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	if rules := r.keepRules(); !grant(rules, "apiextensions.k8s.io", "customresourcedefinitions", "bundles.example.com", "patch") ||
		grant(rules, "apiextensions.k8s.io", "customresourcedefinitions", "others.example.com", "patch") ||
		grant(rules, "apiextensions.k8s.io", "customresourcedefinitions", "bundles.example.com", "create") {
		t.Errorf("rules: %v", rules)
	}
	objects, err := memberObjects(r, false)
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, o := range objects {
		if text := fmt.Sprint(o.body.Object); strings.Contains(text, "example.com") || o.resource.Resource == "validatingwebhookconfigurations" {
			told[o.String()] = true
		}
	}
	for _, want := range []string{
		"validatingadmissionpolicy/plimsoll-hub-kinds", "validatingadmissionpolicy/plimsoll-hub-webhooks", "clusterrole/plimsoll-member",
		"validatingwebhookconfiguration/plimsoll",
	} {
		if !told[want] {
			t.Errorf("%s does not know the kind; those that do: %v", want, told)
		}
	}
	for _, bad := range []string{"bundles", "leases.coordination.k8s.io", "Bundles.example.com"} {
		r.Keeps = []string{bad}
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	r.Keeps, r.Namespaces = []string{"bundles.example.com"}, []string{"shop"}
	if err := r.Validate(); err == nil || !strings.Contains(err.Error(), "cluster-scoped") {
		t.Errorf("a tenant: %v", err)
	}
}
