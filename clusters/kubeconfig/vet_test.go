package kubeconfig

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
)

func TestVetTakesOverInlineCredentialsAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	cert, key := sample.KeyPair()
	vetted, err := Vet("prod-eu", sample.KubeconfigOf(
		sample.GoodServer+"\ntls-server-name: kubernetes.default\ncertificate-authority-data: "+base64.StdEncoding.EncodeToString(cert),
		fmt.Sprintf("client-certificate-data: %s\nclient-key-data: %s",
			base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key))), Rules{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(vetted.Server).To(Equal("member.example:6443"))
	g.Expect(vetted.config.Host).To(Equal("https://member.example:6443"))
	g.Expect(vetted.config.ServerName).To(Equal("kubernetes.default"))
	g.Expect(vetted.config.CAData).To(Equal(cert))
	g.Expect(vetted.config.CertData).To(Equal(cert))
	g.Expect(vetted.config.KeyData).To(Equal(key))
}

func TestVetAddsTheDefaultPortAndKeepsAPath(t *testing.T) {
	g := NewWithT(t)
	vetted, err := Vet("prod-eu", sample.KubeconfigOf("server: https://rancher.example/k8s/clusters/c-1/", sample.GoodUser), Rules{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(vetted.Server).To(Equal("rancher.example:443"))
	g.Expect(vetted.config.Host).To(Equal("https://rancher.example:443/k8s/clusters/c-1"))
}

func TestVetNamesWhatItRefusesAndWhy(t *testing.T) {
	ca := "certificate-authority-data: " + base64.StdEncoding.EncodeToString([]byte(sample.Canary))
	for name, tc := range map[string]struct {
		member, cluster, user string
		raw                   []byte
		rules                 Rules
		reason, field         string
	}{
		"no key":            {raw: []byte{}, reason: ReasonNoKubeconfig, field: "kubeconfig"},
		"blank":             {raw: []byte(" \n"), reason: ReasonNoKubeconfig, field: "kubeconfig"},
		"broken YAML":       {raw: []byte("apiVersion: v1\nkind: Config\nusers: [" + sample.Canary + "\n"), reason: ReasonInvalidKubeconfig, field: "line"},
		"ill-typed":         {raw: []byte("apiVersion: v1\nkind: Config\nusers: " + sample.Canary), reason: ReasonInvalidKubeconfig, field: "kubeconfig"},
		"another kind":      {raw: []byte("apiVersion: v1\nkind: Pod"), reason: ReasonInvalidKubeconfig, field: "kubeconfig"},
		"no context":        {raw: []byte("apiVersion: v1\nkind: Config"), reason: ReasonInvalidKubeconfig, field: "current-context"},
		"unknown context":   {raw: []byte("apiVersion: v1\nkind: Config\ncurrent-context: " + sample.Canary), reason: ReasonInvalidKubeconfig, field: "current-context"},
		"dotted name":       {member: "prod.eu", reason: ReasonInvalidName, field: "name"},
		"capital name":      {member: "Prod", reason: ReasonInvalidName, field: "name"},
		"exec":              {user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: " + sample.Canary + ", interactiveMode: Never}", reason: ReasonExecNotAllowed, field: "exec"},
		"auth-provider":     {user: "auth-provider: {name: oidc, config: {id-token: " + sample.Canary + "}}", reason: ReasonAuthProviderNotAllowed, field: "auth-provider"},
		"CA file":           {cluster: sample.GoodServer + "\ncertificate-authority: /" + sample.Canary, reason: ReasonFilePathNotAllowed, field: "certificate-authority"},
		"certificate file":  {user: "client-certificate: /" + sample.Canary, reason: ReasonFilePathNotAllowed, field: "client-certificate"},
		"key file":          {user: "client-key: /" + sample.Canary, reason: ReasonFilePathNotAllowed, field: "client-key"},
		"token file":        {user: "tokenFile: /" + sample.Canary, reason: ReasonFilePathNotAllowed, field: "tokenFile"},
		"token file beside": {user: sample.GoodUser + "\ntokenFile: /" + sample.Canary, reason: ReasonFilePathNotAllowed, field: "tokenFile"},
		"proxy":             {cluster: sample.GoodServer + "\nproxy-url: http://" + sample.Canary, reason: ReasonProxyNotAllowed, field: "proxy-url"},
		"impersonated user": {user: sample.GoodUser + "\nas: " + sample.Canary, reason: ReasonImpersonationNotAllowed, field: "as"},
		"groups":            {user: sample.GoodUser + "\nas-groups: [" + sample.Canary + "]", reason: ReasonImpersonationNotAllowed, field: "as-groups"},
		"impersonated UID":  {user: sample.GoodUser + "\nas-uid: " + sample.Canary, reason: ReasonImpersonationNotAllowed, field: "as-uid"},
		"extra":             {user: sample.GoodUser + "\nas-user-extra: {a: [" + sample.Canary + "]}", reason: ReasonImpersonationNotAllowed, field: "as-user-extra"},
		"basic auth":        {user: "username: me\npassword: " + sample.Canary, reason: ReasonBasicAuthNotAllowed, field: "password"},
		"skip verify":       {cluster: sample.GoodServer + "\ninsecure-skip-tls-verify: true", reason: ReasonInsecureNotAllowed, field: "insecure-skip-tls-verify"},
		"plain HTTP":        {cluster: "server: http://member.example", reason: ReasonInsecureNotAllowed, field: "server"},
		"no credentials":    {user: "{}", reason: ReasonNoCredentials, field: "users[].user"},
		"no server":         {cluster: "{}", reason: ReasonInvalidKubeconfig, field: "server"},
		"server with user":  {cluster: "server: https://me:" + sample.Canary + "@member.example", reason: ReasonInvalidKubeconfig, field: "server"},
		"server of a file":  {cluster: "server: file:///etc/passwd", reason: ReasonInvalidKubeconfig, field: "server"},
		"unparsable server": {cluster: "server: \"https://" + sample.Canary + " %zz\"", reason: ReasonInvalidKubeconfig, field: "server"},
		"bad CA":            {cluster: sample.GoodServer + "\n" + ca, reason: ReasonInvalidKubeconfig, field: "certificate-authority-data"},
		"key without cert":  {user: "client-key-data: " + base64.StdEncoding.EncodeToString([]byte(sample.Canary)), reason: ReasonInvalidKubeconfig, field: "client-certificate-data"},
		"two-line token":    {user: "token: \"a\\nb\"", reason: ReasonInvalidKubeconfig, field: "token"},
		"loopback":          {cluster: "server: https://127.0.0.1:6443", reason: ReasonServerNotAllowed, field: "127.0.0.1"},
		"mapped loopback":   {cluster: "server: https://[::ffff:127.0.0.1]:6443", reason: ReasonServerNotAllowed, field: "127.0.0.1"},
		"metadata service":  {cluster: "server: https://169.254.169.254", reason: ReasonServerNotAllowed, field: "169.254.169.254"},
		"outside":           {cluster: "server: https://10.1.2.3", rules: Rules{AllowedNetworks: sample.Networks("10.0.0.0/16")}, reason: ReasonServerNotAllowed, field: "10.1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			kubeconfig := tc.raw
			if kubeconfig == nil {
				kubeconfig = sample.KubeconfigOf(cmp.Or(tc.cluster, sample.GoodServer), cmp.Or(tc.user, sample.GoodUser))
			}
			_, err := Vet(cmp.Or(tc.member, "prod-eu"), kubeconfig, tc.rules)
			var refusal *RefusedError
			g.Expect(errors.As(err, &refusal)).To(BeTrue(), "error: %v", err)
			g.Expect(refusal.Reason).To(Equal(tc.reason))
			g.Expect(refusal.Error()).To(ContainSubstring(tc.field))
			g.Expect(refusal.Error()).NotTo(ContainSubstring(sample.Canary))
		})
	}
}

func TestVetAllowsWhatTheRulesAllow(t *testing.T) {
	all := Rules{AllowExec: true, AllowFiles: true, AllowProxy: true, AllowInsecure: true, AllowImpersonation: true, AllowBasicAuth: true}
	for name, tc := range map[string]struct {
		cluster, user string
		check         func(g Gomega, v *Vetted)
	}{
		"exec": {user: "exec: {apiVersion: client.authentication.k8s.io/v1, command: cloud, interactiveMode: Always}", check: func(g Gomega, v *Vetted) {
			g.Expect(v.config.ExecProvider.Command).To(Equal("cloud"))
			g.Expect(string(v.config.ExecProvider.InteractiveMode)).To(Equal("Never"))
		}},
		"files": {user: "tokenFile: /token", cluster: sample.GoodServer + "\ncertificate-authority: /ca", check: func(g Gomega, v *Vetted) {
			g.Expect(v.config.BearerTokenFile).To(Equal("/token"))
			g.Expect(v.config.CAFile).To(Equal("/ca"))
		}},
		"proxy": {cluster: sample.GoodServer + "\nproxy-url: http://proxy.example:3128", check: func(g Gomega, v *Vetted) {
			proxy, err := v.config.Proxy(nil)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(proxy.Host).To(Equal("proxy.example:3128"))
		}},
		"skip verify": {cluster: sample.GoodServer + "\ninsecure-skip-tls-verify: true", check: func(g Gomega, v *Vetted) {
			g.Expect(v.config.Insecure).To(BeTrue())
		}},
		"plain HTTP": {cluster: "server: http://member.example", check: func(g Gomega, v *Vetted) {
			g.Expect(v.Server).To(Equal("member.example:80"))
		}},
		"impersonation": {user: sample.GoodUser + "\nas: someone", check: func(g Gomega, v *Vetted) {
			g.Expect(v.config.Impersonate.UserName).To(Equal("someone"))
		}},
		"basic auth": {user: "username: me\npassword: " + sample.Canary, check: func(g Gomega, v *Vetted) {
			g.Expect(v.config.Username).To(Equal("me"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			vetted, err := Vet("prod-eu", sample.KubeconfigOf(cmp.Or(tc.cluster, sample.GoodServer), cmp.Or(tc.user, sample.GoodUser)), all)
			g.Expect(err).NotTo(HaveOccurred())
			tc.check(g, vetted)
		})
	}
}

func TestAVettedKubeconfigPrintsWithoutItsCredentials(t *testing.T) {
	g := NewWithT(t)
	vetted, err := Vet("prod-eu", sample.KubeconfigOf(sample.GoodServer, sample.GoodUser), Rules{})
	g.Expect(err).NotTo(HaveOccurred())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		g.Expect(fmt.Sprintf(verb, vetted)).NotTo(ContainSubstring(sample.Canary))
	}
}

func TestAddressesThatAreNeverAMembersAreRefusedWithoutAnyConfiguration(t *testing.T) {
	g := NewWithT(t)
	for _, bad := range []string{
		"127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "0.1.2.3", "::", "169.254.169.254", "fe80::1", "fe80::1%eth0",
		"224.0.0.1", "ff02::1", "255.255.255.255", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "fd00:ec2::254",
		"fd00:ec2::23", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "64:ff9b:1::a9fe:a9fe", "64:ff9b:1::1",
		"::127.0.0.1", "::169.254.169.254", "2002:7f00:1::", "2002:a9fe:a9fe::1", "64:ff9b::a83f:8110",
		"fd00:42::42", "::ffff:0:169.254.169.254", "::ffff:0:127.0.0.1", "::ffff:0:a83f:8110",
		"::ffff:169.254.169.254", "::ffff:100.100.100.200", "fe80::a9fe:a9fe",
	} {
		g.Expect(Rules{}.checkAddr(netip.MustParseAddr(bad))).NotTo(Succeed(), bad)
	}
	for _, good := range []string{
		"10.0.0.1", "192.168.1.1", "203.0.113.7", "fd12::1", "2001:db8::1", "64:ff9b::a00:1", "2002:a00:1::1", "::ffff:0:10.0.0.1", "fd00:42::43",
		"10.96.0.1", // the hub's own cluster, which may be a member
		"240.0.0.1", // reserved, and GKE gives it to clusters
	} {
		g.Expect(Rules{}.checkAddr(netip.MustParseAddr(good))).To(Succeed(), good)
	}
}

func TestListedNetworksAreTheOnlyOnesAllowed(t *testing.T) {
	g := NewWithT(t)
	rules := Rules{AllowedNetworks: sample.Networks("127.0.0.0/8", "2001:db8::/32")}
	g.Expect(rules.checkAddr(netip.MustParseAddr("127.0.0.1"))).To(Succeed())
	g.Expect(rules.checkAddr(netip.MustParseAddr("::ffff:127.0.0.1"))).To(Succeed())
	g.Expect(rules.checkAddr(netip.MustParseAddr("2001:db8::5"))).To(Succeed())
	g.Expect(rules.checkAddr(netip.MustParseAddr("10.0.0.1"))).To(MatchError(ContainSubstring("10.0.0.1")))
}

func TestAListedNetworkOpensNoMetadataServiceUnlessItIsThatAddress(t *testing.T) {
	g := NewWithT(t)
	wide := Rules{AllowedNetworks: sample.Networks("0.0.0.0/0", "::/0")}
	for _, address := range []string{"169.254.169.254", "100.100.100.200", "fd00:ec2::254", "fe80::1", "64:ff9b::a9fe:a9fe", "::ffff:169.254.169.254"} {
		g.Expect(wide.checkAddr(netip.MustParseAddr(address))).To(MatchError(ContainSubstring("only by a network of their own")), address)
	}
	g.Expect(wide.checkAddr(netip.MustParseAddr("100.100.100.201"))).To(Succeed())
	g.Expect(wide.checkAddr(netip.MustParseAddr("127.0.0.1"))).To(Succeed())
	named := Rules{AllowedNetworks: sample.Networks("169.254.0.0/16", "100.100.100.200/32")}
	g.Expect(named.checkAddr(netip.MustParseAddr("169.254.10.1"))).To(Succeed())
	g.Expect(named.checkAddr(netip.MustParseAddr("100.100.100.200"))).To(Succeed())
}

// FuzzVet looks for a panic, for an error that is not typed, and for one that shows a part of the kubeconfig.
func FuzzVet(f *testing.F) {
	f.Add(sample.KubeconfigOf(sample.GoodServer, sample.GoodUser))
	f.Add(sample.KubeconfigOf(sample.GoodServer+"\nproxy-url: http://me:"+sample.Canary+"@proxy", sample.GoodUser))
	f.Add(sample.KubeconfigOf("server: https://"+sample.Canary+"@member.example", "password: "+sample.Canary))
	f.Add(sample.KubeconfigOf("server: https://169.254.169.254", "exec: {command: "+sample.Canary+"}"))
	f.Add([]byte("{" + sample.Canary + ": [}"))
	f.Add([]byte("apiVersion: v1\nkind: " + sample.Canary))
	f.Add([]byte("a: &a [*a, *a]\n" + sample.Canary + ": !!binary x"))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		vetted, err := Vet("prod-eu", kubeconfig, Rules{})
		if err == nil {
			checkVetted(t, vetted)
			return
		}
		var refusal *RefusedError
		if !errors.As(err, &refusal) || refusal.Reason == "" {
			t.Fatalf("error is not typed: %T", err)
		}
		if strings.Contains(err.Error(), sample.Canary) {
			t.Fatalf("error shows a secret: %v", err)
		}
	})
}

// checkVetted looks for anything that no rule allowed.
func checkVetted(t *testing.T, vetted *Vetted) {
	t.Helper()
	c := vetted.config
	if c.ExecProvider != nil || c.AuthProvider != nil || c.Proxy != nil || c.Insecure || c.Username != "" || c.Password != "" ||
		c.CAFile+c.CertFile+c.KeyFile+c.BearerTokenFile != "" || c.Impersonate.UserName != "" || !strings.HasPrefix(c.Host, "https://") {
		t.Fatalf("vetted although nothing allows it: %s", vetted)
	}
}
