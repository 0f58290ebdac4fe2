package hub_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/plimsoll-dev/plimsoll/hub"
	"github.com/plimsoll-dev/plimsoll/hub/config"
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
