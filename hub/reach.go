package hub

import (
	"log/slog"
	"net/url"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/webhook"
)

var reachedDesc = prometheus.NewDesc("plimsoll_webhook_reached",
	"1 while the API server of a member is known to reach the webhook, 0 while it is known not to.", []string{"member"}, nil)

// reachedWebhooks shows of the members that this replica owns whether their API servers reach the webhook: only the owner checks.
type reachedWebhooks struct {
	reached func() map[string]bool
	mine    func(member string) bool
}

// Describe implements prometheus.Collector.
func (r reachedWebhooks) Describe(into chan<- *prometheus.Desc) { into <- reachedDesc }

// Collect implements prometheus.Collector.
func (r reachedWebhooks) Collect(into chan<- prometheus.Metric) {
	for member, reached := range r.reached() {
		if !r.mine(member) {
			continue
		}
		value := 0.0
		if reached {
			value = 1
		}
		into <- prometheus.MustNewConstMetric(reachedDesc, prometheus.GaugeValue, value, member)
	}
}

// warnOfClusterLocal says at the start that members elsewhere will not find the webhook.
func warnOfClusterLocal(log *slog.Logger, at *url.URL) {
	if at != nil && webhook.ClusterLocal(at) {
		log.Warn("webhook.url is the name of a Service: only the hub's own cluster resolves it, and other members create pods without a decision",
			"url", at.Redacted())
	}
}
