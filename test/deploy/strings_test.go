package deploy

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chartutil"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// namedValues name whatever has a name: NAME is one that Kubernetes takes, TEXT any string.
const namedValues = `
image: {repository: "NAME", tag: "NAME"}
imagePullSecrets: [{name: "NAME"}]
commonLabels: {common: "NAME", a: "NAME-common", app.kubernetes.io/instance: x}
commonAnnotations: {common: "TEXT"}
env: [{name: TEXT, value: "TEXT"}]
extraArgs: ["TEXT"]
extraVolumes: [{name: "NAME", configMap: {name: "NAME"}}]
extraVolumeMounts: [{name: "NAME", mountPath: "/NAME"}]
extraObjects:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: "extra-{{ .Release.Name }}", namespace: "{{ .Release.Namespace }}"}
    data: {a: "TEXT"}
config:
  webhook: {dnsNames: ["NAME"]}
  fleet: {enabled: true, history: {configMap: "NAME"}}
  leaderElection: {leaseName: "NAME"}
webhook:
  certificate: {secretName: "NAME", issuerRef: {name: "NAME", kind: "NAME", group: "NAME"}}
  clientCA: {secretName: "NAME"}
  service: {type: LoadBalancer, annotations: {a: "TEXT"}, loadBalancerClass: "NAME"}
  tlsRoute: {enabled: true, annotations: {a: "TEXT"}, parentRefs: [{name: "NAME"}], hostnames: ["NAME"]}
api:
  certificate: {secretName: "NAME", issuerRef: {name: "NAME"}}
  clientCA: {secretName: "NAME"}
  tlsRoute: {enabled: true, grpcHostnames: ["NAME"], restHostnames: ["NAME"]}
  ingress: {enabled: true, className: "NAME", annotations: {a: "TEXT"}, host: "NAME", tls: [{hosts: ["NAME"], secretName: "NAME"}]}
gateway: {enabled: true, className: "NAME", annotations: {a: "TEXT"}, addresses: [{type: Hostname, value: "NAME"}]}
metrics:
  certificate: {secretName: "NAME", issuerRef: {name: "NAME"}}
  serviceMonitor: {enabled: true, scrapeTimeout: 10s, labels: {a: "NAME"}, relabelings: [{targetLabel: a, replacement: "TEXT"}]}
  rules: {enabled: true, labels: {a: "NAME"}, alerts: {PlimsollSpotDry: {severity: "TEXT"}}}
  dashboards: {enabled: true, labels: {a: "NAME"}, annotations: {a: "TEXT"}, namespace: "NAME"}
networkPolicy:
  apiFrom: [{podSelector: {matchLabels: {a: "NAME"}}}]
registrations:
  namespace: "NAME"
  registrars: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: "TEXT"}]
  secretStoreRef: {kind: SecretStore, name: "NAME"}
  members:
    - {name: "NAME", server: "https://NAME:6443", caData: "1234", tokenKey: "TEXT", tokenProperty: "TEXT", memberNamespace: "NAME",
       namespaces: ["NAME"], environment: "NAME", annotations: {a: "TEXT"}}
flux: {enabled: true, namespace: "NAME", sourceRef: {kind: GitRepository, name: "NAME"}}
serviceAccount: {name: "NAME", annotations: {a: "TEXT"}}
users:
  viewers: [{kind: ServiceAccount, name: "NAME", namespace: "NAME"}]
podSecurityContext: {seccompProfile: {type: Localhost, localhostProfile: "TEXT"}}
topologySpreadConstraints: [{topologyKey: "NAME", maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]
podAnnotations: {a: "TEXT"}
podLabels: {a: "NAME"}
nodeSelector: {a: "NAME"}
tolerations: [{key: "NAME", operator: Equal, value: "NAME"}]
priorityClassName: "NAME"
`

// strangeNames and strangeTexts are strings that YAML reads as something else unless they are in quotes.
var (
	strangeNames = []string{"1234", "1e3", "0x1f", "0o17", "017", "12e-3", "true", "yes", "off", "n", "null", "inf"}
	strangeTexts = []string{"0x1F", "TRUE", "1_000", "-1.5", "~", "2026-01-02", "1:30", "- a", "a: b", "a #b", "{a}", "[a", "*a", "&a", "!a", "%a", "@a", `"a`, "'a", "a\nb"}
)

// named are the texts of the chart with these names in them.
func named(t *testing.T, release, namespace, name, text string) map[string]string {
	t.Helper()
	values := renamed(parsed(t, namedValues), strings.NewReplacer("NAME", name, "TEXT", text)).(map[string]any)
	files, err := renderRelease(chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true, Revision: 1}, values, ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// renamed is a copy in which all strings but keys are replaced.
func renamed(content any, by *strings.Replacer) any {
	switch content := content.(type) {
	case string:
		return by.Replace(content)
	case []any:
		copied := make([]any, len(content))
		for i := range content {
			copied[i] = renamed(content[i], by)
		}
		return copied
	case map[string]any:
		copied := map[string]any{}
		for key, value := range content {
			copied[key] = renamed(value, by)
		}
		return copied
	}
	return content
}

// A namespace may be called 1e3 and an account true. What is rendered for such names is what is rendered for others, with the names
// replaced, and Kubernetes' own types take it.
func TestNamesThatLookLikeNumbersStayStrings(t *testing.T) {
	const release, namespace, name, text = "release-zz", "namespace-zz", "name-zz", "text zz"
	ordinary := ordinaryContents(t, named(t, release, namespace, name, text))
	for i := range max(len(strangeNames), len(strangeTexts)) {
		name, text := strangeNames[i%len(strangeNames)], strangeTexts[i%len(strangeTexts)]
		namespace, release := strangeNames[(i+1)%len(strangeNames)], strangeNames[(i+2)%len(strangeNames)]
		t.Run(name+" "+text, func(t *testing.T) {
			files := named(t, release, namespace, name, text)
			by := strings.NewReplacer("release-zz", release, "namespace-zz", namespace, "name-zz", name, "text zz", text)
			if diff := cmp.Diff(renamed(ordinary, by), any(ordinaryContents(t, files))); diff != "" {
				t.Errorf("-as with other names +rendered:\n%s", diff)
			}
			decodeAll(t, files)
		})
	}
}

// ordinaryContents are the objects in the order of their files, without what is YAML itself: that is parsed.
func ordinaryContents(t *testing.T, files map[string]string) []any {
	t.Helper()
	var contents []any
	for _, file := range slices.Sorted(maps.Keys(files)) {
		for _, document := range documents(t, files[file]) {
			var object map[string]any
			if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v in\n%s", file, err, document)
			}
			unstructured.RemoveNestedField(object, "spec", "template", "metadata", "annotations", "plimsoll.dev/config-sha256")
			for _, path := range [][]string{{"data", "config.yaml"}, {"spec", "target", "template", "data", "kubeconfig"}} {
				text, found, _ := unstructured.NestedString(object, path...)
				if !found {
					continue
				}
				var content any
				if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
					t.Fatalf("%s: %v in\n%s", file, err, text)
				}
				if err := unstructured.SetNestedField(object, content, path...); err != nil {
					t.Fatal(err)
				}
			}
			contents = append(contents, object)
		}
	}
	return contents
}

// documents are the YAML documents of a text that have a content.
func documents(t *testing.T, text string) (all []string) {
	t.Helper()
	reader := yamlreader.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		var content any
		if err := yaml.Unmarshal(document, &content); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if content != nil {
			all = append(all, string(document))
		}
	}
}

// foreignKinds are of projects whose types are not linked here. A real API server checks them by their definitions.
var foreignKinds = []string{"Certificate", "ExternalSecret", "Gateway", "Kustomization", "PrometheusRule", "ServiceMonitor", "TLSRoute"}

// decodeAll decodes each document into the Go type of its kind; unknown and repeated fields are errors.
func decodeAll(t *testing.T, files map[string]string) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	for file, text := range files {
		for _, document := range documents(t, text) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
				t.Errorf("%s: %v in\n%s", file, err, document)
			}
			if slices.Contains(foreignKinds, kind.Kind) {
				continue
			}
			if _, _, err := decoder.Decode([]byte(document), nil, nil); err != nil {
				t.Errorf("%s: %v in\n%s", file, err, document)
			}
		}
	}
}

// External Secrets fills this in, and the hub reads it as a kubeconfig.
func TestTheKubeconfigOfAMemberIsOneWithAnyAuthority(t *testing.T) {
	for _, authority := range []string{"1234", "true", "1e10", "null"} {
		objects := render(t, "registrations: {members: [{name: a, server: \"https://a\", caData: \""+authority+"\"}], secretStoreRef: {name: s}}")
		text, _, err := unstructured.NestedString(objects["ExternalSecret plimsoll-members/a"].Object, "spec", "target", "template", "data", "kubeconfig")
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", authority, err)
			continue
		}
		if cluster := config.Clusters["member"]; len(cluster.CertificateAuthorityData) == 0 {
			t.Errorf("%s: no authority in %v", authority, cluster)
		}
	}
}
