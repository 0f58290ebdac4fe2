package paging

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

const (
	// pageSize is how many objects a page of a live list has, as those of the caches.
	pageSize = 500
	// mostPages bounds a list whose end does not come, and mostRestarts one that expires again and again.
	mostPages, mostRestarts = 2000, 2
)

// Pages reads a live list page by page, so that neither the answer's size nor the memory that it takes grows with what a member
// has. into is filled with each page in turn; each takes from it what it needs, and returns false when it has enough.
//
// A page is of the state that the first one showed. If that has expired (410), the list goes on with the state of now where the API
// server allows it: each object that was there all the time is seen once. Otherwise it begins again, at most twice, after restart
// was called, which forgets what was taken. Pages whose answer is too large are asked for again with fewer objects.
func Pages(ctx context.Context, reader client.Reader, into client.ObjectList, each func() (more bool), restart func(), options ...client.ListOption) error {
	limit, token, restarts := int64(pageSize), "", 0
	for range mostPages {
		if err := meta.SetList(into, nil); err != nil { // decoding keeps what the answer leaves out
			return err
		}
		into.SetContinue("")
		err := reader.List(ctx, into, append(options[:len(options):len(options)], client.Limit(limit), client.Continue(token))...)
		switch {
		case err == nil:
			if err := intake.CheckList(into); err != nil {
				return err
			}
			if token = into.GetContinue(); !each() || token == "" {
				return nil
			}
		case errors.Is(err, intake.ErrTooLarge) && limit > 1:
			limit = max(limit/8, 1)
		case apierrors.IsResourceExpired(err) && token != "" && continuation(err) != "":
			token = continuation(err)
		case apierrors.IsResourceExpired(err) && token != "" && restarts < mostRestarts:
			token = ""
			restarts++
			restart()
		default:
			return err
		}
	}
	return fmt.Errorf("the list has more than %d pages", mostPages)
}

// continuation is the token with which a list that has expired may continue, with the state of now; empty: there is none that a server
// would have sent.
func continuation(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	if token := status.Status().Continue; len(token) <= intake.MaxToken {
		return token
	}
	return ""
}
