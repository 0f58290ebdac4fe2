package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
)

// publishing is a publisher with the hub cluster that it writes to.
type publishing struct {
	*publisher
	cluster *fake.Clientset
	trusted string
}

func newPublishing(objects ...runtime.Object) *publishing {
	p := &publishing{cluster: fake.NewClientset(objects...), trusted: "first"}
	p.publisher = &publisher{
		configMaps: p.cluster.CoreV1().ConfigMaps("plimsoll-system"), bundles: bundles{apiCAKey: func() []byte { return []byte(p.trusted) }},
		log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	return p
}

func (p *publishing) published(t *testing.T) map[string]string {
	t.Helper()
	found, err := p.configMaps.Get(t.Context(), APICAConfigMap, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return found.Data
}

func (p *publishing) writes() (n int) {
	for _, action := range p.cluster.Actions() {
		if action.GetVerb() != "get" {
			n++
		}
	}
	return n
}

func TestTheAuthorityIsPublishedOnceAndAgainWhenItChanges(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"no ConfigMap":       nil,
		"an empty one":       {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plimsoll-system", Name: APICAConfigMap}}},
		"somebody's as well": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "plimsoll-system", Name: APICAConfigMap}, Data: map[string]string{"note": "kept"}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPublishing(objects...)
			for range 3 {
				if err := p.bring(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if data := p.published(t); data[apiCAKey] != "first" || (name == "somebody's as well" && data["note"] != "kept") {
				t.Errorf("published: %v", data)
			}
			if p.writes() != 1 {
				t.Errorf("%d writes for one bundle", p.writes())
			}
			p.trusted = "second"
			if err := p.bring(t.Context()); err != nil || p.published(t)[apiCAKey] != "second" {
				t.Errorf("published: %v, %v", p.published(t), err)
			}
		})
	}
}

func TestAPublicationThatFailsIsTriedAgainAndEndsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPublishing()
		refused := 0
		p.cluster.PrependReactor("create", "configmaps", func(clientgotesting.Action) (bool, runtime.Object, error) {
			refused++
			return refused <= 2, nil, errors.New("forbidden")
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.run(ctx) }()
		time.Sleep(3 * publishRetry)
		synctest.Wait()
		if data := p.published(t); data[apiCAKey] != "first" {
			t.Errorf("published: %v", data)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestTheEndOfACertificateIsShownAndNoneCountsAsExpired(t *testing.T) {
	end := time.Unix(1800000000, 0)
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		newExpiry("served", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return &tls.Certificate{Leaf: &x509.Certificate{NotAfter: end}}, nil
		}}),
		newExpiry("broken", &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return nil, errors.New("the certificate authority has expired")
		}}),
	)
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("gathered %v, %v", families, err)
	}
	shown := map[string]float64{}
	for _, metric := range families[0].GetMetric() {
		shown[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue()
	}
	if shown["served"] != 1800000000 || shown["broken"] != 0 || len(shown) != 2 {
		t.Errorf("shown: %v", shown)
	}
}
