package hub

import (
	"bytes"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestOnlyTheOwnerSaysWhetherAMemberReachesTheWebhook(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(reachedWebhooks{
		reached: func() map[string]bool { return map[string]bool{"well": true, "ill": false, "of-another": true} },
		mine:    func(member string) bool { return member != "of-another" },
	})
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	got := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		got[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
	}
	if len(got) != 2 || got["well"] != 1 || got["ill"] != 0 {
		t.Error(got)
	}
}

func TestTheNameOfAServiceIsWarnedOfAtTheStart(t *testing.T) {
	for text, warns := range map[string]bool{"https://plimsoll-webhook.plimsoll-system.svc:443": true, "https://hub.example.com": false} {
		var out bytes.Buffer
		at, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		warnOfClusterLocal(slog.New(slog.NewTextHandler(&out, nil)), at)
		if strings.Contains(out.String(), "only the hub's own cluster resolves it") != warns {
			t.Errorf("%s: %s", text, out.String())
		}
	}
}
