package crd

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheDefinitionTakesOnlyQuantitiesThatAreQuicklyRead(t *testing.T) {
	g := NewWithT(t)
	for _, version := range New().Spec.Versions {
		if !version.Storage {
			continue
		}
		resources := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["containers"].Items.Schema.Properties["resources"]
		for _, list := range []string{"requests", "limits"} {
			quantity := resources.Properties[list].AdditionalProperties.Schema
			g.Expect(quantity.XIntOrString).To(BeTrue())
			g.Expect(quantity.Type).To(BeEmpty(), "an int or a string has no type")
			taken := func(text string) bool {
				return regexp.MustCompile(quantity.Pattern).MatchString(text) && len(text) <= int(*quantity.MaxLength)
			}
			for _, good := range []string{"1", "100m", ".5", "2Gi", "1e3", "1E-12", "+1.5M", "1e99"} {
				g.Expect(taken(good)).To(BeTrue(), good)
			}
			for _, bad := range []string{"1e-2147483647", "1e100", "1E+100", "1e1.5", "100000000000000000000000000000000", "a", ""} {
				g.Expect(taken(bad)).To(BeFalse(), bad)
			}
		}
	}
}
