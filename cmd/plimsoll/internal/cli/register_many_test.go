package cli

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// fleetFile is a kubeconfig with a context for each server, with the certificate that test servers have.
func fleetFile(t *testing.T, from *httptest.Server, servers map[string]string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: from.Certificate().Raw})
	for name, server := range servers {
		config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: canary}
		config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// That several are registered, the documentation's test shows on real clusters.
func TestOfSeveralMembersEachIsReported(t *testing.T) {
	ended := make(chan struct{})
	slow := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(ended) })
	refusing := httptest.NewTLSServer(http.NotFoundHandler())
	refusing.Close()
	file := fleetFile(t, slow, map[string]string{"hub": slow.URL, "slow": slow.URL, "gone": refusing.URL})

	got := plimsoll(t, nil, "register", "slow", "gone", "--kubeconfig", file, "--hub-context", "hub", "--timeout", "1s")
	if got.code != exitFailed || !strings.Contains(got.err, "2 of 2 members are not registered") {
		t.Errorf("%+v", got)
	}
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "MEMBER") || !strings.HasPrefix(lines[1], "slow") || !strings.HasPrefix(lines[2], "gone") ||
		strings.Count(got.out, "failed") < 2 {
		t.Errorf("the report:\n%s", got.out)
	}
}

func TestNothingIsRegisteredWhereOneOfSeveralCannotBe(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	file := fleetFile(t, server, map[string]string{"hub": server.URL, "a": "https://192.0.2.1", "b": "https://192.0.2.1", "c": server.URL})
	for line, want := range map[string]string{
		"a b":       "a and b are the same cluster",
		"c nowhere": "nowhere",
		"c c_d":     `name "c_d"`,
	} {
		got := plimsoll(t, nil, append([]string{"register", "--kubeconfig", file, "--hub-context", "hub"}, strings.Fields(line)...)...)
		if got.code == exitOK || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v, want %q", line, got, want)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("%d requests were made", asked.Load())
	}
}

// One context is enough where the hub is its own member, and it is found as pods of the cluster find it.
func TestTheHubsOwnClusterIsRegisteredByOneContext(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	file := fleetFile(t, server, map[string]string{"hub": server.URL})
	for line, name := range map[string]string{"": "in-cluster", "home": "home"} {
		args := append([]string{"register", "--in-cluster", "--dry-run", "--kubeconfig", file, "--context", "hub"}, strings.Fields(line)...)
		got := plimsoll(t, nil, args...)
		if got.code != exitOK || !strings.Contains(got.out, "name: plimsoll-in-cluster\n") || strings.Contains(got.out, "name: plimsoll-hub\n") ||
			strings.Count(got.out, "server: https://kubernetes.default.svc\n") != 1 || !strings.Contains(got.out, "  name: "+name+"\n") ||
			strings.Contains(got.out, server.URL) {
			t.Errorf("%v: %+v", args, got)
		}
	}
}
