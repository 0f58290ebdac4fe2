package hub

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/plimsoll-dev/plimsoll/hub/config"
)

// Main is the main function of a hub: it reads the flags --config and --version, runs a replica until the process is asked to
// stop, and ends the process with the result. Whoever builds a hub with controllers of their own calls it with
// [WithController].
func Main(options ...Option) {
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
	if err := runProcess(*file, options); err != nil {
		fmt.Fprintln(os.Stderr, "plimsoll-hub:", err)
		os.Exit(1)
	}
}

// runProcess runs a replica until the process is asked to stop; asked twice, it ends at once.
func runProcess(file string, options []Option) error {
	config, err := config.Load(file, os.Environ())
	if err != nil {
		return err
	}
	log := Logger(config.Log, os.Stderr)
	AdoptLog(log)
	TuneProcess(os.Environ(), log)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	h, err := New(ctx, config, append([]Option{WithLog(log)}, options...)...)
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
