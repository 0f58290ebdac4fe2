package main

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// Namespaces of the hub that has no good members, in the same hub cluster.
const apartNamespace, apartRegistrations = "apart-system", "apart-members"

// A seat is a hub at which the hostile member can be registered.
type seat struct {
	fleet         *fleet.Fleet
	hub           *fleet.Process
	api           *fleet.API
	registrations string          // namespace
	own           *fleet.Balancer // in front of its webhook; nil: the fleet's
}

// newApart starts a hub that has no good members. What the hostile member does to it takes the same processors as what it does to
// the hub that is measured, and touches nothing else of that one.
func (b *bench) newApart(ctx context.Context, settings fleet.Settings) (_ *seat, err error) {
	s := &seat{fleet: b.fleet, registrations: apartRegistrations}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
		}
	}()
	for _, name := range []string{apartNamespace, apartRegistrations} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreAlreadyExists(b.fleet.Hub.Client().Create(ctx, namespace)); err != nil {
			return nil, err
		}
	}
	if s.own, err = fleet.NewBalancer(); err != nil {
		return nil, err
	}
	all := fleet.Settings{
		"hub.namespace": apartNamespace, "hub.registrationNamespace": apartRegistrations, "webhook.url": "https://" + s.own.Address(),
	}
	for key, value := range settings {
		all[key] = value
	}
	b.replicas++
	replica, err := b.fleet.NewReplica(fmt.Sprintf("hub-%d", b.replicas), all)
	if err != nil {
		return nil, err
	}
	b.logs = append(b.logs, replica.LogFile)
	if s.hub, err = replica.StartProcess(ctx); err != nil {
		return nil, err
	}
	s.own.Add(replica.Webhook)
	s.api, err = replica.Connect()
	return s, err
}

// close ends a hub that newApart started.
func (s *seat) close(ctx context.Context) (err error) {
	if s.api != nil {
		s.api.Close()
	}
	if s.hub != nil {
		err = s.hub.Stop(ctx)
	}
	if s.own != nil {
		s.own.Close()
	}
	return err
}

// register registers the member here.
func (s *seat) register(ctx context.Context, m *fleet.Member) error {
	if err := m.Prepare(ctx); err != nil {
		return err
	}
	kubeconfig, err := m.Kubeconfig(ctx)
	if err != nil {
		return err
	}
	return s.fleet.Hub.Client().Create(ctx, s.registration(m, kubeconfig))
}

// unregister deletes the registration; one that is not there is no error.
func (s *seat) unregister(ctx context.Context, m *fleet.Member) error {
	return client.IgnoreNotFound(s.fleet.Hub.Client().Delete(ctx, s.registration(m, nil)))
}

func (s *seat) registration(m *fleet.Member, kubeconfig []byte) *corev1.Secret {
	secret := fleet.Registration(m.Name, kubeconfig)
	secret.Namespace = s.registrations
	return secret
}

// awaitGone waits until the hub has let go of the member, and writes nothing there any more.
func (s *seat) awaitGone(ctx context.Context, m *fleet.Member) error {
	return fleet.Await(ctx, "the hub to let go of member "+m.Name, func(ctx context.Context) (bool, error) {
		_, err := s.api.Cluster(ctx, m.Name)
		if status.Code(err) == codes.NotFound {
			return true, nil
		}
		return false, err
	})
}

// sit registers the member at one hub, and at no other, as one that no hub has had before: a hub may not change URLs that
// another one wrote.
func (s *hostileSite) sit(ctx context.Context, at *seat) error {
	for _, other := range []*seat{s.here, s.apart} {
		if err := errors.Join(other.unregister(ctx, s.member.Member), other.awaitGone(ctx, s.member.Member)); err != nil {
			return err
		}
	}
	if err := errors.Join(s.member.ForgetWebhooks(ctx), s.member.InstallWebApps(ctx)); err != nil {
		return err
	}
	return errors.Join(at.register(ctx, s.member.Member), at.api.AwaitMembers(ctx, s.member.Member))
}
