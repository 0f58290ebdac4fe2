package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/plimsoll-dev/plimsoll/client"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

const (
	// reopenAfter is how long to wait before a watch that broke off is opened again.
	reopenAfter = time.Second
	// membersUnread is the reason of a replica's error until it knows all members, a moment after its start.
	membersUnread = "MEMBERS_UNREAD"
)

// followed is what one watch of the hub's API shows of the members that are being registered. Safe for concurrent use, but for stop.
type followed struct {
	open  func(ctx context.Context) (*memberWatch, error)
	end   context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex
	members map[string]*plimsollv1.Cluster
	changed chan struct{} // closed and replaced with each message
	failed  error         // why nothing more will come
}

// memberWatch is one stream of the API, and what has to be closed with it.
type memberWatch struct {
	stream grpc.ServerStreamingClient[plimsollv1.WatchClustersResponse]
	cancel context.CancelFunc
	api    *connection.Client
}

func (w *memberWatch) close() {
	w.cancel()
	w.api.Close()
}

// follow begins to watch members, if the command is to wait for them; nil: it is not. When the API does not answer, or the caller may not
// list clusters, that is an error now, before anything is registered.
func (r *registering) follow(ctx context.Context, hub *enroll.Context, names ...string) (*followed, error) {
	if !r.wait {
		return nil, nil
	}
	r.api.Hub = connection.HubFlags{Kubeconfig: hub.File, Context: hub.Name}
	ctx, cancel := context.WithCancel(ctx)
	f := &followed{end: cancel, ended: make(chan struct{}), members: map[string]*plimsollv1.Cluster{}, changed: make(chan struct{})}
	f.open = func(ctx context.Context) (*memberWatch, error) { return openWatch(ctx, r.api, names) }
	first, err := f.begin(ctx, r.timeout)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("--wait: watch members in the hub's API, nothing is changed: %w", err)
	}
	go f.run(ctx, first)
	return f, nil
}

// stop ends the watch. nil is not watched.
func (f *followed) stop() {
	if f == nil {
		return
	}
	f.end()
	<-f.ended
}

// openWatch opens the API, and a watch of these members.
func openWatch(ctx context.Context, conn *connection.Options, names []string) (*memberWatch, error) {
	api, err := conn.Open(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	filter := `cluster.name in ["` + strings.Join(names, `", "`) + `"]` // names are DNS labels
	stream, err := plimsollv1.NewClusterServiceClient(api).WatchClusters(api.WithToken(ctx), &plimsollv1.WatchClustersRequest{Filter: filter})
	w := &memberWatch{stream, cancel, api}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// sync opens the watch, and returns when it has shown all that is there. limit bounds it; 0: ctx does.
func (f *followed) sync(ctx context.Context, limit time.Duration) (*memberWatch, error) {
	w, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	var late *time.Timer
	if limit > 0 {
		late = time.AfterFunc(limit, w.cancel)
		defer late.Stop()
	}
	for {
		message, err := w.stream.Recv()
		if err != nil {
			w.close()
			if late != nil && !late.Stop() {
				err = fmt.Errorf("it does not answer within %s: %w", limit, context.DeadlineExceeded)
			}
			return nil, err
		}
		if f.take(message); message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
			return w, nil
		}
	}
}

// begin is sync for the first time. A replica that has just started and has not read all registrations is asked again, until limit is over;
// 0: until ctx ends.
func (f *followed) begin(ctx context.Context, limit time.Duration) (*memberWatch, error) {
	for began := time.Now(); ; {
		w, err := f.sync(ctx, limit)
		if client.ReasonOf(err) != membersUnread || limit > 0 && time.Since(began) >= limit {
			return w, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(reopenAfter):
		}
	}
}

// run takes messages until ctx ends, and opens the watch again when it breaks off: replicas of the hub come and go.
func (f *followed) run(ctx context.Context, w *memberWatch) {
	defer close(f.ended)
	for {
		var err error
		for w != nil && err == nil {
			var message *plimsollv1.WatchClustersResponse
			if message, err = w.stream.Recv(); err == nil {
				f.take(message)
			}
		}
		if w != nil {
			w.close()
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil && !passes(err) {
			f.fail(err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reopenAfter):
		}
		if w, err = f.sync(ctx, 0); err != nil && !passes(err) && ctx.Err() == nil {
			f.fail(err)
			return
		}
	}
}

// passes reports whether a watch may be opened again after an error.
func passes(err error) bool {
	var found *connection.HintedError
	return errors.Is(err, io.EOF) || status.Code(err) == codes.Unavailable || errors.As(err, &found) // no pod of the hub is ready
}

// take notes what a message shows.
func (f *followed) take(message *plimsollv1.WatchClustersResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	member := message.GetCluster()
	switch message.GetType() {
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT:
		f.members[member.GetName()] = member
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED:
		delete(f.members, member.GetName())
	case plimsollv1.WatchEventType_WATCH_EVENT_TYPE_RESYNC:
		clear(f.members)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *followed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
	close(f.changed)
	f.changed = make(chan struct{})
}

// ready waits until the hub works in a member with the registration Secret of that resourceVersion. It ends early when the hub refuses the
// Secret, which waiting does not change. The error names the member and what is wrong with it.
func (f *followed) ready(ctx context.Context, name, version string) error {
	for {
		f.mu.Lock()
		member, changed, failed := f.members[name], f.changed, f.failed
		f.mu.Unlock()
		ready, refused := joined(member, version)
		switch {
		case ready:
			return nil
		case refused:
			return notReady(name, member, version)
		case failed != nil:
			return fmt.Errorf("%s is registered, but the watch of the hub's API failed: %w", name, failed)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return notReady(name, member, version)
		}
	}
}

// joined reports whether a member is ready with the registration Secret of a resourceVersion, and whether the hub refuses that Secret.
func joined(member *plimsollv1.Cluster, version string) (ready, refused bool) {
	if !observed(member, version) {
		return false, false
	}
	accepted := conditionOf(member, "Accepted").GetStatus()
	ready = member.GetState() == plimsollv1.ClusterState_CLUSTER_STATE_READY && accepted == "True"
	return ready, member.GetState() == plimsollv1.ClusterState_CLUSTER_STATE_REFUSED && accepted == "False"
}

// observed reports whether what the hub says of a member is about the Secret of that resourceVersion, or a later one. An older hub does not
// say which one it is about.
func observed(member *plimsollv1.Cluster, version string) bool {
	if member == nil || member.GetRegistrationVersion() == "" {
		return member != nil
	}
	order, err := resourceversion.CompareResourceVersion(member.GetRegistrationVersion(), version)
	return err == nil && order >= 0 || member.GetRegistrationVersion() == version
}

func conditionOf(member *plimsollv1.Cluster, kind string) *plimsollv1.Condition {
	for _, is := range member.GetConditions() {
		if is.GetType() == kind {
			return is
		}
	}
	return nil
}

// behindState are the conditions that a member's state follows from, in the order in which a connection is made.
var behindState = []string{"Accepted", "Reachable", "Warm", "Permitted", "Current"}

// notReady is the error about a member that is registered and not ready, with what to do about it as a hint.
func notReady(name string, member *plimsollv1.Cluster, version string) error {
	if !observed(member, version) {
		return &connection.HintedError{
			Cause: &operationError{fmt.Sprintf("%s is registered, but not ready: the hub has not read its registration", name)},
			Hint:  "check that the hub's registrations.namespace is the one of --registration-namespace, and see the hub's log",
		}
	}
	says := fmt.Sprintf("%s is registered, but not ready: it is %s, %s", name, word(member.GetState(), "CLUSTER_STATE_"), reasonOf(member.GetReason(), member.GetMessage()))
	for _, status := range []string{"False", "Unknown"} {
		for _, kind := range behindState {
			if is := conditionOf(member, kind); is.GetStatus() == status {
				says = fmt.Sprintf("%s is registered, but not ready: it is %s: condition %s is %s, %s", name, word(member.GetState(), "CLUSTER_STATE_"),
					kind, status, reasonOf(is.GetReason(), is.GetMessage()))
				return &connection.HintedError{Cause: &operationError{plain(says)}, Hint: remedies[kind]}
			}
		}
	}
	return &operationError{plain(says)}
}
