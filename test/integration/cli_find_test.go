package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
)

// TestTheCLIFindsTheHub asks the API with nothing but a kubeconfig of the hub cluster: by the address that the hub publishes, and through the
// API server where it publishes none.
func TestTheCLIFindsTheHub(t *testing.T) {
	fleets.beside(t)
	s := newHubSite(t)
	a := newAPISite(t, s.hub)
	own := []string{"KUBECONFIG=" + s.kubeconfig}
	t.Run("no hub", func(t *testing.T) {
		if got := s.plimsollWith(t, own, "get", "clusters"); got.code != 4 || !strings.Contains(got.err, "plimsoll-api-ca") || !strings.Contains(got.err, "--hub-namespace") {
			t.Errorf("%+v", got)
		}
	})
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: apiNamespace, Name: "plimsoll-api-ca"},
		Data:       map[string]string{"ca.crt": string(a.ca), "address": a.grpc},
	}
	a.apply(t, published)
	t.Run("no account", func(t *testing.T) {
		if got := s.plimsollWith(t, own, "get", "clusters"); got.code != 4 || !strings.Contains(got.err, "plimsoll-operator or plimsoll-viewer") {
			t.Errorf("%+v", got)
		}
	})
	a.account(t, "plimsoll-viewer")
	a.grant(t, "plimsoll-viewer", rbacv1.PolicyRule{APIGroups: []string{auth.Group}, Resources: []string{"clusters"}, Verbs: []string{"get", "list"}})
	t.Run("the address that the hub publishes", func(t *testing.T) { s.finds(t, own) })
	t.Run("who may not request a token", func(t *testing.T) { strangerFindsNothing(t, s, a) })
	t.Run("a way through the API server", func(t *testing.T) {
		published.Data["address"] = ""
		if err := s.hub.Client().Update(t.Context(), published); err != nil {
			t.Fatal(err)
		}
		if got := s.plimsollWith(t, own, "get", "clusters"); got.code != 4 || !strings.Contains(got.err, "service/plimsoll-system/plimsoll-api") {
			t.Errorf("without a Service: %+v", got)
		}
		k := startKubelet(t, a.grpc)
		runHub(t, a, k)
		s.finds(t, own)
		if ports := k.asked(); !slices.Contains(ports, strconv.Itoa(hubPort)) {
			t.Errorf("ports %v went through the kubelet", ports)
		}
	})
}

// finds asks for the clusters and for the version, which takes no flag.
func (s *cliSite) finds(t *testing.T, environment []string) {
	t.Helper()
	if got := s.plimsollWith(t, environment, "get", "clusters", "-o", "name"); got.code != 0 || got.out != "cluster/prod-eu\ncluster/prod-us\n" || got.err != "" {
		t.Errorf("%+v", got)
	}
	if got := s.plimsollWith(t, environment, "version"); got.code != 0 || !strings.Contains(got.out, "Hub Version: ") {
		t.Errorf("%+v", got)
	}
}

// strangerFindsNothing is somebody who may read what the hub publishes, and not more.
func strangerFindsNothing(t *testing.T, s *cliSite, a *apiSite) {
	a.account(t, "stranger")
	a.grant(t, "stranger", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}})
	kubeconfig, err := s.hub.KubeconfigFor(t.Context(), "system:serviceaccount:"+apiNamespace+":stranger")
	if err != nil {
		t.Fatal(err)
	}
	got := s.plimsollWith(t, []string{"KUBECONFIG=" + file(t, kubeconfig)}, "get", "clusters")
	if got.code != 3 || !strings.Contains(got.err, "serviceaccounts/token") {
		t.Errorf("%+v", got)
	}
}

// runHub has the hub cluster show a pod of the hub on a node whose kubelet is at hand.
func runHub(t *testing.T, a *apiSite, k *kubelet) {
	t.Helper()
	labels := map[string]string{"app.kubernetes.io/name": "plimsoll"}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hub-node"}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: apiNamespace, Name: "plimsoll-hub-0", Labels: labels},
		Spec: corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{
			Name: "hub", Image: "plimsoll", Ports: []corev1.ContainerPort{{Name: "grpc", ContainerPort: hubPort}},
		}}},
	}
	a.apply(t, node, pod, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: apiNamespace, Name: "plimsoll-api"},
		Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Name: "grpc", Port: 9090, TargetPort: intstr.FromString("grpc")}}},
	})
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = k.port
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.Phase = corev1.PodRunning
	if err := a.hub.Client().Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := a.hub.Client().Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// hubPort is where the pod says that it serves gRPC.
const hubPort = 9090

// kubelet forwards ports as a node's does, whatever the pod, to one address.
type kubelet struct {
	port int32
	to   string

	mu    sync.Mutex
	ports []string
}

func startKubelet(t *testing.T, to string) *kubelet {
	t.Helper()
	k := &kubelet{to: to}
	server := httptest.NewTLSServer(k)
	t.Cleanup(server.Close)
	at, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("the kubelet listens at %s", server.Listener.Addr())
	}
	k.port = int32(at.AddrPort().Port())
	return k
}

// asked are the ports that were asked for.
func (k *kubelet) asked() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.ports)
}

func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	opened := make(chan httpstream.Stream)
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		select {
		case opened <- stream:
			return nil
		case <-r.Context().Done():
			return fmt.Errorf("the connection ends: %w", r.Context().Err())
		}
	})
	if connection == nil {
		return
	}
	defer func() { _ = connection.Close() }()
	for {
		select {
		case <-connection.CloseChan():
			return
		case stream := <-opened:
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				go k.forward(stream)
			} else {
				_ = stream.Close() // no error
			}
		}
	}
}

// forward copies both ways until one side ends.
func (k *kubelet) forward(stream httpstream.Stream) {
	k.mu.Lock()
	k.ports = append(k.ports, stream.Headers().Get(corev1.PortHeader))
	k.mu.Unlock()
	defer func() { _ = stream.Reset() }()
	hub, err := net.Dial("tcp", k.to)
	if err != nil {
		return
	}
	defer func() { _ = hub.Close() }()
	ended := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(hub, stream); ended <- struct{}{} }()
	go func() { _, _ = io.Copy(stream, hub); ended <- struct{}{} }()
	<-ended
}
