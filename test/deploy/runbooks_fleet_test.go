package deploy

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/crd"
	"github.com/plimsoll-dev/plimsoll/reconcile/fleet/v1alpha1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// hubClient is a client of the hub cluster that knows FleetPlacements.
func (s *runbookSite) hubClient() client.Client {
	s.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1alpha1.AddToScheme, apiextensionsv1.AddToScheme, corev1.AddToScheme} {
		s.must(add(scheme))
	}
	k, err := client.New(s.fleet.Hub.Config(), client.Options{Scheme: scheme})
	s.must(err)
	return k
}

// prepareFleet creates the kind in the hub cluster, and gives the hub's account in the members what fleet placement needs there.
func (s *runbookSite) prepareFleet(members ...*fleet.Member) {
	s.Helper()
	k := s.hubClient()
	s.must(k.Create(s.Context(), crd.New()))
	s.must(fleet.Await(timeout(s.T, patience), "the kind to be served", func(ctx context.Context) (bool, error) {
		return k.List(ctx, &v1alpha1.FleetPlacementList{}) == nil, nil
	}))
	for _, m := range members {
		s.must(m.AllowPlacement(s.Context()))
	}
}

// overFleet creates a FleetPlacement of a Deployment.
func (s *runbookSite) overFleet(name string, spec v1alpha1.FleetPlacementSpec) error {
	k := s.hubClient()
	if err := k.Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop}}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	spec.TargetRef = v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: name}
	return k.Create(s.Context(), &v1alpha1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}, Spec: spec})
}

// targetNowhere places a workload that no member has.
func targetNowhere(s *runbookSite) error {
	return s.overFleet("nowhere", v1alpha1.FleetPlacementSpec{Replicas: ptr.To(int32(2))})
}

// narrow asks for more replicas than the members may have.
func narrow(s *runbookSite) error {
	if _, err := s.workload("narrow", 1, fleet.Policy(50, 1)); err != nil {
		return err
	}
	return s.overFleet("narrow", v1alpha1.FleetPlacementSpec{
		Replicas: ptr.To(int32(4)), Clusters: []v1alpha1.Tier{{Members: []v1alpha1.Choice{{Max: ptr.To(int32(1))}}}},
	})
}

// far is the FleetPlacement whose only member is lost.
const far = "far"

// lostToFleet places a workload in prod-us, and then has the hub lose that member.
func lostToFleet(s *runbookSite) error {
	m := s.fleet.Members[1]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, Labels: fleet.Enabled()}}
	if err := m.Client().Create(s.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if _, err := m.Create(s.Context(), fleet.Deployment(shop, far, 0, nil)); err != nil {
		return err
	}
	grace := &v1alpha1.Duration{Duration: metav1.Duration{Duration: time.Second}}
	if err := s.overFleet(far, v1alpha1.FleetPlacementSpec{Replicas: ptr.To(int32(2)), ClusterLossGrace: grace}); err != nil {
		return err
	}
	s.farIs(func(m *v1alpha1.MemberStatus) bool { return m.State == v1alpha1.MemberPlaced && m.Spot.Ready == 2 })
	m.Proxy.Refuse()
	return nil
}

// foundByFleet brings the member back.
func foundByFleet(s *runbookSite) error {
	m := s.fleet.Members[1]
	if err := m.Proxy.Restore(); err != nil {
		return err
	}
	s.farIs(func(m *v1alpha1.MemberStatus) bool { return m.State == v1alpha1.MemberPlaced })
	if err := s.hubClient().Delete(s.Context(), &v1alpha1.FleetPlacement{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: far}}); err != nil {
		return err
	}
	return m.Client().Delete(s.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: far}})
}

// farIs waits for what the FleetPlacement says of prod-us.
func (s *runbookSite) farIs(holds func(*v1alpha1.MemberStatus) bool) {
	s.Helper()
	k := s.hubClient()
	s.eventually("the FleetPlacement's member", func() (bool, error) {
		p := &v1alpha1.FleetPlacement{}
		if err := k.Get(s.Context(), client.ObjectKey{Namespace: shop, Name: far}, p); err != nil {
			return false, err
		}
		for i := range p.Status.Members {
			if p.Status.Members[i].Name == s.fleet.Members[1].Name && holds(&p.Status.Members[i]) {
				return true, nil
			}
		}
		return false, fmt.Errorf("its status is %+v", p.Status)
	})
}
