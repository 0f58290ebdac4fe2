package v1

// Defaults of the CRD, which a test compares with these.
const (
	DefaultReplicas             = 1
	DefaultServiceType          = ServiceType("ClusterIP")
	DefaultMinReplicas          = 1
	DefaultTargetCPUUtilization = 80
)

// SetDefaults sets what is not set to what the CRD's defaults would set it to. Doing it again changes nothing.
func (s *WebAppSpec) SetDefaults() {
	if s.Replicas == nil {
		s.Replicas = new(int32(DefaultReplicas))
	}
	if s.Service == nil {
		s.Service = &Service{}
	}
	if s.Service.Type == "" {
		s.Service.Type = DefaultServiceType
	}
	if a := s.Autoscaling; a != nil {
		if a.MinReplicas == 0 {
			a.MinReplicas = DefaultMinReplicas
		}
		if a.TargetCPUUtilization == 0 {
			a.TargetCPUUtilization = DefaultTargetCPUUtilization
		}
	}
}
