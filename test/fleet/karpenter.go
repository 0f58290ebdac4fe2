package fleet

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/hub/config"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// NodeTime is how long a node of a cloud takes, from when it is asked for until it is ready: launch, boot and join.
const NodeTime = 90 * time.Second

// minResync is the least resync period that a hub takes.
const minResync = 5 * time.Second

// Scaled are a hub's default times for placement, each divided by the factor: beside nodes that take NodeTime divided by it, the
// hub is what it is by default beside real nodes.
func Scaled(factor int) Settings {
	config := config.Default()
	settings := Settings{"controller.resyncPeriod": max(config.Controller.ResyncPeriod/time.Duration(factor), minResync).String()}
	settings.scale("spot", reflect.ValueOf(config.Spot), time.Duration(factor))
	return settings
}

// scale sets every time in a part of the configuration, which has this path.
func (s Settings) scale(path string, part reflect.Value, factor time.Duration) {
	for i := range part.NumField() {
		key := path + "." + part.Type().Field(i).Tag.Get("yaml")
		switch field := part.Field(i).Interface().(type) {
		case time.Duration:
			if field > 0 {
				s[key] = (field / factor).String()
			}
		case config.SpotProbeConfig:
			s.scale(key, part.Field(i), factor)
		}
	}
}

// ScaledKarpenter are the times in which Karpenter collects pending pods, divided by the factor.
func ScaledKarpenter(factor int) kube.KarpenterOptions {
	by := time.Duration(factor)
	return kube.KarpenterOptions{BatchIdle: time.Second / by, BatchMax: 10 * time.Second / by}
}

// Requesting gives the pods of a Deployment a request for so much CPU. Karpenter makes nodes by what pods request.
func Requesting(d *appsv1.Deployment, cpu string) *appsv1.Deployment {
	for i := range d.Spec.Template.Spec.Containers {
		d.Spec.Template.Spec.Containers[i].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return d
}

// OnPool has the pods of a Deployment ask for the nodes of one NodePool; "": they do not.
func OnPool(d *appsv1.Deployment, pool string) *appsv1.Deployment {
	if pool != "" {
		d.Spec.Template.Spec.NodeSelector = map[string]string{kube.PoolLabel: pool}
	}
	return d
}

// A Pool is the nodes that Karpenter makes in a member for one NodePool.
type Pool struct {
	Member *Member
	Name   string
}

// Claims are the pool's NodeClaims, those that are leaving as well.
func (p Pool) Claims(ctx context.Context) ([]kube.NodeClaim, error) {
	all, err := p.Member.Cluster.NodeClaims(ctx)
	return slices.DeleteFunc(all, func(claim kube.NodeClaim) bool { return claim.Pool != p.Name }), err
}

// Staying are the pool's NodeClaims that are not leaving.
func (p Pool) Staying(ctx context.Context) ([]kube.NodeClaim, error) {
	all, err := p.Claims(ctx)
	return slices.DeleteFunc(all, func(claim kube.NodeClaim) bool { return claim.Leaving }), err
}

// NodesMade counts the nodes that Karpenter has asked its provider for since the mark.
func (m *Member) NodesMade(since kube.Mark) (int, error) {
	made, err := m.Cluster.Audit().Since(since, kube.OnResource("nodeclaims"), kube.ByVerb("create"), kube.Succeeded)
	return len(made), err
}

// A Filler is pods of nobody's that take the room on nodes, one of them on each.
type Filler struct{ workloads []*Workload }

// Filling says how many pods of a [Filler] there are for a capacity type, and how much CPU each of them requests: so much that no
// second one fits on its node.
type Filling struct {
	Capacity string
	Pods     int
	CPU      string
}

// Fill has Karpenter make that many nodes of the pool, by pods that the hub does not manage.
func (p Pool) Fill(ctx context.Context, namespace string, all ...Filling) (*Filler, error) {
	filler := &Filler{}
	for _, filling := range all {
		d := OnPool(Requesting(Deployment(namespace, "filler-"+filling.Capacity, filling.Pods, nil), filling.CPU), p.Name)
		d.Labels = nil
		d.Spec.Template.Spec.NodeSelector[kube.CapacityLabel] = filling.Capacity
		w, err := p.Member.Create(ctx, d)
		if err != nil {
			return nil, err
		}
		filler.workloads = append(filler.workloads, w)
	}
	for i, w := range filler.workloads {
		if _, err := w.AwaitReady(ctx, all[i].Pods); err != nil {
			return nil, err
		}
	}
	return filler, nil
}

// Delete has the filler's pods go.
func (f *Filler) Delete(ctx context.Context) error {
	for _, w := range f.workloads {
		if err := w.Delete(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AwaitConsolidated waits until the pool has at most so many nodes, all of them ready and none about to go.
func (p Pool) AwaitConsolidated(ctx context.Context, nodes int) error {
	return Await(ctx, fmt.Sprintf("Karpenter to have at most %d nodes of pool %s", nodes, p.Name), func(ctx context.Context) (bool, error) {
		claims, err := p.Claims(ctx)
		if err != nil {
			return false, err
		}
		for _, claim := range claims {
			if claim.Leaving || !claim.Initialized {
				return false, fmt.Errorf("of %d, that of claim %s is on its way", len(claims), claim.Name)
			}
		}
		if len(claims) > nodes {
			return false, fmt.Errorf("it has %d", len(claims))
		}
		return true, nil
	})
}
