// Command plimsoll-hub runs one replica of the hub. Everything it can be told is in docs/configuration.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/plimsoll-dev/plimsoll/hub"
)

func main() {
	file := flag.String("config", "", "the configuration `file` (YAML)")
	version := flag.Bool("version", false, "print the version and exit")
	flag.Parse()
	if *version {
		fmt.Println(versionOf(debug.ReadBuildInfo()))
		return
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "plimsoll-hub: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*file); err != nil {
		fmt.Fprintln(os.Stderr, "plimsoll-hub:", err)
		os.Exit(1)
	}
}

// run runs a replica until the process is asked to stop; asked twice, it ends at once.
func run(file string) error {
	config, err := hub.LoadConfig(file, os.Environ())
	if err != nil {
		return err
	}
	log := hub.NewLog(os.Stderr, config.Log.Level)
	hub.AdoptLog(log)
	hub.TuneProcess(os.Environ(), log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	h, err := hub.New(ctx, config, hub.WithLog(log))
	if err != nil {
		return err
	}
	return h.Run(ctx)
}

func versionOf(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return "unknown"
	}
	return info.Main.Version + " " + info.GoVersion
}
