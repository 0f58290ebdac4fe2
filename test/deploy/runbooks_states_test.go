package deploy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// shop is the namespace of the workloads.
const shop = "shop"

// states are those of all alerts, in an order in which none is in the way of the next.
func states() []alertState {
	return []alertState{
		// These come first: a member that cannot be asked may have the workload.
		{name: "a FleetPlacement of a workload that is nowhere", alerts: []string{"PlimsollFleetPlacementStopped"}, bring: targetNowhere},
		{name: "a FleetPlacement with too little room", alerts: []string{"PlimsollFleetReplicasMissing"}, bring: narrow},
		{name: "a member of a FleetPlacement that is gone", alerts: []string{"PlimsollFleetMemberLost"}, bring: lostToFleet, end: foundByFleet},
		{name: "a member that joins without a right", alerts: []string{"PlimsollMemberDegraded"}, bring: joinedWithout},
		{name: "a token that nobody renews", alerts: []string{"PlimsollMemberTokenExpires"}, bring: lateToken},
		{name: "a registration that runs a program", alerts: []string{"PlimsollRegistrationRefused"}, bring: refusedRegistration},
		{name: "a reconciler that fails", alerts: []string{"PlimsollReconcileErrors"}, bring: troubled("fail")},
		{name: "a reconciler that panics", alerts: []string{"PlimsollReconcilePanics"}, bring: troubled("panic")},
		{name: "a cleanup that never ends", alerts: []string{"PlimsollCleanupOverdue"}, bring: overdue},
		{name: "a reconciler that hangs", alerts: []string{"PlimsollReconcileStuck"}, bring: troubled("hang")},
		{
			name: "a budget that allows nothing", alerts: []string{"PlimsollFloorBroken", "PlimsollReplicasMisplaced"}, bring: guarded,
			workload: shop + "/deployment/guarded",
		},
		{name: "no spot node", alerts: []string{"PlimsollSpotDry"}, bring: without(kube.Spot), workload: shop + "/deployment/spot", end: again(kube.Spot)},
		{
			name: "no on-demand node", alerts: []string{"PlimsollOnDemandDry"}, bring: without(kube.OnDemand),
			workload: shop + "/deployment/on-demand", end: again(kube.OnDemand),
		},
		{
			name: "a webhook out of reach", alerts: []string{"PlimsollWebhookUnreached", "PlimsollPodsUndecided"},
			bring: func(s *runbookSite) error { s.fleet.Balancer.Cut(s.hub.Webhook); return grow(s) }, again: grow,
			workload: shop + "/deployment/growing", end: func(s *runbookSite) error { s.fleet.Balancer.Add(s.hub.Webhook); return nil },
		},
		{
			name: "a Lease that cannot be written", alerts: []string{"PlimsollNoOwner", "PlimsollPodsNotPlaced"}, bring: lockLeases, again: grow,
			workload: shop + "/deployment/growing", end: unlockLeases,
		},
		{
			name: "two hubs, and a certificate for six days", alerts: []string{"PlimsollTwoOwners", "PlimsollCertificateExpires"}, bring: secondHub,
		},
		{name: "a member that is gone", alerts: []string{"PlimsollMemberLost"}, bring: func(s *runbookSite) error { s.fleet.Members[1].Proxy.Refuse(); return nil }},
	}
}

// joinedWithout registers prod-us again, after a right was taken away that one of the hub's reconcilers needs there.
func joinedWithout(s *runbookSite) error {
	m := s.fleet.Members[1]
	if err := m.Client().Delete(s.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: troubleRole}}); err != nil {
		return err
	}
	if err := s.fleet.Unregister(s.Context(), m); err != nil {
		return err
	}
	return s.fleet.Register(s.Context(), m)
}

// lateToken registers prod-us with a token of which little is left, at a hub that renews none.
func lateToken(s *runbookSite) error {
	m := s.fleet.Members[1]
	token, err := m.Cluster.TokenUntil(s.Context(), Namespace, "plimsoll-hub", time.Now().Add(5*time.Minute))
	if err != nil {
		return err
	}
	registered, err := m.Kubeconfig(s.Context())
	if err != nil {
		return err
	}
	if registered, err = kubeconfig.WithToken(registered, token); err != nil {
		return err
	}
	return s.fleet.Reregister(s.Context(), m, registered)
}

func refusedRegistration(s *runbookSite) error {
	config, err := clientcmd.Load(s.fleet.Members[1].Cluster.Kubeconfig())
	if err != nil {
		return err
	}
	config.Contexts[config.CurrentContext].Cluster = "another"
	text, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	return s.fleet.Hub.Client().Create(s.Context(), fleet.Registration("broken", text))
}

// troubled creates an object whose reconciler does what its label says.
func troubled(what string) func(*runbookSite) error {
	return func(s *runbookSite) error {
		return s.fleet.Members[0].Client().Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: what, Labels: map[string]string{troubleLabel: what},
		}})
	}
}

// overdue deletes an object once it has its finalizer.
func overdue(s *runbookSite) error {
	if err := troubled("stay")(s); err != nil {
		return err
	}
	member, object := s.fleet.Members[0].Client(), &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: "default", Name: "stay"}
	s.eventually("the finalizer", func() (bool, error) {
		err := member.Get(s.Context(), key, object)
		return len(object.Finalizers) > 0, err
	})
	return member.Delete(s.Context(), object)
}

// guarded runs four replicas on spot and then asks for a floor of two, while a budget allows no eviction.
func guarded(s *runbookSite) error {
	w, err := s.workload("guarded", 4, fleet.Policy(100, 0))
	if err != nil {
		return err
	}
	none := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: w.Name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &none, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{fleet.AppLabel: w.Name}}},
	}
	if err := w.Member.Client().Create(s.Context(), budget); err != nil {
		return err
	}
	s.eventually("the budget to be counted", func() (bool, error) {
		err := w.Member.Client().Get(s.Context(), client.ObjectKeyFromObject(budget), budget)
		return budget.Status.ExpectedPods == 4, err
	})
	return w.Annotate(s.Context(), fleet.Policy(50, 2))
}

// without takes all nodes of a type away, with a workload that is on both.
func without(capacity string) func(*runbookSite) error {
	return func(s *runbookSite) error {
		w, err := s.workload(capacity, 4, fleet.Policy(50, 1))
		if err != nil {
			return err
		}
		_, err = w.Member.TakeAway(s.Context(), capacity)
		return err
	}
}

func again(capacity string) func(*runbookSite) error {
	return func(s *runbookSite) error {
		_, err := s.fleet.Members[0].Cluster.AddNodes(s.Context(), 3, kube.NodeSpec{Capacity: capacity, Pods: 250})
		return err
	}
}

// grow adds replicas to a workload, and starts it with the first.
func grow(s *runbookSite) error {
	w := &fleet.Workload{Member: s.fleet.Members[0], Namespace: shop, Name: "growing", Kind: "Deployment"}
	*s.grown += 2
	if *s.grown == 2 {
		_, err := w.Member.Create(s.Context(), fleet.Deployment(shop, w.Name, *s.grown, fleet.Policy(50, 1)))
		return err
	}
	return w.Scale(s.Context(), *s.grown)
}

// lockLeases has the hub cluster refuse all writes of the Lease.
func lockLeases(s *runbookSite) error {
	named := metav1.ObjectMeta{Name: "no-leases"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: named, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: Namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{"coordination.k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"leases"}},
			}}},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "leases are locked"}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: named.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	if err := s.fleet.Hub.Client().Create(s.Context(), policy); err != nil {
		return err
	}
	return s.fleet.Hub.Client().Create(s.Context(), binding)
}

func unlockLeases(s *runbookSite) error {
	err := s.fleet.Hub.Client().Delete(s.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "no-leases"}})
	if err != nil {
		return err
	}
	s.eventually("a replica to act again", func() (bool, error) {
		samples, err := s.hub.Samples(s.Context())
		return fleet.Sum(samples["plimsoll_owner"]) == 1, err
	})
	return nil
}

// secondHub starts a replica that believes that it is alone, with a certificate of its own for the webhook.
func secondHub(s *runbookSite) error {
	settings := fleet.Settings{"leaderElection.enabled": false, "webhook.certDir": s.certificate(6 * 24 * time.Hour)}
	for key, value := range brisk {
		if key != "leaderElection.leaseDuration" && key != "leaderElection.renewDeadline" && key != "leaderElection.retryPeriod" {
			settings[key] = value
		}
	}
	s.start("b", settings)
	return nil
}

// certificate is a folder with a certificate of its own authority, as somebody brings it who has one.
func (s *runbookSite) certificate(life time.Duration) string {
	s.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	made := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	s.must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	s.must(err)
	folder := s.whole.TempDir()
	for name, block := range map[string]*pem.Block{
		"tls.crt": {Type: "CERTIFICATE", Bytes: der}, "ca.crt": {Type: "CERTIFICATE", Bytes: der}, "tls.key": {Type: "PRIVATE KEY", Bytes: secret},
	} {
		s.must(os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600))
	}
	return folder
}

// workload starts one in prod-eu and waits until the hub has placed all of it.
func (s *runbookSite) workload(name string, replicas int, policy map[string]string) (*fleet.Workload, error) {
	s.Helper()
	m := s.fleet.Members[0]
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop, Labels: fleet.Enabled()}}
	if err := m.Client().Create(s.Context(), namespace); client.IgnoreAlreadyExists(err) != nil {
		return nil, err
	}
	w, err := m.Create(s.Context(), fleet.Deployment(shop, name, replicas, policy))
	if err != nil {
		return nil, err
	}
	api, err := s.hub.Connect()
	if err != nil {
		return nil, err
	}
	defer api.Close()
	return w, api.Settle(timeout(s.T, patience), w, replicas)
}

// eventually waits for a condition in a cluster.
func (s *runbookSite) eventually(what string, holds func() (bool, error)) {
	s.Helper()
	s.must(fleet.Await(timeout(s.T, patience), what, func(context.Context) (bool, error) { return holds() }))
}
