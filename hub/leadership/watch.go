package leadership

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Watch follows the Lease until ctx ends, so that a standby knows the owner and takes over as soon as it gives up, instead
// of when it next looks. Nothing depends on it: the elector reads the Lease for itself.
func (l *Lease) Watch(ctx context.Context) {
	client, namespace := l.watching, l.options.Namespace
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, l.options.Name).String()
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.FieldSelector = only
			return client.Leases(namespace).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return client.Leases(namespace).Watch(ctx, options)
		},
	}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &coordinationv1.Lease{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { l.sawObject(object, false) },
			UpdateFunc: func(_, object any) { l.sawObject(object, false) },
			DeleteFunc: func(object any) { l.sawObject(object, true) },
		},
	})
	informer.RunWithContext(ctx)
}

func (l *Lease) sawObject(object any, gone bool) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if lease, ok := object.(*coordinationv1.Lease); ok {
		l.sawLease(lease, gone)
	}
}
