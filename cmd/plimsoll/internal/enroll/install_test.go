package enroll

import (
	"strings"
	"testing"
)

func TestInstallIsPinned(t *testing.T) {
	text, err := RenderInstall(DefaultNamespace)
	if err != nil {
		t.Fatal(err)
	}
	definition, rest, _ := strings.Cut(strings.TrimPrefix(string(text), "---\n"), "---\n")
	if !strings.Contains(definition, "name: webapps.apps.plimsoll.dev") || strings.Contains(definition, "strategy: Webhook") {
		t.Error("the definition comes first, and without a hub it converts nothing")
	}
	golden(t, "install.golden.yaml", rest)
}

func TestTheHubMayWriteNoSecretForWebApps(t *testing.T) {
	for _, rule := range webAppRules() {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if (resource == "secrets" || resource == "configmaps") && verb != "get" && verb != "list" && verb != "watch" {
					t.Errorf("may %s %s", verb, resource)
				}
				if verb == "*" || resource == "*" {
					t.Errorf("may %s %s", verb, resource)
				}
			}
		}
	}
}
