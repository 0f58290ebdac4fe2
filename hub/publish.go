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
)

const (
	// APICAConfigMap is the name of the ConfigMap, in the hub's namespace, with what clients of the API have to trust: the
	// authority's certificate without its key, which [CASecret] holds.
	APICAConfigMap = "plimsoll-api-ca"
	// apiCAKey is the key in it; the content is PEM.
	apiCAKey = "ca.crt"

	publishTimeout = 10 * time.Second
	publishRetry   = 15 * time.Second // after a failure
	publishEvery   = 5 * time.Minute  // a bundle may change, and a ConfigMap be emptied
)

// publisher keeps a ConfigMap current. Nothing in the hub depends on it, so a failure is logged and tried again.
type publisher struct {
	configMaps corev1client.ConfigMapInterface
	bundle     func() []byte
	log        *slog.Logger
}

// publish keeps what clients of the API have to trust where they can read it without reading any Secret.
func (h *Hub) publish(bundle func() []byte) error {
	core, err := corev1client.NewForConfig(h.hubConfig)
	if err != nil {
		return fmt.Errorf("hub cluster: %w", err)
	}
	p := &publisher{configMaps: core.ConfigMaps(h.config.Hub.Namespace), bundle: bundle, log: h.log}
	h.tasks = append(h.tasks, task{"API authority", p.run})
	return nil
}

func (p *publisher) run(ctx context.Context) error {
	var failed bool
	for {
		err := p.bring(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			p.log.Warn("the API's authority is not published; clients must be told of it otherwise", "configMap", APICAConfigMap, "error", err)
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
	wanted := string(p.bundle())
	found, err := p.configMaps.Get(ctx, APICAConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: APICAConfigMap}, Data: map[string]string{apiCAKey: wanted}}
		_, err = p.configMaps.Create(ctx, made, metav1.CreateOptions{})
		return err
	}
	if err != nil || found.Data[apiCAKey] == wanted {
		return err
	}
	changed := found.DeepCopy()
	changed.Data = maps.Clone(found.Data)
	if changed.Data == nil {
		changed.Data = map[string]string{}
	}
	changed.Data[apiCAKey] = wanted
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
		Help: "When a certificate ends, in seconds since 1970: the webhook's, the API's, and that of the hub's own authority.",
	}, func() float64 {
		if at := expiry(); !at.IsZero() {
			return float64(at.Unix())
		}
		return 0
	})
}
