package hub

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plimsoll-dev/plimsoll/clusters/plain"
	"github.com/plimsoll-dev/plimsoll/hub/config"
)

// NewLog creates the hub's logger: JSON, one object per line.
func NewLog(to io.Writer, level slog.Level) *slog.Logger {
	return plain.Log(slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level})))
}

// Logger makes the logger that the configuration asks for.
func Logger(c config.LogConfig, to io.Writer) *slog.Logger {
	if c.Format == config.FormatText {
		return plain.Log(slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: c.Level})))
	}
	return NewLog(to, c.Level)
}

// AdoptLog sends what libraries log through process-wide loggers to log. Call it once, before [New].
func AdoptLog(log *slog.Logger) {
	slog.SetDefault(log)
	klog.SetSlogLogger(log.With("from", "client-go"))
	ctrl.SetLogger(logr.FromSlogHandler(log.With("from", "controller-runtime").Handler()))
}

// gcPercent trades a little time for memory: between collections the heap may grow by three quarters instead of doubling.
const gcPercent = 75

// leastProcs is how many goroutines may run at a time at least, whatever the number of processors. With two, a member that
// sends much keeps both of the Go scheduler's queues busy, and what comes from the network waits for its turn behind tens of goroutines
// that have 10 ms each: calls of other members took up to 300 ms while the processors were idle for a third of the time. With
// four the kernel shares the processors between threads, and it does so every few milliseconds (docs/decisions/0034).
const leastProcs = 4

// TuneProcess sets how eagerly garbage is collected and how many goroutines run at a time, unless the environment's GOGC,
// GOMEMLIMIT and GOMAXPROCS say so. Call it once, before [New].
func TuneProcess(environ []string, log *slog.Logger) { tuneProcess(os.DirFS("/"), environ, log) }

// tuneProcess is [TuneProcess]; root is the container's file system.
func tuneProcess(root fs.FS, environ []string, log *slog.Logger) {
	if config.Lookup(environ, "GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit, ok := memoryLimit(root); ok && config.Lookup(environ, "GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
		log.Info("set the memory limit of the garbage collector below that of the container", "bytes", limit)
	}
	if config.Lookup(environ, "GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < leastProcs {
		runtime.GOMAXPROCS(leastProcs)
	}
}

// fleetCacheBytes is what the caches of all members may take: what the configuration says in MiB, or else seven tenths of the garbage
// collector's limit, so that the rest of the hub has its part; 0: no limit.
func fleetCacheBytes(configured int) int64 {
	if configured > 0 {
		return int64(configured) << 20
	}
	if limit := debug.SetMemoryLimit(-1); limit < unlimitedMemory {
		return limit / 10 * 7
	}
	return 0
}

// memoryLimit is nine tenths of what the container may take, by its control group (version 2, else 1); false: no limit, or
// none that can be read.
func memoryLimit(root fs.FS) (bytes int64, ok bool) {
	for _, name := range []string{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := fs.ReadFile(root, name)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || limit <= 0 || limit >= unlimitedMemory {
			return 0, false // version 2 writes max, version 1 a number near the largest
		}
		return limit / 10 * 9, true
	}
	return 0, false
}

const unlimitedMemory = 1 << 60

// hubClusterConfig finds the hub cluster: the kubeconfig file, else the pod's service account, else the environment's
// KUBECONFIG.
func hubClusterConfig(kubeconfig string, environ []string) (*rest.Config, error) {
	if kubeconfig == "" && config.Lookup(environ, "KUBERNETES_SERVICE_HOST") != "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("hub cluster: the pod's service account: %w", err)
		}
		return config, nil
	}
	if kubeconfig == "" {
		kubeconfig = config.Lookup(environ, "KUBECONFIG")
	}
	if kubeconfig == "" {
		return nil, fmt.Errorf("hub cluster: not in a pod, and neither hub.kubeconfig nor KUBECONFIG is set")
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(kubeconfig)}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("hub cluster: kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}
