package api

import (
	"cmp"
	"context"
	"sort"

	"google.golang.org/protobuf/proto"

	"github.com/plimsoll-dev/plimsoll/hub/api/auth"
	"github.com/plimsoll-dev/plimsoll/hub/api/internal/lists"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// podPage is the page of a workload's pods that a call is for.
type podPage struct {
	request *plimsollv1.GetWorkloadRequest
	size    int
	after   string // the name of the last pod before it; "": it is the first page
	who     auth.Identity
}

// podsOf reads which page is asked for.
func (c *core) podsOf(ctx context.Context, request *plimsollv1.GetWorkloadRequest) (*podPage, error) {
	p := &podPage{request: request, size: cmp.Or(int(request.GetPageSize()), lists.MaxPage)}
	if c.peers != nil { // another replica asks for nobody
		p.who = identityOf(ctx)
	}
	after, err := lists.DecodePosition(request.GetPageToken(), 1, p.query(p.who)...)
	if err == nil && after != nil {
		p.after = after[0]
	}
	return p, err
}

// query is all that makes the pages what they are, for their tokens.
func (p *podPage) query(who auth.Identity) []string {
	query := []string{"pods", p.request.GetCluster(), p.request.GetNamespace(), p.request.GetKind(), p.request.GetName()}
	if who.User != "" {
		query = append(query, "for", who.User, who.UID)
	}
	return query
}

// ofOwner asks another replica for the page. Replicas have no name.
func (p *podPage) ofOwner() *plimsollv1.GetWorkloadRequest {
	request := proto.CloneOf(p.request)
	if request.PageToken = ""; p.after != "" {
		request.PageToken = lists.EncodePosition(lists.Position{p.after}, p.query(auth.Identity{})...)
	}
	return request
}

// cut leaves the page of the pods in an answer, which holds all of them, or at least the page: an older replica knows no pages.
func (p *podPage) cut(answer *plimsollv1.GetWorkloadResponse) {
	shown := answer.GetWorkload()
	all := shown.GetPods()
	from := sort.Search(len(all), func(i int) bool { return all[i].GetName() > p.after })
	if p.after == "" {
		from = 0
	}
	to := min(from+p.size, len(all))
	more := to < len(all) || answer.GetNextPageToken() != ""
	if len(all) > 0 {
		shown.Pods = all[from:to]
	}
	if answer.NextPageToken = ""; more && to > from {
		answer.NextPageToken = lists.EncodePosition(lists.Position{all[to-1].GetName()}, p.query(p.who)...)
	}
}
