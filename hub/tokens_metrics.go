package hub

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the members' tokens and client certificates, whichever of a member expires first. Those that do not expire have none.
var (
	tokenExpiryDesc = prometheus.NewDesc("plimsoll_member_token_expiry_seconds",
		"Time until the token or client certificate with which the hub reaches a member expires; negative once it has expired.", []string{"member"}, nil)
	tokenLifeDesc = prometheus.NewDesc("plimsoll_member_token_life_seconds",
		"Lifetime of the token or client certificate with which the hub reaches a member, from its issue to its expiry.", []string{"member"}, nil)
)

// Describe implements prometheus.Collector.
func (k *tokenKeeper) Describe(to chan<- *prometheus.Desc) {
	to <- tokenExpiryDesc
	to <- tokenLifeDesc
}

// Collect implements prometheus.Collector.
func (k *tokenKeeper) Collect(to chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for member, known := range k.tokens {
		first := known.token
		if known.unrenewable() {
			first = known.other
		}
		if first.Life() <= 0 {
			continue
		}
		to <- prometheus.MustNewConstMetric(tokenExpiryDesc, prometheus.GaugeValue, time.Until(first.Expires).Seconds(), member)
		to <- prometheus.MustNewConstMetric(tokenLifeDesc, prometheus.GaugeValue, first.Life().Seconds(), member)
	}
}
