package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	certutil "k8s.io/client-go/util/cert"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api"
	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/journal"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/plan"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	apiNamespace = "plimsoll-system"
	apiAudience  = "plimsoll"
)

// apiBackend is a hub with two members and one workload in each, for tests of who may see what.
type apiBackend struct{}

func (apiBackend) Synced() bool { return true }

func (apiBackend) Statuses() []clusters.Status {
	return []clusters.Status{{Name: "prod-eu", State: clusters.StateReady}, {Name: "prod-us", State: clusters.StateReady}}
}

func (b apiBackend) Status(name string) (clusters.Status, bool) {
	for _, known := range b.Statuses() {
		if known.Name == name {
			return known, true
		}
	}
	return clusters.Status{}, false
}

func (apiBackend) List(member, _ string) []report.Workload {
	view := report.Workload{Member: member, State: plan.StateConverged, Reason: "every replica is where it belongs"}
	view.Kind, view.Namespace, view.Name = spot.KindDeployment, "shop", "cart"
	return []report.Workload{view}
}

func (b apiBackend) Get(member, _, namespace, _ string) (report.Workload, bool) {
	return b.List(member, namespace)[0], true
}

func (b apiBackend) Suppose(member, kind, namespace, name string, _ report.Hypothesis, _ time.Time) (report.WhatIf, bool) {
	view, ok := b.Get(member, kind, namespace, name)
	return report.WhatIf{Now: view, Then: view}, ok
}

func (apiBackend) WhyNotEnabled(context.Context, string, policy.WorkloadKey) (spot.NotEnabled, error) {
	return spot.NotEnabled{}, spot.ErrNotKnown
}

func (apiBackend) Controller(string) (string, bool) { return "deployment-spot", true }

func (apiBackend) Placed() []spot.PlacedKind {
	return []spot.PlacedKind{{Name: spot.KindDeployment, Controller: "deployment-spot", Cached: "apps/v1 Deployment"}}
}

func (apiBackend) RecordsIn(filter reconcile.Filter) ([]reconcile.Record, bool) {
	return []reconcile.Record{{Key: reconcile.Key{Controller: "deployment-spot", Member: filter.Member}}}, false
}

func (apiBackend) ControllersIn(member string) []reconcile.ControllerState {
	return []reconcile.ControllerState{{Name: "deployment-spot", Member: member}}
}

func (apiBackend) Lookup(key reconcile.Key) (reconcile.Record, bool) {
	return reconcile.Record{Key: key}, true
}

func (apiBackend) RequeueFor(key reconcile.Key, _ string) (reconcile.Operation, error) {
	return reconcile.Operation{ID: "1", Key: key, Done: true, Record: reconcile.Record{Key: key, LastOutcome: reconcile.OutcomeDone}}, nil
}

func (b apiBackend) Operation(string) (reconcile.Operation, bool) {
	key := reconcile.Key{Controller: "deployment-spot", Member: "prod-eu"}
	return reconcile.Operation{ID: "1", Key: key, Done: true, Record: reconcile.Record{Key: key, LastOutcome: reconcile.OutcomeDone}}, true
}

func (apiBackend) Version(string) uint64 { return 0 }

func (apiBackend) Closed(string, reconcile.Hold) (string, bool) { return "", false }

func (apiBackend) OperationsIn(string) []reconcile.Operation { return nil }

func (apiBackend) CancelOperation(string) (reconcile.Operation, error) {
	return reconcile.Operation{}, reconcile.ErrUnknownOperation
}

func (b apiBackend) Wait(_ context.Context, id string) (reconcile.Operation, error) {
	operation, _ := b.Operation(id)
	return operation, nil
}

func (apiBackend) Owner(string) string { return "10.0.0.1:9444" }
func (apiBackend) Mine(string) bool    { return true }
func (apiBackend) Acts(string) bool    { return true }

func (apiBackend) Dial(string) (grpc.ClientConnInterface, error) {
	return nil, errors.New("there is one replica")
}

// apiSite is the API in front of a hub cluster that answers its questions.
type apiSite struct {
	hub        *kube.Cluster
	grpc, rest string
	ca         []byte // PEM
	client     *http.Client
	log        *bytes.Buffer
}

// newAPISite serves the API with the rights that the hub's own account needs for it, and no more.
func newAPISite(t *testing.T, hub *kube.Cluster) *apiSite {
	t.Helper()
	s := &apiSite{hub: hub, log: &bytes.Buffer{}}
	s.apply(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: apiNamespace}})
	s.account(t, "plimsoll-hub")
	s.bind(t, "hub", "plimsoll-hub", "system:auth-delegator")
	kubeconfig, err := hub.KubeconfigFor(t.Context(), "system:serviceaccount:"+apiNamespace+":plimsoll-hub")
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewTokenReviewer(clients.AuthenticationV1().TokenReviews(), apiAudience)
	if err != nil {
		t.Fatal(err)
	}
	certificate, pool, pem := localCertificate(t)
	s.ca = pem
	b := apiBackend{}
	server, err := api.New(api.Options{
		Backend: api.Backend{Members: b, Workloads: b, Objects: b, Ownership: b, Events: journal.New(journal.Limits{})}, Peers: b,
		Authenticator: tokens, Authorizer: auth.NewAccessReviewer(clients.AuthorizationV1().SubjectAccessReviews()),
		TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13},
		Log: slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.serve(t, server)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}, Timeout: 30 * time.Second}
	return s
}

func (s *apiSite) serve(t *testing.T, server *api.Server) {
	t.Helper()
	var listeners [2]net.Listener
	for i := range listeners {
		var err error
		if listeners[i], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	s.grpc, s.rest = listeners[0].Addr().String(), listeners[1].Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, listeners[0], listeners[1]) }()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the API: %v", err)
		}
	})
}

// localCertificate is one that is good for 127.0.0.1 and the name of the API's Service, and what trusts it.
func localCertificate(t *testing.T) (tls.Certificate, *x509.CertPool, []byte) {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, []string{"plimsoll-api." + apiNamespace + ".svc"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pair, pool, certificate
}

// answer is the answer of a REST call with a token; "" sends none.
func (s *apiSite) answer(t *testing.T, token, method, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.rest+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestTheAPIAsksARealHubClusterWhoCallsAndWhatTheyMay(t *testing.T) {
	fleets.beside(t)
	s := newAPISite(t, kube.New(t, kube.Options{Name: "api-hub", Minimal: true}))
	for _, name := range []string{"nobody", "viewer", "eu-viewer", "operator"} {
		s.account(t, name)
	}
	all := []string{"clusters", "workloads", "objects"}
	s.grant(t, "viewer", rbacv1.PolicyRule{APIGroups: []string{auth.Group}, Resources: all, Verbs: []string{"get", "list"}})
	s.grant(t, "eu-viewer", rbacv1.PolicyRule{APIGroups: []string{auth.Group}, Resources: all, Verbs: []string{"get", "list"}, ResourceNames: []string{"prod-eu"}})
	s.grant(t, "operator", rbacv1.PolicyRule{APIGroups: []string{auth.Group}, Resources: []string{"workloads"}, Verbs: []string{"get", "requeue"}, ResourceNames: []string{"prod-eu"}})
	tokens := map[string]string{
		"no token": "", "a token of nobody's": "canary.canary.canary",
		"the API server's own": s.token(t, "viewer"), "another audience's": s.token(t, "viewer", "plimsoll-2"),
	}
	for _, name := range []string{"nobody", "viewer", "eu-viewer", "operator"} {
		tokens[name] = s.token(t, name, apiAudience)
	}

	const requeueEU = "POST /v1/clusters/prod-eu/namespaces/shop/workloads/Deployment/cart:requeue"
	for _, c := range []struct {
		who, call string
		want      int
		members   string // that a list names
	}{
		{"no token", "GET /v1/clusters", 401, ""},
		{"a token of nobody's", "GET /v1/clusters", 401, ""},
		{"the API server's own", "GET /v1/clusters", 401, ""},
		{"another audience's", "GET /v1/clusters", 401, ""},
		{"nobody", "GET /v1/clusters", 403, ""},
		{"nobody", "GET /v1/clusters/prod-eu", 403, ""},
		{"nobody", requeueEU, 403, ""},
		{"viewer", "GET /v1/clusters", 200, "prod-eu prod-us"},
		{"viewer", "GET /v1/workloads", 200, "prod-eu prod-us"},
		{"viewer", "GET /v1/clusters/prod-us", 200, ""},
		{"viewer", requeueEU, 403, ""},
		{"eu-viewer", "GET /v1/clusters", 200, "prod-eu"},
		{"eu-viewer", "GET /v1/workloads", 200, "prod-eu"},
		{"eu-viewer", "GET /v1/workloads?cluster=prod-us", 403, ""},
		{"eu-viewer", "GET /v1/clusters/prod-us", 403, ""},
		{"eu-viewer", "GET /v1/clusters/prod-eu/controllers/deployment-spot/objects/shop/cart", 200, ""},
		{"operator", requeueEU, 200, ""},
		{"operator", strings.Replace(requeueEU, "prod-eu", "prod-us", 1), 403, ""},
		{"operator", "GET /v1/operations/w.prod-eu.1", 200, ""},
		{"operator", "GET /v1/operations/o.prod-eu.1", 403, ""},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		code, body := s.answer(t, tokens[c.who], method, path)
		if code != c.want {
			t.Errorf("%s, %s: HTTP %d: %s, want %d", c.who, c.call, code, body, c.want)
			continue
		}
		if got := membersIn(t, body); c.members != "" && got != c.members {
			t.Errorf("%s, %s: members %q, want %q", c.who, c.call, got, c.members)
		}
	}
	for name, token := range tokens {
		if token != "" && strings.Contains(s.log.String(), token) {
			t.Errorf("the log holds a token: %s", name)
		}
	}
}

// membersIn are the members that a list names, in order.
func membersIn(t *testing.T, body string) string {
	t.Helper()
	var list struct {
		Clusters  []struct{ Name string }
		Workloads []struct{ Cluster string }
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range list.Clusters {
		names = append(names, c.Name)
	}
	for _, w := range list.Workloads {
		names = append(names, w.Cluster)
	}
	return strings.Join(names, " ")
}
