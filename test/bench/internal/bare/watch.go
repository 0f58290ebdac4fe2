package bare

import (
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-dev/plimsoll/test/bench/internal/partner"
)

// WatchCommand is the argument with which the benchmark is the watch to compare with: see [Receive].
const WatchCommand = "watch-bare"

// watchFor is how long API servers are asked to keep a watch open; no run takes longer.
const watchFor = 6 * time.Hour

type (
	watchOrder struct {
		Kubeconfig []byte
		Namespace  string
	}
	// A receipt says when a version came. The first has no version: the watch begins.
	receipt struct {
		Version string
		At      time.Time
	}
)

// A Watch has when a process of its own received each version of the StatefulSets in a namespace. Safe for concurrent use.
type Watch struct {
	process *partner.Partner
	done    chan struct{} // closed when nothing comes any more

	mu       sync.Mutex
	received map[string]time.Time // by resource version
	failed   error
}

// StartWatch starts a watch, which receives until it is ended.
func StartWatch(ctx context.Context, kubeconfig []byte, namespace string) (*Watch, error) {
	process, err := partner.Start(ctx, WatchCommand, watchOrder{kubeconfig, namespace})
	if err != nil {
		return nil, err
	}
	if err := process.Next(new(receipt)); err != nil {
		process.End()
		return nil, err
	}
	w := &Watch{process: process, done: make(chan struct{}), received: map[string]time.Time{}}
	go w.collect()
	return w, nil
}

// End ends the process.
func (w *Watch) End() {
	w.process.End()
	<-w.done
}

func (w *Watch) collect() {
	defer close(w.done)
	for {
		var r receipt
		err := w.process.Next(&r)
		w.mu.Lock()
		if err == nil {
			w.received[r.Version] = r.At
		}
		w.failed = err
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Received returns when a version came; false: it has not, yet. The error says why it will not come.
func (w *Watch) Received(version string) (at time.Time, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at, ok = w.received[version]; ok {
		return at, true, nil
	}
	return time.Time{}, false, w.failed
}

// Forget forgets what came so far. Nobody asks for it any more.
func (w *Watch) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.received)
}

// Receive is the least that a client can be that learns of changes: one watch of client-go, without a cache, each event decoded and
// reported. It runs until it is killed.
func Receive(in io.Reader, out io.Writer) error {
	var order watchOrder
	if err := gob.NewDecoder(in).Decode(&order); err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(order.Kubeconfig)
	if err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	ctx, sets, reports := context.Background(), clients.AppsV1().StatefulSets(order.Namespace), gob.NewEncoder(out)
	list, err := sets.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	if err := reports.Encode(receipt{}); err != nil {
		return err
	}
	for version := list.ResourceVersion; ; { // an API server may end a watch
		if version, err = receive(ctx, sets, version, reports); err != nil {
			return err
		}
	}
}

// receive reports what comes after a version until the watch ends, and returns the last version.
func receive(ctx context.Context, sets appsclient.StatefulSetInterface, version string, reports *gob.Encoder) (last string, err error) {
	events, err := sets.Watch(ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: ptr.To(int64(watchFor / time.Second))})
	if err != nil {
		return version, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		now := time.Now()
		if event.Type == watch.Error {
			return version, apierrors.FromObject(event.Object)
		}
		set, ok := event.Object.(*appsv1.StatefulSet)
		if !ok {
			return version, fmt.Errorf("a watch of StatefulSets sent a %T", event.Object)
		}
		version = set.ResourceVersion
		if err := reports.Encode(receipt{version, now}); err != nil {
			return version, err
		}
	}
	return version, nil
}
