package reconcile

import (
	"context"
	"errors"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ApplyAll applies objects that do not need each other as [Request.Apply] does, side by side, a few at a time: most of the time of
// an apply is spent waiting for the member. All are tried, whatever becomes of the others. When all that failed is refused for
// good, the error is a TerminalError that names each; else it is one that a retry may mend. A panic goes on in the caller.
func (r Request[T]) ApplyAll(ctx context.Context, objects ...client.Object) error {
	var (
		errs   = make([]error, len(objects))
		panics = make([]any, len(objects))
		turns  = make(chan struct{}, r.scope.AtOnce())
		all    sync.WaitGroup
	)
	for i, object := range objects {
		turns <- struct{}{}
		all.Go(func() {
			defer func() {
				panics[i] = recover()
				<-turns
			}()
			_, errs[i] = r.Apply(ctx, object)
		})
	}
	all.Wait()
	for _, p := range panics {
		if p != nil {
			panic(p)
		}
	}
	var refused []error
	for _, err := range errs {
		switch {
		case IsTerminal(err):
			refused = append(refused, err)
		case err != nil:
			return err
		}
	}
	return errors.Join(refused...)
}
