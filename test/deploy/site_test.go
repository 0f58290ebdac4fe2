package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// on is the site as a subtest sees it.
func (s *site) on(t *testing.T) *site {
	copied := *s
	copied.T = t
	return &copied
}

// site is one run of TestInstalledByHelmAndRunAsItSays: a hub that Helm installed, and a member.
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
	made, err := hub.New(ctx, config, hub.WithController(webapp.Module()), hub.WithLog(hub.NewLog(log, slog.LevelInfo)), hub.WithEnvironment(environ), hub.WithHubCluster(rest))
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
