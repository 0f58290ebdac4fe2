// Command plimsoll registers members of a fleet and shows what the hub makes of them. As kubectl-plimsoll on the PATH it is
// `kubectl plimsoll`.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/cli"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return cli.Run(ctx, os.Args, cli.Environment{Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Now: time.Now})
}
