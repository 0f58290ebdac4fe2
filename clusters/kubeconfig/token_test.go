package kubeconfig

import (
	"encoding/base64"
	"fmt"
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
