package gitops

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// patience is how long one step may take on a machine that is busy with other things. It is never what is tested. Where the API server
// loses the answer of the webhook, the slot is kept for slots.ReservationTTL, two minutes, and the pod is placed after that.
const patience = 5 * time.Minute

var root = filepath.Join("..", "..")

// The story of a fleet that is run from a repository: each chapter goes on where the one before it ended.
func TestAFleetIsRunFromItsRepository(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	starting, started := context.WithTimeout(ctx, patience)
	t.Cleanup(started)
	s, err := Start(starting, root, t.TempDir(), fleet.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := &fleet.LogBuffer{}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\nhub:\n%s", s.Flux.Logs(), log.Tail(40))
		}
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	hub, err := s.StartHub(starting, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, chapter := range []struct {
		name string
		tell func(*testing.T, context.Context, *Site, *Hub)
	}{
		{"a commit registers the members", registers},
		{"a commit brings workloads, and their replicas are where their policies want them", places},
		{"what Flux brings into a member and what the hub fills in stay as they are", leavesAlone},
		{"a policy is tried in staging and promoted, and a revert takes it back", promotes},
		{"a commit changes the floor of a workload that runs over the fleet, and another where it runs", placesOverTheFleet},
		{"a commit that asks for a reconcile has one", requests},
		{"a commit with a broken registration leaves the member as it was, and says so", breaks},
		{"a commit without a registration lets the member go", unregisters},
	} {
		told := t.Run(chapter.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			chapter.tell(t, ctx, s, hub)
		})
		if !told {
			return
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func registers(t *testing.T, ctx context.Context, s *Site, hub *Hub) {
	must(t, s.Register(ctx))
	must(t, hub.AwaitMembers(ctx, s))
}

func places(t *testing.T, ctx context.Context, s *Site, _ *Hub) {
	must(t, s.CommitApps(ctx, root))
	must(t, s.AwaitPlaced(ctx, map[string]int{"staging": 70, "production": 70}))
	for _, m := range s.Fleet.Members {
		each := map[string]int64{"staging": 1, "production": 3}[Members[m.Name]]
		must(t, awaitAccount(ctx, m, func(status map[string]any) bool {
			return status["spotReplicas"] == each && status["onDemandReplicas"] == each && status["availableReplicas"] == 2*each
		}))
	}
}

// awaitAccount waits for the status of the example's WebApp in a member.
func awaitAccount(ctx context.Context, m *fleet.Member, holds func(status map[string]any) bool) error {
	return fleet.Await(ctx, "the WebApp in "+m.Name, func(ctx context.Context) (bool, error) {
		app := typed("apps.plimsoll.dev/v1", "WebApp")
		if err := m.Client().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "account"}, app); err != nil {
			return false, err
		}
		status, _ := app.Object["status"].(map[string]any)
		if !holds(status) {
			return false, fmt.Errorf("its status is %v", status)
		}
		return true, nil
	})
}

func typed(apiVersion, kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	return object
}

// leavesAlone looks at everything that both have their fields in: were one to take the other's away, there would be another
// generation, even if it was put back at once.
func leavesAlone(t *testing.T, ctx context.Context, s *Site, hub *Hub) {
	member := s.Fleet.Members[0]
	must(t, hub.AwaitCondition(ctx, member.Name, "Webhook", "Current"))
	must(t, hub.AwaitCondition(ctx, member.Name, "WebApps", "Current"))
	shared := []*unstructured.Unstructured{
		typed("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
		typed("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
		typed("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
	}
	names := []string{"webapps.apps.plimsoll.dev", "plimsoll", "plimsoll"}
	before := make([]int64, len(shared))
	for i, object := range shared {
		must(t, member.Client().Get(ctx, client.ObjectKey{Name: names[i]}, object))
		before[i] = object.GetGeneration()
	}
	// An older version is only read by way of the hub: its converter, and the authority that proves it, are those of the hub.
	old := typed("apps.plimsoll.dev/v1alpha1", "WebApp")
	must(t, member.Client().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "account"}, old))
	if percent, _, err := unstructured.NestedInt64(old.Object, "spec", "spotPercentage"); err != nil || percent != 50 {
		t.Errorf("read as v1alpha1: %v, %v", old.Object["spec"], err)
	}
	must(t, s.Repo.Replace("in-member/kustomization.yaml", "resources:\n", "# Again.\nresources:\n"))
	must(t, s.Repo.Commit(ctx, "Apply it again"))
	must(t, s.AwaitApplied(ctx, "in-"+member.Name))
	for i, object := range shared {
		must(t, member.Client().Get(ctx, client.ObjectKey{Name: names[i]}, object))
		if is := object.GetGeneration(); is != before[i] {
			t.Errorf("%s %s is of generation %d, and was of %d", object.GetKind(), names[i], is, before[i])
		}
	}
}

func promotes(t *testing.T, ctx context.Context, s *Site, _ *Hub) {
	must(t, s.Repo.Replace("apps/staging/policy.yaml", `spot-percentage: "70"`, `spot-percentage: "30"`))
	must(t, s.Repo.Commit(ctx, "Less spot in staging"))
	must(t, s.AwaitPlaced(ctx, map[string]int{"staging": 30, "production": 70}))
	must(t, s.follow(ctx, "git commit"))
	must(t, s.AwaitPlaced(ctx, map[string]int{"staging": 30, "production": 30}))
	must(t, s.Repo.Revert(ctx, 2))
	must(t, s.AwaitPlaced(ctx, map[string]int{"staging": 70, "production": 70}))
}

// requests waits for reconciles that nothing but the annotation can have caused: the period of resyncs is ten minutes. What
// has no status of Plimsoll's has the echo in the API.
func requests(t *testing.T, ctx context.Context, s *Site, hub *Hub) {
	state := func(ctx context.Context) (*plimsollv1.ObjectState, error) {
		answer, err := hub.Objects.GetObjectState(ctx, &plimsollv1.GetObjectStateRequest{
			Cluster: "staging", Controller: "deployment-spot", Namespace: "shop", Name: "web",
		})
		return answer.GetObject(), err
	}
	var before *plimsollv1.ObjectState
	must(t, fleet.Await(ctx, "the workload to be at rest", func(ctx context.Context) (bool, error) {
		now, err := state(ctx)
		before = now
		return err == nil && now.GetState() == plimsollv1.ReconcileState_RECONCILE_STATE_IDLE, err
	}))
	const when, asked = "2026-11-21T12:00:00Z", "    plimsoll.dev/requested-at: \"2026-11-21T12:00:00Z\"\n"
	must(t, s.Repo.Replace("apps/staging/policy.yaml", "  annotations:\n", "  annotations:\n"+asked,
		"  name: account\n", "  name: account\n  annotations:\n"+asked))
	must(t, s.Repo.Commit(ctx, "Look at them again"))
	must(t, fleet.Await(ctx, "a reconcile", func(ctx context.Context) (bool, error) {
		now, err := state(ctx)
		return err == nil && now.GetLastHandledRequest() == when && now.GetLastStartedAt().AsTime().After(before.GetLastFinishedAt().AsTime()), err
	}))
	for _, m := range s.Fleet.Members {
		if Members[m.Name] == "staging" {
			must(t, awaitAccount(ctx, m, func(status map[string]any) bool { return status["lastHandledRequest"] == when }))
		}
	}
}

func breaks(t *testing.T, ctx context.Context, s *Site, hub *Hub) {
	member := s.Fleet.Members[0]
	const canary = "canary-of-a-broken-kubeconfig"
	must(t, s.Seal(ctx, member, []byte("apiVersion: v1\nkind: Config\nusers: ["+canary)))
	must(t, s.Repo.Commit(ctx, "A registration that is broken"))
	var said string
	must(t, fleet.Await(ctx, "the API to say so", func(ctx context.Context) (bool, error) {
		cluster, err := hub.Cluster(ctx, member.Name)
		if err != nil {
			return false, err
		}
		if cluster.GetState() != plimsollv1.ClusterState_CLUSTER_STATE_READY {
			t.Fatalf("the member is %s", cluster.GetState())
		}
		said = cluster.String()
		for _, condition := range cluster.GetConditions() {
			if condition.GetType() == "Accepted" && condition.GetStatus() == "False" {
				return true, nil
			}
		}
		return false, fmt.Errorf("it says %s", said)
	}))
	must(t, fleet.Await(ctx, "an Event on the Secret", func(ctx context.Context) (bool, error) {
		var events eventsv1.EventList
		if err := s.Fleet.Hub.Client().List(ctx, &events, client.InNamespace(fleet.Registrations)); err != nil {
			return false, err
		}
		for _, event := range events.Items {
			if event.Regarding.Kind == "Secret" && event.Regarding.Name == member.Name && event.Type == "Warning" {
				said += event.Note
				return true, nil
			}
		}
		return false, fmt.Errorf("there are %d others", len(events.Items))
	}))
	if strings.Contains(said, canary) {
		t.Error("what it says quotes the Secret")
	}
	// The member is still worked in.
	must(t, s.Repo.Replace("apps/production/policy.yaml", `spot-percentage: "70"`, `spot-percentage: "50"`))
	must(t, s.Repo.Commit(ctx, "Less spot"))
	must(t, s.AwaitPlaced(ctx, map[string]int{"staging": 70, "production": 50}))
	must(t, s.Repo.Revert(ctx, 2))
	must(t, fleet.Await(ctx, "the registration to be taken again", func(ctx context.Context) (bool, error) {
		cluster, err := hub.Cluster(ctx, member.Name)
		for _, condition := range cluster.GetConditions() {
			if condition.GetType() == "Accepted" && condition.GetStatus() == "True" {
				return true, nil
			}
		}
		return false, err
	}))
	must(t, s.AwaitPlaced(ctx, map[string]int{"staging": 70, "production": 70}))
}

func unregisters(t *testing.T, ctx context.Context, s *Site, hub *Hub) {
	must(t, s.Repo.Replace("members/kustomization.yaml", ", staging.yaml", ""))
	must(t, s.Repo.Commit(ctx, "Staging is no member any more"))
	must(t, fleet.Await(ctx, "the member to go", func(ctx context.Context) (bool, error) {
		answer, err := hub.Clusters.ListClusters(ctx, &plimsollv1.ListClustersRequest{})
		return err == nil && len(answer.GetClusters()) == 2, err
	}))
}
