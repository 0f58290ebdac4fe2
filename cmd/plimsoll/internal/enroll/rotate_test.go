package enroll

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// accountToken is a token of a service account as its claims say it; nobody has signed it.
func accountToken(cluster string) string {
	claims, _ := json.Marshal(map[string]any{
		"sub": "system:serviceaccount:plimsoll-system:plimsoll-hub", "iss": cluster,
		"iat": time.Now().Add(-time.Hour).Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{"namespace": "plimsoll-system", "serviceaccount": map[string]string{"name": "plimsoll-hub"}},
	})
	return "e30." + base64.RawURLEncoding.EncodeToString(claims) + ".c2ln"
}

// clusterOf serves as much of an API server as rotate asks before it changes anything: its version, its kube-system namespace, and
// reviews for whoever shows its token.
func clusterOf(t *testing.T, side, uid, token string) *Cluster {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/version":
			fmt.Fprint(w, `{"gitVersion":"v1.36.0"}`)
		case r.URL.Path == "/api/v1/namespaces/kube-system":
			fmt.Fprintf(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":%q}}`, uid)
		case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") && r.Header.Get("Authorization") == "Bearer "+token:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`)
		}
	}))
	t.Cleanup(server.Close)
	c, err := Connect(side, &Context{Name: side, Config: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// registrationWith is a registration Secret as the hub cluster has it.
func registrationWith(token string, annotations map[string]string) *unstructured.Unstructured {
	text := "apiVersion: v1\nkind: Config\ncurrent-context: m\nclusters: [{name: m, cluster: {server: 'https://10.0.0.1:6443'}}]\n" +
		"contexts: [{name: m, context: {cluster: m, user: m}}]\nusers: [{name: m, user: {token: " + token + "}}]\n"
	found := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{KubeconfigKey: base64.StdEncoding.EncodeToString([]byte(text))}}}
	found.SetAnnotations(annotations)
	return found
}

func TestOnlyTheTokenOfTheRegisteredClusterIsRotated(t *testing.T) {
	own, other := accountToken("own"), accountToken("other")
	secret, err := registration(Registration{Name: "prod", Namespace: DefaultNamespace}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		token       string // that the cluster at hand takes
		annotations map[string]string
		want        string // "": it is rotated
	}{
		"the registered cluster":                    {own, map[string]string{UIDAnnotation: "u-1"}, ""},
		"another one":                               {own, map[string]string{UIDAnnotation: "u-2"}, "this is not the registered cluster"},
		"it takes the token, whichever it is":       {own, nil, ""},
		"nobody says which it is, and not this":     {other, nil, "does not take its token"},
		"something else keeps the token":            {own, map[string]string{UIDAnnotation: "u-1", kubeconfig.TokenRenewalAnnotation: kubeconfig.RenewedElsewhere}, "rotate it there"},
		"a value without a meaning keeps nothing":   {own, map[string]string{UIDAnnotation: "u-1", kubeconfig.TokenRenewalAnnotation: "hub"}, ""},
		"an account that was made again, no UID":    {accountToken("renewed"), map[string]string{}, "register it again"},
		"an account that was made again, and a UID": {accountToken("renewed"), map[string]string{UIDAnnotation: "u-1"}, ""},
	} {
		e := &enrolment{Registration: Registration{Name: "prod"}, member: clusterOf(t, SideMember, "u-1", c.token), hub: clusterOf(t, SideHub, "u-0", "")}
		_, token, err := e.rotatable(t.Context(), secret, registrationWith(own, c.annotations))
		switch {
		case c.want == "" && (err != nil || token.Account != "plimsoll-hub"):
			t.Errorf("%s: %+v, %v", name, token, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), own)):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
