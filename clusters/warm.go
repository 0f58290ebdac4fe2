package clusters

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/caching"
	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
	"github.com/plimsoll-dev/plimsoll/internal/notify"
)

// confirmations is how often in a row a member has to say that a cached kind is gone or forbidden before it is
// disengaged. API servers say so for a moment when they start.
const confirmations = 3

// warmer brings the kinds of one member into memory and takes them out again. Each kind has a goroutine of its own; none
// waits for another.
type warmer struct {
	member string
	scheme *runtime.Scheme
	config *rest.Config
	wire   http.RoundTripper // the informers' transport
	prober *prober
	mapper *mapper
	// namespaces that the member is registered for; nil: the whole cluster
	namespaces []string
	budget     *intake.MemberBudget
	log        *slog.Logger
	timeout    time.Duration // for one attempt at one kind
	retry      wait.Backoff
	changed    func() // called after each change of a kind, outside all locks
	defined    func(group string)

	warmings atomic.Uint64 // how often a kind became warm
}

// keep warms k, and again whenever it is lost, until ctx ends.
func (w *warmer) keep(ctx context.Context, k *memberKind) {
	retry, excess := w.retry, newSpacing(w.retry)
	var former *warmCache // serves on while one of other namespaces is filled
	for ctx.Err() == nil {
		warm, suspect, err := w.warm(ctx, k)
		if err == nil {
			stop(former)
			former = nil
			w.warmings.Add(1)
			w.changed()
			retry = w.retry
			began := time.Now()
			err = w.awaitLoss(ctx, k, warm, suspect)
			excess.lasted(time.Since(began))
		}
		if ctx.Err() == nil && errors.Is(err, errOtherNamespaces) {
			former = warm
			continue
		}
		w.mapper.forget(k.gvk)
		k.miss(kindReason(err))
		stop(warm)
		stop(former)
		former = nil
		if ctx.Err() != nil {
			break
		}
		w.changed()
		if errors.Is(err, intake.ErrTooLarge) || errors.Is(err, intake.ErrUnreadable) {
			w.log.Warn("a kind is not cached: the member sends more than is allowed, or what cannot be read", "member", w.member, "kind", k.name, "error", err)
			sleep(ctx, excess.next())
			continue
		}
		w.pause(ctx, k, &retry)
	}
	k.miss(reasonWarming)
	stop(former)
}

// excessPatience is how many times longer the pauses become after a member sent too much of a kind, or became another cluster, than after other faults,
// as each attempt costs what is allowed.
const excessPatience = 10

// errOtherNamespaces ends the use of a cache in favour of one that holds more namespaces, or fewer.
var errOtherNamespaces = errors.New("the namespaces that the member lets be watched have changed")

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
	scopes, err := w.check(attempt, k)
	if err != nil {
		return nil, nil, err
	}
	suspects, broken := notify.New(), notify.New()
	budget := intake.NewKindBudget(w.budget)
	kindCache, watches, err := w.newCache(attempt, k, scopes, budget, suspects, broken)
	if err != nil {
		return nil, nil, err
	}
	indexes := k.fieldIndexes()
	for _, field := range slices.Sorted(maps.Keys(indexes)) {
		if err := kindCache.IndexField(attempt, k.Object, field, indexes[field]); err != nil {
			return nil, nil, err
		}
	}
	warm = start(ctx, kindCache, budget)
	warm.scopes, warm.watches, warm.broken = scopes, watches, broken
	if err := awaitSync(attempt, warm, k); err != nil {
		warm.stop()
		return nil, nil, err
	}
	if err := w.followDefinitions(attempt, k, warm); err != nil {
		warm.stop()
		return nil, nil, err
	}
	if err := k.engage(ctx, warm, indexes); err != nil {
		warm.stop()
		return nil, nil, err
	}
	return warm, suspects, nil
}

// newCache creates the cache of one kind, with a part and a watch for each scope. It needs nothing from the member: the mapping
// is known from check.
func (w *warmer) newCache(ctx context.Context, k *memberKind, scopes []scope, budget *intake.KindBudget, suspects, broken notify.Wake) (cache.Cache, []*watchState, error) {
	watches := make([]*watchState, len(scopes))
	for i := range watches {
		watches[i] = newWatchState(w.changed)
	}
	if len(scopes) == 1 && scopes[0].part == "" {
		only, err := w.newPart(k, scopes[0], watches[0], budget, suspects, broken)
		return only, watches, err
	}
	mapping, err := w.mapper.resolve(ctx, k.gvk)
	if err != nil {
		return nil, nil, err
	}
	parts := make(map[string]cache.Cache, len(scopes))
	for i, in := range scopes {
		if parts[in.part], err = w.newPart(k, in, watches[i], budget, suspects, broken); err != nil {
			return nil, nil, err
		}
	}
	return caching.NewParted(mapping.Resource.GroupResource(), k.byName(), parts), watches, nil
}

// newPart creates the cache of one scope of a kind. What comes is trimmed by its meter.
func (w *warmer) newPart(k *memberKind, in scope, watch *watchState, budget *intake.KindBudget, suspects, broken notify.Wake) (cache.Cache, error) {
	keep := caching.Guarded(caching.Trim(k.Keep), w.panicked(k, broken))
	return cache.New(w.config, cache.Options{
		HTTPClient:                  httpClient(&watching{next: w.wire, state: watch}),
		Scheme:                      w.scheme,
		Mapper:                      w.mapper,
		DefaultLabelSelector:        k.Labels,
		DefaultFieldSelector:        in.selector(),
		ReaderFailOnMissingInformer: true,
		NewInformer: func(lw toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			return newQuietInformer(intake.NewMeter(lw, budget, keep), o, resync, indexers)
		},
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			// The default would log what the member said. What matters of it is whether the kind is gone.
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
				suspects.Signal()
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
func start(ctx context.Context, kindCache cache.Cache, budget *intake.KindBudget) *warmCache {
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = kindCache.Start(ctx) // fails only when it is started twice
	}()
	return &warmCache{
		Cache:  kindCache,
		budget: budget,
		done:   make(chan struct{}),
		stop: func() {
			cancel()
			<-stopped
			budget.Release()
		},
	}
}

// panicked makes the function that is notified when an object of k cannot be trimmed. Of the panic's value it logs what the
// runtime says and nothing else, for that may be something that the member said.
func (w *warmer) panicked(k *memberKind, broken notify.Wake) func(any, any) {
	return func(in, p any) {
		name, said := "", fmt.Sprintf("%T", p)
		if object, ok := in.(client.Object); ok {
			name = client.ObjectKeyFromObject(object).String()
		}
		if err, ok := p.(goruntime.Error); ok {
			said = err.Error()
		}
		w.log.Error("trimming an object panicked: its kind is not cached", "member", w.member, "kind", k.name, "object", name,
			"panic", said, "stack", string(debug.Stack()))
		broken.Signal()
	}
}

// awaitSync starts the informer of k in its cache and waits for it.
func awaitSync(ctx context.Context, warm *warmCache, k *memberKind) error {
	informer, err := warm.GetInformer(ctx, k.Object, cache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		select {
		case err := <-warm.budget.Exceeded:
			return false, err
		case <-warm.broken:
			return false, caching.ErrKeepPanicked
		default:
			return informer.HasSynced(), nil
		}
	})
}

// awaitLoss returns when the member has sent too much of the kind, has said persistently that the kind is gone or forbidden (the error says which), or
// lets other namespaces of it be watched than the cache holds (errOtherNamespaces), or when ctx ends. An informer whose kind
// is gone keeps serving what it had.
func (w *warmer) awaitLoss(ctx context.Context, k *memberKind, warm *warmCache, suspect <-chan struct{}) error {
	again := w.retry
	for {
		var incomplete <-chan time.Time // no event says when a namespace that is not there comes
		wanted := len(w.namespaces)
		if k.Names != nil {
			wanted = len(k.Names)
		}
		if len(warm.scopes) > 0 && warm.scopes[0].part != "" && len(warm.scopes) < wanted {
			incomplete = time.After(again.Step())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-warm.budget.Exceeded:
			return err
		case <-warm.broken:
			return caching.ErrKeepPanicked
		case <-suspect:
		case <-incomplete:
		}
		if err := w.confirmLoss(ctx, k, warm); err != nil {
			return err
		}
	}
}

// confirmLoss returns an error when the kind is lost, or is no more, or not only, to be had where the cache holds it.
func (w *warmer) confirmLoss(ctx context.Context, k *memberKind, warm *warmCache) error {
	pause := w.retry
	for i := 1; ; i++ {
		scopes, err := w.check(ctx, k)
		switch reason := kindReason(err); {
		case err == nil && sameParts(scopes, warm.scopes):
			return nil
		case err != nil && reason != reasonNotFound && reason != reasonForbidden:
			return nil
		case i == confirmations && err == nil:
			return errOtherNamespaces
		case i == confirmations:
			return err
		}
		sleep(ctx, pause.Step())
	}
}

// check asks whether the member serves k and where it lets it be listed and watched. Of a member that is registered for
// named namespaces, those that it forbids are left out, as long as there is another; that they are missing is reported by the
// access reviews.
func (w *warmer) check(ctx context.Context, k *memberKind) (permitted []scope, err error) {
	mapping, err := w.mapper.resolve(ctx, k.gvk)
	if err != nil {
		return nil, err
	}
	var forbidden error
	for _, in := range scopesOf(k.declaredKind, mapping, w.namespaces) {
		switch err := w.checkScope(ctx, k, mapping.Resource, in); {
		case err == nil:
			permitted = append(permitted, in)
		case apierrors.IsForbidden(err):
			forbidden = err
		default:
			return nil, err
		}
	}
	if len(permitted) == 0 {
		return nil, forbidden
	}
	return permitted, nil
}

// checkScope asks whether a kind may be watched, and with a list of one whether it may be listed and that works. An optional
// kind is not listed before both are known to be permitted: members may do without such kinds, and are asked again and again.
func (w *warmer) checkScope(ctx context.Context, k *memberKind, resource schema.GroupVersionResource, in scope) error {
	asked := question{Access{Group: resource.Group, Resource: resource.Resource, Name: in.object()}, in.namespace}
	may := func(verb string) error {
		if allowed, err := w.prober.allowed(ctx, asked, verb); err == nil && !allowed {
			return apierrors.NewForbidden(resource.GroupResource(), "", errors.New(verb))
		}
		return nil
	}
	if k.Optional || k.Companion {
		for _, verb := range []string{"list", "watch"} {
			if err := may(verb); err != nil {
				return err
			}
		}
		return w.prober.listOne(ctx, resource, in)
	}
	if err := w.prober.listOne(ctx, resource, in); err != nil {
		return err
	}
	return may("watch")
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
	case errors.Is(err, intake.ErrTooLarge):
		return reasonTooLarge
	case errors.Is(err, intake.ErrUnreadable):
		return reasonUnreadable
	case errors.As(err, new(apierrors.APIStatus)), errors.Is(err, caching.ErrKeepPanicked):
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
