package hub

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

func TestATokenIsRenewedInTimeUnlessSomebodyElseDoes(t *testing.T) {
	issued := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return issued.Add(time.Duration(seconds) * time.Second) }
	token := kubeconfig.Token{Namespace: "n", Account: "a", Issued: issued, Expires: at(1000)}
	later := kubeconfig.Token{Namespace: "n", Account: "a", Issued: issued, Expires: at(2000)}
	forever := kubeconfig.Token{Namespace: "n", Account: "a", Issued: issued}
	for name, c := range map[string]struct {
		known   memberToken
		now     time.Time
		renewAt int
		due     bool
		reason  string
		status  metav1.ConditionStatus
	}{
		"young":                   {memberToken{known: true, token: token}, at(600), 66, false, "Valid", metav1.ConditionFalse},
		"due":                     {memberToken{known: true, token: token}, at(660), 66, true, "Valid", metav1.ConditionFalse},
		"late":                    {memberToken{known: true, token: token}, at(800), 66, true, "Valid", metav1.ConditionTrue},
		"refused just now":        {memberToken{known: true, token: token, problem: "no", next: at(720)}, at(700), 66, false, "RenewalFailed", metav1.ConditionTrue},
		"refused a while ago":     {memberToken{known: true, token: token, problem: "no", next: at(720)}, at(720), 66, true, "RenewalFailed", metav1.ConditionTrue},
		"somebody else's":         {memberToken{known: true, token: token, external: true}, at(700), 66, false, "RenewedElsewhere", metav1.ConditionFalse},
		"somebody else's, late":   {memberToken{known: true, token: token, external: true}, at(900), 66, false, "RenewedElsewhere", metav1.ConditionTrue},
		"an older one came back":  {memberToken{known: true, token: token, putBack: true}, at(700), 66, false, "PutBack", metav1.ConditionTrue},
		"renewal is switched off": {memberToken{known: true, token: token}, at(700), 0, false, "NotRenewed", metav1.ConditionFalse},
		"it does not expire":      {memberToken{known: true, token: forever}, at(5000), 66, false, "NeverExpires", metav1.ConditionFalse},
		"a static token":          {memberToken{}, at(0), 66, false, "", ""},
		"a client certificate":    {memberToken{what: "client certificate", other: token}, at(700), 66, false, "NotRenewable", metav1.ConditionFalse},
		"a certificate, late":     {memberToken{what: "client certificate", other: token}, at(800), 66, false, "NotRenewable", metav1.ConditionTrue},
		"one renewed elsewhere":   {memberToken{what: "client certificate", other: token, external: true}, at(700), 66, false, "RenewedElsewhere", metav1.ConditionFalse},
		"beside an older token":   {memberToken{known: true, token: token, what: "client certificate", other: later}, at(700), 66, true, "Valid", metav1.ConditionFalse},
		"beside a younger token":  {memberToken{known: true, token: later, what: "client certificate", other: token}, at(700), 66, false, "NotRenewable", metav1.ConditionFalse},
		"beside a refused one":    {memberToken{known: true, token: later, problem: "no", what: "client certificate", other: token}, at(700), 66, false, "RenewalFailed", metav1.ConditionTrue},
		"beside one for ever":     {memberToken{known: true, token: forever, what: "client certificate", other: token}, at(700), 66, false, "NotRenewable", metav1.ConditionFalse},
	} {
		if due := c.known.due(c.now, c.renewAt); due != c.due {
			t.Errorf("%s: due is %v", name, due)
		}
		keeper := &tokenKeeper{renewAt: c.renewAt, tokens: map[string]*memberToken{"one": &c.known}}
		if is, _ := keeper.condition("one", c.now); is.Reason != c.reason || is.Status != c.status {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

func TestTheMetricsOfATokenSayForHowLongItLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		keeper := &tokenKeeper{tokens: map[string]*memberToken{
			"one":     {known: true, token: kubeconfig.Token{Issued: now.Add(-10 * time.Minute), Expires: now.Add(50 * time.Minute)}},
			"expired": {known: true, token: kubeconfig.Token{Issued: now.Add(-2 * time.Hour), Expires: now.Add(-time.Hour)}},
			"forever": {known: true, token: kubeconfig.Token{Issued: now}}, "static": {},
			"by certificate": {what: "client certificate", other: kubeconfig.Token{Issued: now.Add(-time.Minute), Expires: now.Add(time.Minute)}},
		}}
		registry := prometheus.NewRegistry()
		if err := registry.Register(keeper); err != nil {
			t.Fatal(err)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]float64{}
		for _, family := range families {
			for _, series := range family.GetMetric() {
				shown[family.GetName()+" "+series.GetLabel()[0].GetValue()] = series.GetGauge().GetValue()
			}
		}
		want := map[string]float64{
			"plimsoll_member_token_expiry_seconds one": 3000, "plimsoll_member_token_life_seconds one": 3600,
			"plimsoll_member_token_expiry_seconds by certificate": 60, "plimsoll_member_token_life_seconds by certificate": 120,
			"plimsoll_member_token_expiry_seconds expired": -3600, "plimsoll_member_token_life_seconds expired": 3600,
		}
		if diff := cmp.Diff(want, shown); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
