package reconciletest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// journal notes the writes of a case, and lets calls fail.
type journal struct {
	store client.WithWatch // under it, without either

	mu       sync.Mutex
	writes   []string
	failures []*failure
}

type failure struct {
	Failure
	seen     int
	happened bool
}

var errInjected = errors.New("the test lets this call fail")

// call is one request.
type call struct {
	verb, name, namespace, subresource string
	gvk                                schema.GroupVersionKind
}

// String is the call as [Want.Writes] has it.
func (c call) String() string {
	name := c.name
	if c.namespace != "" {
		name = c.namespace + "/" + name
	}
	if c.subresource != "" {
		name += "/" + c.subresource
	}
	return c.verb + " " + kindName(c.gvk) + " " + name
}

func kindName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

func (f *failure) fits(c call) bool {
	return (f.Verb == "" || f.Verb == c.verb) && (f.Kind == "" || f.Kind == c.gvk.Kind) &&
		(f.Name == "" || f.Name == c.name) && f.Subresource == c.subresource
}

// refuse returns the error with which a call is to fail; nil: it is to be done.
func (j *journal) refuse(c call) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	var refused error
	for _, f := range j.failures {
		if !f.fits(c) {
			continue
		}
		f.seen++
		if refused == nil && (f.Nth == 0 || f.Nth == f.seen) {
			f.happened = true
			if refused = f.Err; refused == nil {
				refused = errInjected
			}
		}
	}
	return refused
}

// write does a call that changes something, and notes it.
func (j *journal) write(c call, do func() error) error {
	err := j.refuse(c)
	if err == nil {
		err = do()
	}
	said := c.String()
	if err != nil {
		said += ": failed"
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes = append(j.writes, said)
	return err
}

func (j *journal) read(c call, do func() error) error {
	if err := j.refuse(c); err != nil {
		return err
	}
	return do()
}

func (j *journal) about(verb string, obj runtime.Object) call {
	gvk, err := j.store.GroupVersionKindFor(obj)
	if err != nil {
		gvk = schema.GroupVersionKind{Kind: fmt.Sprintf("%T", obj)}
	}
	c := call{verb: verb, gvk: gvk}
	if o, ok := obj.(client.Object); ok {
		c.namespace, c.name = o.GetNamespace(), o.GetName()
		if c.name == "" {
			c.name = o.GetGenerateName() + "*"
		}
	}
	return c
}

// applied is the call of an apply configuration, which says what it is about only as JSON.
func (j *journal) applied(config runtime.ApplyConfiguration) call {
	c := call{verb: "apply"}
	u := &unstructured.Unstructured{}
	if data, err := json.Marshal(config); err == nil && json.Unmarshal(data, &u.Object) == nil {
		c.gvk, c.namespace, c.name = u.GroupVersionKind(), u.GetNamespace(), u.GetName()
	}
	return c
}

func patchVerb(patch client.Patch) string {
	if patch.Type() == types.ApplyPatchType {
		return "apply"
	}
	return "patch"
}

func (c call) of(subresource string) call {
	c.subresource = subresource
	return c
}

// client is the member's client as reconcilers see it.
func (j *journal) client() client.WithWatch {
	return interceptor.NewClient(j.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			about := j.about("get", obj)
			about.namespace, about.name = key.Namespace, key.Name
			return j.read(about, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			about := j.about("list", list)
			about.gvk.Kind = strings.TrimSuffix(about.gvk.Kind, "List")
			return j.read(about, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return j.write(j.about("create", obj), func() error {
				j.identify(obj)
				return c.Create(ctx, obj, opts...)
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return j.write(j.about("delete", obj), func() error { return c.Delete(ctx, obj, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			return j.write(j.about("deletecollection", obj), func() error { return c.DeleteAllOf(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return j.write(j.about("update", obj), func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return j.write(j.about(patchVerb(patch), obj), func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return j.write(j.applied(config), func() error { return c.Apply(ctx, config, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, c client.Client, name string, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
			return j.write(j.about("create", obj).of(name), func() error { return c.SubResource(name).Create(ctx, obj, sub, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return j.write(j.about("update", obj).of(name), func() error { return c.SubResource(name).Update(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return j.write(j.about(patchVerb(patch), obj).of(name), func() error { return c.SubResource(name).Patch(ctx, obj, patch, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, name string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return j.write(j.applied(config).of(name), func() error { return c.SubResource(name).Apply(ctx, config, opts...) })
		},
	})
}

// identify gives an object a UID, which the fake does not.
func (j *journal) identify(obj client.Object) {
	if obj.GetUID() != "" {
		return
	}
	id := obj.GetNamespace() + "/" + obj.GetName()
	if gvk, err := j.store.GroupVersionKindFor(obj); err == nil {
		id = gvk.Kind + "/" + id
	}
	obj.SetUID(types.UID(id))
}
