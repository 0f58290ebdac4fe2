package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/bare"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

const (
	admissionOwners = 100
	// admissionReplicas is more than an owner is asked for in all, so that each call is what it is in a burst: the next
	// replica of an owner that is not complete yet.
	admissionReplicas = 10000
	admissionPercent  = 70
	admissionFloor    = 1
	admissionTime     = 10 * time.Second
	admissionRate     = 10000 // of the paced run, in calls a second
	pacedTime         = 5 * time.Second
	bareTime          = 5 * time.Second
)

// admission loads the webhook of a hub process, as the API servers of a busy fleet would, and then a bare handler with
// the same calls to compare with. The other members are stopped before: they would take part of the cores.
func (b *bench) admission(ctx context.Context) error {
	recorded, err := recordCall(ctx, b.fleet.Members[0])
	if err != nil {
		return err
	}
	b.logf("recorded a call of %d bytes", len(recorded.body))
	m, err := b.quietMember(ctx)
	if err != nil {
		return err
	}
	replica, api, err := b.startReplica(ctx, fleet.Settings{})
	if err != nil {
		return err
	}
	defer func() { _ = b.stopReplica(ctx, replica, api) }()
	if err := api.AwaitMembers(ctx, m); err != nil {
		return err
	}
	owners, err := makeOwners(ctx, m)
	if err != nil {
		return err
	}
	if err := awaitOwners(ctx, api, m); err != nil {
		return err
	}
	target, bundle, err := webhookOf(ctx, m)
	if err != nil {
		return err
	}
	target.Host = replica.Webhook // past the balancer, which is part of the testbed
	result, err := loadWith(ctx, target, bundle, recorded, owners, load{duration: admissionTime, keep: true})
	if err != nil {
		return err
	}
	if err := checkAnswers(result.answers, admissionPercent, admissionFloor); err != nil {
		return err
	}
	paced, err := loadWith(ctx, target, bundle, recorded, owners, load{duration: pacedTime, rate: admissionRate, first: 1 << 24})
	if err != nil {
		return err
	}
	b.report.Note("admission at a steady %.0f/s on the same connections, counted from when each call was due: p50 %.2f ms, p99 %.2f ms",
		paced.perSecond(), figures.Milliseconds(figures.Quantile(paced.latencies, 0.5)), figures.Milliseconds(figures.Quantile(paced.latencies, 0.99)))
	return b.compare(ctx, recorded, owners, result)
}

// quietMember is a member that consists of an API server, in place of all others.
func (b *bench) quietMember(ctx context.Context) (*fleet.Member, error) {
	for len(b.fleet.Members) > 0 {
		m := b.fleet.Members[0]
		if err := errors.Join(b.fleet.Unregister(ctx, m), b.fleet.StopMember(m)); err != nil {
			return nil, err
		}
	}
	m, err := b.fleet.StartMember(ctx, kube.Options{Name: "quiet", Minimal: true})
	if err != nil {
		return nil, err
	}
	return m, b.fleet.Register(ctx, m)
}

// makeOwners makes enabled Deployments with their ReplicaSets, as their controller would; nobody makes their pods.
func makeOwners(ctx context.Context, m *fleet.Member) ([]*appsv1.ReplicaSet, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: fleet.Enabled()}}
	if err := m.Client().Create(ctx, namespace); err != nil {
		return nil, fmt.Errorf("create owners: %w", err)
	}
	owners := make([]*appsv1.ReplicaSet, admissionOwners)
	for i := range owners {
		deployment := fleet.Deployment(namespace.Name, fmt.Sprintf("checkout-%d", i), admissionReplicas, fleet.Policy(admissionPercent, admissionFloor))
		if err := m.Client().Create(ctx, deployment); err != nil {
			return nil, fmt.Errorf("create owners: %w", err)
		}
		owners[i] = &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace.Name, Name: deployment.Name + "-5d6877b499", Labels: deployment.Spec.Template.Labels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
			},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: ptr.To[int32](admissionReplicas), Selector: deployment.Spec.Selector, Template: deployment.Spec.Template,
			},
		}
		if err := m.Client().Create(ctx, owners[i]); err != nil {
			return nil, fmt.Errorf("create owners: %w", err)
		}
	}
	return owners, nil
}

// awaitOwners waits until the hub knows all workloads.
func awaitOwners(ctx context.Context, api *fleet.API, m *fleet.Member) error {
	return fleet.Await(ctx, "the hub to know all owners", func(ctx context.Context) (bool, error) {
		cluster, err := api.Cluster(ctx, m.Name)
		if err != nil {
			return false, err
		}
		if known := cluster.GetWorkloads().GetManaged(); known != admissionOwners {
			return false, fmt.Errorf("it knows %d of %d", known, admissionOwners)
		}
		return true, nil
	})
}

// webhookOf is where a member sends pods, and the certificates that it trusts there.
func webhookOf(ctx context.Context, m *fleet.Member) (*url.URL, []byte, error) {
	target, err := m.WebhookURL(ctx)
	if err != nil {
		return nil, nil, err
	}
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	if err := m.Client().Get(ctx, client.ObjectKey{Name: webhook.ConfigurationName}, &configuration); err != nil {
		return nil, nil, err
	}
	return target, configuration.Webhooks[0].ClientConfig.CABundle, nil
}

// loadWith sends calls about pods of the owners for a while.
func loadWith(ctx context.Context, target *url.URL, bundle []byte, recorded *recording, owners []*appsv1.ReplicaSet, l load) (*loadResult, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("the webhook's certificate authority is no PEM")
	}
	l.address = target.Host
	l.tls = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	for i, owner := range owners {
		c, err := newCall(target, recorded, i, owner.Namespace, owner.Name, string(owner.UID))
		if err != nil {
			return nil, err
		}
		l.calls = append(l.calls, c)
	}
	return l.run(ctx)
}

// compare notes the figures, and those of the bare handler in the same minute on the same machine.
func (b *bench) compare(ctx context.Context, recorded *recording, owners []*appsv1.ReplicaSet, result *loadResult) error {
	handler, err := bare.StartHandler(ctx)
	if err != nil {
		return err
	}
	defer handler.End()
	least, err := loadWith(ctx, handler.URL, handler.Bundle, recorded, owners, load{duration: bareTime})
	if err != nil {
		return err
	}
	p99, bareP99 := figures.Quantile(result.latencies, 0.99), figures.Quantile(least.latencies, 0.99)
	b.report.Record("admission-rps", result.perSecond())
	b.report.Record("admission-p99-ms", figures.Milliseconds(p99))
	b.report.Record("admission-rps-ratio", result.perSecond()/least.perSecond())
	b.report.Record("admission-p99-ratio", float64(p99)/float64(bareP99))
	b.report.Note("admission: %d answers checked, body %d bytes, p50 %.2f ms, max %.2f ms", len(result.answers), len(recorded.body),
		figures.Milliseconds(figures.Quantile(result.latencies, 0.5)), figures.Milliseconds(result.latencies[len(result.latencies)-1]))
	b.report.Note("a bare TLS handler with the same calls: %.0f/s, p99 %.2f ms", least.perSecond(), figures.Milliseconds(bareP99))
	return nil
}
