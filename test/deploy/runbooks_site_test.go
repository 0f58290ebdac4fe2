package deploy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/hub/confine"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// runbookSite is a hub cluster with a hub, a member prod-eu in which workloads are placed, and a member prod-us that gets lost.
type runbookSite struct {
	*testing.T
	fleet      *fleet.Fleet
	hub        *fleet.Replica
	replicas   *[]*fleet.Replica // that Prometheus knows
	recording  *recording
	pace       *time.Ticker
	whole      *testing.T // the test that the subtests are of
	grown      *int       // replicas of the workload that grows
	kubeconfig string     // the hub cluster's; the CLI is beside it
}

// brisk are settings with which nobody has to wait for long.
var brisk = fleet.Settings{
	"fleet.enabled": true, "controller.resyncPeriod": "5s", "spot.moveCooldown": "1s", "clusters.tokenRenewalPercent": 0,
	"leaderElection.leaseDuration": "5s", "leaderElection.renewDeadline": "3s", "leaderElection.retryPeriod": "500ms",
	"spot.pendingTimeout": "8s", "spot.probe.firstAfter": "2s", "spot.probe.atMostAfter": "4s", "spot.probe.timeout": "6s", "spot.nodeStartTimeout": "8s",
}

func newRunbookSite(t *testing.T) *runbookSite {
	f, err := fleet.Start(t.Context(), fleet.Options{Members: []string{"prod-eu", "prod-us"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Stop() })
	s := &runbookSite{
		T: t, fleet: f, replicas: new([]*fleet.Replica), recording: newRecording(t), pace: time.NewTicker(time.Second),
		kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), whole: t, grown: new(int),
	}
	t.Cleanup(s.pace.Stop)
	s.must(os.WriteFile(s.kubeconfig, f.Hub.Kubeconfig(), 0o600))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Dir(s.kubeconfig)+"/plimsoll", "./cmd/plimsoll")
	build.Dir = root
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the CLI: %v\n%s", err, said)
	}
	for _, m := range f.Members {
		s.grantTroubles(m)
	}
	s.prepareFleet(f.Members...)
	s.must(f.Register(t.Context(), f.Members...))
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s.hub = s.start("a", brisk, hub.WithController(troubles(release)))
	api, err := s.hub.Connect()
	s.must(err)
	defer api.Close()
	s.must(api.AwaitMembers(t.Context(), f.Members...))
	return s
}

// as is the site as a subtest sees it.
func (s *runbookSite) as(t *testing.T) *runbookSite {
	copied := *s
	copied.T = t
	return &copied
}

func (s *runbookSite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// start runs a replica in this process, with the whole test.
func (s *runbookSite) start(name string, settings fleet.Settings, options ...hub.Option) *fleet.Replica {
	s.Helper()
	replica, err := s.fleet.NewReplica(name, settings)
	s.must(err)
	read, err := config.Load(replica.ConfigFile, nil)
	s.must(err)
	log := &lines{}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	made, err := hub.New(ctx, read, append(options, hub.WithController(webapp.Module()), hub.WithLog(hub.NewLog(log, slog.LevelInfo)),
		hub.WithEnvironment(nil))...)
	if err != nil {
		cancel()
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	s.fleet.Balancer.Add(replica.Webhook)
	s.whole.Cleanup(func() {
		s.fleet.Balancer.Remove(replica.Webhook)
		cancel()
		if err := <-ended; err != nil {
			s.whole.Error(err)
		}
		if s.whole.Failed() {
			s.whole.Logf("the log of %s:\n%s", name, log.text())
		}
	})
	s.must(fleet.Await(timeout(s.T, patience), "hub "+name+" to be ready", func(ctx context.Context) (bool, error) { return replica.Ready(ctx), nil }))
	*s.replicas = append(*s.replicas, replica)
	return replica
}

const (
	// troubleLabel of a ConfigMap says what its reconciler does: fail, panic, hang, or never clean up.
	troubleLabel = "example.com/trouble"
	troubleName  = "trouble"
	troubleRole  = "plimsoll-trouble"
)

// troubleMaker is a reconciler of somebody else that does what its objects say.
type troubleMaker struct{ release <-chan struct{} }

func (r troubleMaker) Reconcile(_ context.Context, req reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
	switch req.Object.Labels[troubleLabel] {
	case "fail":
		return reconcile.Done(), errors.New("it fails")
	case "panic":
		panic("it panics")
	case "hang":
		<-r.release // and not ctx.Done()
	}
	return reconcile.Done(), nil
}

func (troubleMaker) Finalize(context.Context, reconcile.Request[*corev1.ConfigMap]) (reconcile.FinalizeResult, error) {
	return reconcile.Pending(time.Second, "it never ends"), nil
}

func troubles(release <-chan struct{}) hub.Module {
	return hub.Module{
		Name: troubleName,
		Register: func(host hub.Host) ([]*reconcile.Controller, error) {
			labelled, err := labels.NewRequirement(troubleLabel, selection.Exists, nil)
			if err != nil {
				return nil, err
			}
			controller, err := reconcile.For(host.Runtime, troubleName, troubleMaker{release}).
				Kind(clusters.Kind{Object: &corev1.ConfigMap{}, Labels: labels.NewSelector().Add(*labelled)}).
				Domain("example.com").Deadline(time.Second).FinalizeDeadline(time.Second).
				Register()
			return []*reconcile.Controller{controller}, err
		},
		Rights: []clusters.Access{{Resource: "configmaps", Verbs: []string{"get", "list", "watch", "patch"}, For: "making trouble"}},
	}
}

// grantTroubles gives the hub what that reconciler needs in a member.
func (s *runbookSite) grantTroubles(m *fleet.Member) {
	s.Helper()
	account := confine.Account{
		Namespace: Namespace, Name: "plimsoll-hub", Webhook: webhook.ConfigurationName, Prefixes: []string{policy.DefaultPrefix},
		Writes: []schema.GroupResource{{Resource: "configmaps"}}, Resources: []module.Resource{webapp.Resource(webapp.Policy{})},
	}
	for _, made := range confine.Policies(account) {
		s.must(m.Client().Create(s.Context(), made.Policy))
		s.must(m.Client().Create(s.Context(), made.Binding))
	}
	s.must(m.Client().Create(s.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: troubleRole},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "patch"}}},
	}))
	s.must(m.Client().Create(s.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: troubleRole}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: troubleRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}))
}
