package clusters

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plimsoll-dev/plimsoll/clusters/kubeconfig"
)

// What makes a Secret a registration.
const (
	// MemberLabel marks a registration Secret when its value is "true".
	MemberLabel = "plimsoll.dev/member"
	// MulticlusterRuntimeLabel does the same; it is the default of multicluster-runtime's kubeconfig provider.
	MulticlusterRuntimeLabel = "sigs.k8s.io/multicluster-runtime-kubeconfig"
	// KubeconfigKey is the key of a registration Secret that holds the kubeconfig, for multicluster-runtime as well.
	KubeconfigKey = kubeconfig.SecretKey
	// DetachedAnnotation on a registration Secret says that the member is gone for good, and why: nothing is to wait for it.
	// It means nothing to this package, which keeps trying to reach the member.
	DetachedAnnotation = "plimsoll.dev/force-detached"
	// CordonedAnnotation on a registration Secret, with any value but "false", says that the member gets no further replicas and
	// that nothing is moved there. It means nothing to this package.
	CordonedAnnotation = "plimsoll.dev/cordoned"
)

// confirmTimeout bounds the question whether a Secret is gone.
const confirmTimeout = 2 * time.Second

// desired is a registration Secret as it is now.
type desired struct {
	registration Registration
	created      time.Time
	kubeconfig   []byte
	namespaces   *string // the annotation's value, nil without it
	lease        string  // the namespace of the Lease with which the member can show what cluster it is
	layout       finding
	hash         [sha256.Size]byte
}

// memberLabels are the labels of which a registration Secret carries at least one, as "true".
var memberLabels = []string{MemberLabel, MulticlusterRuntimeLabel}

// secretWatch sees the registration Secrets of one or two namespaces, and no other Secret. There is one informer for each namespace
// and label, because a selector cannot say "or"; a Secret that carries both labels is in both.
type secretWatch struct {
	secrets    corev1client.SecretsGetter
	namespaces []string // a registration in an earlier one counts
	hub        string   // the namespace of the hub's own keys, "" if nobody says
	informers  []secretInformer
	common     cache.SharedIndexInformer // of the Secrets whose annotations hold for all members
}

// secretInformer is that of one namespace and label.
type secretInformer struct {
	cache.SharedIndexInformer
	namespace string
}

// newSecretWatch calls changed with the name of every Secret that appears, changes, or no longer is a registration, and allChanged when
// something changes that holds for all members.
func newSecretWatch(o Options, changed func(name string), allChanged func()) (w *secretWatch, err error) {
	w = &secretWatch{secrets: o.Secrets, namespaces: []string{o.Namespace}, hub: o.HubNamespace}
	if o.AlsoHubNamespace && o.HubNamespace != o.Namespace {
		w.namespaces = append(w.namespaces, o.HubNamespace)
	}
	for _, namespace := range w.namespaces {
		if err := w.add(namespace, changed); err != nil {
			return nil, fmt.Errorf("watch registration Secrets: %w", err)
		}
	}
	if w.common, err = newSharedInformer(o, allChanged); err != nil {
		return nil, fmt.Errorf("watch Secrets for all members: %w", err)
	}
	return w, nil
}

// add makes the informers of a namespace.
func (w *secretWatch) add(namespace string, changed func(name string)) error {
	notify := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			changed(key.Name)
		}
	}
	for _, label := range memberLabels {
		selector := labels.SelectorFromSet(labels.Set{label: "true"}).String()
		informer := cache.NewSharedIndexInformer(listSecrets(w.secrets, w.secrets.Secrets(namespace), selector), &corev1.Secret{}, 0, cache.Indexers{})
		if err := informer.SetTransform(dropSecretCopies); err != nil {
			return err
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: notify, DeleteFunc: notify, UpdateFunc: func(_, now any) { notify(now) },
		})
		if err != nil {
			return err
		}
		w.informers = append(w.informers, secretInformer{informer, namespace})
	}
	return nil
}

// listSecrets lists and watches the Secrets that selector selects. It is given getter to ask it what it supports.
func listSecrets(getter corev1client.SecretsGetter, secrets corev1client.SecretInterface, selector string) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.LabelSelector = selector
			return secrets.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = selector
			return secrets.Watch(ctx, options)
		},
	}, getter)
}

// dropSecretCopies removes what kubectl apply leaves in an annotation: a second copy of the kubeconfig.
func dropSecretCopies(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.ManagedFields = nil
		delete(secret.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return object, nil
}

// find returns the registration name of a namespace, or nil if there is none. Of the two informers the one that saw more is right.
func (w *secretWatch) find(namespace, name string) *corev1.Secret {
	var newest *corev1.Secret
	for _, informer := range w.informers {
		if informer.namespace != namespace {
			continue
		}
		object, exists, err := informer.GetStore().GetByKey(namespace + "/" + name)
		if err != nil || !exists {
			continue
		}
		if secret := object.(*corev1.Secret); newest == nil || isNewer(secret, newest) {
			newest = secret
		}
	}
	if newest == nil || newest.DeletionTimestamp != nil {
		return nil
	}
	return newest
}

// names are those of all Secrets that were seen, some perhaps several times.
func (w *secretWatch) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, informer := range w.informers {
			for _, key := range informer.GetStore().ListKeys() {
				if _, name, err := cache.SplitMetaNamespaceKey(key); err == nil && !yield(name) {
					return
				}
			}
		}
	}
}

// get returns the registration name, or nil if there is none.
func (w *secretWatch) get(name string) *desired {
	var newest *corev1.Secret
	unused := false
	for _, namespace := range w.namespaces {
		switch found := w.find(namespace, name); {
		case found == nil:
		case newest == nil:
			newest = found
		default:
			unused = true
		}
	}
	if newest == nil {
		return nil
	}
	want := &desired{
		registration: Registration{
			Namespace: newest.Namespace, Name: newest.Name, UID: string(newest.UID),
			ResourceVersion: newest.ResourceVersion, Labels: maps.Clone(newest.Labels), Annotations: maps.Clone(newest.Annotations), Shared: w.shared(),
		},
		created: newest.CreationTimestamp.Time, kubeconfig: newest.Data[KubeconfigKey],
	}
	want.lease = identityNamespace(newest.Annotations)
	hash := sha256.New()
	if value, restricted := newest.Annotations[NamespacesAnnotation]; restricted {
		want.namespaces = &value
		fmt.Fprintf(hash, "%q", value) // quoted, and so separate from what follows
	}
	want.layout = layout{namespace: newest.Namespace, kind: newest.Type, unused: unused}.judge(w.hub, w.namespaces[0])
	if want.layout.refused {
		fmt.Fprintf(hash, "%q", newest.Type)
	}
	hash.Write(want.kubeconfig)
	want.hash = [sha256.Size]byte(hash.Sum(nil))
	return want
}

// isGone asks the hub cluster whether name, which no informer has, really is no registration any more: a Secret that
// exchanges one label for the other may leave the one informer before it enters the other. Without an answer, what the
// informers saw is true.
func (w *secretWatch) isGone(ctx context.Context, name string) bool {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	return !slices.ContainsFunc(w.namespaces, func(namespace string) bool {
		secret, err := w.secrets.Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && secret.DeletionTimestamp == nil &&
			slices.ContainsFunc(memberLabels, func(label string) bool { return secret.Labels[label] == "true" })
	})
}

func isNewer(a, b *corev1.Secret) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order > 0
}
