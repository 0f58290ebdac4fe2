package leadership

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

func TestOptionsAreCompletedOrRefused(t *testing.T) {
	l, err := New(&rest.Config{Host: "https://hub.example"}, Options{Namespace: "fleet", Name: "pages"})
	if err != nil {
		t.Fatal(err)
	}
	o := l.options
	if o.LeaseDuration != 15*time.Second || o.RenewDeadline != 10*time.Second || o.RetryPeriod != 2*time.Second || l.margin != 5*time.Second {
		t.Errorf("the defaults are %+v, with a margin of %s", o, l.margin)
	}
	if NameOf(o.Identity) == "" || AddressOf(o.Identity) != "" {
		t.Errorf("the identity is %s", o.Identity)
	}
	if err := l.MayWrite("a"); err == nil {
		t.Error("it may write before it has the Lease")
	}
	for want, options := range map[string]Options{
		"no namespace or no name": {Name: "pages"},
		"at most a third":         {Namespace: "fleet", Name: "pages", WriteTimeout: 6 * time.Second},
	} {
		if _, err := New(&rest.Config{}, options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", options, err, want)
		}
	}
}

func TestHandoversAreCountedWhereTheOptionsSay(t *testing.T) {
	registry := prometheus.NewRegistry()
	options := Options{Namespace: "fleet", Name: "pages", Registerer: registry}
	if _, err := New(&rest.Config{Host: "https://hub.example"}, options); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil || len(families) != 2 || families[0].GetName() != "plimsoll_handover_seconds" || families[1].GetName() != "plimsoll_handovers_total" {
		t.Errorf("registered are %v, %v", families, err)
	}
	if _, err := New(&rest.Config{Host: "https://hub.example"}, options); err == nil {
		t.Error("a second Lease counts into the same series")
	}
}
