package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// quiet is the stream of a watch whose reader takes everything.
type quiet struct {
	objectsOf
	synced chan struct{}
}

func (q quiet) SendMsg(message any) error {
	if message, ok := message.(*plimsollv1.WatchObjectsResponse); ok && message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
		close(q.synced)
	}
	return nil
}

// With everything that is remembered on the way, and the intervals of a hub.
func TestARightThatIsTakenAwayEndsAWatchWithin30Seconds(t *testing.T) {
	for name, may := range map[string]func(user, member string) bool{
		"in all members": func(string, string) bool { return true },
		"in one":         func(_, member string) bool { return member == "prod" },
	} {
		synctest.Test(t, func(t *testing.T) {
			o, err := options(t).withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			reviews := newMemberReviews(may)
			ctx, stop := context.WithCancel(context.WithValue(t.Context(), identityKey{}, auth.Identity{User: "alice"}))
			defer stop()
			r := shop(t)
			c := r.ledgerService(t).core
			c.rights, c.stopping, c.recheck = access{authorizer: reviews, hidden: auth.NewUnlisted(), log: testLog(t)}, ctx, o.RecheckEvery
			stream, ended := quiet{objectsOf{streamOf{ctx: ctx}}, make(chan struct{})}, make(chan error, 1)
			go func() { ended <- newServices(c).objects.WatchObjects(&plimsollv1.WatchObjectsRequest{}, stream) }()
			<-stream.synced
			time.Sleep(time.Minute) // in which nothing is taken away
			select {
			case err := <-ended:
				t.Fatalf("%s: it ended by itself: %v", name, err)
			default:
			}
			reviews.takeAway()
			began := time.Now()
			err = <-ended
			if took := time.Since(began); took > 30*time.Second || status.Code(err) != codes.PermissionDenied {
				t.Errorf("%s: it ended after %s with %v", name, took, err)
			}
		})
	}
}

func TestAWatchOfTheWorkloadsOfANamespaceTellsOfNoOther(t *testing.T) {
	r := shop(t)
	r.workload("prod", "bank", "vault")
	s := serve(t, r, nil)
	s.give("tenant", auth.Access{Verb: "list", Resource: "workloads", Member: "prod", Namespace: "shop"})
	stream, err := s.workloads().WatchWorkloads(as(t, "tenant"), &plimsollv1.WatchWorkloadsRequest{Cluster: "prod", Namespace: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	for told := 0; ; {
		message, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if message.GetType() == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_SYNCED {
			if told != 1 {
				t.Errorf("%d workloads, want one", told)
			}
			return
		}
		if w := message.GetWorkload(); w != nil {
			if told++; w.GetNamespace() != "shop" {
				t.Errorf("told of %v", w)
			}
		}
	}
}
