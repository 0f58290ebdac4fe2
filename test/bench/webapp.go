package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/figures"
	"github.com/plimsoll-dev/plimsoll/test/bench/internal/inprocess"
	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

const (
	webAppRate    = 20               // creations a second, over all members
	webAppPeriod  = 30 * time.Second // for which they are made at that rate
	webAppWarmup  = 2 * webAppRate   // WebApps that are made at that rate before, and do not count
	webAppsEach   = 1000             // WebApps of each member that are made as fast as its API server takes them
	webAppSettled = 40 * time.Second // in which every WebApp is looked at again once more
)

// webApps measures how soon a WebApp has its Deployment and its Service, how long 3,000 of them take, and what looking at one
// that is as it should be costs. The hub reaches the members without the testbed's proxies.
func (b *bench) webApps(ctx context.Context) error {
	if err := b.registerDirectly(ctx); err != nil {
		return err
	}
	if err := b.startHub(ctx, byDefault); err != nil {
		return err
	}
	clients := map[string]client.WithWatch{}
	for _, m := range b.fleet.Members {
		c, err := webAppClient(m)
		if err != nil {
			return err
		}
		if err := m.InstallWebApps(ctx); err != nil {
			return err
		}
		clients[m.Name] = c
	}
	if err := b.awaitWebApps(ctx); err != nil {
		return err
	}
	if err := b.webAppsCreated(ctx, clients); err != nil {
		return fmt.Errorf("%d creations a second: %w", webAppRate, err)
	}
	if err := b.webAppsConverge(ctx, clients); err != nil {
		return fmt.Errorf("%d WebApps in each member: %w", webAppsEach, err)
	}
	return b.webAppsAtRest(ctx)
}

// awaitWebApps waits until every member has the definition as the hub keeps it, and the hub works on WebApps there.
func (b *bench) awaitWebApps(ctx context.Context) error {
	return fleet.Await(ctx, "the hub works on WebApps", func(ctx context.Context) (bool, error) {
		for _, m := range b.fleet.Members {
			shown, err := b.api.Cluster(ctx, m.Name)
			if err != nil {
				return false, err
			}
			if !slices.ContainsFunc(shown.GetConditions(), func(c *plimsollv1.Condition) bool {
				return c.GetType() == "WebApps" && c.GetReason() == "Current"
			}) || !slices.ContainsFunc(shown.GetKinds(), func(kind *plimsollv1.ClusterKind) bool {
				return kind.GetName() == "apps.plimsoll.dev/v1 WebApp" && kind.GetEngaged()
			}) {
				return false, nil
			}
		}
		return true, nil
	})
}

// webAppClient is an administrator's client without limits of its own.
func webAppClient(m *fleet.Member) (client.WithWatch, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme, v1.AddToScheme} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	config := rest.CopyConfig(m.Cluster.Config())
	config.QPS = -1
	return client.NewWithWatch(config, client.Options{Scheme: known})
}

// webAppsCreated measures first with nothing beside the hub and the API servers, as for events, and then with all that the
// members do about a WebApp on the same cores: Deployment controller, scheduler and a node for its pod.
func (b *bench) webAppsCreated(ctx context.Context, clients map[string]client.WithWatch) error {
	namespaces, err := b.webAppNamespaces(ctx)
	if err != nil {
		return err
	}
	wake, err := b.quieten(ctx)
	if err != nil {
		return err
	}
	took, busy, err := b.createWebApps(ctx, clients, namespaces)
	if err := errors.Join(err, wake()); err != nil {
		return err
	}
	b.report.Record("webapp-created-p99-ms", figures.Milliseconds(figures.Quantile(took, 0.99)))
	b.tellCreated("alone", took, busy)
	if err := b.clearWebApps(ctx, clients, namespaces); err != nil {
		return err
	}
	if namespaces, err = b.webAppNamespaces(ctx); err != nil {
		return err
	}
	if took, busy, err = b.createWebApps(ctx, clients, namespaces); err != nil {
		return err
	}
	b.tellCreated("with the members' own controllers and a pod for each on the same cores", took, busy)
	return b.clearWebApps(ctx, clients, namespaces)
}

// webAppNamespaces makes a namespace in each member, and returns them by member.
func (b *bench) webAppNamespaces(ctx context.Context) (map[string]string, error) {
	namespaces := map[string]string{}
	for _, m := range b.fleet.Members {
		namespace, err := m.NewNamespace(ctx, "webapp", nil)
		if err != nil {
			return nil, err
		}
		namespaces[m.Name] = namespace
	}
	return namespaces, nil
}

// clearWebApps deletes all WebApps of namespaces, and waits until what they consisted of is gone as well.
func (b *bench) clearWebApps(ctx context.Context, clients map[string]client.WithWatch, namespaces map[string]string) error {
	return b.eachMember(ctx, func(ctx context.Context, m *fleet.Member) error {
		err := fleet.Await(ctx, "the WebApps to go", func(ctx context.Context) (bool, error) {
			// An API server that is busy does not delete all of them in the minute that it gives a call.
			return true, clients[m.Name].DeleteAllOf(ctx, &v1.WebApp{}, client.InNamespace(namespaces[m.Name]))
		})
		if err != nil {
			return err
		}
		return fleet.Await(ctx, "the pods of WebApps to go", func(ctx context.Context) (bool, error) {
			var deployments appsv1.DeploymentList
			var pods corev1.PodList
			err := errors.Join(clients[m.Name].List(ctx, &deployments, client.InNamespace(namespaces[m.Name]), client.Limit(1)),
				clients[m.Name].List(ctx, &pods, client.InNamespace(namespaces[m.Name]), client.Limit(1)))
			return len(deployments.Items)+len(pods.Items) == 0, err
		})
	})
}

func (b *bench) tellCreated(how string, took []time.Duration, busy float64) {
	b.report.Note("WebApps, %s: from the call that creates one to its Deployment and Service: median %.0f ms, p99 %.0f ms, worst %.0f ms of %d; "+
		"the machine was %.0f %% busy", how, figures.Milliseconds(figures.Quantile(took, 0.5)), figures.Milliseconds(figures.Quantile(took, 0.99)), figures.Milliseconds(took[len(took)-1]), len(took), busy)
}

// createWebApps makes WebApps at a steady rate, and returns how long after each call its Deployment and its Service were
// there, by the API servers' own log, and how busy the machine was.
func (b *bench) createWebApps(ctx context.Context, clients map[string]client.WithWatch, namespaces map[string]string) (
	took []time.Duration, busy float64, err error,
) {
	marks := map[string]kube.Mark{}
	for _, m := range b.fleet.Members {
		if marks[m.Name], err = m.Cluster.Audit().Mark(); err != nil {
			return nil, 0, err
		}
	}
	count := webAppWarmup + int(webAppPeriod/(time.Second/webAppRate))
	asked := make([]time.Time, count)
	before, err := readCPU()
	if err != nil {
		return nil, 0, err
	}
	ticker := time.NewTicker(time.Second / webAppRate)
	defer ticker.Stop()
	var group errgroup.Group
	for i := range count {
		m := b.fleet.Members[i%len(b.fleet.Members)]
		group.Go(func() error {
			asked[i] = time.Now()
			return clients[m.Name].Create(ctx, inprocess.WebApp(namespaces[m.Name], inprocess.WebAppName(i)))
		})
		<-ticker.C
	}
	if err := group.Wait(); err != nil {
		return nil, 0, err
	}
	after, err := readCPU()
	if err != nil {
		return nil, 0, err
	}
	there := map[string]time.Time{}
	if err := fleet.Await(ctx, "every WebApp has its Deployment and its Service", func(context.Context) (bool, error) {
		for _, m := range b.fleet.Members {
			made, err := m.Cluster.Audit().Since(marks[m.Name], kube.InNamespace(namespaces[m.Name]), kube.ByVerb("patch"), kube.Any(
				kube.OnResource("deployments"), kube.OnResource("services")), func(e kube.AuditEvent) bool { return e.Code == http.StatusCreated })
			if err != nil {
				return false, err
			}
			for _, part := range made {
				there[part.Resource+"/"+part.Name] = part.Answered
			}
		}
		return len(there) >= 2*count, nil
	}); err != nil {
		return nil, 0, err
	}
	for i := webAppWarmup; i < count; i++ {
		took = append(took, max(there["deployments/"+inprocess.WebAppName(i)].Sub(asked[i]), there["services/"+inprocess.WebAppName(i)].Sub(asked[i])))
	}
	slices.Sort(took)
	return took, after.busySince(before), nil
}

// webAppsConverge makes WebApps as fast as the members take them, and waits until all are ready.
func (b *bench) webAppsConverge(ctx context.Context, clients map[string]client.WithWatch) error {
	before, err := b.hub.RSS()
	if err != nil {
		return err
	}
	namespaces := map[string]string{}
	for _, m := range b.fleet.Members {
		if namespaces[m.Name], err = m.NewNamespace(ctx, "webapps", nil); err != nil {
			return err
		}
	}
	began := time.Now()
	err = b.eachMember(ctx, func(ctx context.Context, m *fleet.Member) error {
		c := clients[m.Name]
		group, making := errgroup.WithContext(ctx)
		group.SetLimit(8)
		for i := range webAppsEach {
			group.Go(func() error { return c.Create(making, inprocess.WebApp(namespaces[m.Name], inprocess.WebAppName(i))) })
		}
		return errors.Join(group.Wait(), awaitReady(ctx, c, namespaces[m.Name]))
	})
	if err != nil {
		return err
	}
	b.report.Record("webapp-3000-s", time.Since(began).Seconds())
	after, err := b.hub.RSS()
	if err != nil {
		return err
	}
	b.report.Note("WebApps: the hub grew by %.1f KB of resident memory for each of %d, its cached objects included",
		(float64(after)-float64(before))/1000/float64(webAppsEach*len(b.fleet.Members)), webAppsEach*len(b.fleet.Members))
	return nil
}

// awaitReady waits until every WebApp of a namespace is ready.
func awaitReady(ctx context.Context, c client.WithWatch, namespace string) error {
	var list v1.WebAppList
	if err := c.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return err
	}
	waiting := map[types.UID]bool{}
	note := func(app *v1.WebApp) {
		if meta.IsStatusConditionTrue(app.Status.Conditions, "Ready") {
			delete(waiting, app.UID)
		}
	}
	for i := range list.Items {
		waiting[list.Items[i].UID] = true
		note(&list.Items[i])
	}
	events, err := c.Watch(ctx, &v1.WebAppList{}, client.InNamespace(namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return err
	}
	defer events.Stop()
	for len(waiting) > 0 {
		select {
		case event, open := <-events.ResultChan():
			if !open {
				return errors.New("the watch of WebApps ended")
			}
			if app, ok := event.Object.(*v1.WebApp); ok {
				note(app)
			}
		case <-ctx.Done():
			return fmt.Errorf("%d WebApps are not ready: %w", len(waiting), ctx.Err())
		}
	}
	return nil
}

// webAppsAtRest lets the hub look at every WebApp again, and returns what one look took.
func (b *bench) webAppsAtRest(ctx context.Context) error {
	spent := func() (seconds, count float64, err error) {
		samples, err := b.hub.Samples(ctx)
		if err != nil {
			return 0, 0, err
		}
		for suffix, into := range map[string]*float64{"_sum": &seconds, "_count": &count} {
			for _, sample := range samples["plimsoll_reconcile_duration_seconds"+suffix] {
				if sample.Has("controller", "webapp") {
					*into += sample.Value
				}
			}
		}
		return seconds, count, nil
	}
	if err := fleet.Await(ctx, "nothing but time wakes WebApps", func(ctx context.Context) (bool, error) {
		_, first, err := spent()
		if err != nil {
			return false, err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return false, ctx.Err()
		}
		_, second, err := spent()
		return second-first < webAppsEach, err
	}); err != nil {
		return err
	}
	seconds, count, err := spent()
	if err != nil {
		return err
	}
	select {
	case <-time.After(webAppSettled):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, looks, err := spent()
	if err != nil {
		return err
	}
	if looks == count {
		return errors.New("no WebApp was reconciled again")
	}
	b.report.Record("webapp-noop-ms", 1000*(after-seconds)/(looks-count))
	return nil
}
