package clusters

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// confirmations is how often in a row a member has to say that a cached kind is gone or forbidden before it is
// disengaged. API servers say so for a moment when they start.
const confirmations = 3

// warmer brings the kinds of one member into memory and takes them out again. Each kind has a goroutine of its own; none
// waits for another.
type warmer struct {
	member  string
	scheme  *runtime.Scheme
	config  *rest.Config
	client  *http.Client // over the informers' transport
	prober  *prober
	mapper  *mapper
	timeout time.Duration // for one attempt at one kind
	retry   wait.Backoff
	changed func() // called after each change of a kind, outside all locks

	warmings atomic.Uint64 // how often a kind became warm
}

// keep warms k, and again whenever it is lost, until ctx ends.
func (w *warmer) keep(ctx context.Context, k *memberKind) {
	retry := w.retry
	for ctx.Err() == nil {
		warm, suspect, err := w.warm(ctx, k)
		if err == nil {
			w.warmings.Add(1)
			w.changed()
			retry = w.retry
			err = w.awaitLoss(ctx, k, suspect)
		}
		if ctx.Err() != nil {
			k.miss(reasonWarming)
			stop(warm)
			return
		}
		w.mapper.forget(k.gvk)
		k.miss(kindReason(err))
		stop(warm)
		w.changed()
		sleep(ctx, retry.Step())
	}
}

func stop(warm *warmCache) {
	if warm != nil {
		warm.stop()
	}
}

// warm makes one attempt: it checks that the kind is served and permitted, starts its informer, and waits for it to
// sync. The informer's later 404s and 403s arrive on suspect.
func (w *warmer) warm(ctx context.Context, k *memberKind) (warm *warmCache, suspect <-chan struct{}, err error) {
	attempt, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	if err := w.check(attempt, k); err != nil {
		return nil, nil, err
	}
	suspects := make(chan struct{}, 1)
	kindCache, err := w.newCache(k, suspects)
	if err != nil {
		return nil, nil, err
	}
	indexes := k.fieldIndexes()
	for field, extract := range indexes {
		if err := kindCache.IndexField(attempt, k.Object, field, extract); err != nil {
			return nil, nil, err
		}
	}
	warm = start(ctx, kindCache)
	if err := awaitSync(attempt, kindCache, k); err != nil {
		warm.stop()
		return nil, nil, err
	}
	if err := k.engage(ctx, warm, indexes); err != nil {
		warm.stop()
		return nil, nil, err
	}
	return warm, suspects, nil
}

// newCache makes the cache of one kind. It needs nothing from the member: the mapping is known from check.
func (w *warmer) newCache(k *memberKind, suspects chan<- struct{}) (cache.Cache, error) {
	return cache.New(w.config, cache.Options{
		HTTPClient:                  w.client,
		Scheme:                      w.scheme,
		Mapper:                      w.mapper,
		DefaultLabelSelector:        k.Labels,
		DefaultFieldSelector:        k.Fields,
		DefaultTransform:            trim(k.Keep),
		ReaderFailOnMissingInformer: true,
		NewInformer:                 newQuietInformer,
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			// The default would log what the member said. What matters of it is whether the kind is gone.
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				select {
				case suspects <- struct{}{}:
				default:
				}
			}
		},
	})
}

// quietInformer logs nothing: what client-go's reflectors log is what the member said, and whether the kind is cached is
// in the member's status.
type quietInformer struct{ toolscache.SharedIndexInformer }

func newQuietInformer(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return quietInformer{toolscache.NewSharedIndexInformer(lw, o, resync, indexers)}
}

// RunWithContext runs the informer without a logger.
func (i quietInformer) RunWithContext(ctx context.Context) {
	i.SharedIndexInformer.RunWithContext(logr.NewContext(ctx, logr.Discard()))
}

// start runs kindCache until ctx ends or it is stopped.
func start(ctx context.Context, kindCache cache.Cache) *warmCache {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = kindCache.Start(ctx) // fails only when it is started twice
	}()
	return &warmCache{
		Cache: kindCache,
		done:  make(chan struct{}),
		stop: func() {
			cancel()
			<-stopped
		},
	}
}

// awaitSync starts the informer of k in kindCache and waits for it.
func awaitSync(ctx context.Context, kindCache cache.Cache, k *memberKind) error {
	informer, err := kindCache.GetInformer(ctx, k.Object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		return informer.HasSynced(), nil
	})
}

// awaitLoss returns when the member has said persistently that the kind is gone or forbidden (the error tells which), or
// when ctx ends. An informer whose kind is gone goes on serving what it had.
func (w *warmer) awaitLoss(ctx context.Context, k *memberKind, suspect <-chan struct{}) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-suspect:
		}
		if err := w.confirmLoss(ctx, k); err != nil {
			return err
		}
	}
}

// confirmLoss returns an error when the kind is lost.
func (w *warmer) confirmLoss(ctx context.Context, k *memberKind) error {
	pause := w.retry
	for i := 1; ; i++ {
		err := w.check(ctx, k)
		if reason := kindReason(err); reason != reasonNotFound && reason != reasonForbidden {
			return nil
		}
		if i == confirmations {
			return err
		}
		sleep(ctx, pause.Step())
	}
}

// check asks whether the member serves k and lets it be listed and watched.
func (w *warmer) check(ctx context.Context, k *memberKind) error {
	mapping, err := w.mapper.resolve(ctx, k.gvk)
	if err != nil {
		return err
	}
	if err := w.prober.listOne(ctx, mapping.Resource, k.Fields); err != nil {
		return err
	}
	watch := Access{Group: mapping.Resource.Group, Resource: mapping.Resource.Resource}
	if k.Fields != nil { // a rule may allow a single object, by its name
		watch.Name, _ = k.Fields.RequiresExactMatch(metav1.ObjectNameField)
	}
	if allowed, err := w.prober.allowed(ctx, watch, "watch"); err == nil && !allowed {
		return apierrors.NewForbidden(mapping.Resource.GroupResource(), "", errors.New("watch"))
	}
	return nil
}

// kindReason is the word for why a kind is not cached.
func kindReason(err error) string {
	switch {
	case err == nil:
		return ""
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return reasonNotFound
	case apierrors.IsForbidden(err):
		return reasonForbidden
	case errors.As(err, new(apierrors.APIStatus)):
		return reasonFailed
	}
	return classify(err).reason
}

// sleep waits for d or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
