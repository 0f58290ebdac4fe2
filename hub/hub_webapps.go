package hub

import (
	"fmt"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
	"github.com/plimsoll-dev/plimsoll/reconcile/webapp"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// buildWebApps registers what reconciles WebApps, and what keeps their definition in members current. It comes after spot
// placement, whose cached Deployments are those of WebApps as well.
func (h *Hub) buildWebApps(options webhook.InstallerOptions) (err error) {
	if h.kinds, err = webhook.NewKindInstaller(options); err != nil {
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
	reconciler := &webapp.Reconciler{Keys: h.engine.Keys, Placer: h.engine}
	controller, err := reconciler.Register(h.runtime, webAppSchedule(&h.config))
	if err != nil {
		return err
	}
	if err := h.addController(controller, webapp.Kinds(controller)); err != nil {
		return err
	}
	return h.provider.AddAccess(webapp.Access()...)
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
