package apply

import (
	"context"
	"fmt"
	"math"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noVersion is a resourceVersion that no object ever has. An API server ignores the resourceVersion of an object that
// server-side apply makes, and refuses to change one of another version: applied with this one, an object is made or
// nothing is done.
var noVersion = strconv.FormatInt(math.MaxInt64, 10)

// create writes an object that the cache does not have. A kind that is cached by labels shows nothing of somebody else's object
// of the same name, and server-side apply would take it over; so it is made only if nothing is there, and the member is
// asked what there is when it refuses.
func (a *Call) create(ctx context.Context, hash string) (Outcome, error) {
	want, err := a.wanted(hash)
	if err != nil {
		return "", err
	}
	if a.Unowned {
		return Created, a.write(ctx, want, hash)
	}
	put(want, "metadata.resourceVersion", noVersion)
	refused := a.write(ctx, want, hash)
	if !apierrors.IsConflict(refused) {
		return Created, refused
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(a.gvk)
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(a.obj), live); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return "", refused // it has gone meanwhile: the next try makes it
		}
		return "", fmt.Errorf("is it there: %w", err)
	}
	if goes, err := a.belongs(live); err != nil {
		return "", err
	} else if goes {
		return Terminating, a.show(live)
	}
	return a.change(ctx, live, hash) // it is ours, and the cache does not show it yet
}
