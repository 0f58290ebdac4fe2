package enroll

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/hub/confine"
)

// memberWith serves the Secrets of one namespace, to be read, deleted and, unless forbidden, listed.
func memberWith(t *testing.T, forbidden bool, secrets ...corev1.Secret) *Cluster {
	t.Helper()
	var mu sync.Mutex
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		name, one := strings.CutPrefix(r.URL.Path, "/api/v1/namespaces/plimsoll-system/secrets/")
		at := slices.IndexFunc(secrets, func(s corev1.Secret) bool { return s.Name == name })
		switch {
		case !one && forbidden:
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(refused.Status())
		case !one:
			_ = json.NewEncoder(w).Encode(corev1.SecretList{TypeMeta: typeMeta("v1", "SecretList"), Items: secrets})
		case at < 0:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name).Status())
		default:
			_ = json.NewEncoder(w).Encode(secrets[at])
			if r.Method == http.MethodDelete {
				secrets = slices.Delete(secrets, at, at+1)
			}
		}
	}))
	t.Cleanup(server.Close)
	c, err := Connect(SideMember, &Context{Name: "prod", Config: &rest.Config{Host: server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tokenOfAccount is a Secret with a token of an account that does not expire.
func tokenOfAccount(name, account string, labels map[string]string) corev1.Secret {
	return corev1.Secret{
		TypeMeta: typeMeta("v1", "Secret"), Type: corev1.SecretTypeServiceAccountToken,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: DefaultNamespace, Name: name, UID: "u", Labels: labels, Annotations: map[string]string{corev1.ServiceAccountNameKey: account},
		},
	}
}

func TestATokenThatDoesNotExpireGoesOrIsReported(t *testing.T) {
	ours := map[string]string{managedByLabel: fieldManager}
	goes := tokenOfAccount("goes", Account, nil)
	goes.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		secrets   []corev1.Secret
		forbidden bool
		duration  time.Duration
		want      []string // changes
	}{
		"register's":                {[]corev1.Secret{tokenOfAccount(TokenSecret, Account, ours)}, false, time.Hour, []string{"deleted " + TokenSecret}},
		"that of deploy/member":     {[]corev1.Secret{tokenOfAccount(TokenSecret, Account, nil)}, false, time.Hour, []string{"kept " + TokenSecret}},
		"that, and nobody may list": {[]corev1.Secret{tokenOfAccount(TokenSecret, Account, nil)}, true, time.Hour, []string{"kept " + TokenSecret}},
		"another of the account":    {[]corev1.Secret{tokenOfAccount(TokenSecret, Account, ours), tokenOfAccount("x", Account, nil)}, false, time.Hour, []string{"deleted " + TokenSecret, "kept x"}},
		"another account's":         {[]corev1.Secret{tokenOfAccount("x", "default", nil), goes}, false, time.Hour, nil},
		"none":                      {nil, true, time.Hour, nil},
		"one is wanted":             {[]corev1.Secret{tokenOfAccount(TokenSecret, Account, nil)}, false, 0, nil},
	} {
		var got, kept []string
		e := &enrolment{
			Registration: Registration{Name: "prod", MemberNamespace: DefaultNamespace, TokenDuration: c.duration}, member: memberWith(t, c.forbidden, c.secrets...),
			report: func(change Change) {
				secret := strings.TrimPrefix(change.Object, "secret/"+DefaultNamespace+"/")
				if got = append(got, change.Action+" "+secret); change.Action == Kept {
					kept = append(kept, "kubectl --context prod -n plimsoll-system delete secret "+secret)
				}
			},
		}
		warnings, err := e.revoke(t.Context())
		if err != nil || !cmp.Equal(got, c.want) || len(warnings) != len(kept) {
			t.Errorf("%s: %q, %q, %v", name, got, warnings, err)
			continue
		}
		for i, warning := range warnings {
			if !strings.HasSuffix(warning, kept[i]) {
				t.Errorf("%s: %q does not say %q", name, warning, kept[i])
			}
		}
	}
}

func TestAPolicyOfOthersThatIsNotAsWasAskedForIsReported(t *testing.T) {
	r := Registration{Name: "prod", Namespace: RegistrationNamespace, MemberNamespace: DefaultNamespace, TokenDuration: confine.DefaultTokenLife}
	policies, err := collect(r.policies()...)
	if err != nil {
		t.Fatal(err)
	}
	wanted := policies[0]
	for action, want := range map[string]string{"Deny": asItIs, "Warn": outdated} { // of a policy that is there
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			there := wanted.body.DeepCopy()
			there.SetLabels(nil)
			there.Object["spec"] = map[string]any{"failurePolicy": "Fail", "of": action}
			if r.Method == http.MethodPatch {
				if r.URL.Query().Get("dryRun") != metav1.DryRunAll {
					t.Error("it is changed")
				}
				there.Object["spec"] = map[string]any{"failurePolicy": "Fail", "of": "Deny"}
			}
			_ = json.NewEncoder(w).Encode(there)
		}))
		c, err := Connect(SideMember, &Context{Name: "prod", Config: &rest.Config{Host: server.URL}})
		if err != nil {
			t.Fatal(err)
		}
		change, err := c.apply(t.Context(), wanted)
		server.Close()
		if err != nil || change.Action != Kept || change.Note != want {
			t.Errorf("%s: %+v, %v", action, change, err)
		}
	}
}
