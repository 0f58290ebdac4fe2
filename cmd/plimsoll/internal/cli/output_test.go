package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"sigs.k8s.io/yaml"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

func TestTablesAreAligned(t *testing.T) {
	h := startHub(t)
	for name, args := range map[string][]string{
		"clusters":  {"clusters"},
		"workloads": {"workloads", "-A"},
		"workload":  {"workload", "prod-eu", "shop/deploy/cart"},
		"explain":   {"explain", "prod-eu", "deployment", "shop/cart"},
		"what-if":   {"what-if", "prod-eu", "shop/deployment/cart", "--spot-percentage", "30"},
		"requeue":   {"requeue", "prod-eu", "shop/Deployment/cart"},
	} {
		got := h.run(t, args...)
		if got.code != exitOK {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.err)
		}
		golden(t, name+".golden", got.out+"--- standard error\n"+got.err)
	}
}

func TestJSONAndYAMLAreTheAPIsAnswers(t *testing.T) {
	h := startHub(t)
	for _, format := range []string{"json", "yaml"} {
		got := h.run(t, "clusters", "-o", format)
		golden(t, "clusters."+format+".golden", got.out)
		text := []byte(got.out)
		if format == "yaml" {
			var err error
			if text, err = yaml.YAMLToJSON(text); err != nil {
				t.Fatal(err)
			}
		}
		if !json.Valid(text) {
			t.Fatalf("%s: not valid:\n%s", format, got.out)
		}
		var answer plimsollv1.ListClustersResponse
		if err := protojson.Unmarshal(text, &answer); err != nil || len(answer.GetClusters()) != 3 {
			t.Errorf("%s: %v, %d clusters; want those of both pages", format, err, len(answer.GetClusters()))
		}
		if !strings.Contains(got.err, "warning: member us is missing") {
			t.Errorf("%s: a partial answer does not say so on standard error: %q", format, got.err)
		}
	}
}

func TestAnEmptyListSaysSo(t *testing.T) {
	got := startHub(t).run(t, "workloads", "-n", "empty")
	if got.code != exitOK || got.out != "" || !strings.HasPrefix(got.err, "No workloads") {
		t.Errorf("got %+v", got)
	}
	if got := startHub(t).run(t, "workloads", "-n", "empty", "-o", "json"); !strings.Contains(got.out, `"workloads": []`) {
		t.Errorf("as JSON: %+v", got)
	}
}

func TestTheHelpSaysWhatPeopleType(t *testing.T) {
	for name, want := range map[string]string{"/usr/bin/plimsoll": "  plimsoll requeue prod-eu", "/opt/kubectl-plimsoll": "  kubectl plimsoll requeue prod-eu"} {
		var out strings.Builder
		if code := Run(t.Context(), []string{name, "requeue", "--help"}, Environment{Out: &out, Err: &out, Getenv: func(string) string { return "" }}); code != exitOK {
			t.Errorf("%s: exit code %d", name, code)
		}
		if usage := strings.TrimSuffix(want, " prod-eu") + " CLUSTER"; !strings.Contains(out.String(), want) || !strings.Contains(out.String(), usage) {
			t.Errorf("%s: the help has no %q:\n%s", name, want, out.String())
		}
	}
}
