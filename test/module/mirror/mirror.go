// Package mirror copies ConfigMaps into other namespaces of their cluster, in every member of a fleet. A ConfigMap with the
// label mirror.example.com/role: source is copied into the namespaces in its annotation mirror.example.com/to.
//
// Kubernetes does not collect what is in another namespace than its owner, so the reconciler is a Finalizer.
package mirror

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/reconcile"
)

const (
	// ControllerName is the name in the API, the metrics and the finalizer.
	ControllerName = "mirror"

	// RoleLabel says what a ConfigMap is here: RoleSource or RoleCopy.
	RoleLabel = "mirror.example.com/role"
	// RoleSource is what somebody wants to be copied.
	RoleSource = "source"
	// RoleCopy is what the reconciler made.
	RoleCopy = "copy"
	// ToAnnotation of a source names the namespaces of its copies, with commas between them.
	ToAnnotation = "mirror.example.com/to"
	// AfterAnnotation of a source is an https URL that has to answer before it is copied.
	AfterAnnotation = "mirror.example.com/after"
	// CopiesAnnotation of a source is how many copies there are; the reconciler writes it.
	CopiesAnnotation = "mirror.example.com/copies"
	// FromAnnotation of a copy names its source, ofLabel its source's UID.
	FromAnnotation = "mirror.example.com/from"
	ofLabel        = "mirror.example.com/of"
)

// A Reconciler keeps the copies of each source as the source is.
type Reconciler struct{ Config Config }

var _ reconcile.Finalizer[*corev1.ConfigMap] = Reconciler{}

// Reconcile copies one source, and deletes copies that are no longer wanted.
func (r Reconciler) Reconcile(ctx context.Context, req reconcile.Request[*corev1.ConfigMap]) (reconcile.Result, error) {
	if url := req.Object.Annotations[AfterAnnotation]; url != "" {
		if unmet := req.Require(ctx, reconcile.OnEndpoint(url)); unmet != nil {
			return reconcile.WaitFor(unmet), nil
		}
	}
	wanted := Desire(req.Object)
	if len(wanted) > r.Config.MaxCopies {
		return reconcile.Done(), reconcile.TerminalError(fmt.Errorf("annotation %s: %d namespaces; modules.%s.maxCopies is %d", ToAnnotation, len(wanted), ControllerName, r.Config.MaxCopies))
	}
	for _, one := range wanted {
		if problems := validation.IsDNS1123Label(one.Namespace); len(problems) > 0 {
			return reconcile.Done(), reconcile.TerminalError(fmt.Errorf("annotation %s: %q: %s", ToAnnotation, one.Namespace, problems[0]))
		}
		if _, err := req.Apply(ctx, one, reconcile.Unowned(), reconcile.Adopt()); err != nil {
			return reconcile.Done(), err
		}
	}
	if err := prune(ctx, req, wanted); err != nil {
		return reconcile.Done(), err
	}
	changed, err := reconcile.PatchMerge(ctx, req.Client, req.Object, func(source *corev1.ConfigMap) {
		if source.Annotations == nil {
			source.Annotations = map[string]string{}
		}
		source.Annotations[CopiesAnnotation] = strconv.Itoa(len(wanted))
	}, reconcile.Locked()) // the number is of the source as it was read
	if apierrors.IsConflict(err) {
		return reconcile.Requeue("the source changed meanwhile"), nil
	}
	if changed {
		req.Log.Info("mirrored", "copies", len(wanted))
	}
	return reconcile.Done(), err
}

// Finalize deletes all copies of a source that goes.
func (Reconciler) Finalize(ctx context.Context, req reconcile.Request[*corev1.ConfigMap]) (reconcile.FinalizeResult, error) {
	if err := prune(ctx, req, nil); err != nil {
		return reconcile.FinalizeResult{}, err
	}
	return reconcile.CleanedUp(), nil
}

// Desire says which copies a source has. It asks nobody.
func Desire(source *corev1.ConfigMap) (copies []*corev1.ConfigMap) {
	for _, namespace := range strings.Split(source.Annotations[ToAnnotation], ",") {
		if namespace = strings.TrimSpace(namespace); namespace == "" || namespace == source.Namespace {
			continue
		}
		copies = append(copies, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: source.Name,
				Labels:      map[string]string{RoleLabel: RoleCopy, ofLabel: string(source.UID)},
				Annotations: map[string]string{FromAnnotation: source.Namespace + "/" + source.Name},
			},
			Data: source.Data, BinaryData: source.BinaryData,
		})
	}
	return copies
}

// prune deletes the copies that are not wanted.
func prune(ctx context.Context, req reconcile.Request[*corev1.ConfigMap], wanted []*corev1.ConfigMap) error {
	var have corev1.ConfigMapList
	if err := req.Client.List(ctx, &have, client.MatchingLabels{RoleLabel: RoleCopy, ofLabel: string(req.Object.UID)}); err != nil {
		return err
	}
	for i := range have.Items {
		one := &have.Items[i]
		if slices.ContainsFunc(wanted, func(w *corev1.ConfigMap) bool { return w.Namespace == one.Namespace }) {
			continue
		}
		err := req.Client.Delete(ctx, one, client.Preconditions{UID: &one.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete the copy in %s: %w", one.Namespace, err)
		}
	}
	return nil
}

func splitName(text string) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(text, "/")
	return namespace, name, ok && namespace != "" && name != ""
}
