package deploy

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// patience is how long one step may take on a machine that is busy with other things. It is never what is tested.
const patience = 2 * time.Minute

// applier applies any object to a cluster, server-side and strictly: a field that the API server does not know is an error.
type applier struct {
	mapper  meta.ResettableRESTMapper
	objects dynamic.Interface
}

func newApplier(t *testing.T, cluster *kube.Cluster) *applier {
	t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &applier{mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)), objects: objects}
}

func (a *applier) client(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return a.objects.Resource(mapping.Resource), nil
	}
	return a.objects.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
}

// apply applies one object; dryRun may be metav1.DryRunAll.
func (a *applier) apply(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) error {
	client, err := a.client(object)
	if err != nil {
		return err
	}
	content, err := json.Marshal(object)
	if err != nil {
		return err
	}
	force := true
	_, err = client.Patch(ctx, object.GetName(), "application/apply-patch+yaml", content,
		metav1.PatchOptions{FieldManager: "deploy-test", Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun})
	return err
}

// inFront are the kinds that others stand on: Kubernetes deletes a token's Secret whose account is not there.
var inFront = []string{"Namespace", "ServiceAccount"}

// applyAll applies objects in the order that kustomize and Flux keep.
func (a *applier) applyAll(t *testing.T, objects Objects) {
	t.Helper()
	rank := func(key string) int {
		if at := slices.Index(inFront, objects[key].GetKind()); at >= 0 {
			return at
		}
		return len(inFront)
	}
	keys := objects.Keys()
	slices.SortStableFunc(keys, func(x, y string) int { return rank(x) - rank(y) })
	for _, key := range keys {
		if err := a.apply(t.Context(), objects[key]); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
	}
}

// foreignCRDs are the definitions of kinds that the chart can make, or that the examples are of, and that are not Kubernetes' own, as their projects ship them.
var foreignCRDs = map[string][]string{
	"github.com/prometheus-operator/prometheus-operator@v0.85.0": {
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
	},
	"github.com/cert-manager/cert-manager@v1.21.2": {"deploy/crds/cert-manager.io_certificates.yaml"},
	"github.com/argoproj/argo-cd/v3@v3.5.7":        {"manifests/crds/application-crd.yaml", "manifests/crds/applicationset-crd.yaml"},
	"sigs.k8s.io/gateway-api@v1.4.0": {
		"config/crd/experimental/gateway.networking.k8s.io_tlsroutes.yaml", "config/crd/experimental/gateway.networking.k8s.io_gateways.yaml",
	},
	"github.com/fluxcd/kustomize-controller@v1.9.5": {"config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"},
	"github.com/external-secrets/external-secrets@v1.3.2": {
		"config/crds/bases/external-secrets.io_externalsecrets.yaml",
	},
}

// installCRDs brings them through the Go module proxy, and waits until they are served.
func installCRDs(t *testing.T, a *applier) {
	t.Helper()
	for module, files := range foreignCRDs {
		command := exec.Command("go", "mod", "download", "-json", module)
		command.Dir = t.TempDir() // in no module
		answer, err := command.Output()
		if err != nil {
			t.Fatalf("download %s: %v\n%s", module, err, answer)
		}
		var downloaded struct{ Dir string }
		if err := json.Unmarshal(answer, &downloaded); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(downloaded.Dir, filepath.FromSlash(file)))
			if err != nil {
				t.Fatal(err)
			}
			definitions, err := Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			a.applyAll(t, definitions)
		}
	}
}

// testTheAPIServerTakesEveryField has each object checked by the API server's own schemas, defaults and
// validation, without keeping any.
func testTheAPIServerTakesEveryField(t *testing.T, f *fleet.Fleet) {
	a := newApplier(t, f.Hub)
	installCRDs(t, a)
	a.applyAll(t, webApps(t).Kind("CustomResourceDefinition")) // for the environments
	repository := newFleetRepository(t)
	for _, namespace := range []string{"argocd", "shop", "1234", "1e3"} {
		made, err := Parse("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"" + namespace + "\"}")
		if err != nil {
			t.Fatal(err)
		}
		a.applyAll(t, made)
	}
	strange, err := Parse(slices.Collect(maps.Values(named(t, "0x1f", "1e3", "1234", "TRUE")))...)
	if err != nil {
		t.Fatal(err)
	}
	for name, objects := range map[string]Objects{
		"by default": render(t, ""), "with everything": render(t, everyValue), "with names like numbers": strange, "the member's": member(t), "the member's WebApps": webApps(t),
		"Argo CD's": repository.objects("argocd/applications.yaml"), "Argo CD's by list": repository.objects("argocd/by-list.yaml"), "External Secrets'": repository.objects("members/external-secret.yaml.example"),
		"staging": repository.build("apps/staging"), "production": repository.build("apps/production"),
	} {
		for _, key := range objects.Keys() {
			err := fleet.Await(timeout(t, patience), key, func(ctx context.Context) (bool, error) {
				err := a.apply(ctx, objects[key], metav1.DryRunAll)
				if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) { // a definition that was just made
					a.mapper.Reset()
					return false, err
				}
				if err != nil {
					t.Errorf("%s: %s: %v", name, key, err)
				}
				return true, nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func timeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// helm is Helm in the hub's namespace of a cluster.
func helm(t *testing.T, cluster *kube.Cluster) *action.Configuration {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, cluster.Kubeconfig(), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(false)
	namespace := Namespace
	flags.KubeConfig, flags.Namespace = &file, &namespace
	config := new(action.Configuration)
	if err := config.Init(flags, Namespace, "secret", t.Logf); err != nil {
		t.Fatal(err)
	}
	return config
}

func install(t *testing.T, config *action.Configuration, values Values) {
	t.Helper()
	chart, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	act := action.NewInstall(config)
	act.ReleaseName, act.Namespace = "plimsoll", Namespace
	if _, err := act.RunWithContext(timeout(t, patience), chart, values); err != nil {
		t.Fatalf("helm install: %v", err)
	}
}

func upgrade(t *testing.T, config *action.Configuration, values Values) {
	t.Helper()
	chart, err := loadChart()
	if err != nil {
		t.Fatal(err)
	}
	act := action.NewUpgrade(config)
	act.Namespace = Namespace
	if _, err := act.RunWithContext(timeout(t, patience), "plimsoll", chart, values); err != nil {
		t.Fatalf("helm upgrade: %v", err)
	}
}
