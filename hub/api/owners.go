package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/clusters"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/apierror"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/limits"
	"github.com/plimsoll-dev/plimsoll/internal/shares"
)

// core is what all services share.
type core struct {
	members   Members
	workloads Workloads
	objects   Objects
	ownership Ownership
	events    Events
	fleet     Fleet    // nil: fleet placement is off
	batches   *Batches // nil: the services have their own
	peers     Peers    // nil: another replica asks, and nothing is passed on any further
	rights    access
	filters   *limits.Budgets // what lists of callers and their filters may cost here
	watches   *limits.Budgets // what filters of their watches may cost; nil: nothing is bounded
	ordered   *shares.Places  // lists in an order under way; nil: any number
	questions *limits.Questions
	timeout   time.Duration   // for one answer of another replica
	stopping  context.Context // ends when this replica stops
	recheck   time.Duration   // see [Options.RecheckEvery]
	log       *slog.Logger
}

// question is asked of the replica that owns a member, and answered by a T.
type question[T any] struct {
	// order is set when something is to be done and not only read.
	order bool
	// local answers it here.
	local func() (T, error)
	// remote asks the replica behind conn.
	remote func(ctx context.Context, conn grpc.ClientConnInterface) (T, error)
	// patience is added to the timeout.
	patience time.Duration
	// failed remembers owners that did not answer in the same call, or in the same look at members for watches, so that each costs the
	// timeout once. May be nil.
	failed *failures
}

// pass makes a question's remote: it hands a request on as it is, by a method of a service's client.
func pass[C, Q, A any](
	client func(grpc.ClientConnInterface) C, method func(C, context.Context, Q, ...grpc.CallOption) (A, error), request Q, opts ...grpc.CallOption,
) func(context.Context, grpc.ClientConnInterface) (A, error) {
	return func(ctx context.Context, conn grpc.ClientConnInterface) (A, error) {
		return method(client(conn), ctx, request, opts...)
	}
}

// unreachable says why nobody can answer for a member now. To a caller it is UNAVAILABLE.
type unreachable struct{ member, reason string }

func (e *unreachable) Error() string { return fmt.Sprintf("member %q: %s", e.member, e.reason) }

// GRPCStatus makes it a status.
func (e *unreachable) GRPCStatus() *status.Status {
	return apierror.WithReason(status.New(codes.Unavailable, e.Error()), "MEMBER_UNAVAILABLE", map[string]string{"member": e.member})
}

// failures are owners that did not answer.
type failures struct {
	mu     sync.Mutex
	reason map[string]string // by owner
}

func (f *failures) of(owner string) string {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reason[owner]
}

func (f *failures) note(owner, reason string) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reason == nil {
		f.reason = map[string]string{}
	}
	f.reason[owner] = reason
}

// member returns the status of a member, or NOT_FOUND; UNAVAILABLE while this replica does not know all members.
func (c *core) member(name string) (clusters.Status, error) {
	unknown := c.knowsMembers() // before the question, so that "no" is known to be true
	known, ok := c.members.Status(name)
	switch {
	case ok:
		return known, nil
	case unknown != nil:
		return clusters.Status{}, unknown
	}
	return clusters.Status{}, apierror.NoMember(name)
}

// knowsMembers is UNAVAILABLE while this replica does not know all members: a list would leave some out.
func (c *core) knowsMembers() error {
	if c.members.Synced() {
		return nil
	}
	return apierror.WithReason(status.New(codes.Unavailable, "this replica has just started and has not read all registrations yet"), "MEMBERS_UNREAD", nil).Err()
}

// asked is the replica that is asked about a member; "": none is.
func (c *core) asked(member string) string {
	if c.ownership.Mine(member) {
		return ""
	}
	return c.ownership.Owner(member)
}

// askOwner puts a question to the owner of a member: here, or by way of its peer address. When the member changes hands
// meanwhile, the new owner is asked, once.
func askOwner[T any](ctx context.Context, c *core, member string, q question[T]) (answer T, err error) {
	for again := false; ; again = true {
		if c.ownership.Mine(member) {
			if q.order && !c.ownership.Acts(member) {
				return answer, &unreachable{member, "its owner could not renew its Lease, and no replica has taken over yet"}
			}
			return q.local()
		}
		if c.peers == nil {
			return answer, status.Errorf(codes.FailedPrecondition, "member %q: this replica does not own it", member)
		}
		owner := c.ownership.Owner(member)
		if owner == "" {
			return answer, &unreachable{member, "no replica owns it at the moment"}
		}
		answer, err = askPeer(ctx, c, member, owner, q)
		moved := c.ownership.Mine(member) || c.ownership.Owner(member) != owner
		if again || !moved || status.Code(err) != codes.Unavailable {
			return answer, err
		}
	}
}

// askPeer asks the replica at owner.
func askPeer[T any](ctx context.Context, c *core, member, owner string, q question[T]) (answer T, err error) {
	if reason := q.failed.of(owner); reason != "" {
		return answer, &unreachable{member, reason}
	}
	conn, err := c.peers.Dial(owner)
	if err != nil {
		c.log.Warn("cannot connect to another replica", "address", owner, "error", err)
		return answer, &unreachable{member, "its owner cannot be reached"}
	}
	// Whoever calls us, what they sent along ends here: their token above all.
	sent := metadata.MD{}
	if who := callerOf(ctx); who != "" {
		sent.Set(callerHeader, who)
	}
	peerCtx, cancel := context.WithTimeout(metadata.NewOutgoingContext(ctx, sent), c.timeout+q.patience)
	defer cancel()
	answer, err = q.remote(peerCtx, conn)
	return answer, c.peerError(ctx, member, owner, err, q.failed)
}

// theCallers are the reasons of errors that callers get as another replica says them.
var theCallers = []string{reasonNotAnswering, reasonBegun, reasonTooManyOrders, reasonNotPlanned, limits.FilterBudget, limits.PlanBudget}

// peerError is what the caller gets of an error of the replica at owner. Its answers about the request are the caller's to see; what went
// wrong between replicas is not.
func (c *core) peerError(ctx context.Context, member, owner string, err error, failed *failures) error {
	switch code := status.Code(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case code == codes.NotFound || code == codes.InvalidArgument:
		return err
	case slices.Contains(theCallers, apierror.ReasonOf(err)):
		return err
	case code == codes.FailedPrecondition: // nothing is wrong with that replica
		return &unreachable{member, "its owner is changing: the called replica no longer owns it"}
	case code == codes.DeadlineExceeded || code == codes.Unavailable:
		reason := "its owner does not answer"
		failed.note(owner, reason)
		c.log.Warn("another replica does not answer", "address", owner, "member", member, "error", err)
		return &unreachable{member, reason}
	default: // only a defect explains it, such as a refused certificate or a panic
		c.log.Error("another replica failed to answer", "address", owner, "member", member, "error", err)
		return &unreachable{member, "its owner failed to answer"}
	}
}

// gapOf is what a list says of a member that cannot be asked; other errors end the list.
func gapOf(err error) (string, error) {
	var nobody *unreachable
	switch {
	case errors.As(err, &nobody):
		return nobody.reason, nil
	case status.Code(err) == codes.NotFound:
		return "its owner has not read it yet", nil
	}
	return "", err
}
