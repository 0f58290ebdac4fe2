package deploy

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/pki"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// account is the hub's, in its own cluster and in members.
const account = "system:serviceaccount:" + Namespace + ":plimsoll-hub"

func TestInstalledByHelmAndRunAsItSays(t *testing.T) {
	f, err := fleet.Start(t.Context(), fleet.Options{Members: []string{"prod-eu"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Stop() })
	s := &site{T: t, fleet: f, member: f.Members[0], values: Values{
		"config": map[string]any{
			"webhook": map[string]any{"url": "https://" + f.Balancer.Address()},
			// The testbed is on this machine, which is refused unless it is said.
			"clusters":       map[string]any{"allowedNetworks": []any{"127.0.0.0/8"}},
			"leaderElection": map[string]any{"leaseDuration": "5s", "renewDeadline": "3s", "retryPeriod": "500ms"},
		},
	}}

	t.Run("the API server takes every field", func(t *testing.T) { testTheAPIServerTakesEveryField(t, f) })
	helm := helm(t, f.Hub)
	install(t, helm, s.values)
	t.Run("its pods are restricted", func(t *testing.T) { testItsPodsAreRestricted(t, f) })
	first := s.start()

	// The member, as GitOps would bring it there, but for one object.
	objects := member(t)
	webhookKey := "MutatingWebhookConfiguration " + webhook.ConfigurationName
	configuration := objects[webhookKey]
	delete(objects, webhookKey)
	inMember := newApplier(t, s.member.Cluster)
	inMember.applyAll(t, objects)
	s.register()
	s.awaitCondition(first, "Webhook", metav1.ConditionFalse, webhook.ReasonMissing)
	if err := inMember.apply(t.Context(), configuration); err != nil {
		t.Fatal(err)
	}
	s.awaitReady(first)
	s.awaitCondition(first, "Webhook", metav1.ConditionTrue, webhook.ReasonCurrent)
	t.Run("a viewer looks and does not order", func(t *testing.T) { s.viewerLooksAndDoesNotOrder(t, first) })
	// Bringing the same again takes nothing away from what the hub wrote.
	objects[webhookKey] = configuration
	inMember.applyAll(t, objects)
	s.awaitReady(first)
	t.Run("WebApps are brought by GitOps, and what is missing is reported", func(t *testing.T) { s.on(t).bringWebApps(first, inMember) })
	t.Run("the command line shows it as the page says", func(t *testing.T) { s.on(t).commandLine(first) })
	t.Run("the dashboards show it", func(t *testing.T) { s.on(t).answersTheDashboards(first) })

	before := s.state()
	s.values["replicas"] = 3
	s.values["config"].(map[string]any)["controller"] = map[string]any{"workers": 7, "resyncPeriod": "5s"}
	s.values["webhook"] = fromCertManager()
	upgrade(t, helm, s.values)
	if after := s.state(); !after.equal(before) {
		t.Error("the upgrade changed the registration or the authority")
	}
	s.awaitReady(first)
	first.stop(t)
	certificate := s.mount("/etc/plimsoll/webhook")
	second := s.start("PLIMSOLL_WEBHOOK_CERTDIR=" + certificate.dir)
	s.awaitCondition(second, "WebApps", metav1.ConditionTrue, webhook.ReasonCurrent)
	if second.config.Controller.Workers != 7 {
		t.Errorf("the replica after the upgrade runs with %d workers", second.config.Controller.Workers)
	}
	s.awaitReady(second)
	t.Run("the certificate is cert-manager's, and followed when it is replaced", func(t *testing.T) {
		s.on(t).servesWhatCertManagerIssues(second, certificate)
	})
	second.stop(t)

	t.Run("the rights are enough", s.nothingWasForbidden)
}

// bringWebApps applies what is in deploy/member/webapps bit by bit.
func (s *site) bringWebApps(r *running, inMember *applier) {
	s.awaitMessage(r, "WebApps", metav1.ConditionFalse, webhook.ReasonMissing, "no definition of WebApps")
	const role, validation, right = "ClusterRole plimsoll-webapps", "ValidatingWebhookConfiguration " + webhook.ConfigurationName, "services"
	some := webApps(s.T)
	delete(some, validation)
	rules := slices.DeleteFunc(some[role].Object["rules"].([]any), func(rule any) bool {
		return slices.Contains(rule.(map[string]any)["resources"].([]any), any(right))
	})
	some[role].Object["rules"] = rules
	inMember.applyAll(s.T, some)
	s.awaitMessage(r, "WebApps", metav1.ConditionFalse, webhook.ReasonMissing, validation)
	s.awaitMessage(r, "Permitted", metav1.ConditionFalse, clusters.ReasonNotPermitted, "create services (keeping WebApps)")

	inMember.applyAll(s.T, webApps(s.T).Without("CustomResourceDefinition")) // as GitOps, which leaves that alone
	s.awaitCondition(r, "WebApps", metav1.ConditionTrue, webhook.ReasonCurrent)
	s.awaitCondition(r, "Permitted", metav1.ConditionTrue, "Permitted")
	s.awaitReady(r)

	// An older version is read by way of the hub: the URL is the hub's, and its authority is in the definition.
	app, err := Parse("apiVersion: apps.plimsoll.dev/v1\nkind: WebApp\nmetadata: {name: shop, namespace: default}\n" +
		`spec: {containers: [{name: web, image: "shop:1"}]}`)
	s.must(err)
	inMember.mapper.Reset()
	inMember.applyAll(s.T, app)
	old := app["WebApp default/shop"].DeepCopy()
	old.SetAPIVersion("apps.plimsoll.dev/v1alpha1")
	s.must(fleet.Await(timeout(s.T, patience), "the WebApp as it is in v1alpha1", func(ctx context.Context) (bool, error) {
		inMember.mapper.Reset()
		client, err := inMember.client(old)
		if err != nil {
			return false, err
		}
		read, err := client.Get(ctx, "shop", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		image, _, err := unstructured.NestedString(read.Object, "spec", "image")
		return image == "shop:1", err
	}))
}

// commandLine runs the last command that docs/install.md shows: only its address is another, as nothing is forwarded.
func (s *site) commandLine(r *running) {
	var shown string
	for _, block := range console(s.T, "docs/install.md") {
		for line := range strings.Lines(block) {
			if strings.HasPrefix(line, "plimsoll clusters ") {
				shown = strings.TrimSpace(line)
			}
		}
	}
	if shown == "" {
		s.Fatal("docs/install.md does not show the command")
	}
	dir := s.TempDir()
	one, err := clientcmd.Load(s.fleet.Hub.Kubeconfig())
	s.must(err)
	one.Contexts["hub"] = one.Contexts[one.CurrentContext]
	s.must(clientcmd.WriteToFile(*one, filepath.Join(dir, "kubeconfig")))
	var published corev1.ConfigMap
	s.must(s.fleet.Hub.Client().Get(s.Context(), client.ObjectKey{Namespace: Namespace, Name: hub.APICAConfigMap}, &published))
	s.must(os.WriteFile(filepath.Join(dir, "plimsoll-ca.crt"), []byte(published.Data["ca.crt"]), 0o600))
	viewer := s.user("plimsoll-viewer")
	shown = strings.ReplaceAll(shown, "plimsoll-system/viewer", Namespace+"/"+viewer)
	testbed, err := kube.BinDir()
	s.must(err)
	ours, err := filepath.Abs(filepath.Join(filepath.Dir(filepath.Dir(testbed)), "bin"))
	s.must(err)
	command := exec.CommandContext(timeout(s.T, patience), "bash", "-euo", "pipefail", "-c", shown+" --api "+r.addr.GRPC)
	command.Dir, command.Env = dir, []string{"KUBECONFIG=" + filepath.Join(dir, "kubeconfig"), "HOME=" + dir, "PATH=" + ours + ":" + os.Getenv("PATH")}
	said, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(said), s.member.Name) || !strings.Contains(string(said), "Ready") {
		s.Errorf("%s: %v\n%s", shown, err, said)
	}
}

func (s *site) viewerLooksAndDoesNotOrder(t *testing.T, r *running) {
	err := s.call(t.Context(), r, s.user("plimsoll-viewer"), func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := plimsollv1.NewWorkloadServiceClient(conn).RequeueWorkload(ctx, &plimsollv1.RequeueWorkloadRequest{
			Cluster: s.member.Name, Namespace: "default", Kind: "Deployment", Name: "any",
		})
		return err
	})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("a viewer who orders: %v", err)
	}
	err = s.call(t.Context(), r, s.user("plimsoll-operator"), func(ctx context.Context, conn *grpc.ClientConn) error {
		_, err := plimsollv1.NewWorkloadServiceClient(conn).RequeueWorkload(ctx, &plimsollv1.RequeueWorkloadRequest{
			Cluster: s.member.Name, Namespace: "default", Kind: "Deployment", Name: "any",
		})
		return err
	})
	if status.Code(err) != codes.NotFound {
		t.Errorf("an operator who orders about nothing that is there: %v", err)
	}
}

// state is what an upgrade must not touch.
type state struct{ registration, authority corev1.Secret }

func (s *site) state() state {
	s.Helper()
	var found state
	s.must(s.fleet.Hub.Client().Get(s.Context(), client.ObjectKey{Namespace: fleet.Registrations, Name: s.member.Name}, &found.registration))
	s.must(s.fleet.Hub.Client().Get(s.Context(), client.ObjectKey{Namespace: Namespace, Name: hub.CASecret}, &found.authority))
	if len(found.authority.Data[pki.TokenKeyField]) == 0 || len(found.registration.Data[clusters.KubeconfigKey]) == 0 {
		s.Fatal("the registration or the authority is empty")
	}
	return found
}

func (a state) equal(b state) bool {
	return a.registration.ResourceVersion == b.registration.ResourceVersion && a.authority.UID == b.authority.UID &&
		bytes.Equal(a.authority.Data[pki.TokenKeyField], b.authority.Data[pki.TokenKeyField]) &&
		bytes.Equal(a.authority.Data[corev1.TLSCertKey], b.authority.Data[corev1.TLSCertKey])
}

// nothingWasForbidden looks through everything that the hub has asked both API servers for.
func (s *site) nothingWasForbidden(t *testing.T) {
	for _, cluster := range []*kube.Cluster{s.fleet.Hub, s.member.Cluster} {
		events, err := cluster.Audit().Events(kube.ByUser(account))
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			t.Errorf("cluster %s knows nothing of the hub", cluster.Name())
		}
		for _, event := range events {
			if event.Code == 403 {
				t.Errorf("cluster %s: forbidden: %s %s", cluster.Name(), event.Verb, event.URI)
			}
		}
	}
}
