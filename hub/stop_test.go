package hub

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

func TestAReplicaThatStopsServesOnWhileCallsAreRoutedElsewhere(t *testing.T) {
	const delay = 5 * time.Second
	for name, c := range map[string]struct{ since, want time.Duration }{
		"it has just begun to stop":           {0, delay},
		"giving the Lease up took part of it": {2 * time.Second, 3 * time.Second},
		"giving the Lease up took longer":     {time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &Hub{config: config.Config{Webhook: config.WebhookConfig{StopDelay: delay}}}
				now := time.Now()
				h.serveOn(t.Context(), now.Add(-c.since))
				if took := time.Since(now); took != c.want {
					t.Errorf("it served on for %s, want %s", took, c.want)
				}
			})
		})
	}
}

func TestAReplicaThatStopsPartsFromItsCallersWhileItServesOn(t *testing.T) {
	now := time.Now()
	for _, delay := range []time.Duration{0, time.Second, config.MaxStopDelay} {
		config := &config.Config{Webhook: config.WebhookConfig{StopDelay: delay}}
		routed, left := partsAt(config, now).Sub(now), servesUntil(config, now).Sub(partsAt(config, now))
		if routed != left || routed+left != delay {
			t.Errorf("with a delay of %s it parts after %s, and closes %s later", delay, routed, left)
		}
	}
}

func TestAReplicaOfWhichAPartHasFailedDoesNotServeOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Hub{config: config.Config{Webhook: config.WebhookConfig{StopDelay: time.Hour}}}
		failed, fail := context.WithCancel(t.Context())
		fail()
		now := time.Now()
		h.serveOn(failed, now)
		if took := time.Since(now); took != 0 {
			t.Errorf("it served on for %s", took)
		}
	})
}
