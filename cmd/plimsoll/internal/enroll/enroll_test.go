package enroll

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestTheRoleOfTheHubInAMemberIsPinned(t *testing.T) {
	text, err := yaml.Marshal(memberRules())
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "role.golden.yaml", string(text))
	for _, rule := range memberRules() {
		for _, words := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
			if strings.Contains(strings.Join(words, ","), "*") {
				t.Errorf("a wildcard: %+v", rule)
			}
		}
	}
}

func TestTheRoleGrantsWhatTheHubSaysThatItNeeds(t *testing.T) {
	installer := &webhook.Installer{}
	needed := append(spot.Access(), spot.SignAccess()...)
	for _, access := range append(needed, clusters.Access{
		Group: "admissionregistration.k8s.io", Resource: "mutatingwebhookconfigurations", Name: webhook.ConfigurationName, Verbs: verbsOf(installer),
	}) {
		resource := access.Resource
		if access.Subresource != "" {
			resource += "/" + access.Subresource
		}
		for _, verb := range access.Verbs {
			if !grant(memberRules(), access.Group, resource, access.Name, verb) {
				t.Errorf("%s of %s %q in group %q is needed for %s, and not granted", verb, resource, access.Name, access.Group, access.For)
			}
		}
	}
}

func TestProbesHaveThePriorityThatTheHubGivesThem(t *testing.T) {
	if ProbePriorityClass != spot.ProbePriorityClass || probePriority != spot.ProbePriority {
		t.Errorf("register makes class %s of %d, and the hub uses %s of %d", ProbePriorityClass, probePriority, spot.ProbePriorityClass, spot.ProbePriority)
	}
}

func TestTheRightsOfATenantArePinnedAndCoverItsNamespacesOnly(t *testing.T) {
	namespaces := []string{"cart", "shop"}
	inCluster := tenantRules(namespaces, "plimsoll-team")
	text, err := yaml.Marshal(map[string][]rbacv1.PolicyRule{"cluster": inCluster, "namespace": placementRules()})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "tenant.golden.yaml", string(text))
	for _, rule := range inCluster {
		if !cmp.Equal(rule.Resources, []string{"nodes"}) && len(rule.ResourceNames) == 0 && len(rule.NonResourceURLs) == 0 {
			t.Errorf("a right in the whole cluster: %+v", rule)
		}
	}
	for _, access := range spot.Access() {
		resource, rules := access.Resource, placementRules()
		if access.Subresource != "" {
			resource += "/" + access.Subresource
		}
		if access.ClusterScoped {
			rules = inCluster
		}
		for _, verb := range access.Verbs {
			switch {
			case access.Resource != "namespaces" && !grant(rules, access.Group, resource, access.Name, verb):
				t.Errorf("%s of %s in group %q is needed for %s, and not granted", verb, resource, access.Group, access.For)
			case access.Resource == "namespaces" && !grant(inCluster, "", resource, "shop", verb):
				t.Errorf("%s of namespace shop is not granted", verb)
			case access.Resource == "namespaces" && grant(inCluster, "", resource, "other", verb):
				t.Errorf("%s of namespace other is granted", verb)
			}
		}
	}
	if want := clusters.TenantName(webhook.ConfigurationName, "team"); (Registration{Name: "team", Namespaces: namespaces}).names().webhook != want {
		t.Errorf("the tenant's webhook configuration is not called %s", want)
	}
}

func TestNamespacesOfATenantAreChecked(t *testing.T) {
	for want, namespaces := range map[string][]string{"specified twice": {"a", "b", "a"}, `namespace "A"`: {"A"}, `namespace ""`: {""}} {
		r := Registration{Name: "team", Namespace: DefaultNamespace, MemberNamespace: DefaultNamespace, Namespaces: namespaces}
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", namespaces, err, want)
		}
	}
	further := Registration{Name: "team", Namespace: DefaultNamespace, MemberNamespace: DefaultNamespace, WorkloadResources: []string{"rollouts"}}
	if err := further.Validate(); err == nil || !strings.Contains(err.Error(), "rollouts.argoproj.io") {
		t.Errorf("a resource without its group: %v", err)
	}
	long := Registration{Name: strings.Repeat("a", 60), Namespace: DefaultNamespace, MemberNamespace: DefaultNamespace}
	if err := long.Validate(); err != nil {
		t.Errorf("a long name of a whole cluster: %v", err)
	}
	long.Namespaces = []string{"a"}
	if err := long.Validate(); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a long name of a tenant: %v", err)
	}
}

func verbsOf(installer *webhook.Installer) (verbs []string) {
	for _, access := range installer.Access() {
		verbs = append(verbs, access.Verbs...)
	}
	return verbs
}

func grant(rules []rbacv1.PolicyRule, group, resource, name, verb string) bool {
	has := func(words []string, word string) bool {
		return strings.Contains("\n"+strings.Join(words, "\n")+"\n", "\n"+word+"\n")
	}
	for _, rule := range rules {
		if has(rule.APIGroups, group) && has(rule.Resources, resource) && has(rule.Verbs, verb) && (len(rule.ResourceNames) == 0 || has(rule.ResourceNames, name)) {
			return true
		}
	}
	return false
}

func TestTheNamesAreThoseOfTheHub(t *testing.T) {
	for ours, theirs := range map[string]string{
		MemberLabel: clusters.MemberLabel, KubeconfigKey: clusters.KubeconfigKey, NamespacesAnnotation: clusters.NamespacesAnnotation, WebhookConfiguration: webhook.ConfigurationName,
	} {
		if ours != theirs {
			t.Errorf("%q here is %q in the hub", ours, theirs)
		}
	}
}

// kubeconfigFile writes a kubeconfig with a context "prod" that is changed, and a context "hub".
func kubeconfigFile(t *testing.T, change func(*clientcmdapi.Cluster)) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	for name, server := range map[string]string{"prod": "https://prod.example:6443", "hub": "https://hub.example:6443"} {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: []byte(pemOf(t))}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: "canary-token-of-a-person"}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	config.CurrentContext = "prod"
	if change != nil {
		change(config.Clusters["prod"])
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, file, context string) *Context {
	t.Helper()
	loaded, err := Load(file, context)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestADryRunShowsEverythingButTheToken(t *testing.T) {
	file := kubeconfigFile(t, nil)
	r := Registration{Name: "prod-eu", Namespace: DefaultNamespace, MemberNamespace: DefaultNamespace, Kinds: []Kind{webApps()}}
	text, err := Render(r, load(t, file, ""), load(t, file, "hub"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "register.golden.yaml", string(text))
	if strings.Contains(string(text), "canary") {
		t.Error("the person's own token is in it")
	}
	r.Namespaces = []string{"cart", "shop"}
	if text, err = Render(r, load(t, file, ""), load(t, file, "hub")); err != nil {
		t.Fatal(err)
	}
	golden(t, "tenant-register.golden.yaml", string(text))
	r.WorkloadResources = []string{"rollouts.argoproj.io"}
	for _, r.Namespaces = range [][]string{{"cart"}, nil} {
		text, err = Render(r, load(t, file, ""), load(t, file, "hub"))
		if err != nil || strings.Count(string(text), "- argoproj.io") != 1 {
			t.Errorf("the right to read Rollouts in %v: %v\n%s", r.Namespaces, err, text)
		}
		if strings.Count(string(text), "  resourceNames:\n  - rollouts.argoproj.io\n  resources:\n  - customresourcedefinitions\n") != 1 {
			t.Errorf("the right to see when the cluster gets Rollouts, in %v:\n%s", r.Namespaces, text)
		}
	}
	r.WorkloadResources, r.TokenDuration = nil, time.Hour
	if text, err = Render(r, load(t, file, ""), load(t, file, "hub")); err != nil || strings.Contains(string(text), TokenSecret) {
		t.Errorf("with a token that expires there is still a Secret for one that does not: %v", err)
	}
}

func TestAContextThatTheHubCouldNotUseIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*clientcmdapi.Cluster)
		server string
		want   string
	}{
		"plain text":      {func(c *clientcmdapi.Cluster) { c.Server = "http://prod.example" }, "", "must be an https:// URL"},
		"no host":         {nil, "https:///", "must be an https:// URL"},
		"a user in it":    {nil, "https://a:b@prod.example", "must be an https:// URL"},
		"a proxy":         {func(c *clientcmdapi.Cluster) { c.ProxyURL = "http://proxy.example" }, "", "set --server"},
		"not verified":    {func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil }, "", "set --ca-file"},
		"a CA that isn't": {func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = []byte("no PEM") }, "", "contains no PEM certificate"},
	} {
		from := load(t, kubeconfigFile(t, c.change), "")
		if _, err := targetOf(from, c.server, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	proxied := load(t, kubeconfigFile(t, func(c *clientcmdapi.Cluster) { c.ProxyURL = "http://proxy.example" }), "")
	if at, err := targetOf(proxied, "https://direct.example", nil); err != nil || at.server != "https://direct.example" {
		t.Errorf("a proxy that --server goes around: %+v, %v", at, err)
	}
}

func TestWhatTheHubGetsPassesItsVetting(t *testing.T) {
	pem := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(pem, []byte(pemOf(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*clientcmdapi.Cluster){
		"inline CA":      nil,
		"CA in a file":   func(c *clientcmdapi.Cluster) { c.CertificateAuthority, c.CertificateAuthorityData = pem, nil },
		"public CA":      func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData = nil },
		"another name":   func(c *clientcmdapi.Cluster) { c.TLSServerName = "kubernetes" },
		"without a port": func(c *clientcmdapi.Cluster) { c.Server = "https://prod.example/path" },
	} {
		at, err := targetOf(load(t, kubeconfigFile(t, change), ""), "", nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		content, err := at.kubeconfig("prod-eu", "abc.def")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := kubeconfig.Vet("prod-eu", content, kubeconfig.Rules{}); err != nil {
			t.Errorf("%s: the hub refuses it: %v", name, err)
		}
	}
}

func TestContextsThatAreNotThereAreNamed(t *testing.T) {
	file := kubeconfigFile(t, nil)
	for name, c := range map[string][2]string{
		`no context "staging"`: {file, "staging"},
		"nonexistent":          {filepath.Join(t.TempDir(), "nonexistent"), ""},
	} {
		if _, err := Load(c[0], c[1]); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %q", err, name)
		}
	}
}
