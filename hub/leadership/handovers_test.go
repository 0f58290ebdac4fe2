package leadership

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// counted reads both series of hand-overs: how many there were, and what they took in all.
func counted(t *testing.T, registry *prometheus.Registry) (began float64, took *dto.Histogram) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		switch family.GetName() {
		case "plimsoll_handovers_total":
			began = family.GetMetric()[0].GetCounter().GetValue()
		case "plimsoll_handover_seconds":
			took = family.GetMetric()[0].GetHistogram()
		}
	}
	return began, took
}

func TestAHandoverIsMeasuredFromTheLastSignOfTheFormerOwner(t *testing.T) {
	for name, c := range map[string]struct {
		end         func(*replica)
		least, most time.Duration
	}{
		"the owner gives the Lease up": {func(a *replica) { a.end() }, 0, time.Second},
		// It lasts for fifteen seconds from when the other elector reads it. That tries every two seconds and up to 1.2 times as much more,
		// and takes it with its next try.
		"the owner freezes": {func(a *replica) { a.wire.freeze() }, 13 * time.Second, 24 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, registry := &leaseServer{}, prometheus.NewRegistry()
				a := newReplica(t, server, 1)
				eventually(t, time.Second, "a acts", a.acts)
				b := newReplicaWith(t, server, 2, func(l *Lease) {
					if err := newHandovers(l.term).register(registry); err != nil {
						t.Fatal(err)
					}
				})
				server.follow(b)
				time.Sleep(time.Minute)
				if began, took := counted(t, registry); began != 0 || took.GetSampleCount() != 0 {
					t.Errorf("a standby took over %v times", began)
				}
				c.end(a)
				eventually(t, time.Minute, "b acts", b.acts)
				time.Sleep(time.Minute) // renewals are no hand-overs
				began, took := counted(t, registry)
				sum := time.Duration(took.GetSampleSum() * float64(time.Second))
				if began != 1 || took.GetSampleCount() != 1 || sum < c.least || sum > c.most {
					t.Errorf("%v hand-overs, which took %s in all; want one of %s to %s", began, sum, c.least, c.most)
				}
			})
		})
	}
}

func TestTheFirstReplicaEverTakesOverFromNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		a := newReplicaWith(t, &leaseServer{}, 1, func(l *Lease) {
			if err := newHandovers(l.term).register(registry); err != nil {
				t.Fatal(err)
			}
		})
		eventually(t, time.Second, "a acts", a.acts)
		synctest.Wait()
		if began, took := counted(t, registry); began != 1 || took.GetSampleCount() != 0 {
			t.Errorf("%v beginnings, %d of them measured; want one that is not", began, took.GetSampleCount())
		}
	})
}
