package clusters

import (
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// reaches asks the server of api with a kubeconfig that rules allow.
func reaches(t *testing.T, api *fakeAPI, data []byte, rules kubeconfig.Rules) error {
	t.Helper()
	rules.AllowedNetworks = sample.Networks("127.0.0.0/8")
	vetted, err := kubeconfig.Vet("a", data, rules)
	if err != nil {
		return err
	}
	wire, closeIdle, err := vetted.Transport(0)
	if err != nil {
		return err
	}
	defer closeIdle()
	code, err := ask(wire, "GET", api.URL+"/readyz")
	if err == nil && code != 200 {
		return fmt.Errorf("status %d", code)
	}
	return err
}

func TestWhatTheRulesAllowWorks(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
		return path
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	inline := fmt.Sprintf("server: %s\ncertificate-authority-data: %s", api.URL, base64Of(ca))
	credential := file("credential.json", `{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"`+api.token+`"}}`)

	g.Expect(reaches(t, api, sample.KubeconfigOf(inline, "token: "+api.token), kubeconfig.Rules{})).To(Succeed())
	g.Expect(reaches(t, api, sample.KubeconfigOf("insecure-skip-tls-verify: true\nserver: "+api.URL, "token: "+api.token), kubeconfig.Rules{AllowInsecure: true})).To(Succeed())
	g.Expect(reaches(t, api, sample.KubeconfigOf("server: "+api.URL+"\ncertificate-authority: "+file("ca.pem", string(ca)), "tokenFile: "+file("token", api.token)),
		kubeconfig.Rules{AllowFiles: true})).To(Succeed())
	g.Expect(reaches(t, api, sample.KubeconfigOf(inline, "exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, args: ["+credential+"], interactiveMode: Never}"),
		kubeconfig.Rules{AllowExec: true})).To(Succeed())

	g.Expect(reaches(t, api, sample.KubeconfigOf("server: "+api.URL, "token: "+api.token), kubeconfig.Rules{})).
		To(MatchError(ContainSubstring("certificate")), "without its CA the server is not trusted")
}

func TestAFileThatIsNotThereIsARefusalWithoutItsName(t *testing.T) {
	g := NewWithT(t)
	api := newFakeAPI(t, "a")
	err := reaches(t, api, sample.KubeconfigOf("server: "+api.URL+"\ncertificate-authority: /"+sample.Canary, sample.GoodUser), kubeconfig.Rules{AllowFiles: true})
	g.Expect(err).To(BeAssignableToTypeOf(&kubeconfig.RefusedError{}))
	g.Expect(err.Error()).NotTo(ContainSubstring(sample.Canary))
}
