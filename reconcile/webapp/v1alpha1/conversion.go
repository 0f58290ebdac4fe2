package v1alpha1

import (
	v1 "github.com/plimsoll-dev/plimsoll/reconcile/webapp/v1"
)

// Names of what this version has one of, and so does not name.
const (
	containerName = "app"
	portName      = "http"
)

// DefaultPort is the default of spec.port in the CRD, which a test compares with it.
const DefaultPort = 80

// ConvertTo writes the WebApp into one of the stored version. What it says goes over what it carries.
func (w *WebApp) ConvertTo(hub *v1.WebApp) error {
	if err := v1.Uncarry(&w.ObjectMeta, hub); err != nil {
		return err
	}
	w.Spec.onto(&hub.Spec)
	hub.Status.Replicas = w.Status.Replicas
	hub.Status.AvailableReplicas = w.Status.AvailableReplicas
	hub.Status.Selector = w.Status.Selector
	return nil
}

// onto says in the words of v1 what the spec says, and leaves the rest of it as it is.
func (s *WebAppSpec) onto(hub *v1.WebAppSpec) {
	hub.Replicas = s.Replicas
	if len(hub.Containers) == 0 {
		hub.Containers = []v1.Container{{Name: containerName}}
	}
	main := &hub.Containers[0]
	main.Image = s.Image
	main.SetMainPort(s.port(), portName)
	_, minOnDemand := hub.SpotShare()
	hub.SetSpotShare(s.SpotPercentage, minOnDemand)
	hub.SetDefaults()
}

// port is the main port in the words of v1: nil when there is none.
func (s *WebAppSpec) port() *int32 {
	switch {
	case s.Port == nil:
		return new(int32(DefaultPort))
	case *s.Port == 0:
		return nil
	}
	return s.Port
}

// ConvertFrom makes the WebApp of one of the stored version, and carries what it cannot express.
func (w *WebApp) ConvertFrom(hub *v1.WebApp) error {
	hub.ObjectMeta.DeepCopyInto(&w.ObjectMeta)
	w.Spec = WebAppSpec{Replicas: hub.Spec.Replicas}
	if len(hub.Spec.Containers) > 0 {
		main := &hub.Spec.Containers[0]
		w.Spec.Image, w.Spec.Port = main.Image, main.MainPort()
		if w.Spec.Port == nil {
			w.Spec.Port = new(int32(0))
		}
	}
	w.Spec.SpotPercentage, _ = hub.Spec.SpotShare()
	w.Status = WebAppStatus{
		Replicas: hub.Status.Replicas, AvailableReplicas: hub.Status.AvailableReplicas, Selector: hub.Status.Selector,
	}
	var back v1.WebApp
	alone := WebApp{Spec: w.Spec, Status: w.Status}
	if err := alone.ConvertTo(&back); err != nil {
		return err
	}
	return v1.Carry(&w.ObjectMeta, hub, &back)
}
