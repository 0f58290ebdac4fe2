package caching

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/intake"
)

// inCall runs a call that a member answers. A large answer has its turn until the call has decoded it.
func inCall(ctx context.Context, call func(context.Context) error) error {
	ctx, done := intake.Call(ctx)
	defer done()
	return call(ctx)
}

// liveReader reads from a member's API server, and refuses what none would have sent, as caches do.
type liveReader struct{ client.Reader }

// NewLiveReader has large answers that inner reads be decoded one at a time, together with those of a [NewClient]. An answer with a name
// or a resource version that no API server would have sent is an error.
func NewLiveReader(inner client.Reader) client.Reader { return liveReader{inner} }

func (r liveReader) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := inCall(ctx, func(ctx context.Context) error { return r.Reader.Get(ctx, key, obj, opts...) }); err != nil {
		return err
	}
	return intake.CheckObject(obj)
}

func (r liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := inCall(ctx, func(ctx context.Context) error { return r.Reader.List(ctx, list, opts...) }); err != nil {
		return err
	}
	if err := intake.CheckList(list); err != nil {
		return err
	}
	return meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			return intake.CheckObject(obj)
		}
		return nil
	})
}

// decodingClient does the same for what a client decodes: answers to writes, and reads that are not cached. Deletions have answers that
// nobody decodes, and the status is written as a subresource.
type decodingClient struct{ client.Client }

// Get reads an object. Only those without a Go type come from the member, and the others from its cache.
func (c decodingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if _, live := obj.(runtime.Unstructured); live {
		return liveReader{c.Client}.Get(ctx, key, obj, opts...)
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

func (c decodingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, live := list.(runtime.Unstructured); live {
		return liveReader{c.Client}.List(ctx, list, opts...)
	}
	return c.Client.List(ctx, list, opts...)
}

func (c decodingClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return inCall(ctx, func(ctx context.Context) error { return c.Client.Create(ctx, obj, opts...) })
}

func (c decodingClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return inCall(ctx, func(ctx context.Context) error { return c.Client.Update(ctx, obj, opts...) })
}

func (c decodingClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return inCall(ctx, func(ctx context.Context) error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

func (c decodingClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return inCall(ctx, func(ctx context.Context) error { return c.Client.Apply(ctx, obj, opts...) })
}

func (c decodingClient) SubResource(name string) client.SubResourceClient {
	return decodingSubResource{c.Client.SubResource(name)}
}

type decodingSubResource struct{ client.SubResourceClient }

func (s decodingSubResource) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	if err := inCall(ctx, func(ctx context.Context) error { return s.SubResourceClient.Get(ctx, obj, sub, opts...) }); err != nil {
		return err
	}
	return intake.CheckObject(sub)
}

func (s decodingSubResource) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return inCall(ctx, func(ctx context.Context) error { return s.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

func (s decodingSubResource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return inCall(ctx, func(ctx context.Context) error { return s.SubResourceClient.Update(ctx, obj, opts...) })
}

func (s decodingSubResource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return inCall(ctx, func(ctx context.Context) error { return s.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}

func (s decodingSubResource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return inCall(ctx, func(ctx context.Context) error { return s.SubResourceClient.Apply(ctx, obj, opts...) })
}
