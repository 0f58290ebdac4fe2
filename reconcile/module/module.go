package module

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	"github.com/plimsoll-dev/plimsoll/reconcile/spot/report"
)

// A Module is a controller, or several that belong together, with everything that a hub has to know of them.
type Module struct {
	// Name is a DNS label, unique in a hub. It is in log lines and errors.
	Name string
	// Config is what the module's section of the hub's configuration is read into, before anything else of the module is called: a
	// pointer to a struct whose fields have the tag yaml and hold the defaults. The section is modules.<Name>; an unknown key or a
	// value of the wrong type stops the hub. A method Check() field.ErrorList refuses what is out of range. Nil: it has no section.
	Config any
	// AddToScheme makes the Go types of the module's kinds known. Kubernetes' own are. Nil: there is nothing to add.
	AddToScheme func(*runtime.Scheme) error
	// Register makes the module's controllers, with reconcile.For(host.Runtime, …).Register(). It is called once, before
	// anything runs.
	Register func(host Host) ([]*reconcile.Controller, error)
	// Kinds are those of one of the controllers, as members are to have them cached; nil: as the controller declares them. A
	// member that lacks a kind is Degraded, unless the kind is Optional here.
	Kinds func(*reconcile.Controller) []clusters.Kind
	// Rights are what the controllers need in a member: the hub asks for them there, and the member's status names what is
	// missing. `plimsoll register --writes` grants rights to Kubernetes' own kinds.
	Rights []clusters.Access
	// Resources are kinds of the module's own about which members ask the hub.
	Resources []Resource
	// Run is called with the hub and returns when ctx ends; one that returns earlier stops the hub. It runs on every replica,
	// also on those that do not act on members. Nil: the module has nothing to run beside its controllers.
	Run func(ctx context.Context, host Host) error
}

// Host is what a hub offers to a module.
type Host struct {
	// Runtime is what controllers are registered with.
	Runtime *reconcile.Runtime
	// Workers and Resync are controller.workers and controller.resyncPeriod of the hub's configuration. Resync is the
	// runtime's default as well.
	Workers int
	Resync  time.Duration
	// Keys are the labels and annotations of spot placement, as the hub's configuration names them.
	Keys policy.Keys
	// Placements reports where replicas of workloads are.
	Placements Placements
	// Log is the hub's.
	Log *slog.Logger
	// Registerer takes metrics of the module's own.
	Registerer prometheus.Registerer
}

// Placements knows where replicas are; the hub's spot engine is one.
type Placements interface {
	// Summary returns what the last plan said of a workload, without its pods; false when it is not known or not enabled. What it
	// costs does not depend on the number of pods.
	Summary(member, kind, namespace, name string) (report.Workload, bool)
	// Notify has changed called when the state of a workload's placement, its reason or a number of its replicas has changed, after
	// Summary returns it. changed may be called concurrently, must be quick, and goes on being called for good.
	Notify(changed func(member, kind, namespace, name string))
}

// Validate says what is wrong with a module.
func (m *Module) Validate() error {
	var errs []error
	if problems := validation.IsDNS1123Label(m.Name); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("the name must be a DNS label: %s", problems[0]))
	}
	if m.Register == nil {
		errs = append(errs, errors.New("has no Register"))
	}
	for i := range m.Resources {
		errs = append(errs, m.Resources[i].validate())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("module %q: %w", m.Name, err)
	}
	return nil
}

// Cached are the kinds of one of the module's controllers, as members are to have them cached.
func (m *Module) Cached(controller *reconcile.Controller) []clusters.Kind {
	if m.Kinds == nil {
		return controller.Kinds()
	}
	return m.Kinds(controller)
}
