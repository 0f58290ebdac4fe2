package placing

import (
	"context"
	"fmt"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/paging"
	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
)

// taskTime bounds what is asked of a member, and written to it, for one FleetPlacement.
const taskTime = 15 * time.Second

// freshFor is how old facts may be on which something is written.
const freshFor = 10 * time.Second

// task says that a member is to be asked about a workload, and written to if there is an order for it by then.
type task struct {
	uid    string
	target target
}

// agents do what is to be done in members, one goroutine for each.
type agents struct {
	controller *Controller
	running    sync.WaitGroup

	mu    sync.Mutex
	queue map[string]map[string]task // by member and FleetPlacement; a member with an entry has a goroutine

	shared map[string]bool // members that have splits; guarded by the controller's mu
}

// ask gives a member's agent a task, in place of an older one for the same FleetPlacement that it has not begun.
func (a *agents) ask(ctx context.Context, member string, t task) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.queue == nil {
		a.queue = map[string]map[string]task{}
	}
	if waiting, busy := a.queue[member]; busy {
		waiting[t.uid] = t
		return
	}
	a.queue[member] = map[string]task{t.uid: t}
	a.running.Go(func() { a.work(ctx, member) })
}

// work does tasks until there are none.
func (a *agents) work(ctx context.Context, member string) {
	for {
		a.mu.Lock()
		var next *task
		for uid, t := range a.queue[member] {
			next = &t
			delete(a.queue[member], uid)
			break
		}
		if next == nil || ctx.Err() != nil {
			delete(a.queue, member)
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		a.controller.do(ctx, member, next)
	}
}

func (a *agents) wait() { a.running.Wait() }

// do asks a member, and writes what is to be written now, unless the answer forbids it. What that is may have changed since the
// task was given, and while the member was asked.
func (c *Controller) do(ctx context.Context, member string, t *task) {
	connection, ok := c.options.Connect(member)
	if !ok {
		return
	}
	within, cancel := context.WithTimeout(ctx, taskTime)
	defer cancel()
	known, order, failed := c.recall(t.uid, member)
	if (order == nil && !failed) || c.clock().Sub(known.asked) > freshFor {
		known = c.learn(within, connection, t.target).after(known, c.clock())
		c.mu.Lock()
		c.of(t.uid, member).facts = known
		c.mu.Unlock()
		_, order, failed = c.recall(t.uid, member)
	}
	if (order == nil && !failed) || known.scaler != "" || !known.exists {
		c.wake()
		return
	}
	err := error(nil)
	switch {
	case known.problem != "":
		err = fmt.Errorf("unknown whether something else scales it: %s", known.problem)
	case order == nil:
		err = tryScale(within, connection.Client, t.target)
	default:
		err = scale(within, connection.Client, t.target, order.Replicas)
	}
	if err != nil && !stopped(ctx, err) {
		c.options.Log.Warn("cannot scale a workload of a member", "member", member, "workload", t.target.key.String(), "error", err)
	}
	c.mu.Lock()
	if m := c.of(t.uid, member); err == nil {
		m.refusal = refusal{}
	} else if !stopped(ctx, err) {
		m.refusal = m.refusal.again(err, c.clock())
	}
	c.mu.Unlock()
	c.wake()
}

// recall returns what is known about a member, and what is to be written there now; failed says that the last write did.
func (c *Controller) recall(uid, member string) (known facts, order *policy.FleetSplit, failed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.memory[uid]; known != nil {
		if m := known.members[member]; m != nil {
			return m.facts, m.order, m.refusal.times > 0
		}
	}
	return facts{}, nil, false
}

// after is what is known about a member after it was asked once more: one that does not answer has not changed.
func (f facts) after(before facts, now time.Time) facts {
	if f.problem != "" {
		problem := f.problem
		f, f.problem = before, problem
	}
	f.asked = now
	return f
}

// learn asks a member about a workload.
func (c *Controller) learn(ctx context.Context, to Connection, t target) (f facts) {
	fail := func(what string, err error) facts {
		f.problem = plain.Text(fmt.Sprintf("%s: %v", what, err), 256)
		return f
	}
	workload := &metav1.PartialObjectMetadata{}
	workload.SetGroupVersionKind(t.placed)
	switch err := to.Live.Get(ctx, t.key.NamespacedName, workload); {
	case absent(err):
		return f
	case err != nil:
		return fail("read the workload", err)
	}
	f.exists = true
	var namespace corev1.Namespace
	if err := to.Live.Get(ctx, types.NamespacedName{Name: t.key.Namespace}, &namespace); err != nil {
		return fail("read the namespace", err)
	}
	switch {
	case workload.Labels[c.options.Enabled] != "true":
		f.disabled = fmt.Sprintf("the workload has no label %s: \"true\" there", c.options.Enabled)
	case namespace.Labels[c.options.Enabled] != "true":
		f.disabled = fmt.Sprintf("namespace %s has no label %s: \"true\" there", t.key.Namespace, c.options.Enabled)
	case c.options.NamespaceSelector != nil && !c.options.NamespaceSelector.Matches(labels.Set(namespace.Labels)):
		f.disabled = fmt.Sprintf("the hub's namespaceSelector does not select namespace %s there", t.key.Namespace)
	}
	var scalers autoscalingv2.HorizontalPodAutoscalerList
	err := paging.Pages(ctx, to.Live, &scalers, func() bool {
		f.scaler = scalerOf(scalers.Items, t)
		return f.scaler == ""
	}, func() { f.scaler = "" }, client.InNamespace(t.key.Namespace))
	if err != nil {
		return fail("list HorizontalPodAutoscalers", err)
	}
	_, current, err := readScale(ctx, to.Client, t)
	if err != nil {
		return fail("read the scale subresource", err)
	}
	selector, _, _ := unstructured.NestedString(current.Object, "status", "selector")
	f.selector = shortSelector(selector)
	return f
}

// maxScaler is how long names of autoscalers may be in Kubernetes, in bytes. What a member answers may have any length.
const maxScaler = 253

// scalerOf names the autoscaler that scales a workload; empty: none does.
func scalerOf(scalers []autoscalingv2.HorizontalPodAutoscaler, t target) string {
	for i := range scalers {
		ref := scalers[i].Spec.ScaleTargetRef
		version, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || ref.Name != t.key.Name {
			continue
		}
		for _, kind := range []schema.GroupVersionKind{t.scaled, t.placed} {
			if version.Group == kind.Group && ref.Kind == kind.Kind {
				return "HorizontalPodAutoscaler " + plain.Text(scalers[i].Name, maxScaler)
			}
		}
	}
	return ""
}

var scaleKind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}

func readScale(ctx context.Context, c client.Client, t target) (workload, current *unstructured.Unstructured, err error) {
	workload, current = &unstructured.Unstructured{}, &unstructured.Unstructured{}
	workload.SetGroupVersionKind(t.scaled)
	workload.SetNamespace(t.key.Namespace)
	workload.SetName(t.key.Name)
	current.SetGroupVersionKind(scaleKind)
	return workload, current, c.SubResource("scale").Get(ctx, workload, current)
}

// scale writes how many replicas a workload is to have, unless it has as many.
func scale(ctx context.Context, c client.Client, t target, replicas int) error {
	workload, current, err := readScale(ctx, c, t)
	if err != nil {
		return fmt.Errorf("read the scale subresource: %w", err)
	}
	if n, _, _ := unstructured.NestedInt64(current.Object, "spec", "replicas"); n == int64(replicas) {
		return nil
	}
	if err := unstructured.SetNestedField(current.Object, int64(replicas), "spec", "replicas"); err != nil {
		return err
	}
	if err := c.SubResource("scale").Update(ctx, workload, client.WithSubResourceBody(current)); err != nil {
		return fmt.Errorf("write the scale subresource: %w", err)
	}
	return nil
}

// tryScale finds out whether a member lets the number of replicas be written, and changes nothing.
func tryScale(ctx context.Context, c client.Client, t target) error {
	workload, current, err := readScale(ctx, c, t)
	if err != nil {
		return fmt.Errorf("read the scale subresource: %w", err)
	}
	if err := c.SubResource("scale").Update(ctx, workload, client.WithSubResourceBody(current), client.DryRunAll); err != nil {
		return fmt.Errorf("try to write the scale subresource: %w", err)
	}
	return nil
}
