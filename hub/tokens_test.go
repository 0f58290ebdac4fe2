package hub

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

func TestATokenIsRenewedInTimeUnlessSomebodyElseDoes(t *testing.T) {
	issued := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return issued.Add(time.Duration(seconds) * time.Second) }
	token := kubeconfig.Token{Namespace: "n", Account: "a", Issued: issued, Expires: at(1000)}
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
		"a client certificate":    {memberToken{}, at(0), 66, false, "", ""},
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
