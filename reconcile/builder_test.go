package reconcile

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-dev/plimsoll/clusters"
)

// stranger is an object that no scheme knows.
type stranger struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (s *stranger) DeepCopyObject() runtime.Object   { return &stranger{} }
func (s *stranger) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func TestASetUpErrorNamesItsCulprit(t *testing.T) {
	good := counting(&calls{})
	for name, tc := range map[string]struct {
		build func(rt *Runtime) error
		want  []string
	}{
		"name": {func(rt *Runtime) error { _, err := For(rt, "Not A Label", good).Register(); return err },
			[]string{`controller "Not A Label"`, "DNS label"}},
		"long name": {func(rt *Runtime) error { _, err := For(rt, strings.Repeat("a", 64), good).Register(); return err },
			[]string{"63"}},
		"nil reconciler": {func(rt *Runtime) error { _, err := For[*corev1.ConfigMap](rt, "c", nil).Register(); return err },
			[]string{`controller "c"`, "reconciler is nil"}},
		"nil runtime": {func(*Runtime) error { _, err := For(nil, "c", good).Register(); return err }, []string{"runtime is nil"}},
		"wrong kind": {func(rt *Runtime) error {
			_, err := For(rt, "c", good).Kind(kindOf(&corev1.Secret{})).Register()
			return err
		},
			[]string{"Kind", "*v1.Secret", "*v1.ConfigMap"}},
		"optional": {func(rt *Runtime) error {
			_, err := For(rt, "c", good).Kind(clusters.Kind{Optional: true}).Register()
			return err
		},
			[]string{"v1 ConfigMap", "optional"}},
		"stranger": {func(rt *Runtime) error { _, err := For(rt, "c", good).Owns(kindOf(&stranger{})).Register(); return err },
			[]string{"Owns", "stranger"}},
		"no object": {func(rt *Runtime) error { _, err := For(rt, "c", good).Uses(clusters.Kind{}).Register(); return err },
			[]string{"Uses", "no object"}},
		"no mapper": {func(rt *Runtime) error {
			_, err := For(rt, "c", good).Watches(kindOf(&corev1.Pod{}), nil).Register()
			return err
		},
			[]string{"Watches", "*v1.Pod", "mapper is nil"}},
		"all numbers": {func(rt *Runtime) error {
			_, err := For(rt, "c", good).Workers(0).Deadline(-time.Second).Register()
			return err
		}, []string{"Workers is 0", "Deadline is -1s"}},
		"all paces": {func(rt *Runtime) error {
			_, err := For(rt, "c", good).Backoff(time.Minute, time.Second).RateLimit(0, 0).FinalizeDeadline(0).StalledRetry(-time.Second).Register()
			return err
		}, []string{"Backoff is 1m0s to 1s", "RateLimit is 0 a second after 0", "FinalizeDeadline is 0s", "StalledRetry is -1s"}},
		"taken": {func(rt *Runtime) error {
			if _, err := For(rt, "c", good).Register(); err != nil {
				return nil
			}
			_, err := For(rt, "c", good).Register()
			return err
		}, []string{`controller "c"`, "taken"}},
	} {
		t.Run(name, func(t *testing.T) {
			rt, err := NewRuntime(Options{})
			if err != nil {
				t.Fatal(err)
			}
			err = tc.build(rt)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q in it", err, want)
				}
			}
		})
	}
}

func TestAControllerDeclaresItsKindsTheReconciledOneFirst(t *testing.T) {
	rt, err := NewRuntime(Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := For(rt, "c", counting(&calls{})).Uses(kindOf(&corev1.Node{})).Owns(kindOf(&appsv1.Deployment{})).Register()
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, k := range c.Kinds() {
		kinds = append(kinds, strings.TrimPrefix(typeName(k.Object), "*v1."))
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Node", "Deployment"}, kinds); diff != "" {
		t.Error(diff)
	}
	if got := rt.Controllers(); len(got) != 1 || got[0] != c || c.Name() != "c" || c.NeedLeaderElection() {
		t.Errorf("controllers %v", got)
	}
	if err := c.Engage(context.Background(), "m", nil); err == nil || !strings.Contains(err.Error(), "member m") {
		t.Errorf("engaging a nil cluster: %v", err)
	}
}

func TestBadOptionsAreNamed(t *testing.T) {
	_, err := NewRuntime(Options{WorkersPerMember: -1, Deadline: -1})
	for _, want := range []string{"WorkersPerMember is -1", "Deadline"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

// Zero means one thing everywhere: the default. Who wants no resync says so with a negative time.
func TestAResyncOfZeroIsTheRuntimesAndANegativeOneIsNever(t *testing.T) {
	for name, test := range map[string]struct {
		resync      time.Duration
		least, most int32 // reconciles in an hour of a runtime that resyncs each minute
	}{
		"zero":     {0, 50, 70},
		"negative": {-1, 1, 1},
		"its own":  {20 * time.Minute, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			build := func(h *hub) *Builder[*gadget] {
				h.opts.Resync = time.Minute
				return For(h.Runtime, "c", sized(&runs)).Resync(test.resync)
			}
			inPlant(t, build, func(t *testing.T, _ *hub, s *plant) {
				s.create(newGadget("one"))
				time.Sleep(time.Hour)
				if n := runs.Load(); n < test.least || n > test.most {
					t.Errorf("%d reconciles in an hour, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}
