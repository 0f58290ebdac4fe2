package depend

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/object"
)

func TestOfASecretItsKeysAreKnownAndNoValues(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Data: map[string][]byte{"user": []byte(canary)}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
		Data: map[string]string{"tier": canary}, BinaryData: map[string][]byte{"blob": []byte(canary)}}
	c := fake.NewClientBuilder().WithObjects(secret, settings).Build()
	for d, keys := range map[Dependency]string{
		OnSecret(inDefault("db"), "user"): "[user]", OnConfigMap(inDefault("settings"), "tier"): "[blob tier]",
	} {
		kept := observe(t.Context(), c, d)
		if fmt.Sprint(kept.keys) != keys || strings.Contains(fmt.Sprintf("%+v", kept), canary) {
			t.Errorf("of %s is kept %+v", d, kept)
		}
	}
}

// A live answer of a hostile API server has up to 8 MiB, and what depends on it is kept for each object.
func TestOfALargeAnswerLittleIsKept(t *testing.T) {
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings", ResourceVersion: strings.Repeat("9", 1<<20)}, Data: map[string]string{strings.Repeat("a", 1<<20): ""}}
	for n := range 2 * maxKeys {
		settings.Data[fmt.Sprint(n)] = ""
	}
	if version, keys := versionOf(settings), keysOf(settings.Data); len(version) > object.MaxText || len(keys) != maxKeys || len(keys[len(keys)-1]) > maxKey {
		t.Errorf("a version of %d bytes and %d keys are kept", len(version), len(keys))
	}
}

func TestTheReasonNamesWhatIsMissing(t *testing.T) {
	ready := facts{version: "1", conditions: []fact{{name: "Ready", status: "True"}, {name: "Old", status: "True", stale: true}}}
	condition := func(name string) Dependency {
		return OnCondition(deploymentKind, inDefault("x"), name, metav1.ConditionTrue)
	}
	for name, tc := range map[string]struct {
		facts facts
		d     Dependency
		want  string
	}{
		"met":          {ready, condition("Ready"), ""},
		"stale":        {ready, condition("Old"), "its condition Old is about an older generation, not True"},
		"other status": {facts{version: "1", conditions: []fact{{name: "Ready", status: "Unknown"}}}, condition("Ready"), "its condition Ready is Unknown, not True"},
		"no condition": {ready, condition("Synced"), "it has no condition Synced"},
		"gone":         {facts{}, condition("Ready"), "it does not exist"},
		"problem":      {facts{problem: "the hub may not read it"}, condition("Ready"), "the hub may not read it"},
		"keys":         {facts{version: "1", keysKnown: true, keys: []string{"a", "c"}}, OnSecret(inDefault("x"), "c", "a", "c"), ""},
		"lacks":        {facts{version: "1", keysKnown: true, keys: []string{"a"}}, OnConfigMap(inDefault("x"), "b"), `it has no key "b"`},
	} {
		if got := tc.facts.why(tc.d); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	for d, want := range map[Dependency]string{
		OnSecret(types.NamespacedName{Namespace: "default"}):                              "the dependency names no object",
		OnCondition(schema.GroupVersionKind{}, inDefault("x"), "Ready", "True"):           "the dependency names no kind and version",
		OnCondition(deploymentKind, inDefault("x"), "", "True"):                           "the dependency names no condition",
		OnEndpoint("https://user:" + canary + "@example.com/path?token=" + canary):        "the URL must not hold a user or password",
		OnSecret(types.NamespacedName{Name: "no-namespace-is-the-object's"}).of("a", "b"): "",
	} {
		if got := d.invalid(); got != want || strings.Contains(d.String(), canary) {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	many := &Unmet{}
	for i := range maxMissing + 2 {
		many.missing = append(many.missing, missing{dependency: OnSecret(inDefault(fmt.Sprint(i))), why: "it does not exist"})
	}
	if !strings.HasSuffix(many.String(), "Secret default/4: it does not exist, and 2 more") {
		t.Error(many)
	}
}
