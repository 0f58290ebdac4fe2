package kube

import (
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Options say what kind of cluster to start. The zero value is a full cluster named "testbed" in a temporary folder.
type Options struct {
	// Name of the cluster, a DNS label; it names kubeconfig entries, nodes' provider ids and folders of logs.
	// StartFleet sets it itself. Default "testbed".
	Name string

	// Dir holds the cluster's state and logs. Empty means a temporary folder that Stop removes; a folder that was
	// named is left in place, and must not hold another cluster's state.
	Dir string

	// Minimal starts only etcd and the API server: enough for a hub cluster and several times quicker. Nothing
	// schedules or runs pods, fills in default service accounts, or collects garbage there, and namespaces stay
	// Terminating. AddNodes makes nodes that are ready from the start.
	Minimal bool

	// PodStart is how long a pod takes from being bound to being ready. Default 0: as fast as it goes.
	PodStart time.Duration

	// PodStop is how long a deleted pod takes to go. Default 0; the pod's own grace period plays no part.
	PodStop time.Duration

	// APIServerArgs and ControllerManagerArgs are flags in addition to our own, which they override.
	APIServerArgs         []string
	ControllerManagerArgs []string

	// Log receives a line for each step of the start and for each component that ends unasked. Default: nowhere.
	Log io.Writer
}

// withDefaults fills in what was left out, or says what cannot be.
func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = "testbed"
	}
	if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
		return o, fmt.Errorf("cluster name %q: %s", o.Name, problems[0])
	}
	if o.PodStart < 0 || o.PodStop < 0 {
		return o, fmt.Errorf("cluster %s: PodStart %s and PodStop %s must not be negative", o.Name, o.PodStart, o.PodStop)
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	return o, nil
}
