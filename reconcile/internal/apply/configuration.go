package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile/internal/retry"
)

// hash names what is asked for, so that it is recognised without a look at its fields.
func (a *Call) hash() (string, error) {
	data, err := json.Marshal(a.obj)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	sum.Write(data)
	fmt.Fprint(sum, a.gvk, a.Leave)
	if !a.Unowned {
		fmt.Fprint(sum, a.Kind, a.Owner.GetName(), a.Owner.GetUID())
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// wanted is the configuration to apply, which carries the hash.
func (a *Call) wanted(hash string) (map[string]any, error) {
	want, err := configuration(a.obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: want}
	u.SetGroupVersionKind(a.gvk)
	if !a.Unowned {
		u.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(a.Owner, a.Kind)})
	}
	for _, path := range a.Leave {
		if _, set := at(want, path); set {
			return nil, retry.Terminal(fmt.Errorf("%s is both applied and left to others", path))
		}
	}
	notes := u.GetAnnotations()
	if notes == nil {
		notes = map[string]string{}
	}
	notes[a.Applied] = hash
	u.SetAnnotations(notes)
	return want, nil
}

// configuration is what an object says about itself that may be applied.
func configuration(obj client.Object) (map[string]any, error) {
	if secret, ok := obj.(*corev1.Secret); ok && len(secret.StringData) > 0 {
		obj = withoutStringData(secret)
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	if _, shared := obj.(*unstructured.Unstructured); shared {
		fields = runtime.DeepCopyJSON(fields)
	}
	metadata := map[string]any{}
	had, _ := fields["metadata"].(map[string]any)
	for _, key := range []string{"name", "namespace", "labels", "annotations", "finalizers"} {
		if value, set := had[key]; set {
			metadata[key] = value
		}
	}
	fields["metadata"] = metadata
	delete(fields, "status")
	dropNulls(fields)
	return fields, nil
}

// withoutStringData moves what can only be written to where it can be read.
func withoutStringData(secret *corev1.Secret) *corev1.Secret {
	secret = secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	return secret
}
