package hub

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the members' tokens. Those that do not expire have none.
var (
	tokenExpiryDesc = prometheus.NewDesc("plimsoll_member_token_expiry_seconds",
		"Time until the token with which the hub reaches a member expires; negative once it has expired.", []string{"member"}, nil)
	tokenLifeDesc = prometheus.NewDesc("plimsoll_member_token_life_seconds",
		"Lifetime of the token with which the hub reaches a member, from its issue to its expiry.", []string{"member"}, nil)
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
		if !known.known || known.token.Life() <= 0 {
			continue
		}
		to <- prometheus.MustNewConstMetric(tokenExpiryDesc, prometheus.GaugeValue, time.Until(known.token.Expires).Seconds(), member)
		to <- prometheus.MustNewConstMetric(tokenLifeDesc, prometheus.GaugeValue, known.token.Life().Seconds(), member)
	}
}
