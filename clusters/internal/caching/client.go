package caching

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrTrimmed is wrapped by the errors of updates that would have erased what the cache does not hold.
var ErrTrimmed = errors.New("the cache holds only a part of this kind, so an update would erase the rest: patch it instead")

// guardedClient refuses to update objects of kinds that are trimmed. Everything else passes.
type guardedClient struct {
	client.Client
	member string
	// trimmed kinds, and whether they are cached as unstructured objects
	trimmed map[schema.GroupVersionKind]bool
}

// NewClient guards a client of a member, and has large answers be decoded one at a time. Trimmed are the kinds that are, and whether they
// are cached as unstructured objects.
func NewClient(inner client.Client, member string, trimmed map[schema.GroupVersionKind]bool) client.Client {
	return &guardedClient{decodingClient{inner}, member, trimmed}
}

// Update replaces an object of an untrimmed kind.
func (c *guardedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	if err := c.check(obj, ""); err != nil {
		return err
	}
	return c.Client.Update(ctx, obj, opts...)
}

// Status returns a client for the status, which refuses updates of trimmed kinds as well.
func (c *guardedClient) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client for a subresource. An update is refused for trimmed kinds, unless it brings a body of its
// own, as for scale.
func (c *guardedClient) SubResource(name string) client.SubResourceClient {
	return &guardedSubResource{c.Client.SubResource(name), c, name}
}

type guardedSubResource struct {
	client.SubResourceClient
	guard *guardedClient
	name  string
}

// Update replaces a subresource of an untrimmed kind, or one that has a body of its own.
func (s *guardedSubResource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	options := &client.SubResourceUpdateOptions{}
	if options.ApplyOptions(opts).SubResourceBody == nil {
		if err := s.guard.check(obj, "/"+s.name); err != nil {
			return err
		}
	}
	return s.SubResourceClient.Update(ctx, obj, opts...)
}

// check refuses objects of trimmed kinds, of the Go type that they have in the cache: others were never read from it.
func (c *guardedClient) check(obj client.Object, subresource string) error {
	gvk, err := c.GroupVersionKindFor(obj)
	untyped, trimmed := c.trimmed[gvk]
	if err != nil || !trimmed || untyped != IsUntyped(obj) {
		return nil // an object that has no kind is refused by the client itself
	}
	return fmt.Errorf("member %s: update %s%s %s: %w", c.member, KindName(gvk), subresource, client.ObjectKeyFromObject(obj), ErrTrimmed)
}
