package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
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
	t.Run("WebApps are brought by GitOps, and what is missing is told", func(t *testing.T) { s.on(t).bringWebApps(first, inMember) })
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

// on is the site as a subtest sees it.
func (s *site) on(t *testing.T) *site {
	copied := *s
	copied.T = t
	return &copied
}

// site is one run of the story above.
type site struct {
	*testing.T
	fleet  *fleet.Fleet
	member *fleet.Member
	values Values
}

// running is a replica.
type running struct {
	config config.Config
	addr   hub.Addresses
	end    context.CancelFunc
	ended  chan error
	remove func()
}

// start runs a replica with the ConfigMap that is in the hub cluster, as the service account that is there, with the pod's
// environment. Only its addresses are others, as on one machine there is no IP for each pod, and what is added to that.
func (s *site) start(more ...string) *running {
	s.Helper()
	var configMap corev1.ConfigMap
	s.must(s.fleet.Hub.Client().Get(s.Context(), client.ObjectKey{Namespace: Namespace, Name: "plimsoll-config"}, &configMap))
	file := writeText(s.T, configMap.Data["config.yaml"])
	environ := append([]string{
		"PLIMSOLL_WEBHOOK_BINDADDRESS=127.0.0.1", "PLIMSOLL_WEBHOOK_PORT=0", "PLIMSOLL_API_GRPCADDRESS=127.0.0.1:0",
		"PLIMSOLL_API_RESTADDRESS=127.0.0.1:0", "PLIMSOLL_PEER_ADDRESS=127.0.0.1:0", "PLIMSOLL_METRICS_ADDRESS=127.0.0.1:0",
		"PLIMSOLL_PROBES_ADDRESS=127.0.0.1:0",
	}, append(more, podEnvironment...)...)
	config, err := config.Load(file, environ)
	s.must(err)
	kubeconfig, err := s.fleet.Hub.KubeconfigFor(s.Context(), account)
	s.must(err)
	rest, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	s.must(err)
	log := &lines{}
	s.Cleanup(func() {
		if s.Failed() {
			s.Log("the hub's log:\n" + log.text())
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	made, err := hub.New(ctx, config, hub.WithLog(hub.NewLog(log, slog.LevelInfo)), hub.WithEnvironment(environ), hub.WithHubCluster(rest))
	if err != nil {
		cancel()
		s.Fatal(err)
	}
	r := &running{config: config, addr: made.Addresses(), end: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- made.Run(ctx) }()
	s.fleet.Balancer.Add(r.addr.Webhook)
	r.remove = func() { s.fleet.Balancer.Remove(r.addr.Webhook) }
	s.Cleanup(func() { r.stop(s.T) })
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	if r.end == nil {
		return
	}
	r.remove()
	r.end()
	r.end = nil
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// register makes the registration Secret with the token that is in the member, as docs/gitops.md says.
func (s *site) register() {
	s.Helper()
	var token corev1.Secret
	s.must(fleet.Await(timeout(s.T, patience), "the token in the member", func(ctx context.Context) (bool, error) {
		err := s.member.Client().Get(ctx, client.ObjectKey{Namespace: Namespace, Name: "plimsoll-hub-token"}, &token)
		return err == nil && len(token.Data["token"]) > 0, err
	}))
	config := clientcmdapi.NewConfig()
	config.Clusters["member"] = &clientcmdapi.Cluster{Server: s.member.Cluster.URL(), CertificateAuthorityData: s.member.Cluster.CAData()}
	config.AuthInfos["member"] = &clientcmdapi.AuthInfo{Token: string(token.Data["token"])}
	config.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "member"}
	config.CurrentContext = "member"
	kubeconfig, err := clientcmd.Write(*config)
	s.must(err)
	s.must(s.fleet.Hub.Client().Create(s.Context(), fleet.Registration(s.member.Name, kubeconfig)))
}

// call asks the API over TLS, trusting what the hub has published, as a service account.
func (s *site) call(ctx context.Context, r *running, account string, do func(context.Context, *grpc.ClientConn) error) error {
	var published corev1.ConfigMap
	if err := s.fleet.Hub.Client().Get(ctx, client.ObjectKey{Namespace: Namespace, Name: hub.APICAConfigMap}, &published); err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(published.Data["ca.crt"])) {
		return errors.New("the ConfigMap has no certificate yet")
	}
	token, err := s.fleet.Hub.Token(ctx, Namespace, account, "plimsoll")
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+r.addr.GRPC, grpc.WithPerRPCCredentials(bearer(token)),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: pool, ServerName: "plimsoll-api." + Namespace + ".svc", MinVersion: tls.VersionTLS12})))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return do(ctx, conn)
}

type bearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (bearer) RequireTransportSecurity() bool { return true }

// user makes a service account that is bound to one of the chart's roles for users.
func (s *site) user(role string) string {
	s.Helper()
	name := role + "-user"
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: name}},
		},
	} {
		if err := s.fleet.Hub.Client().Create(s.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
			s.Fatal(err)
		}
	}
	return name
}

// cluster waits until the API says of the member what is asked for.
func (s *site) cluster(r *running, what string, holds func(*plimsollv1.Cluster) bool) {
	s.Helper()
	viewer := s.user("plimsoll-viewer")
	s.must(fleet.Await(timeout(s.T, patience), what, func(ctx context.Context) (held bool, _ error) {
		err := s.call(ctx, r, viewer, func(ctx context.Context, conn *grpc.ClientConn) error {
			answer, err := plimsollv1.NewClusterServiceClient(conn).GetCluster(ctx, &plimsollv1.GetClusterRequest{Cluster: s.member.Name})
			if err != nil {
				return err
			}
			if held = holds(answer.GetCluster()); !held {
				return fmt.Errorf("it is %v", answer.GetCluster())
			}
			return nil
		})
		return held, err
	}))
}

func (s *site) awaitReady(r *running) {
	s.Helper()
	s.cluster(r, "the member to be ready", func(c *plimsollv1.Cluster) bool {
		return c.GetState() == plimsollv1.ClusterState_CLUSTER_STATE_READY && c.GetOwner() != ""
	})
}

func (s *site) awaitCondition(r *running, kind string, is metav1.ConditionStatus, reason string) {
	s.Helper()
	s.awaitMessage(r, kind, is, reason, "")
}

// awaitMessage is awaitCondition with a part of the message.
func (s *site) awaitMessage(r *running, kind string, is metav1.ConditionStatus, reason, says string) {
	s.Helper()
	s.cluster(r, "condition "+kind+" to be "+reason, func(c *plimsollv1.Cluster) bool {
		for _, condition := range c.GetConditions() {
			if condition.GetType() == kind {
				return condition.GetReason() == reason && condition.GetStatus() == string(is) && strings.Contains(condition.GetMessage(), says)
			}
		}
		return false
	})
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

// lines is a log that is read when a test fails.
type lines struct {
	mu   sync.Mutex
	data bytes.Buffer
}

// Write takes a line.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.Write(line)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.data.String()
}
