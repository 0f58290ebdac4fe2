package clusters

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plimsoll-dev/plimsoll/clusters/internal/sample"
)

// fakeSecrets are the Secrets of one namespace, with watches that honour label selectors as an API server does: an
// object that ceases to match is deleted to whoever watches.
type fakeSecrets struct {
	corev1client.SecretInterface // what is not overridden is not called

	mu       sync.Mutex
	version  int
	secrets  map[string]*corev1.Secret
	watchers map[*secretWatcher]struct{}
	asked    map[string]bool // "namespace verb selector" of everything that was asked for
	fails    map[string]int  // how many of the next lists by a selector fail
}

type secretWatcher struct {
	*watch.RaceFreeFakeWatcher
	selector labels.Selector
}

func newFakeSecrets() *fakeSecrets {
	return &fakeSecrets{secrets: map[string]*corev1.Secret{}, watchers: map[*secretWatcher]struct{}{}, asked: map[string]bool{}}
}

func (f *fakeSecrets) Secrets(namespace string) corev1client.SecretInterface {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked["in "+namespace] = true
	return f
}

// IsWatchListSemanticsUnSupported keeps reflectors from asking for lists as watches.
func (f *fakeSecrets) IsWatchListSemanticsUnSupported() bool { return true }

func (f *fakeSecrets) List(_ context.Context, options metav1.ListOptions) (*corev1.SecretList, error) {
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked["list "+options.LabelSelector] = true
	if f.fails[options.LabelSelector] > 0 {
		f.fails[options.LabelSelector]--
		return nil, apierrors.NewServiceUnavailable("not yet")
	}
	list := &corev1.SecretList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(f.version)}}
	for _, secret := range f.secrets {
		if selector.Matches(labels.Set(secret.Labels)) {
			list.Items = append(list.Items, *secret.DeepCopy())
		}
	}
	return list, nil
}

func (f *fakeSecrets) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Secret, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if secret := f.secrets[name]; secret != nil {
		return secret.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

func (f *fakeSecrets) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked["watch "+options.LabelSelector] = true
	if options.ResourceVersion != strconv.Itoa(f.version) {
		return nil, fmt.Errorf("resource version %s is too old", options.ResourceVersion)
	}
	w := &secretWatcher{watch.NewRaceFreeFake(), selector}
	f.watchers[w] = struct{}{}
	return w, nil
}

// put creates or replaces a Secret with the member label and a kubeconfig, changed by edit.
func (f *fakeSecrets) put(name string, kubeconfig []byte, edit ...func(*corev1.Secret)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	before := f.secrets[name]
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "plimsoll", Name: name, UID: types.UID("uid-" + name), ResourceVersion: strconv.Itoa(f.version),
			Labels: map[string]string{MemberLabel: "true"}, CreationTimestamp: metav1.NewTime(time.Unix(int64(1000+f.version), 0)),
			Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: sample.Canary, "team": "shop"},
		},
		Data: map[string][]byte{KubeconfigKey: kubeconfig},
	}
	if before != nil {
		secret.CreationTimestamp = before.CreationTimestamp
	}
	for _, e := range edit {
		e(secret)
	}
	f.secrets[name] = secret
	for w := range f.watchers {
		matched := before != nil && w.selector.Matches(labels.Set(before.Labels))
		switch matches := w.selector.Matches(labels.Set(secret.Labels)); {
		case matched && matches:
			w.Modify(secret.DeepCopy())
		case matches:
			w.Add(secret.DeepCopy())
		case matched:
			w.Delete(secret.DeepCopy())
		}
	}
}

func (f *fakeSecrets) remove(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version++
	secret := f.secrets[name]
	delete(f.secrets, name)
	for w := range f.watchers {
		if w.selector.Matches(labels.Set(secret.Labels)) {
			w.Delete(secret.DeepCopy())
		}
	}
}

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
