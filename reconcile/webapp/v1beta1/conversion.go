package v1beta1

import (
	"maps"
	"slices"
	"strconv"

	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// ConvertTo writes the WebApp into one of the stored version. What it says goes over what it carries.
func (w *WebApp) ConvertTo(hub *v1.WebApp) error {
	if err := v1.CheckSize(len(w.Spec.Containers), len(w.Spec.ConfigMaps)+len(w.Spec.Secrets)); err != nil {
		return err
	}
	if err := v1.Uncarry(&w.ObjectMeta, hub); err != nil {
		return err
	}
	w.Spec.onto(&hub.Spec)
	hub.Status.Status = w.Status.Status
	hub.Status.Replicas = w.Status.Replicas
	hub.Status.AvailableReplicas = w.Status.AvailableReplicas
	hub.Status.Selector = w.Status.Selector
	return nil
}

// onto says in the words of v1 what the spec says, and leaves the rest of it as it is.
func (s *WebAppSpec) onto(hub *v1.WebAppSpec) {
	hub.Replicas = s.Replicas
	hub.Containers = containersOnto(s.Containers, hub.Containers)
	hub.EnvFrom = s.envFromOnto(hub.EnvFrom)
	hub.Autoscaling = s.autoscaling()
	hub.PodDisruptionBudget = s.budgetOnto(hub.PodDisruptionBudget)
	hub.SetSpotShare(s.SpotPercentage, s.MinOnDemand)
	hub.SetDefaults()
}

// containersOnto finds containers again by their names. Each is found once: however many have its name, what is known of it is in one.
func containersOnto(containers []Container, before []v1.Container) []v1.Container {
	known := make(map[string]*v1.Container, len(before))
	for i := range slices.Backward(before) { // of two with one name, the first counts
		known[before[i].Name] = &before[i]
	}
	var result []v1.Container
	for i := range containers {
		c := &containers[i]
		into := v1.Container{Name: c.Name}
		if b := known[c.Name]; b != nil {
			into = *b
			delete(known, c.Name)
		}
		into.Image = c.Image
		into.SetMainPort(c.Port, portName(i, c.Port))
		into.Env = envOnto(c.Env, into.Env)
		result = append(result, into)
	}
	return result
}

// portName names a port that this version does not name. The names of a WebApp's ports differ.
func portName(container int, port *int32) string {
	if container == 0 || port == nil {
		return "http"
	}
	return "p" + strconv.Itoa(int(*port))
}

// envOnto keeps the order of the variables that were there before, as far as they are there still.
func envOnto(env map[string]string, before []v1.EnvVar) []v1.EnvVar {
	rest := maps.Clone(env)
	var result []v1.EnvVar
	for _, b := range before {
		if value, ok := rest[b.Name]; ok {
			result = append(result, v1.EnvVar{Name: b.Name, Value: value})
			delete(rest, b.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		result = append(result, v1.EnvVar{Name: name, Value: rest[name]})
	}
	return result
}

// envFromOnto leaves the list as it was while it names the same, and otherwise makes it again with what was known of those
// that stay.
func (s *WebAppSpec) envFromOnto(before []v1.EnvFrom) []v1.EnvFrom {
	configMaps, secrets := namesOf(before)
	if slices.Equal(configMaps, s.ConfigMaps) && slices.Equal(secrets, s.Secrets) {
		return before
	}
	type source struct{ configMap, secret string }
	left := map[source][]v1.EnvFrom{}
	for _, b := range before {
		of := source{b.ConfigMap, b.Secret}
		left[of] = append(left[of], b)
	}
	var result []v1.EnvFrom
	take := func(of source) {
		made := v1.EnvFrom{ConfigMap: of.configMap, Secret: of.secret}
		if same := left[of]; len(same) > 0 {
			made, left[of] = same[0], same[1:]
		}
		result = append(result, made)
	}
	for _, name := range s.ConfigMaps {
		take(source{configMap: name})
	}
	for _, name := range s.Secrets {
		take(source{secret: name})
	}
	return result
}

// namesOf is what this version knows of a list.
func namesOf(list []v1.EnvFrom) (configMaps, secrets []string) {
	for _, from := range list {
		if from.ConfigMap != "" {
			configMaps = append(configMaps, from.ConfigMap)
		} else {
			secrets = append(secrets, from.Secret)
		}
	}
	return configMaps, secrets
}

func (s *WebAppSpec) autoscaling() *v1.Autoscaling {
	if s.MaxReplicas == nil {
		return nil
	}
	into := &v1.Autoscaling{MaxReplicas: *s.MaxReplicas}
	if s.MinReplicas != nil {
		into.MinReplicas = *s.MinReplicas
	}
	if s.TargetCPUPercent != nil {
		into.TargetCPUUtilization = *s.TargetCPUPercent
	}
	return into
}

// budgetOnto keeps a budget of the form that this version does not have until it sets one of its own.
func (s *WebAppSpec) budgetOnto(before *v1.PodDisruptionBudget) *v1.PodDisruptionBudget {
	switch {
	case s.MinAvailable != nil:
		return &v1.PodDisruptionBudget{MinAvailable: s.MinAvailable}
	case before != nil && before.MinAvailable != nil:
		return nil
	}
	return before
}

// ConvertFrom makes the WebApp of one of the stored version, and carries what it cannot express.
func (w *WebApp) ConvertFrom(hub *v1.WebApp) error {
	hub.ObjectMeta.DeepCopyInto(&w.ObjectMeta)
	w.Spec.from(hub.Spec.DeepCopy())
	w.Status = WebAppStatus{
		Status: hub.Status.Status, Replicas: hub.Status.Replicas, AvailableReplicas: hub.Status.AvailableReplicas, Selector: hub.Status.Selector,
	}
	var back v1.WebApp
	alone := WebApp{Spec: *w.Spec.DeepCopy(), Status: w.Status}
	if err := alone.ConvertTo(&back); err != nil {
		return err
	}
	return v1.Carry(&w.ObjectMeta, hub, &back)
}

func (s *WebAppSpec) from(hub *v1.WebAppSpec) {
	*s = WebAppSpec{Replicas: hub.Replicas}
	for i := range hub.Containers {
		s.Containers = append(s.Containers, containerFrom(&hub.Containers[i]))
	}
	s.ConfigMaps, s.Secrets = namesOf(hub.EnvFrom)
	if a := hub.Autoscaling; a != nil {
		s.MinReplicas, s.MaxReplicas, s.TargetCPUPercent = &a.MinReplicas, &a.MaxReplicas, &a.TargetCPUUtilization
	}
	if hub.PodDisruptionBudget != nil {
		s.MinAvailable = hub.PodDisruptionBudget.MinAvailable
	}
	s.SpotPercentage, s.MinOnDemand = hub.SpotShare()
}

func containerFrom(hub *v1.Container) Container {
	c := Container{Name: hub.Name, Image: hub.Image, Port: hub.MainPort()}
	for _, variable := range hub.Env {
		if c.Env == nil {
			c.Env = map[string]string{}
		}
		c.Env[variable.Name] = variable.Value
	}
	return c
}
