package pages

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
	"github.com/plimsoll-dev/plimsoll/hub/leadership"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Run reconciles Pages in every member until ctx ends. The members are those with a registration Secret in the namespace
// of the hub cluster; rules say what those Secrets may ask for. It may run several times: one of them acts.
func Run(ctx context.Context, hub *rest.Config, namespace string, rules kubeconfig.Rules, log *slog.Logger) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), AddToScheme(scheme)); err != nil {
		return err
	}
	rt, err := reconcile.NewRuntime(reconcile.Options{Scheme: scheme, Log: log})
	if err != nil {
		return err
	}
	controller, err := Register(rt)
	if err != nil {
		return err
	}
	lease, err := leadership.New(hub, leadership.Options{Namespace: namespace, Name: "pages", Log: log})
	if err != nil {
		return err
	}
	lease.Hold(rt) // nothing is reconciled while another replica acts
	members, err := clusters.New(clusters.Options{
		Namespace: namespace, HubConfig: hub, Scheme: scheme, Rules: rules, Kinds: controller.Kinds(), Log: log,
		Fence: lease, WriteTimeout: 5 * time.Second, // no write begins that another replica could overtake
	})
	if err != nil {
		return err
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return lease.Run(ctx) })
	parts.Go(func() error { return controller.Start(ctx) })
	parts.Go(func() error { return members.Start(ctx, controller) })
	return parts.Wait()
}
