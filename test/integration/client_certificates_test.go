package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/hub/pki"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// apiServerFiles are what an API server is configured with to show a client certificate to webhooks, as docs/install.md says.
type apiServerFiles struct{ authority, admission string }

// newAPIServerFiles makes an authority, a certificate of it, and the configuration for a webhook at any address.
func newAPIServerFiles(t *testing.T) apiServerFiles {
	t.Helper()
	g, dir := NewWithT(t), t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		return path
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "api-servers"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authority, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	g.Expect(err).NotTo(HaveOccurred())
	parent, err := x509.ParseCertificate(authority)
	g.Expect(err).NotTo(HaveOccurred())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	client, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "kube-apiserver"}, NotBefore: template.NotBefore, NotAfter: template.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, parent, key.Public(), signer)
	g.Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalECPrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	kubeconfig := write("webhooks.kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- name: '*'\n  user: {client-certificate: %s, client-key: %s}\n",
		write("client.crt", block("CERTIFICATE", client)), write("client.key", block("EC PRIVATE KEY", private))))
	plugins := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	for _, plugin := range []string{"MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"} {
		plugins += fmt.Sprintf("- name: %s\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: %s}\n", plugin, kubeconfig)
	}
	return apiServerFiles{authority: write("ca.crt", block("CERTIFICATE", authority)), admission: write("admission.yaml", plugins)}
}

// TestAPIServersThatShowNoCertificateAreNotAnswered has the webhook ask two real API servers for a client certificate: one that is
// configured to show it, and one that is not.
func TestAPIServersThatShowNoCertificateAreNotAnswered(t *testing.T) {
	fleets.beside(t)
	files := newAPIServerFiles(t)
	authority, err := pki.ClientAuthorityOf(files.authority)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("one that shows it is answered", func(t *testing.T) {
		s := newWebhookSiteWith(t, kube.Options{Minimal: true, APIServerArgs: []string{"--admission-control-config-file", files.admission}}, authority)
		s.reconcile(s.g)
		s.g.Expect(s.awaitCalls("certified").Labels).To(HaveKey("plimsoll.dev/slot"))
	})
	t.Run("one that shows none gets an error", func(t *testing.T) {
		s := newWebhookSiteWith(t, kube.Options{Minimal: true}, authority)
		s.reconcile(s.g)
		s.g.Eventually(func(g Gomega) { // so that the API server says what it got: as installed, it lets the pod through
			strict := s.configuration(g)
			strict.Webhooks[0].FailurePolicy = ptr.To(admissionregistrationv1.Fail)
			g.Expect(s.cluster.Client().Update(t.Context(), strict)).To(Succeed())
		}).Should(Succeed())
		tries := 0
		s.g.Eventually(func() error {
			tries++
			return s.cluster.Client().Create(t.Context(), s.unmade("shop", fmt.Sprintf("bare-%d", tries), webhookOwner("apps/v1", "ReplicaSet")))
		}).WithTimeout(webhookFollowed).Should(MatchError(Or(ContainSubstring("Unauthorized"), ContainSubstring("provide credentials"), ContainSubstring("client certificate"))))
		asked, _ := s.asked(fmt.Sprintf("bare-%d", tries))
		s.g.Expect(asked).To(BeFalse())
	})
}

// TestAHubRequiresTheCertificatesOfItsConfiguration calls the webhook of a whole hub. Whoever shows a certificate gets to the token, and
// is told that there is no such member.
func TestAHubRequiresTheCertificatesOfItsConfiguration(t *testing.T) {
	fleets.beside(t)
	g := NewWithT(t)
	f, err := fleet.Start(t.Context(), fleet.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(f.Stop()).To(Succeed()) })
	files := newAPIServerFiles(t)
	of := filepath.Dir(files.authority)
	shown, err := tls.LoadX509KeyPair(filepath.Join(of, "client.crt"), filepath.Join(of, "client.key"))
	g.Expect(err).NotTo(HaveOccurred())
	hub := startHub(t, f, "certified", fleet.Settings{"webhook.clientCA": files.authority})

	status := func(path string, certificates ...tls.Certificate) (int, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: certificates, InsecureSkipVerify: true}} // who answers is not what is tested
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+hub.Webhook+"/webhook/v1/members/nobody/token/"+path, http.NoBody)
		g.Expect(err).NotTo(HaveOccurred())
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	for _, path := range []string{"pods", "webapps/validate"} {
		g.Eventually(status).WithArguments(path, shown).WithTimeout(patience).Should(Equal(http.StatusNotFound), path) // from when it listens on
		g.Expect(status(path)).To(Equal(http.StatusUnauthorized), path)
	}
	g.Expect(status("convert")).To(Equal(http.StatusNotFound), "API servers show none for conversions")
}

// loopback is where the servers of these specs listen.
var loopback = []net.IP{net.IPv4(127, 0, 0, 1)}
