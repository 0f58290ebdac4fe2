package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// WebApp is a web application: containers that serve requests, and what Kubernetes needs to run and reach them.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=webapps,shortName=wa,categories=all;plimsoll
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Replicas",type=integer,JSONPath=`.status.replicas`
// +kubebuilder:printcolumn:name="Available",type=integer,JSONPath=`.status.availableReplicas`
// +kubebuilder:printcolumn:name="Spot",type=integer,JSONPath=`.status.spotReplicas`
// +kubebuilder:printcolumn:name="On-Demand",type=integer,JSONPath=`.status.onDemandReplicas`
// +kubebuilder:printcolumn:name="Image",type=string,priority=1,JSONPath=`.spec.containers[0].image`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="metadata.name must be at most 63 characters: it is the name of a Service"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS label that begins with a letter: it is the name of a Service"
type WebApp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	Spec WebAppSpec `json:"spec"`
	// status is the observed state. Plimsoll writes it.
	// +optional
	Status WebAppStatus `json:"status,omitempty"`
}

// WebAppList is a list of WebApps.
//
// +kubebuilder:object:root=true
type WebAppList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []WebApp `json:"items"`
}

// WebAppSpec is the desired state of a WebApp.
//
// +kubebuilder:validation:XValidation:rule="(has(self.service) && has(self.service.headless) && self.service.headless) == (has(oldSelf.service) && has(oldSelf.service.headless) && oldSelf.service.headless)",fieldPath=".service.headless",reason=FieldValueForbidden,message="service.headless cannot be changed: Kubernetes cannot change the cluster IP of a Service"
// +kubebuilder:validation:XValidation:rule="self.containers.all(c, !has(c.ports) || c.ports.all(p, self.containers.exists_one(d, has(d.ports) && d.ports.exists(q, q.name == p.name))))",fieldPath=".containers",message="the names of ports must differ over all containers: they are the ports of one Service"
// +kubebuilder:validation:XValidation:rule="(has(self.service) && has(self.service.type) && self.service.type != 'ClusterIP') || self.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.nodePort)))",fieldPath=".containers",message="nodePort needs service.type NodePort or LoadBalancer"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || self.containers.all(c, has(c.resources) && has(c.resources.requests) && 'cpu' in c.resources.requests)",fieldPath=".autoscaling",message="autoscaling needs resources.requests.cpu of every container: utilization is a share of it"
type WebAppSpec struct {
	// replicas is the desired number of pods. If autoscaling is set, the autoscaler decides instead.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// containers of each pod; the first is the main one.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	Containers []Container `json:"containers"`
	// envFrom are Secrets and ConfigMaps of the namespace whose entries become environment variables of every container.
	// A later one overrides entries of an earlier one. Pods start when all of them exist.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	EnvFrom []EnvFrom `json:"envFrom,omitempty"`
	// service exposes the ports. Plimsoll creates a Service if a container has ports.
	// +kubebuilder:default={}
	// +optional
	Service *Service `json:"service,omitempty"`
	// autoscaling scales the number of replicas with the load.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`
	// podDisruptionBudget limits how many pods can be evicted at the same time, by drains and by moves between spot and
	// on-demand capacity.
	// +optional
	PodDisruptionBudget *PodDisruptionBudget `json:"podDisruptionBudget,omitempty"`
	// spot places a share of the replicas on spot capacity. The namespace must be enabled for it as well.
	// +optional
	Spot *Spot `json:"spot,omitempty"`
	// podSecurity is the Pod Security Standard that the pods are made for. Default: restricted, with which no container runs
	// as root; baseline sets nothing.
	// +optional
	PodSecurity PodSecurity `json:"podSecurity,omitempty"`
	// mountToken gives the containers the token of the WebApp's ServiceAccount, with which they can call the API server.
	// +optional
	MountToken bool `json:"mountToken,omitempty"`
}

// PodSecurity is a Pod Security Standard of Kubernetes.
//
// +kubebuilder:validation:Enum=restricted;baseline
type PodSecurity string

// Pod Security Standards.
const (
	PodSecurityRestricted PodSecurity = "restricted"
	PodSecurityBaseline   PodSecurity = "baseline"
)

// Container is one container of every pod.
//
// +kubebuilder:validation:XValidation:rule="!has(self.readiness) || (has(self.ports) && self.ports.exists(p, p.name == self.readiness.port))",fieldPath=".readiness.port",message="readiness.port must be the name of a port of the container"
type Container struct {
	// name is unique in the WebApp.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// image to run. Whether it needs a tag or a digest is the hub's policy.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^\S+$`
	Image string `json:"image"`
	// command replaces the image's entry point.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`
	// args replace the image's arguments.
	// +kubebuilder:validation:MaxItems=128
	// +listType=atomic
	// +optional
	Args []string `json:"args,omitempty"`
	// ports that the container listens on; each is a port of the Service.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []Port `json:"ports,omitempty"`
	// env are environment variables. They override envFrom.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []EnvVar `json:"env,omitempty"`
	// resources that the container needs and may use.
	// +optional
	Resources *Resources `json:"resources,omitempty"`
	// readiness is the readiness probe of the container. Default: the container is ready as soon as it runs.
	// +optional
	Readiness *Readiness `json:"readiness,omitempty"`
}

// Port is a port of a container and of the Service.
type Port struct {
	// name is unique in the WebApp.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^([a-z0-9]+-)*[a-z0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$`
	Name string `json:"name"`
	// containerPort is where the container listens.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ContainerPort int32 `json:"containerPort"`
	// servicePort is where the Service listens. Default: containerPort.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	ServicePort *int32 `json:"servicePort,omitempty"`
	// nodePort is where every node listens. Default, with a Service of type NodePort or LoadBalancer: the cluster chooses.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	NodePort *int32 `json:"nodePort,omitempty"`
}

// EnvVar is an environment variable.
type EnvVar struct {
	// name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z][-._a-zA-Z0-9]*$`
	Name string `json:"name"`
	// value of the variable.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Value string `json:"value,omitempty"`
}

// EnvFrom is a Secret or a ConfigMap whose entries become environment variables.
//
// +kubebuilder:validation:XValidation:rule="has(self.secret) != has(self.configMap)",message="exactly one of secret and configMap must be set"
type EnvFrom struct {
	// secret is the name of a Secret.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	// +optional
	Secret string `json:"secret,omitempty"`
	// configMap is the name of a ConfigMap.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`
	// +optional
	ConfigMap string `json:"configMap,omitempty"`
	// prefix goes before the name of each entry.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z][-._a-zA-Z0-9]*$`
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// optional allows pods to start without it.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// Resources that a container needs, and that it may use at most.
type Resources struct {
	// requests are the resources that the scheduler reserves on a node.
	// +optional
	Requests ResourceList `json:"requests,omitempty"`
	// limits are the maximum resources of the container.
	// +optional
	Limits ResourceList `json:"limits,omitempty"`
}

// Readiness is an HTTP request that succeeds when the container is ready.
type Readiness struct {
	// path of the request.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^/\S*$`
	Path string `json:"path"`
	// port is the name of a port of the container.
	// +kubebuilder:validation:MaxLength=15
	Port string `json:"port"`
}

// ServiceType is the type of a Service.
//
// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
type ServiceType string

// Service exposes the ports of a WebApp.
//
// +kubebuilder:validation:XValidation:rule="!has(self.headless) || !self.headless || !has(self.type) || self.type == 'ClusterIP'",fieldPath=".headless",message="headless needs type ClusterIP"
type Service struct {
	// type of the Service.
	// +kubebuilder:default=ClusterIP
	// +optional
	Type ServiceType `json:"type,omitempty"`
	// headless creates a Service without a cluster IP: its name resolves to the pods. Immutable.
	// +kubebuilder:default=false
	// +optional
	Headless bool `json:"headless"`
}

// Autoscaling keeps the average CPU utilization near a target.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || self.minReplicas <= self.maxReplicas",fieldPath=".minReplicas",message="minReplicas must not be more than maxReplicas"
type Autoscaling struct {
	// minReplicas is the minimum number of replicas.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinReplicas int32 `json:"minReplicas,omitempty"`
	// maxReplicas is the maximum number of replicas.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxReplicas int32 `json:"maxReplicas"`
	// targetCPUUtilization is the share of the requested CPU that is used on average, in percent.
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +optional
	TargetCPUUtilization int32 `json:"targetCPUUtilization,omitempty"`
}

// PodDisruptionBudget limits voluntary disruptions of the pods: a number, or a percentage.
//
// +kubebuilder:validation:XValidation:rule="has(self.minAvailable) != has(self.maxUnavailable)",message="exactly one of minAvailable and maxUnavailable must be set"
type PodDisruptionBudget struct {
	// minAvailable is the minimum number of available pods.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 : string(self).matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0, or 0% to 100%"
	// +optional
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
	// maxUnavailable is the maximum number of unavailable pods.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? int(self) >= 0 : string(self).matches('^(100|[1-9]?[0-9])%$')",message="must be a number from 0, or 0% to 100%"
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// Spot is the placement policy of the replicas. What is not set comes from the namespace, or from the hub.
//
// +kubebuilder:validation:XValidation:rule="has(self.disruptionSchedule) == has(self.disruptionDuration)",message="disruptionSchedule and disruptionDuration must be set both, or neither"
type Spot struct {
	// percentage of the replicas that belongs on spot capacity.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	Percentage *int32 `json:"percentage,omitempty"`
	// minOnDemand is the minimum number of replicas on on-demand capacity.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinOnDemand *int32 `json:"minOnDemand,omitempty"`
	// disruptionSchedule says when replicas may be moved: five cron fields, in UTC. Default: at any time.
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=256
	// +optional
	DisruptionSchedule string `json:"disruptionSchedule,omitempty"`
	// disruptionDuration is the length of each window of disruptionSchedule, such as 2h.
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(h|m|s))+$`
	// +optional
	DisruptionDuration string `json:"disruptionDuration,omitempty"`
}
