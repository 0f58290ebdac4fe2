package clusters

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	// AllMembersLabel marks, as "true", a Secret in the namespace of registrations whose annotations hold for every member, also for
	// those that register later. It needs no data, and none is read.
	AllMembersLabel = "plimsoll.dev/all-members"
	// AllMembersType is the type that such a Secret has when the CLI creates it.
	AllMembersType corev1.SecretType = "plimsoll.dev/all-members"
)

// annotationPrefix is that of the annotations by which people steer what the hub does in members.
const annotationPrefix = "plimsoll.dev/"

// newSharedInformer sees the Secrets with [AllMembersLabel], and calls changed when one appears, changes or goes.
func newSharedInformer(o Options, changed func()) (cache.SharedIndexInformer, error) {
	informer := cache.NewSharedIndexInformer(
		listSecrets(o.Secrets, o.Secrets.Secrets(o.Namespace), AllMembersLabel+"=true"), &corev1.Secret{}, 0, cache.Indexers{})
	if err := informer.SetTransform(keepSharedAnnotations); err != nil {
		return nil, err
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { changed() }, UpdateFunc: func(any, any) { changed() }, DeleteFunc: func(any) { changed() },
	})
	return informer, err
}

// keepSharedAnnotations removes everything but what holds for all members.
func keepSharedAnnotations(object any) (any, error) {
	if secret, ok := object.(*corev1.Secret); ok {
		secret.ManagedFields, secret.Data = nil, nil
		maps.DeleteFunc(secret.Annotations, func(key, _ string) bool { return !strings.HasPrefix(key, annotationPrefix) })
	}
	return object, nil
}

// shared returns the annotations that hold for all members; nil: there are none. Of Secrets that contradict each other the first by
// name counts, except that "false" does not take back what another one says.
func (w *secretWatch) shared() map[string]string {
	secrets := make([]*corev1.Secret, 0, 1)
	for _, object := range w.common.GetStore().List() {
		secrets = append(secrets, object.(*corev1.Secret))
	}
	slices.SortFunc(secrets, func(a, b *corev1.Secret) int { return strings.Compare(a.Name, b.Name) })
	var all map[string]string
	for _, secret := range secrets {
		for key, value := range secret.Annotations {
			if was, set := all[key]; set && was != "false" {
				continue
			}
			if all == nil {
				all = map[string]string{}
			}
			all[key] = value
		}
	}
	return all
}

// noticeAll wakes every actor.
func (p *Provider) noticeAll() {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, a := range p.actors {
		a.poke()
	}
}
