package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	corev1 "k8s.io/api/core/v1"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/reconcile"
)

// A hub inside another program. Programs that are nothing else call hub.Main.
func ExampleNew() {
	serve := func(ctx context.Context, file string) error {
		environ := []string{"PLIMSOLL_LOG_LEVEL=debug"} // instead of the process's own
		loaded, err := config.Load(file, environ)
		if err != nil {
			return err
		}
		h, err := hub.New(ctx, loaded, hub.WithEnvironment(environ), hub.WithLog(hub.NewLog(os.Stderr, slog.LevelInfo)))
		if err != nil {
			return err
		}
		return h.Run(ctx) // until ctx ends
	}
	// Without a configuration that can be read nothing is started.
	fmt.Println(serve(context.Background(), "/no/such/file") != nil)
	// Output: true
}

// counted is a reconciler of somebody else: it would do something about each ConfigMap of each member.
type counted struct{}

func (counted) Reconcile(context.Context, reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
	return reconcile.Done(), nil
}

// A hub with a controller of one's own is hub.Main(hub.WithController(module)) and nothing else. What cannot be is refused by its name,
// before the hub asks anybody: here a controller is given twice.
func ExampleWithController() {
	module := hub.Module{
		Name: "counted",
		Register: func(host hub.Host) ([]*reconcile.Controller, error) {
			controller, err := reconcile.For(host.Runtime, "counted", counted{}).Register()
			return []*reconcile.Controller{controller}, err
		},
	}
	_, err := hub.New(context.Background(), config.Default(), hub.WithEnvironment(nil), hub.WithController(module), hub.WithController(module))
	fmt.Println(err)
	// Output: module "counted": another module has the same name
}
