package pages

import (
	"context"
	"errors"
	"log/slog"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// Run reconciles Pages in every member until ctx ends. The members are those with a registration Secret in the namespace
// of the hub cluster; rules say what those Secrets may ask for.
func Run(ctx context.Context, hub *rest.Config, namespace string, rules clusters.Rules, log *slog.Logger) error {
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
	members, err := clusters.New(clusters.Options{
		Namespace: namespace, HubConfig: hub, Scheme: scheme, Rules: rules, Kinds: controller.Kinds(), Log: log,
		Fence: clusters.FenceFunc(func(string) error { return nil }), // one process: it may always write
	})
	if err != nil {
		return err
	}
	parts, ctx := errgroup.WithContext(ctx)
	parts.Go(func() error { return controller.Start(ctx) })
	parts.Go(func() error { return members.Start(ctx, controller) })
	return parts.Wait()
}
