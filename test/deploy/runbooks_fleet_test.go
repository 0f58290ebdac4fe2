package deploy

import (
	"context"

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

// prepareFleet creates the kind in the hub cluster, and gives the hub's account in a member what fleet placement needs there.
func (s *runbookSite) prepareFleet(m *fleet.Member) {
	s.Helper()
	k := s.hubClient()
	s.must(k.Create(s.Context(), crd.New()))
	s.must(fleet.Await(timeout(s.T, patience), "the kind to be served", func(ctx context.Context) (bool, error) {
		return k.List(ctx, &v1alpha1.FleetPlacementList{}) == nil, nil
	}))
	s.must(m.AllowPlacement(s.Context()))
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
