package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// KarpenterOptions say how Karpenter runs in a cluster. The zero value is Karpenter as it is by default, with one type of
// instance and nodes that register at once.
type KarpenterOptions struct {
	// Instances are the types that a node can be of. Default: "small", with 4 CPUs of which a pod can have 3.9.
	Instances []Instance
	// BatchIdle and BatchMax say how long Karpenter collects pending pods before it makes nodes for them: until none came
	// for BatchIdle, at most for BatchMax. Defaults 1s and 10s, which are Karpenter's.
	BatchIdle, BatchMax time.Duration
	// Registration is how long a new instance takes until its node is there; whole seconds. Default 0.
	// NodePool.NodeStart is how long that node then takes to be ready.
	Registration time.Duration
	// SpotToSpot lets Karpenter replace spot nodes by cheaper spot nodes. By default it only removes them.
	SpotToSpot bool
}

// An Instance is a type of instance, in one zone, that can be had as spot and on-demand.
type Instance struct {
	Name   string // a node's node.kubernetes.io/instance-type
	CPU    int
	Memory string  // default 4Gi for each CPU
	Pods   int     // how many pods fit, whatever they request; default 110
	Price  float64 // on-demand, for an hour; spot costs 70 % of it. Default 0.1 for each CPU
}

// The kinds that Karpenter reconciles, and where its provider's nodes are.
var (
	nodePoolKind  = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}
	nodeClaimKind = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}
	nodeClassKind = schema.GroupVersionKind{Group: "karpenter.kwok.sh", Version: "v1alpha1", Kind: "KWOKNodeClass"}
)

const (
	nodeClassName = "default"
	karpenterZone = "zone-a"
	// instanceTypes is the file's name in the cluster's folder.
	instanceTypes = "instance-types.json"
)

// karpenterDir is <repo>/build/karpenter, beside the folder of the other binaries.
func karpenterDir(bin string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(bin)), "karpenter")
}

// StartKarpenter starts Karpenter as one more process of the cluster: its definitions are installed, nodes that it makes are
// played by kwok, and it can be killed and revived as the component Karpenter. It acts once there is a NodePool. A minimal
// cluster has nothing that would play its nodes, and it can be started once in a cluster.
func (c *Cluster) StartKarpenter(ctx context.Context, options KarpenterOptions) error {
	fail := func(err error) error { return fmt.Errorf("cluster %s: start Karpenter: %w", c.name, err) }
	if c.opts.Minimal {
		return fail(errors.New("the cluster is minimal"))
	}
	if _, err := os.Stat(c.binary(Karpenter)); err != nil {
		return fail(errors.New("it is missing: run `make karpenter` in the repository"))
	}
	types, err := json.Marshal(options.instances())
	if err != nil {
		return fail(err)
	}
	if err := c.write(instanceTypes, types); err != nil {
		return fail(err)
	}
	if !c.karpenter.CompareAndSwap(nil, &options) {
		return fail(errors.New("it was started before"))
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := c.installKarpenter(ctx, options); err != nil {
		return fail(err)
	}
	if err := c.launch(Karpenter); err != nil {
		return fail(err)
	}
	return nil
}

// args name the cluster's folder, as those of every component do.
func (o *KarpenterOptions) args(c *Cluster) []string {
	return []string{"--instance-types-file-path", c.file(instanceTypes)}
}

// environment is how Karpenter is configured. Its ports are on loopback, chosen by the kernel: nobody asks there.
func (o *KarpenterOptions) environment(c *Cluster) []string {
	return []string{
		"KUBECONFIG=" + c.file("karpenter.kubeconfig"), "SYSTEM_NAMESPACE=kube-system", "DISABLE_LEADER_ELECTION=true",
		"METRICS_PORT=0", "HEALTH_PROBE_PORT=0", "KUBE_CLIENT_QPS=500", "KUBE_CLIENT_BURST=1000",
		"BATCH_IDLE_DURATION=" + cmp.Or(o.BatchIdle, time.Second).String(),
		"BATCH_MAX_DURATION=" + cmp.Or(o.BatchMax, 10*time.Second).String(),
		fmt.Sprintf("FEATURE_GATES=SpotToSpotConsolidation=%t", o.SpotToSpot),
	}
}

// instances are the types in the form that Karpenter's provider reads.
func (o *KarpenterOptions) instances() []any {
	all := o.Instances
	if len(all) == 0 {
		all = []Instance{{Name: "small", CPU: 4}}
	}
	var list []any
	for _, i := range all {
		price := cmp.Or(i.Price, 0.1*float64(i.CPU))
		list = append(list, map[string]any{
			"name": i.Name, "architecture": "amd64", "operatingSystems": []string{"linux"},
			"resources": map[string]string{
				"cpu": fmt.Sprint(i.CPU), "memory": cmp.Or(i.Memory, fmt.Sprintf("%dGi", 4*i.CPU)),
				"pods": fmt.Sprint(cmp.Or(i.Pods, 110)), "ephemeral-storage": "20Gi",
			},
			"offerings": []any{offering(Spot, 0.7*price), offering(OnDemand, price)},
		})
	}
	return list
}

func offering(capacity string, price float64) map[string]any {
	in := func(key, value string) map[string]any {
		return map[string]any{"key": key, "operator": "In", "values": []string{value}}
	}
	return map[string]any{
		"Price": price, "Available": true,
		"Requirements": []any{in(CapacityLabel, capacity), in(corev1.LabelTopologyZone, karpenterZone)},
	}
}

// InstallKarpenterKinds brings the definitions of Karpenter's kinds into a cluster where Karpenter need not run.
func (c *Cluster) InstallKarpenterKinds(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(karpenterDir(c.bin), "crds", "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("cluster %s: Karpenter's definitions are missing: run `make karpenter` in the repository", c.name)
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(content, &definition.Object); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		if err := c.client.Create(ctx, definition); err != nil {
			return err
		}
		if err := c.awaitTrue(ctx, definition, "Established"); err != nil {
			return err
		}
	}
	return nil
}

// installKarpenter brings Karpenter's definitions and the class of its nodes into the cluster.
func (c *Cluster) installKarpenter(ctx context.Context, options KarpenterOptions) error {
	if err := errors.Join(c.InstallKarpenterKinds(ctx), c.startNodesUnready(ctx)); err != nil {
		return err
	}
	class := object(nodeClassKind, nodeClassName, map[string]any{"nodeRegistrationDelay": wholeSeconds(options.Registration)})
	// A definition that is established may take a moment longer to be served.
	return c.await(ctx, "the class of nodes to be accepted", func(ctx context.Context) (bool, error) {
		err := c.client.Create(ctx, class)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// awaitTrue waits for a condition of an object that has been made.
func (c *Cluster) awaitTrue(ctx context.Context, of *unstructured.Unstructured, condition string) error {
	return c.await(ctx, fmt.Sprintf("%s %s to be %s", of.GetKind(), of.GetName(), condition), func(ctx context.Context) (bool, error) {
		if err := c.client.Get(ctx, client.ObjectKeyFromObject(of), of); err != nil {
			return false, err
		}
		return isTrue(of, condition), nil
	})
}

// isTrue reports whether an object's status has the condition with status True.
func isTrue(of *unstructured.Unstructured, condition string) bool {
	conditions, _, _ := unstructured.NestedSlice(of.Object, "status", "conditions")
	for _, one := range conditions {
		if fields, ok := one.(map[string]any); ok && fields["type"] == condition {
			return fields["status"] == string(corev1.ConditionTrue)
		}
	}
	return false
}

// object is one of Karpenter's, which are cluster-scoped.
func object(kind schema.GroupVersionKind, name string, spec map[string]any) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	made.SetGroupVersionKind(kind)
	made.SetName(name)
	return made
}

// wholeSeconds is a time as Karpenter's kinds have it, rounded up.
func wholeSeconds(d time.Duration) string { return seconds(d) + "s" }
