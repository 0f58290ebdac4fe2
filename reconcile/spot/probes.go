package spot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/capacity"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/when"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/nodes"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/shortage"
)

// probeSlot is the value of the slot label of probes: it keeps them in the cache, and is no slot.
const probeSlot = "probe"

// ProbePriorityClass is the PriorityClass of probes, where a member has it or lets us make it. Of the lowest priority for
// which Cluster Autoscaler still brings nodes (-10), they give way to every other pod and push none aside.
const (
	ProbePriorityClass = "plimsoll-probe"
	ProbePriority      = -10
)

// ProbeOptions say how and where probes are made; see [shortage.Probe].
type ProbeOptions struct {
	// Namespace of probes in every member. Empty: plimsoll-system. In a member that is registered for other namespaces only,
	// the first of those in the order of names.
	Namespace string
	// Image that the probe would run; it is removed before it does. Empty: registry.k8s.io/pause:3.10.
	Image string
	// Times of droughts. The zero value: [shortage.DefaultSettings].
	Times shortage.Settings
}

func (o ProbeOptions) withDefaults() ProbeOptions {
	if o.Namespace == "" {
		o.Namespace = "plimsoll-system"
	}
	if o.Image == "" {
		o.Image = "registry.k8s.io/pause:3.10"
	}
	if o.Times == (shortage.Settings{}) {
		o.Times = shortage.DefaultSettings()
	}
	return o
}

// How often the probes of a member are looked at when nothing happens, and after something went wrong.
const (
	tendInterval = 30 * time.Second
	tendHeld     = 2 * time.Second // while another replica acts
	tendPause    = 100 * time.Millisecond
	tendRetry    = time.Second
	tendMaxRetry = time.Minute
)

// isProbe reports whether a pod is one of our probes: in any other namespace a tenant may write what looks like one.
func (d *directory) isProbe(pod client.Object) bool {
	return pod.GetLabels()[d.keys.Slot()] == probeSlot && pod.GetNamespace() == d.probes && metav1.GetControllerOfNoCopy(pod) == nil
}

// tend manages the probes of a member until ctx ends: whenever something is heard of its droughts, and periodically.
func (m *member) tend(ctx context.Context, dir *directory) {
	retry := tendRetry
	for ctx.Err() == nil {
		recheck, err := m.tendOnce(ctx, dir, time.Now())
		if err != nil {
			if dir.droughts.SetProblem(err.Error()) {
				m.engine.options.Log.WarnContext(ctx, "cannot reconcile the capacity probes", "member", m.name, "error", err)
			}
			pause(ctx, retry) // news do not hurry it
			retry = min(2*retry, tendMaxRetry)
			continue
		}
		retry = tendRetry
		dir.droughts.SetProblem("")
		pause(ctx, tendPause) // news come in bursts
		wait := tendInterval
		if !recheck.IsZero() {
			wait = min(wait, time.Until(recheck))
		}
		timer := time.NewTimer(wait)
		select {
		case <-dir.droughts.News:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// tendOnce does what has to be done about the probes now, and returns when to look again. Orphans come after them: tenants decide how
// many there are.
func (m *member) tendOnce(ctx context.Context, dir *directory, now time.Time) (recheck time.Time, err error) {
	if m.directory.Load() != dir {
		return now.Add(tendRetry), nil // not complete yet
	}
	dir.forgetDroughts(now)
	if !m.mayTend() {
		dir.droughts.Step(now)
		return now.Add(tendHeld), nil
	}
	m.askForProbes(ctx, dir, now)
	plan := dir.droughts.Step(now)
	dir.dry = m.engine.reportDroughts(m.name, dir.dry, dir.droughts, now)
	recheck = plan.Recheck
	if !plan.Empty() {
		recheck, err = when.Earlier(recheck, now.Add(tendRetry)), m.applyProbes(ctx, dir.nodes.Census.Steering(), plan, now)
	}
	m.noteOrphans(ctx, m.finishOrphans(ctx, dir, now))
	return recheck, err
}

// askForProbes finds out, for the probes that will otherwise have waited for too long, whether a node is coming.
func (m *member) askForProbes(ctx context.Context, dir *directory, now time.Time) {
	for _, p := range dir.droughts.AskOf(0, now) {
		coming := dir.nodeComing(ctx, &nodes.Awaited{Namespace: m.probeNamespace(), UID: p.UID, Capacity: p.Capacity, Requirements: p.Requirements}, now)
		dir.droughts.ProbeSign(&p, coming, now)
	}
}

// mayTend reports whether this replica acts on the member now, and may write there at all.
func (m *member) mayTend() bool {
	e := m.engine
	if _, held := e.heldMember(m.name); held {
		return false
	}
	return !e.options.Settings.For(policy.Modes{}, e.readOnlyBy(m.name)).ReadOnly
}

func (m *member) applyProbes(ctx context.Context, steering *capacity.Steering, plan shortage.Plan, now time.Time) error {
	c, namespace := m.cluster.GetClient(), m.probeNamespace()
	var problems []error
	for _, name := range plan.Delete {
		problems = append(problems, deleteProbe(ctx, c, namespace, name))
	}
	for i := range plan.Create {
		problems = append(problems, m.engine.createProbe(ctx, c, namespace, steering, &plan.Create[i]))
	}
	for i := range plan.Note {
		problems = append(problems, m.engine.noteProbe(ctx, c, namespace, &plan.Note[i]))
	}
	for _, name := range plan.Open {
		if m.engine.steeredOtherwise(ctx, c, namespace, steering, name) {
			problems = append(problems, deleteProbe(ctx, c, namespace, name)) // it is made again
			continue
		}
		problems = append(problems, m.engine.openProbe(ctx, c, namespace, name, now))
	}
	return errors.Join(problems...)
}

// probeNamespace is where probes are made in the member.
func (m *member) probeNamespace() string {
	own := m.engine.options.Probes.Namespace
	if tenant, ok := m.cluster.(interface{ Namespaces() []string }); ok {
		if named := tenant.Namespaces(); len(named) > 0 && !slices.Contains(named, own) {
			return slices.Min(named)
		}
	}
	return own
}

func deleteProbe(ctx context.Context, c client.Client, namespace, name string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := client.IgnoreNotFound(c.Delete(ctx, pod, client.GracePeriodSeconds(0))); err != nil {
		return fmt.Errorf("delete probe %s/%s: %w", namespace, name, err)
	}
	return nil
}

// createProbe makes a probe, of the lowest priority if the member knows our class. One that is there already is the same one.
func (e *Engine) createProbe(ctx context.Context, c client.Client, namespace string, steering *capacity.Steering, p *shortage.Probe) error {
	pod := e.probePod(p, namespace, steering)
	err := c.Create(ctx, pod)
	if apierrors.IsNotFound(err) { // the namespace is missing
		if made := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); made == nil {
			err = c.Create(ctx, e.probePod(p, namespace, steering))
		}
	}
	if missesPriorityClass(err) {
		pod = e.probePod(p, namespace, steering)
		if c.Create(ctx, priorityClass()) != nil {
			pod.Spec.PriorityClassName = ""
		}
		err = c.Create(ctx, pod)
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create probe %s/%s: %w", namespace, p.Name, err)
	}
	return nil
}

// missesPriorityClass recognises the refusal of a pod whose PriorityClass is not there.
func missesPriorityClass(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "PriorityClass")
}

func priorityClass() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: ProbePriorityClass}, Value: ProbePriority,
		PreemptionPolicy: new(corev1.PreemptNever),
		Description:      "Plimsoll's probe pods, which test whether spot capacity is available again. All other pods preempt them.",
	}
}

// openProbe takes the gate off, and notes when.
func (e *Engine) openProbe(ctx context.Context, c client.Client, namespace, name string, now time.Time) error {
	return patchProbe(ctx, c, namespace, name, "open", map[string]any{
		"metadata": map[string]any{"annotations": map[string]string{e.options.Keys.ProbeOpened(): now.UTC().Format(time.RFC3339)}},
		"spec":     map[string]any{"schedulingGates": nil},
	})
}

// noteProbe writes on a probe for which namespaces its decision holds.
func (e *Engine) noteProbe(ctx context.Context, c client.Client, namespace string, p *shortage.Probe) error {
	key := e.options.Keys.ProbeNamespaces()
	var value any // missing: for all
	if names, some := p.Annotations(e.options.Keys)[key]; some {
		value = names
	}
	return patchProbe(ctx, c, namespace, p.Name, "annotate", map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// patchProbe changes a probe, if it is still there. does says what for.
func patchProbe(ctx context.Context, c client.Client, namespace, name, does string, change map[string]any) error {
	patch, err := json.Marshal(change)
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := client.IgnoreNotFound(c.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))); err != nil {
		return fmt.Errorf("%s probe %s/%s: %w", does, namespace, name, err)
	}
	return nil
}

// steeredOtherwise reports whether a probe was made when pods were steered another way: it could wait for nodes that never come.
func (e *Engine) steeredOtherwise(ctx context.Context, c client.Reader, namespace string, steering *capacity.Steering, name string) bool {
	var pod corev1.Pod
	err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pod, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	if err != nil {
		return false
	}
	probe, ok := shortage.ProbeOf(e.options.Keys, &pod)
	return ok && pod.Annotations[e.options.Keys.ProbeSteering()] != steering.Direction(probe.Capacity).String()
}

// probePod is the pod of a probe.
func (e *Engine) probePod(p *shortage.Probe, namespace string, steering *capacity.Steering) *corev1.Pod {
	spec := p.Requirements.PodSpec()
	steering.Steer(&spec, p.Capacity, e.options.SpotTolerations)
	if p.Gated {
		spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: e.options.Keys.Prefix + "/probe"}}
	}
	spec.PriorityClassName = ProbePriorityClass
	spec.TerminationGracePeriodSeconds = new(int64(0))
	spec.AutomountServiceAccountToken, spec.EnableServiceLinks = new(false), new(false)
	// What the strictest Pod Security Standard asks for.
	spec.SecurityContext = &corev1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(65535)),
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	container := &spec.Containers[0]
	container.Image, container.ImagePullPolicy = e.options.Probes.Image, corev1.PullIfNotPresent
	container.SecurityContext = &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	annotations := p.Annotations(e.options.Keys)
	annotations[e.options.Keys.ProbeSteering()] = steering.Direction(p.Capacity).String()
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: p.Name,
			Labels: map[string]string{
				e.options.Keys.Slot(): probeSlot, "app.kubernetes.io/name": ProbePriorityClass, "app.kubernetes.io/managed-by": "plimsoll",
			},
			Annotations: annotations},
		Spec: spec,
	}
}

// workloadsOfProbe wakes the workloads that spot is dry for, or that wait for it, when something is heard of a probe. It
// brings what is known up to date with the cache first, for the directory may hear of the change later.
func (e *Engine) workloadsOfProbe(ctx context.Context, dir *directory, cache client.Reader, probe client.Object, kind string) []types.NamespacedName {
	var pod corev1.Pod
	err := cache.Get(ctx, client.ObjectKeyFromObject(probe), &pod, &client.GetOptions{UnsafeDisableDeepCopy: new(true)})
	switch {
	case apierrors.IsNotFound(err):
		dir.droughts.ProbeGone(probe.GetName())
	case err == nil:
		dir.droughts.ProbeSeen(e.options.Keys, &pod, dir.nodes.JoinedOf, time.Now())
	}
	dir.droughts.Judge(time.Now())
	return dir.droughts.AffectedOf(kind)
}
