package kubeconfig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"
)

// tokenOf makes a token, with a signature that nobody checks.
func tokenOf(subject string, issued, expires int64) string {
	payload := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, subject, issued, expires)
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
}

func kubeconfigWith(token string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://10.0.0.1"}}],` +
		`"contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],"users":[{"name":"u","user":{"token":"` + token + `"}},{"name":"other","user":{"token":"kept"}}]}`)
}

func TestATokenSaysWhoseItIsAndWhenItEnds(t *testing.T) {
	token, ok := TokenOf(kubeconfigWith(tokenOf("system:serviceaccount:plimsoll-system:plimsoll-hub", 1000, 1600)))
	if !ok || token.Namespace != "plimsoll-system" || token.Account != "plimsoll-hub" || token.Life() != 10*time.Minute {
		t.Fatalf("%+v, %v", token, ok)
	}
	for at, want := range map[int64]int{900: 0, 1000: 0, 1300: 50, 1480: 80, 1600: 100, 2200: 200} {
		if got := token.Spent(time.Unix(at, 0)); got != want {
			t.Errorf("at %d: %d %% of its life are over, want %d", at, got, want)
		}
	}
	for name, text := range map[string]string{
		"no token": "", "a static token": "abc", "another user's": tokenOf("admin", 1, 2), "no account": tokenOf("system:serviceaccount:x", 1, 2),
		"too long": tokenOf("system:serviceaccount:x:"+strings.Repeat("y", maxTokenBytes), 1, 2), "not base64": "a.!.b", "not JSON": "a.e30x.b",
	} {
		if token, ok := TokenOf(kubeconfigWith(text)); ok {
			t.Errorf("%s: %+v", name, token)
		}
	}
	if forever, ok := TokenOf(kubeconfigWith(tokenOf("system:serviceaccount:a:b", 1, 0))); !ok || forever.Life() != 0 || forever.Spent(time.Now()) != 0 {
		t.Errorf("one that does not expire: %+v, %v", forever, ok)
	}
}

// kubeconfigOf is one whose user has a token and client certificates, which end at these times.
func kubeconfigOf(t *testing.T, token string, ends ...int64) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var chain []byte
	for _, end := range ends {
		certificate := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(1000, 0), NotAfter: time.Unix(end, 0)}
		der, err := x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	user := `"token":"` + token + `","client-certificate-data":"` + base64.StdEncoding.EncodeToString(chain) + `"`
	return []byte(strings.Replace(string(kubeconfigWith("")), `"token":""`, user, 1))
}

func TestWhatNobodyRenewsSaysWhenItEnds(t *testing.T) {
	account := tokenOf("system:serviceaccount:a:b", 1000, 1600)
	undated := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"admin","exp":100000.5}`)) + ".c2ln"
	for name, c := range map[string]struct {
		kubeconfig      []byte
		what            string
		issued, expires int64
	}{
		"another issuer's token":          {kubeconfigOf(t, tokenOf("admin", 1000, 1600)), "token", 1000, 1600},
		"one that does not expire":        {kubeconfigOf(t, tokenOf("admin", 1000, 0)), "", 0, 0},
		"one without a date of its issue": {kubeconfigOf(t, undated), "token", 100000 - 24*3600, 100000},
		"a service account's":             {kubeconfigOf(t, account), "", 0, 0},
		"a static one":                    {kubeconfigOf(t, "abc"), "", 0, 0},
		"a client certificate":            {kubeconfigOf(t, "", 3000), "client certificate", 1000, 3000},
		"a chain of them":                 {kubeconfigOf(t, account, 3000, 2000), "client certificate", 1000, 2000},
		"a token that ends before it":     {kubeconfigOf(t, tokenOf("admin", 900, 1600), 3000), "token", 900, 1600},
		"a token that ends after it":      {kubeconfigOf(t, tokenOf("admin", 900, 1600), 1500), "client certificate", 1000, 1500},
		"what is no kubeconfig":           {[]byte("x"), "", 0, 0},
	} {
		what, first, ok := Unrenewable(c.kubeconfig)
		if what != c.what || ok != (c.what != "") || ok && (first.Issued.Unix() != c.issued || first.Expires.Unix() != c.expires) {
			t.Errorf("%s: %q, %+v, %v", name, what, first, ok)
		}
	}
}

// Some clusters issue tokens of many years, and a member may say of a token whatever it likes.
func TestTheShareOfALifeIsRightHoweverLongTheLifeIs(t *testing.T) {
	const year = 365 * 24 * 3600
	for name, c := range map[string]struct {
		issued, expires, now int64
		want                 int
	}{
		"ten years":              {1000, 1000 + 10*year, 1000 + 9*year, 90},
		"since 1970":             {0, 60 * year, 57 * year, 95},
		"longer than a Duration": {-300 * year, 300 * year, 0, 100},
	} {
		token, ok := TokenOf(kubeconfigWith(tokenOf("system:serviceaccount:a:b", c.issued, c.expires)))
		if got := token.Spent(time.Unix(c.now, 0)); !ok || got != c.want {
			t.Errorf("%s: %d %% are over, want %d", name, got, c.want)
		}
	}
}

func TestATokenIsReplacedAndNothingElse(t *testing.T) {
	now := tokenOf("system:serviceaccount:a:b", 1, 2)
	changed, err := WithToken(kubeconfigWith("old"), now)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(changed); !strings.Contains(text, now) || strings.Contains(text, "old") || !strings.Contains(text, "kept") || !strings.Contains(text, "https://10.0.0.1") {
		t.Errorf("it became\n%s", text)
	}
	if _, err := WithToken([]byte("secret: value"), now); err == nil || strings.Contains(err.Error(), "value") {
		t.Errorf("what is no kubeconfig: %v", err)
	}
}
