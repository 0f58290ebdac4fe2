package main

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"pgregory.net/rapid"

	spotpolicy "github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// TestTheSamplesAreWhatTheManifestsSay reads the manifests as Kubernetes would.
func TestTheSamplesAreWhatTheManifestsSay(t *testing.T) {
	g := NewWithT(t)
	var read []sample
	for _, member := range memberNames {
		content, err := manifests.Open("workloads/" + member + ".yaml")
		g.Expect(err).NotTo(HaveOccurred())
		read = append(read, readSamples(g, member, content)...)
	}
	slices.SortFunc(read, func(a, b sample) int {
		return cmp.Or(cmp.Compare(a.member, b.member), cmp.Compare(a.kind, b.kind), cmp.Compare(a.name, b.name))
	})
	g.Expect(read).To(Equal(samples))
}

// manifest is what we look at of any object in them.
type manifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
}

func readSamples(g *WithT, member string, content io.Reader) (read []sample) {
	fallback := map[string]string{}
	decoder := utilyaml.NewYAMLOrJSONDecoder(content, 4096)
	for {
		var m manifest
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return read
		} else if err != nil {
			g.Expect(err).NotTo(HaveOccurred())
		}
		switch m.Kind {
		case "Namespace":
			g.Expect(m.Name).To(Equal(namespace))
			g.Expect(m.Labels).To(HaveKeyWithValue("plimsoll.dev/enabled", "true"))
			fallback = m.Annotations
		case "Deployment", "StatefulSet":
			g.Expect(m.Namespace).To(Equal(namespace))
			g.Expect(m.Labels).To(HaveKeyWithValue("plimsoll.dev/enabled", "true"))
			s := sample{member: member, kind: m.Kind, name: m.Name, replicas: m.Spec.Replicas}
			value := func(key string) string { return cmp.Or(m.Annotations[key], fallback[key], "0") }
			var err error
			s.percent, err = strconv.Atoi(strings.TrimSuffix(value("plimsoll.dev/spot-percentage"), "%"))
			s.broken = err != nil
			s.floor, err = strconv.Atoi(value("plimsoll.dev/min-on-demand"))
			g.Expect(err).NotTo(HaveOccurred())
			read = append(read, s)
		}
	}
}

// TestTwoWaysOfCountingSpotReplicasAgree compares the checks' own arithmetic, which follows the definition, with the hub's.
func TestTwoWaysOfCountingSpotReplicasAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, percent, floor := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(0, 100).Draw(t, "percent"), rapid.IntRange(0, 400).Draw(t, "floor")
		if got, want := (spotpolicy.Mix{Percent: percent, Floor: floor, Managed: true}).Spot(n), wantedSpot(n, percent, floor); got != want {
			t.Fatalf("the hub puts %d of %d replicas on spot, the definition %d", got, n, want)
		}
	})
}
