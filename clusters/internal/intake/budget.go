package intake

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// MemberBudget is what the caches of one member may hold together, and those of one of its kinds.
type MemberBudget struct {
	bytes     int64
	kindBytes int64
	objects   int // of one kind
	Used      atomic.Int64
	lists     Decodes // holds something for each list that is being read
	fleet     *FleetBudget

	mu    sync.Mutex
	kinds map[*KindBudget]struct{} // whose caches hold something
}

// NewMemberBudget returns the budget of a member: bytes of all caches together, kindBytes and objects of one kind. fleet is what all members
// have; nil: no limit.
func NewMemberBudget(fleet *FleetBudget, bytes, kindBytes int64, objects int) *MemberBudget {
	return &MemberBudget{
		fleet: fleet, bytes: bytes, kindBytes: min(kindBytes, bytes), objects: objects, lists: NewDecodes(listsAtOnce),
		kinds: map[*KindBudget]struct{}{},
	}
}

// largest returns the kind whose caches take the most; nil: none takes anything.
func (b *MemberBudget) largest() (most *KindBudget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for kind := range b.kinds {
		if most == nil || kind.used.Load() > most.used.Load() {
			most = kind
		}
	}
	return most
}

func (b *MemberBudget) hold(kind *KindBudget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kinds[kind] = struct{}{}
}

func (b *MemberBudget) forget(kind *KindBudget) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kinds, kind)
}

// KindBudget is notified when a kind exceeds what is allowed, by the transport and by its meters.
type KindBudget struct {
	of       *MemberBudget
	used     atomic.Int64 // by the kind
	Exceeded chan error   // holds the first excess
	meters   []*Meter
}

// NewKindBudget returns the part of one kind in a member's budget.
func NewKindBudget(of *MemberBudget) *KindBudget {
	return &KindBudget{of: of, Exceeded: make(chan error, 1)}
}

// Used returns about how many bytes the kind's caches take.
func (b *KindBudget) Used() int64 { return b.used.Load() }

// add takes account of bytes that came, or went if they are negative, and returns an error that says what is exceeded.
func (b *KindBudget) add(bytes int64) error {
	kind, member := b.used.Add(bytes), b.of.Used.Add(bytes)
	if kind == bytes && bytes > 0 { // the first that it holds
		b.of.hold(b)
	}
	b.of.fleet.add(bytes)
	switch {
	case kind > b.of.kindBytes:
		return fmt.Errorf("%w: with it the cache of the kind takes more than %d bytes", ErrTooLarge, b.of.kindBytes)
	case member > b.of.bytes:
		return fmt.Errorf("%w: with it the caches of the member take more than %d bytes", ErrTooLarge, b.of.bytes)
	}
	return nil
}

type kindBudgetKey struct{}

// report passes an excess on to the kind whose request it is.
func report(ctx context.Context, excess error) {
	if b, ok := ctx.Value(kindBudgetKey{}).(*KindBudget); ok {
		b.report(excess)
	}
}

func (b *KindBudget) report(excess error) {
	select {
	case b.Exceeded <- excess:
	default:
	}
}

// Release gives back what the kind's caches held. They must have been stopped.
func (b *KindBudget) Release() {
	for _, m := range b.meters {
		m.release()
	}
	b.of.forget(b)
	b.of.fleet.relieved(b)
}

// Meter stands between an informer and its member: it trims what comes at once, so that no list is held whole, and keeps
// account of what the cache holds. A list or a watch that exceeds the budget ends, and the kind's budget is notified.
type Meter struct {
	toolscache.ListerWatcherWithContext
	budget *KindBudget
	trim   toolscache.TransformFunc

	mu       sync.Mutex
	seed     maphash.Seed
	held     generation
	coming   *generation // a list that is being read; nil: none
	short    int         // pages of it that have few objects
	released bool
}

// generation is the objects of one list and of the events since, by a hash of their names.
type generation struct {
	sizes map[uint64]uint32
	bytes int64
}

// NewMeter returns a meter that charges budget for what comes from of, trimmed by trim.
func NewMeter(of toolscache.ListerWatcher, budget *KindBudget, trim toolscache.TransformFunc) *Meter {
	m := &Meter{
		ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(of), budget: budget, trim: trim, seed: maphash.MakeSeed(),
		held: generation{sizes: map[uint64]uint32{}},
	}
	budget.meters = append(budget.meters, m)
	return m
}

// List is needed by an interface of client-go, which calls the one with a context.
func (m *Meter) List(options metav1.ListOptions) (runtime.Object, error) {
	return m.ListWithContext(context.Background(), options)
}

// Watch is needed by an interface of client-go, which calls the one with a context.
func (m *Meter) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return m.WatchWithContext(context.Background(), options)
}

// ListWithContext reads one page. The first is asked for as it is now and not as a cache of the server has it, because
// servers give what they have cached whole.
func (m *Meter) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
	select {
	case m.budget.of.lists <- struct{}{}:
		defer func() { <-m.budget.of.lists }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	list, err := m.page(ctx, options)
	if err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	if options.Continue == "" {
		m.begin()
	}
	if err := m.countPage(list, len(items)); err != nil {
		m.budget.report(err)
		return nil, err
	}
	for i := range items {
		if err := m.check(items[i]); err != nil {
			return nil, err
		}
		if items[i], err = m.take(items[i], true); err != nil {
			return nil, err
		}
	}
	return list, meta.SetList(list, items)
}

const (
	// smallestPage is the least number of objects for which a page is asked, and maxShort how many pages of one list may have fewer and
	// not be the last: an API server may leave objects out of a page by their labels.
	smallestPage = 5
	maxShort     = 1000
)

// countPage takes account of a page of so many objects. Pages of few objects without end cost the processor, and what the objects take
// bounds their number only late or never.
func (m *Meter) countPage(list runtime.Object, objects int) error {
	page, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	if err := CheckList(page); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if objects < smallestPage && page.GetContinue() != "" {
		m.short++
	}
	if m.short > maxShort {
		return fmt.Errorf("a list: %w: more than %d of its pages have fewer than %d objects", ErrUnreadable, maxShort, smallestPage)
	}
	return nil
}

// onePage reads a page, which has its turn until it is decoded.
func (m *Meter) onePage(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	ctx, done := Call(ctx)
	defer done()
	return m.ListerWatcherWithContext.ListWithContext(ctx, options)
}

// pageShrink is by what a page is divided that is too large, as of objects of a MiB each.
const pageShrink = 10

// page reads a page with fewer and fewer objects until it is no longer too large. The kind's budget is notified of what even the
// smallest page exceeds.
func (m *Meter) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	for ; ; options.Limit /= pageShrink {
		tried := NewKindBudget(m.budget.of)
		list, err := m.onePage(context.WithValue(ctx, kindBudgetKey{}, tried), options)
		if err != nil && errors.Is(err, ErrTooLarge) && options.Limit >= pageShrink {
			continue
		}
		select {
		case excess := <-tried.Exceeded:
			m.budget.report(excess)
		default:
		}
		return list, err
	}
}

// WatchWithContext follows a list, or brings one as events.
func (m *Meter) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := m.ListerWatcherWithContext.WatchWithContext(context.WithValue(ctx, kindBudgetKey{}, m.budget), options)
	if err != nil {
		return nil, err
	}
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		m.begin()
	} else {
		m.commit()
	}
	return newMeteredWatch(events, m.event), nil
}

// event takes account of an event. One that exceeds the budget is dropped: the whole cache is about to be.
func (m *Meter) event(e watch.Event) (watch.Event, bool) {
	if err := m.check(e.Object); err != nil {
		return e, false
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		object, err := m.take(e.Object, false)
		e.Object = object
		return e, err == nil
	case watch.Deleted:
		m.drop(e.Object)
		if object, err := m.trimmed(e.Object); err == nil {
			e.Object = object
		}
	case watch.Bookmark:
		if object, err := meta.Accessor(e.Object); err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			m.commit()
		}
	}
	return e, true
}

// check notifies the budget of an object that no API server would have sent. A bookmark is checked too: what follows a watch sends its
// resource version back.
func (m *Meter) check(object runtime.Object) error {
	of, ok := object.(client.Object)
	if !ok {
		return nil
	}
	err := CheckObject(of)
	if err != nil {
		m.budget.report(err)
	}
	return err
}

func (m *Meter) trimmed(object runtime.Object) (runtime.Object, error) {
	trimmed, err := m.trim(object)
	if err != nil {
		return nil, err
	}
	return trimmed.(runtime.Object), nil
}

// begin starts a new list.
func (m *Meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.coming != nil {
		_ = m.budget.add(-m.coming.bytes)
	}
	m.coming, m.short = &generation{sizes: map[uint64]uint32{}}, 0
}

// commit puts the list that was read in the place of what was held.
func (m *Meter) commit() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.coming != nil {
		_ = m.budget.add(-m.held.bytes)
		m.held, m.coming = *m.coming, nil
	}
}

// take trims an object and accounts for it. Where it is listed, its list must not have another of its name: whoever reads the list
// keeps both, and pages that repeat themselves would never end.
func (m *Meter) take(object runtime.Object, listed bool) (runtime.Object, error) {
	trimmed, err := m.trimmed(object)
	if err != nil {
		return nil, err
	}
	of, ok := trimmed.(client.Object)
	if !ok {
		return trimmed, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	into := &m.held
	if m.coming != nil {
		into = m.coming
	}
	if m.released {
		return trimmed, nil
	}
	key, size := m.key(of), weigh(of)
	before, known := into.sizes[key]
	if listed && known {
		err := fmt.Errorf("a list: %w: it has two objects of one name", ErrUnreadable)
		m.budget.report(err)
		return nil, err
	}
	grown := int64(size) - int64(before)
	into.sizes[key] = size
	into.bytes += grown
	err = m.budget.add(grown)
	if len(into.sizes) > m.budget.of.objects {
		err = fmt.Errorf("%w: more than %d objects", ErrTooLarge, m.budget.of.objects)
	}
	if err == nil {
		return trimmed, nil
	}
	m.budget.report(err)
	return nil, err
}

func (m *Meter) drop(object runtime.Object) {
	of, ok := object.(client.Object)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key := m.key(of)
	for _, g := range []*generation{&m.held, m.coming} {
		if g == nil || m.released {
			continue
		}
		size := int64(g.sizes[key])
		delete(g.sizes, key)
		g.bytes -= size
		_ = m.budget.add(-size)
	}
}

func (m *Meter) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.released {
		return
	}
	m.released = true
	_ = m.budget.add(-m.held.bytes)
	if m.coming != nil {
		_ = m.budget.add(-m.coming.bytes)
	}
	m.held, m.coming = generation{}, nil
}

func (m *Meter) key(of client.Object) uint64 {
	return maphash.Comparable(m.seed, types.NamespacedName{Namespace: of.GetNamespace(), Name: of.GetName()})
}
