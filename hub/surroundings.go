package hub

import (
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// NewLog makes the hub's logger: JSON, one object per line.
func NewLog(to io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(to, &slog.HandlerOptions{Level: level}))
}

// AdoptLog sends what libraries log through process-wide loggers to log. Call it once, before [New].
func AdoptLog(log *slog.Logger) {
	slog.SetDefault(log)
	klog.SetSlogLogger(log.With("from", "client-go"))
	ctrl.SetLogger(logr.FromSlogHandler(log.With("from", "controller-runtime").Handler()))
}

// gcPercent trades a little time for memory: between collections the heap may grow by three quarters instead of doubling.
const gcPercent = 75

// TuneProcess sets how eagerly garbage is collected, unless the environment's GOGC says so, and for how long threads want
// the processor at a time; a kernel that refuses that is no reason not to start. Call it once, before [New].
func TuneProcess(environ []string, log *slog.Logger) {
	if lookup(environ, "GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if err := ShortenTimeSlices(); err != nil {
		log.Info("the kernel's usual time slices stay, admission may take longer while all processors are busy", "error", err)
	}
}

// hubClusterConfig finds the hub cluster: the kubeconfig file, else the pod's service account, else the environment's
// KUBECONFIG.
func hubClusterConfig(kubeconfig string, environ []string) (*rest.Config, error) {
	if kubeconfig == "" && lookup(environ, "KUBERNETES_SERVICE_HOST") != "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("hub cluster: the pod's service account: %w", err)
		}
		return config, nil
	}
	if kubeconfig == "" {
		kubeconfig = lookup(environ, "KUBECONFIG")
	}
	if kubeconfig == "" {
		return nil, fmt.Errorf("hub cluster: not in a pod, and neither hub.kubeconfig nor KUBECONFIG is set")
	}
	rules := &clientcmd.ClientConfigLoadingRules{Precedence: []string{kubeconfig}}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("hub cluster: kubeconfig %s: %w", kubeconfig, err)
	}
	return config, nil
}
