package hub

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

const (
	// APICAConfigMap is the name of the ConfigMap, in the hub's namespace, with what clients of the API and scrapers of metrics
	// have to trust: the authority's certificate without its key, which [CASecret] holds.
	APICAConfigMap = "plimsoll-api-ca"
	// MetricsCAKey is the key in it of what scrapers trust, as PEM.
	MetricsCAKey = "metrics-ca.crt"
	// apiCAKey is that of what clients of the API trust.
	apiCAKey = "ca.crt"
	// apiAddressKey is that of where they find gRPC, as api.advertise says; empty: it says nothing.
	apiAddressKey = "address"

	publishTimeout = 10 * time.Second
	publishRetry   = 15 * time.Second // after a failure
	publishEvery   = 5 * time.Minute  // a bundle may change, and a ConfigMap be emptied
)

// bundles are what clients have to trust, by the key under which it is published.
type bundles map[string]func() []byte

// apiAddress is what is published of where people reach gRPC.
func apiAddress(c *config.Config) func() []byte {
	return func() []byte { return []byte(c.API.Advertise) }
}

// publisher keeps a ConfigMap current. Nothing in the hub depends on it, so a failure is logged and tried again.
type publisher struct {
	configMaps corev1client.ConfigMapInterface
	bundles    bundles
	log        *slog.Logger
}

// publish keeps what clients have to trust where they can read it without reading any Secret.
func (h *Hub) publish(context.Context) error {
	if len(h.bundles) == 0 {
		return nil
	}
	core, err := corev1client.NewForConfig(h.hubConfig)
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	p := &publisher{configMaps: core.ConfigMaps(h.config.Hub.Namespace), bundles: h.bundles, log: h.log}
	h.tasks = append(h.tasks, task{"published authority", p.run})
	return nil
}

func (p *publisher) run(ctx context.Context) error {
	var failed bool
	for {
		err := p.bring(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			p.log.Warn("cannot publish the CA of API and metrics; configure clients manually", "configMap", APICAConfigMap, "error", err)
		}
		failed = err != nil
		pause := time.NewTimer(publishEvery)
		if failed {
			pause.Reset(publishRetry)
		}
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
	}
}

// bring makes the ConfigMap what it should be, and writes nothing when it is. Other keys in it are left alone.
func (p *publisher) bring(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	wanted := map[string]string{}
	for key, bundle := range p.bundles {
		wanted[key] = string(bundle())
	}
	found, err := p.configMaps.Get(ctx, APICAConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: APICAConfigMap}, Data: wanted}
		_, err = p.configMaps.Create(ctx, made, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	changed := found.DeepCopy()
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	maps.Copy(changed.Data, wanted)
	if maps.Equal(changed.Data, found.Data) {
		return nil
	}
	_, err = p.configMaps.Update(ctx, changed, metav1.UpdateOptions{})
	return err
}

// newExpiry shows when a certificate that is served ends; asking renews one of the hub's own that is due.
func newExpiry(certificate string, serves *tls.Config) prometheus.Collector {
	return expiryGauge(certificate, func() time.Time {
		pair, err := serves.GetCertificate(nil)
		if err != nil || pair == nil || pair.Leaf == nil {
			return time.Time{}
		}
		return pair.Leaf.NotAfter
	})
}

// expiryGauge is 0 when there is no certificate that could be shown: that is an expired one to whoever watches it.
func expiryGauge(certificate string, expiry func() time.Time) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plimsoll_certificate_expiry_timestamp_seconds", ConstLabels: prometheus.Labels{"certificate": certificate},
		Help: "When a certificate ends, in seconds since 1970: the webhook's, the API's, the metrics', and that of the hub's own authority.",
	}, func() float64 {
		if at := expiry(); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	})
}
