package confine_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp/crd"
)

func TestTheVersionByWhichPartsNameTheirOwnersStaysServed(t *testing.T) {
	converted := module.WebhookConversion("https://hub.example.com/webhook/v1/members/a/t/convert/webapps", nil)
	const refused = "stop serving version v1 of WebApps"
	for name, test := range map[string]struct {
		change  func(*apiextensionsv1.CustomResourceDefinition)
		refused string
	}{
		"all versions are served":   {func(*apiextensionsv1.CustomResourceDefinition) {}, ""},
		"another is served no more": {func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[1].Served = false }, ""},
		"it is served no more":      {func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[0].Served = false }, refused},
		"it is gone":                {func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions = d.Spec.Versions[1:] }, refused},
		"the definition of another kind": {func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Name, d.Spec.Versions[0].Served = "shops.example.com", false
		}, ""},
	} {
		before, after := crd.Definition.New(), crd.Definition.With(converted)
		test.change(after)
		expect(t, name, asked{operation: "UPDATE", resource: "customresourcedefinitions", old: before, object: after}.refusals(t, account(), "definitions"), test.refused)
	}
}
