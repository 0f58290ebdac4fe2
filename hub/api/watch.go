package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"

	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
)

// watchBatch is how many items a watcher takes from its feed at a time, fewPending for how many messages it keeps room.
const watchBatch, fewPending = 256, 8

// bookmarkEvery is how often a watch in which nothing happens says so.
const bookmarkEvery = 15 * time.Second

// watching is one watch.
type watching[T, R proto.Message] struct {
	*core
	by     *partition // what member names; nil: members
	feed   *feed[T]
	needs  auth.Access // without a member
	member string      // only this one; "": all
	query  []string
	token  string // to continue behind
	filter *lists.Filter
	// selects reports whether an item is one of those that were asked for, but for the filter and the member.
	selects func(T) bool
	// shown is an item as the caller may see it; nil: it is as it is. It does not change the item.
	shown func(context.Context, T) (T, error)
	// event makes a message; item may be nil.
	event func(what watchEvent, item T) R
	// nameOnly is what is shown of an item that is gone.
	nameOnly func(T) T
	// send sends messages in their order, or ends when the watch does.
	send func(context.Context, []proto.Message) error

	ctx     context.Context // ends with the watch
	epoch   string
	upTo    uint64
	known   map[*node[T]]bool // of a filtered watch: what passed
	visible map[string]bool   // nil: every member
	members string            // differs where the visible members do; see show
	synced  bool
	pending []proto.Message // to be sent next
	waited  time.Duration   // for the budget of filters, since everything was sent last
	gaps    []*plimsollv1.UnreachableMember
}

// otherMembers is why a watch starts again for a reader who was shown other members until now.
const otherMembers = "the set of visible members has changed"

// watchEvent is what all messages of watches have in common.
type watchEvent struct {
	what          plimsollv1.WatchEventType
	token, reason string
	unreachable   []*plimsollv1.UnreachableMember
}

// resumeToken is what a resume_token holds.
type resumeToken struct {
	Query   string `json:"q"`
	Members string `json:"m,omitempty"` // of whose items the reader knows
	Epoch   string `json:"e"`
	UpTo    uint64 `json:"r"`
}

// show sets the members whose items the reader is shown from now on.
func (w *watching[T, R]) show(visible map[string]bool) {
	w.visible, w.members = visible, ""
	if visible != nil {
		w.members = lists.Fingerprint(slices.Sorted(maps.Keys(visible)))
	}
}

// run serves the watch until ctx ends.
func (w *watching[T, R]) run(ctx context.Context) error {
	rights, err := w.sees(ctx)
	if err != nil {
		return err
	}
	w.show(rights)
	w.query = append(w.query, identityOf(ctx).User, identityOf(ctx).UID)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.ctx = ctx
	defer w.feed.enter(w.stopping)()
	reason, err := w.resume(ctx)
	if err != nil {
		return err
	}
	if reason != "" {
		if err := w.anew(reason); err != nil {
			return err
		}
	}
	rechecked := make(chan map[string]bool, 1)
	defer repeat(ctx, w.recheck, w.rightsCheck(ctx, cancel, rechecked))()
	bookmark := time.NewTicker(bookmarkEvery)
	defer bookmark.Stop()
	for {
		now, err := w.catchUp(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.stopping.Done():
			return status.Error(codes.Unavailable, "this replica stops: open the watch on another replica")
		case <-now.changed:
		case <-bookmark.C:
			err = w.mark(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_BOOKMARK)
		case rights := <-rechecked:
			w.show(rights)
			err = w.anew(otherMembers)
		}
		if err != nil {
			return err
		}
	}
}

// catchUp sends everything that the feed has.
func (w *watching[T, R]) catchUp(ctx context.Context) (state, error) {
	for {
		found, now, ok := w.feed.after(w.epoch, w.upTo, watchBatch)
		if !ok {
			if err := w.anew("the reader is too slow for the history of this replica"); err != nil {
				return now, err
			}
			continue
		}
		for i := range found {
			if err := w.sendItem(ctx, &found[i]); err != nil {
				_ = w.flush() // what comes before it is the reader's all the same
				return now, err
			}
		}
		if err := w.flush(); err != nil {
			return now, err
		}
		first := w.upTo == 0
		w.upTo = now.upTo
		if !now.end || ctx.Err() != nil {
			if ctx.Err() != nil {
				return now, context.Cause(ctx)
			}
			continue
		}
		w.waited = 0
		gaps := w.gapsOf(now.gaps)
		switch {
		case !now.whole:
		case !w.synced:
			w.synced, w.gaps = true, gaps
			return now, w.mark(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED)
		case !first && !slices.EqualFunc(w.gaps, gaps, func(a, b *plimsollv1.UnreachableMember) bool { return proto.Equal(a, b) }):
			w.gaps = gaps
			return now, w.mark(plimsollv1.WatchEventType_WATCH_EVENT_TYPE_BOOKMARK)
		}
		return now, nil
	}
}

// flush sends what is pending.
func (w *watching[T, R]) flush() error {
	if len(w.pending) == 0 {
		return nil
	}
	if err := w.send(w.ctx, w.pending); err != nil {
		return err
	}
	if cap(w.pending) > fewPending { // of many watches, most wait for few changes
		w.pending = nil
	}
	clear(w.pending)
	w.pending = w.pending[:0]
	return nil
}

// put is the message that sends an item.
func (w *watching[T, R]) put(s *seen[T], item T) proto.Message {
	create := func() proto.Message {
		return w.event(watchEvent{what: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT}, item)
	}
	if s.message == nil || w.shown != nil { // it is the caller's own
		return create()
	}
	return s.message.Message(create)
}

// sendItem has an item sent, if it is one of those that were asked for or the reader knows it.
func (w *watching[T, R]) sendItem(ctx context.Context, s *seen[T]) error {
	if !w.concerns(s) {
		return nil
	}
	passes, item := false, s.item
	if !s.gone {
		var err error
		if item, passes, err = w.look(ctx, s.item); err != nil {
			return err
		}
	}
	switch {
	case passes:
		if w.filter != nil {
			w.known[s.node] = true
		}
		w.pending = append(w.pending, w.put(s, item))
	case s.gone && w.filter == nil && w.upTo > 0, w.known[s.node]:
		delete(w.known, s.node)
		w.pending = append(w.pending, w.event(watchEvent{what: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED}, w.nameOnly(s.item)))
	}
	return nil
}

// look is an item as the caller may see it, and whether that passes the filter. The filter is evaluated at the expense of the caller: who
// filters much of what changes often waits, and nobody else. Watches have a budget apart from lists: what a caller owes for these, which may be
// much, neither delays a watch nor ends it.
func (w *watching[T, R]) look(ctx context.Context, item T) (seen T, passes bool, err error) {
	if w.shown != nil {
		if item, err = w.shown(ctx, item); err != nil {
			return item, false, err
		}
	}
	w.filter.Refill()
	passes, _, err = w.filter.Passes(ctx, item)
	if err != nil || w.filter == nil {
		return item, passes, err
	}
	wait := w.watches.Owe(identityOf(ctx).Share(), w.filter.Spent())
	if wait <= 0 {
		return item, passes, nil
	}
	if err = w.flush(); err == nil { // nobody has to wait for what is known
		err = limits.Sleep(ctx, wait)
	}
	if w.waited += wait; err == nil && w.waited > limits.MaxFilterWait {
		err = apierror.InvalidField("filter", "filter.cost", "costs too much to compute for all items of this watch: name a cluster or a namespace, or use fewer loops and patterns")
	}
	return item, passes, err
}

// concerns reports whether the caller may see an item and has asked for its like. A filter is only evaluated for these: its errors
// quote what it reads.
func (w *watching[T, R]) concerns(s *seen[T]) bool {
	member := s.node.at[0]
	return (w.member == "" || w.member == member) && (w.visible == nil || w.visible[member]) && w.selects(s.item)
}

// mark sends a message without an item.
func (w *watching[T, R]) mark(what plimsollv1.WatchEventType) error {
	if !w.synced {
		return nil
	}
	text, err := json.Marshal(resumeToken{Query: lists.Fingerprint(w.query), Members: w.members, Epoch: w.epoch, UpTo: w.upTo})
	if err != nil {
		return err
	}
	var none T
	w.pending = append(w.pending, w.event(watchEvent{what: what, token: base64.RawURLEncoding.EncodeToString(text), unreachable: w.gaps}, none))
	return w.flush()
}

// anew starts again, for a reason.
func (w *watching[T, R]) anew(reason string) error {
	w.epoch, w.upTo, w.synced, w.known = w.feed.begin(), 0, false, map[*node[T]]bool{}
	var none T
	w.pending = append(w.pending, w.event(watchEvent{what: plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC, reason: reason}, none))
	return w.flush()
}

// resume reads the resume_token. reason: why it cannot be gone on behind it.
func (w *watching[T, R]) resume(ctx context.Context) (reason string, err error) {
	w.epoch, w.known = w.feed.begin(), map[*node[T]]bool{}
	if w.token == "" {
		return "", nil
	}
	var token resumeToken
	text, err := base64.RawURLEncoding.DecodeString(w.token)
	if err != nil || json.Unmarshal(text, &token) != nil {
		return "", apierror.InvalidField("resume_token", "resume_token.malformed", "is not a resume_token of this API")
	}
	if token.Query != lists.Fingerprint(w.query) {
		return "", apierror.InvalidField("resume_token", "resume_token.filters", "is for a watch with other filters, or for another caller")
	}
	if token.Members != w.members {
		return otherMembers, nil
	}
	if _, _, ok := w.feed.after(token.Epoch, token.UpTo, 0); !ok || token.UpTo == 0 {
		return "the resume_token has expired or is from another replica", nil
	}
	w.upTo = token.UpTo
	if w.filter != nil {
		return "", w.recall(ctx)
	}
	return "", nil
}

// recall finds what the reader knows: what has not changed since, and passes. What has changed is not known, so that counts
// as known.
func (w *watching[T, R]) recall(ctx context.Context) error {
	for upTo := uint64(0); ; {
		found, now, ok := w.feed.after(w.epoch, upTo, watchBatch)
		if !ok {
			return nil
		}
		for i := range found {
			if !w.concerns(&found[i]) {
				continue
			}
			_, passes, err := w.look(ctx, found[i].item)
			if err != nil {
				return err
			}
			if passes || w.feed.revisionOf(found[i].node) > w.upTo {
				w.known[found[i].node] = true
			}
		}
		if upTo = now.upTo; now.end {
			return nil
		}
	}
}

// rightsCheck is a check that ends the watch when a right that it needs is gone, also while its reader reads nothing, and returns when
// there are more.
func (w *watching[T, R]) rightsCheck(ctx context.Context, end context.CancelCauseFunc, changed chan<- map[string]bool) (check func() (again bool)) {
	before, certain := w.visible, time.Now()
	return func() bool {
		rights, err := w.sees(ctx)
		if status.Code(err) == codes.Unavailable && time.Since(certain) < 2*w.recheck {
			return true // the hub cluster may answer the next time
		}
		if err == nil {
			certain, err = time.Now(), w.lost(ctx, before, rights)
		}
		if err != nil {
			end(err)
			return false
		}
		if maps.Equal(before, rights) && (before == nil) == (rights == nil) {
			return true
		}
		select {
		case changed <- rights:
			before = rights
		default: // the reader has not come to the last ones yet
		}
		return true
	}
}

// lost is PERMISSION_DENIED when one of the members that may be seen may not be seen any more.
func (w *watching[T, R]) lost(ctx context.Context, before, now map[string]bool) error {
	for member := range before {
		if parts := w.parts(w.by); now != nil && !now[member] && parts.there(member) {
			return denied(identityOf(ctx), parts.narrow(w.needs, member))
		}
	}
	if before == nil && now != nil {
		return denied(identityOf(ctx), w.needs)
	}
	return nil
}

// sees reports which members the caller may see; nil: all, or the one that was asked for.
func (w *watching[T, R]) sees(ctx context.Context) (map[string]bool, error) {
	if w.member != "" {
		return nil, w.rights.require(ctx, w.parts(w.by).narrow(w.needs, w.member))
	}
	all, err := w.rights.allowed(ctx, w.needs)
	if err != nil || all { // for whom nobody has to list the members, every few seconds in each watch
		return nil, err
	}
	members, err := candidatesOf(ctx, all, w.rights, w.needs, w.parts(w.by), "")
	if err != nil {
		return nil, err
	}
	rights := map[string]bool{}
	for members.whole(); ; {
		seen, err := members.next(ctx)
		if err != nil {
			return nil, err
		}
		if len(seen) == 0 {
			break
		}
		for _, member := range seen {
			rights[member] = true
		}
	}
	if members.denied() {
		return nil, denied(identityOf(ctx), w.needs)
	}
	if members.left() {
		return nil, apierror.InvalidField("cluster", "cluster.many", "must be set if there are many members and you may not see all")
	}
	return rights, nil
}

// gapsOf are those that concern the watch.
func (w *watching[T, R]) gapsOf(all []*plimsollv1.UnreachableMember) []*plimsollv1.UnreachableMember {
	return slices.DeleteFunc(slices.Clone(all), func(gap *plimsollv1.UnreachableMember) bool {
		return w.member != "" && gap.GetMember() != w.member || w.visible != nil && !w.visible[gap.GetMember()]
	})
}
