package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/module"
	"github.com/plimsoll-dev/plimsoll/webhook"
	"github.com/plimsoll-dev/plimsoll/webhook/kinds"
)

// Module is a controller, or several that belong together, with everything that a hub has to know of them: the Go types of their
// kinds, the rights that they need in members, and the kinds about which members ask. See [module.Module].
type Module = module.Module

// Host is what a hub offers to a module when that registers its controllers. See [module.Host].
type Host = module.Host

// WithController runs the controllers of a module beside spot and fleet placement: they act where this replica acts, and the API, the
// metrics and requeue know them. It may be given several times.
func WithController(m Module) Option { return func(h *Hub) { h.modules = append(h.modules, m) } }

// takeIn checks the modules, and makes the scheme that knows their kinds.
func (h *Hub) takeIn() (err error) {
	names := map[string]bool{}
	for i := range h.modules {
		m := &h.modules[i]
		if err := m.Validate(); err != nil {
			return err
		}
		if names[m.Name] {
			return fmt.Errorf("module %q: another module has the same name", m.Name)
		}
		names[m.Name] = true
	}
	sections := map[string]any{}
	for i := range h.modules {
		sections[h.modules[i].Name] = h.modules[i].Config
	}
	if err := h.config.Modules.Decode(sections); err != nil {
		return err
	}
	h.scheme, err = newScheme(h.modules)
	return err
}

// resources are the kinds about which members ask, of all modules.
func (h *Hub) resources() (all []module.Resource) {
	for i := range h.modules {
		all = append(all, h.modules[i].Resources...)
	}
	return all
}

// host is what modules are offered.
func (h *Hub) host(m *Module) Host {
	return Host{
		Runtime: h.runtime, Workers: h.config.Controller.Workers, Resync: h.config.Controller.ResyncPeriod,
		Keys: h.engine.Keys(), Placements: h.engine, Log: h.log.With("module", m.Name), Registerer: h.registry,
	}
}

// buildModules registers what keeps the modules' kinds in members, and then the modules' controllers. They come after spot
// placement, whose cached Deployments some of them read as well.
func (h *Hub) buildModules(options webhook.InstallerOptions) (err error) {
	if h.kinds, err = kinds.NewInstaller(options, h.resources()); err != nil {
		return err
	}
	keepers, err := h.kinds.Register(h.runtime)
	if err != nil {
		return err
	}
	for _, keeper := range keepers {
		if err := h.addController(keeper, h.kinds.Kinds(keeper)); err != nil {
			return err
		}
	}
	for i := range h.modules {
		if err := h.buildModule(&h.modules[i]); err != nil {
			return fmt.Errorf("module %q: %w", h.modules[i].Name, err)
		}
	}
	return nil
}

func (h *Hub) buildModule(m *Module) error {
	host := h.host(m)
	controllers, err := m.Register(host)
	if err != nil {
		return err
	}
	for _, controller := range controllers {
		if controller == nil {
			return errors.New("a controller that Register returned is nil")
		}
		if err := h.addController(controller, m.Cached(controller)); err != nil {
			return err
		}
	}
	if m.Run != nil {
		h.tasks = append(h.tasks, task{"module " + m.Name, func(ctx context.Context) error { return m.Run(ctx, host) }})
	}
	return h.provider.AddAccess(m.Rights...)
}

func (h *Hub) addController(controller *reconcile.Controller, kinds []clusters.Kind) error {
	if err := h.provider.AddKinds(kinds...); err != nil {
		return fmt.Errorf("controller %s: %w", controller.Name(), err)
	}
	if err := h.manager.Add(controller); err != nil {
		return fmt.Errorf("controller %s: %w", controller.Name(), err)
	}
	return nil
}

// kindStates say how the kinds of the modules are in a member, by the conditions that show it.
func (h *Hub) kindStates(member string) []kindState {
	var states []kindState
	for i := range h.modules {
		for r := range h.modules[i].Resources {
			if kind := &h.modules[i].Resources[r]; kind.Definition != nil {
				states = append(states, kindState{kind.Title, h.kinds.State(kind, member)})
			}
		}
	}
	return states
}
