package webapp

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/policy"
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// ImagePolicy says what happens to images that name neither a tag nor a digest, and so change under a WebApp's feet.
type ImagePolicy string

// Image policies.
const (
	ImagesDenied  ImagePolicy = "deny"
	ImagesWarned  ImagePolicy = "warn"
	ImagesAllowed ImagePolicy = "allow"
)

// Policy is what the section modules.webapp of the hub's configuration asks of WebApps, beyond the rules in the CRD.
type Policy struct {
	// What becomes of a WebApp with an image that names neither a tag nor a digest: deny, warn or allow. What was stored before
	// is only warned about. Empty: warn.
	Images ImagePolicy `yaml:"imagePolicy"`
	// How many replicas a WebApp may ask for, itself or through its autoscaler. 1 to 10000; 0 in a Policy that was not read from a
	// configuration: the CRD's bound alone.
	MaxReplicas int `yaml:"maxReplicas"`
}

// DefaultPolicy has the defaults of the configuration.
func DefaultPolicy() Policy { return Policy{Images: ImagesWarned, MaxReplicas: 1000} }

// Check says what is out of range; the hub names the key and where its value came from.
func (p *Policy) Check() (refused field.ErrorList) {
	switch p.Images {
	case ImagesDenied, ImagesWarned, ImagesAllowed:
	default:
		refused = append(refused, field.Invalid(field.NewPath("imagePolicy"), p.Images, "must be deny, warn or allow"))
	}
	if p.MaxReplicas < 1 || p.MaxReplicas > maxReplicas {
		refused = append(refused, field.Invalid(field.NewPath("maxReplicas"), p.MaxReplicas, fmt.Sprintf("must be from 1 to %d", maxReplicas)))
	}
	return refused
}

// maxReplicas is the bound in the CRD.
const maxReplicas = 10000

// Review judges a WebApp that is about to be stored; old is what it was before, nil when it is new. What was there before
// may stay, so that a policy that became stricter keeps nobody from changing something else: it is warned about.
func (p Policy) Review(app, old *v1.WebApp) (refusals field.ErrorList, warnings []string) {
	if app.DeletionTimestamp != nil {
		return nil, nil
	}
	spec := field.NewPath("spec")
	refusals, warnings = p.images(spec.Child("containers"), app, old)
	refuse := func(err *field.Error, before bool) {
		if before {
			warnings = append(warnings, err.Error())
		} else {
			refusals = append(refusals, err)
		}
	}
	if err := p.replicas(spec.Child("replicas"), app.Spec.Replicas); err != nil {
		refuse(err, old != nil && p.replicas(nil, old.Spec.Replicas) != nil && *app.Spec.Replicas <= *old.Spec.Replicas)
	}
	if a := app.Spec.Autoscaling; a != nil {
		if err := p.replicas(spec.Child("autoscaling", "maxReplicas"), &a.MaxReplicas); err != nil {
			refuse(err, old != nil && old.Spec.Autoscaling != nil && a.MaxReplicas <= old.Spec.Autoscaling.MaxReplicas)
		}
	}
	for _, err := range window(spec.Child("spot"), app.Spec.Spot) {
		refuse(err, old != nil && len(window(nil, old.Spec.Spot)) > 0)
	}
	if old != nil && headless(app) != headless(old) {
		refuse(field.Invalid(spec.Child("service", "headless"), headless(app),
			"cannot be changed: Kubernetes cannot change the cluster IP of a Service"), false)
	}
	return refusals, warnings
}

// ReviewScale judges a number of replicas that is set through the scale subresource.
func (p Policy) ReviewScale(replicas int32) field.ErrorList {
	if err := p.replicas(field.NewPath("spec", "replicas"), &replicas); err != nil {
		return field.ErrorList{err}
	}
	return nil
}

func (p Policy) replicas(path *field.Path, replicas *int32) *field.Error {
	if replicas == nil || p.MaxReplicas == 0 || int(*replicas) <= p.MaxReplicas {
		return nil
	}
	return field.Invalid(path, *replicas, fmt.Sprintf("must be at most %d (modules.webapp.maxReplicas of the hub)", p.MaxReplicas))
}

func (p Policy) images(path *field.Path, app, old *v1.WebApp) (refusals field.ErrorList, warnings []string) {
	before := map[string]bool{}
	if old != nil {
		for i := range old.Spec.Containers {
			before[old.Spec.Containers[i].Image] = true
		}
	}
	for i := range app.Spec.Containers {
		image := app.Spec.Containers[i].Image
		if p.Images == ImagesAllowed || Pinned(image) {
			continue
		}
		err := field.Invalid(path.Index(i).Child("image"), image, fmt.Sprintf("must have a tag or a digest (modules.webapp.imagePolicy of the hub is %s)", ImagesDenied))
		if p.Images == ImagesDenied && !before[image] {
			refusals = append(refusals, err)
			continue
		}
		err.Detail = "should have a tag or a digest: without one, each pod runs what latest is when it starts"
		warnings = append(warnings, err.Error())
	}
	return refusals, warnings
}

// Pinned reports whether an image names a tag or a digest. A colon before the last slash is that of a port.
func Pinned(image string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	at := strings.IndexAny(name, ":@")
	return at > 0 && at < len(name)-1
}

// window judges what the CRD cannot: whether the disruption window is one.
func window(path *field.Path, spec *v1.Spot) (errs field.ErrorList) {
	keys := policy.Keys{Prefix: policy.DefaultPrefix}
	for _, problem := range policy.Parse(keys, policyOf(spec, keys), nil, policy.Defaults{}).Problems {
		name := "disruptionSchedule"
		if problem.Key == keys.DisruptionDuration() {
			name = "disruptionDuration"
		}
		errs = append(errs, field.Invalid(path.Child(name), problem.Value, "must be "+problem.Rule))
	}
	return errs
}

func headless(app *v1.WebApp) bool { return app.Spec.Service != nil && app.Spec.Service.Headless }

// LabelName is the usual label that a WebApp gets when it has none.
const LabelName = "app.kubernetes.io/name"

// Complete sets what a WebApp should have and may leave open, beyond the defaults in the CRD, and reports whether it changed
// anything.
func Complete(app *v1.WebApp) bool {
	if app.Name == "" || app.Labels[LabelName] != "" { // the name is still to be generated
		return false
	}
	if app.Labels == nil {
		app.Labels = map[string]string{}
	}
	app.Labels[LabelName] = app.Name
	return true
}
