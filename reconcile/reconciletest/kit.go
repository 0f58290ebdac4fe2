package reconciletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Member is the name of the member in which a case is reconciled.
const Member = "member"

// A Kit tests one controller.
type Kit struct {
	// Register makes the controller, as the hub does: with reconcile.For(rt, …).Register().
	Register func(rt *reconcile.Runtime) (*reconcile.Controller, error)
	// Scheme knows the kinds. Default: client-go's.
	Scheme *runtime.Scheme
	// Options of the runtime. Scheme is set from above.
	Options reconcile.Options
}

// A Case is one reconcile: what there is, what fails, and what is to come of it.
type Case struct {
	// Name of the subtest.
	Name string
	// Given is what is in the member; the first object is reconciled, unless Key names another. Objects without a UID get
	// one that is made of kind, namespace and name: "Deployment/default/web".
	Given []client.Object
	// Key of the object that is reconciled; it need not exist.
	Key types.NamespacedName
	// Elsewhere is what is in other members, by name.
	Elsewhere map[string][]client.Object
	// Fail lets calls fail. One that did not happen is a mistake of the test.
	Fail []Failure
	// Want is what is to come of it.
	Want Want
}

// A Failure is a call of the member's API that fails. Fields that are empty fit every call.
type Failure struct {
	// Verb is get, list, create, update, patch, apply, delete or deletecollection.
	Verb string
	// Kind and Name are those of the object; of a list, the kind of its items, and no name.
	Kind, Name string
	// Subresource, for example "status". Empty: the object itself.
	Subresource string
	// Nth is which of the calls that fit fails, counted from 1. 0: all of them.
	Nth int
	// Err is what the call returns; nothing is done then.
	Err error
}

// Want says what is to come of a reconcile.
type Want struct {
	// Result is the reconciler's answer in words: "Done" (or empty), `Requeue "reason"`, `RequeueAfter 5s "reason"`.
	Result string
	// Outcome is what the ledger says. Empty: it is not compared.
	Outcome reconcile.Outcome
	// Err is a part of the error. Empty: there must be none.
	Err string
	// Writes are all calls that change something, in their order, as "create apps/v1 Deployment default/web",
	// "patch v1 Pod default/web/status" or, of one that failed, "update v1 Node a: failed". Empty: nothing is written.
	Writes []string
	// Events are all that were recorded, as "Normal Created: message". Empty: none.
	Events []string
	// Conditions of the object afterwards, those of the types that are named here: status and reason, and the message unless
	// it is empty here.
	Conditions []metav1.Condition
	// Objects are what is there afterwards: every field that is set here has the same value there; lists have as many
	// elements.
	Objects []client.Object
	// Gone is what is not there afterwards; only name and namespace count.
	Gone []client.Object
	// Check looks at anything else.
	Check func(t testing.TB, c client.Client)
}

// Run runs each case as a subtest. A case is run with a runtime, a controller and an API server of its own.
func (k Kit) Run(t *testing.T, cases ...Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Helper()
			world, problems := k.run(t.Context(), c)
			for _, problem := range problems {
				t.Error(problem)
			}
			if world != nil && c.Want.Check != nil {
				c.Want.Check(t, world.member.store)
			}
		})
	}
}

// Problems runs one case and says what is not as it should be, one text for each thing; Want.Check is left out.
func (k Kit) Problems(ctx context.Context, c Case) []string {
	_, problems := k.run(ctx, c)
	return problems
}

// world is what one case runs in.
type world struct {
	scheme *runtime.Scheme
	member *member
	once   reconcile.OnceResult
}

func (k Kit) run(ctx context.Context, c Case) (*world, []string) {
	w := &world{scheme: k.Scheme}
	if w.scheme == nil {
		w.scheme = clientgoscheme.Scheme
	}
	options := k.Options
	options.Scheme = w.scheme
	rt, err := reconcile.NewRuntime(options)
	if err != nil {
		return nil, []string{"make a runtime: " + err.Error()}
	}
	controller, err := k.Register(rt)
	if err != nil {
		return nil, []string{"register the controller: " + err.Error()}
	}
	key := c.Key
	if key.Name == "" && len(c.Given) > 0 {
		key = client.ObjectKeyFromObject(c.Given[0])
	}
	if w.member, err = newMember(w.scheme, controller.Kinds(), c.Given, c.Fail); err != nil {
		return nil, []string{"what is given: " + err.Error()}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Elsewhere)) {
		other, err := newMember(w.scheme, controller.Kinds(), c.Elsewhere[name], nil)
		if err != nil {
			return nil, []string{"what is given in " + name + ": " + err.Error()}
		}
		rt.Join(ctx, name, other)
	}
	w.once = controller.ReconcileOnce(ctx, Member, w.member, key)
	return w, w.compare(ctx, key, controller.Kinds()[0].Object, c)
}

// failed says what differs, under a headline.
func failed(headline, diff string) string {
	return fmt.Sprintf("%s (-want +got):\n%s", headline, strings.TrimRight(diff, "\n"))
}
