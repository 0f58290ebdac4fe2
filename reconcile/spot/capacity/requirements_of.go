package capacity

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-dev/plimsoll/reconcile/spot/internal/phrase"
)

// Kinds of constraints, as they begin.
const (
	ConstraintSelector  = "select:"     // key=value of a node selector
	constraintNode      = "node:"       // an expression of required node affinity
	constraintNodes     = "nodes:"      // required node affinity with alternatives
	constraintNear      = "near:"       // a term of required pod affinity
	constraintApart     = "apart:"      // a term of required pod anti-affinity
	constraintSpread    = "spread:"     // a topology spread constraint that must hold
	constraintSpreadAll = "spread-all:" // a topology key: a template's constraint over it counts all nodes
	constraintPort      = "port:"       // a port of the node
	ConstraintVolume    = "volume:"     // a claim, which may be bound to some nodes; that of a StatefulSet without its ordinal
	constraintDevice    = "device:"     // a claim of a device
	constraintScheduler = "scheduler:"  // another scheduler, with rules of its own
)

// RequirementsOf reads the scheduling requirements off a pod, or off the template of one: then name is empty. What steers to a capacity type is left
// out. Only what must hold counts: preferences change where a pod goes, and not whether.
func RequirementsOf(spec *corev1.PodSpec, namespace, name string, capacity Labels) Requirements {
	r := reader{spec: spec, namespace: namespace, name: name, capacity: capacity}
	r.requests()
	r.nodeConstraints()
	r.podConstraints()
	r.claims()
	r.tolerations()
	slices.Sort(r.found.Constraints)
	r.found.Constraints = slices.Compact(r.found.Constraints)
	slices.Sort(r.found.Tolerations)
	r.found.Tolerations = slices.Compact(r.found.Tolerations)
	return r.found
}

type reader struct {
	spec            *corev1.PodSpec
	namespace, name string
	capacity        Labels
	found           Requirements
}

func (r *reader) constrain(kind, text string) {
	r.found.Constraints = append(r.found.Constraints, kind+text)
}

// requests adds up what the scheduler counts: the containers and sidecars together, or what an init container needs beside
// the sidecars before it, whichever is more; a pod's own requests stand in the place of those, and its overhead comes on top.
func (r *reader) requests() {
	total, starting, sidecars := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for i := range r.spec.InitContainers {
		c := &r.spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addRequests(sidecars, c.Resources.Requests)
			continue
		}
		// What it does not ask for itself it needs for the sidecars alone, which are counted below: so no more is compared than it asks for.
		for name, quantity := range c.Resources.Requests {
			need := sidecars[name]
			need.Add(quantity)
			maxRequest(starting, name, need)
		}
	}
	addRequests(total, sidecars)
	for i := range r.spec.Containers {
		addRequests(total, r.spec.Containers[i].Resources.Requests)
		for _, port := range r.spec.Containers[i].Ports {
			if port.HostPort != 0 {
				r.constrain(constraintPort, string(port.Protocol)+"/"+strconv.Itoa(int(port.HostPort)))
			}
		}
	}
	maxRequests(total, starting)
	if r.spec.Resources != nil {
		for name, quantity := range r.spec.Resources.Requests {
			total[name] = quantity
		}
	}
	addRequests(total, r.spec.Overhead)
	for name, quantity := range total {
		switch {
		case quantity.Sign() <= 0:
		case name == corev1.ResourceCPU:
			r.found.CPU = quantity.MilliValue()
		case name == corev1.ResourceMemory:
			r.found.Memory = quantity.Value()
		default:
			r.found.Other = append(r.found.Other, Request{Name: string(name), Amount: quantity.Value()})
		}
	}
	slices.SortFunc(r.found.Other, func(a, b Request) int { return strings.Compare(a.Name, b.Name) })
	if r.spec.Priority != nil {
		r.found.Priority = *r.spec.Priority
	}
}

func addRequests(to, more corev1.ResourceList) {
	for name, quantity := range more {
		sum := to[name]
		sum.Add(quantity)
		to[name] = sum
	}
}

func maxRequests(to, other corev1.ResourceList) {
	for name, quantity := range other {
		maxRequest(to, name, quantity)
	}
}

func maxRequest(to corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if has, ok := to[name]; !ok || quantity.Cmp(has) > 0 {
		to[name] = quantity
	}
}

// nodeConstraints reads what nodes must have. The expressions of a single term must all hold, so each is a constraint of its
// own; of several terms one must hold, so they are one constraint.
func (r *reader) nodeConstraints() {
	for key, value := range r.spec.NodeSelector {
		if r.capacity.find(key) == nil {
			r.constrain(ConstraintSelector, key+"="+value)
		}
	}
	if name := r.spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		r.constrain(constraintScheduler, name)
	}
	if r.spec.Affinity == nil || r.spec.Affinity.NodeAffinity == nil || r.spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	var terms []corev1.NodeSelectorTerm
	for _, term := range r.spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if emptyTerm(&term) {
			continue // no node meets it
		}
		term.MatchExpressions = slices.DeleteFunc(slices.Clone(term.MatchExpressions), func(e corev1.NodeSelectorRequirement) bool {
			return r.capacity.find(e.Key) != nil
		})
		if emptyTerm(&term) {
			return // an alternative that asks for nothing further
		}
		if !repeats(terms, &term) { // steering multiplies the pod's own
			terms = append(terms, term)
		}
	}
	if len(terms) != 1 || len(terms[0].MatchFields) > 0 {
		if len(terms) > 0 {
			r.constrain(constraintNodes, JSONOf(terms))
		}
		return
	}
	for _, e := range terms[0].MatchExpressions {
		r.constrain(constraintNode, JSONOf(e))
	}
}

// podConstraints reads which pods must be near or far. Terms without a namespace mean the pod's own.
func (r *reader) podConstraints() {
	terms := func(kind string, list []corev1.PodAffinityTerm) {
		for _, term := range list {
			if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
				term.Namespaces = []string{r.namespace}
			}
			term.MatchLabelKeys, term.MismatchLabelKeys = nil, nil // the API server has merged them into the selector
			r.constrain(kind, JSONOf(term))
		}
	}
	if a := r.spec.Affinity; a != nil && a.PodAffinity != nil {
		terms(constraintNear, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := r.spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		terms(constraintApart, a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	for _, spread := range r.spec.TopologySpreadConstraints {
		if spread.WhenUnsatisfiable == corev1.DoNotSchedule {
			// Admission sets this policy, so that it would distinguish pods from their template.
			if InclusionPolicy(spread.NodeAffinityPolicy) == corev1.NodeInclusionPolicyIgnore {
				spread.NodeAffinityPolicy = nil
				if r.name == "" {
					r.constrain(constraintSpreadAll, spread.TopologyKey)
				}
			}
			r.constrain(constraintSpread, r.namespace+"/"+JSONOf(spread))
		}
	}
}

// claims reads the volumes and devices that may be bound to some nodes.
func (r *reader) claims() {
	ordinal, _ := phrase.Ordinal(r.name)
	suffix := "-" + r.name
	for i := range r.spec.Volumes {
		v := &r.spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			claim := v.PersistentVolumeClaim.ClaimName
			if strings.HasSuffix(claim, suffix) && r.name != "" {
				claim = strings.TrimSuffix(claim, strconv.Itoa(ordinal))
			}
			r.constrain(ConstraintVolume, r.namespace+"/"+claim)
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			r.constrain(ConstraintVolume, JSONOf(v.Ephemeral.VolumeClaimTemplate.Spec))
		}
	}
	for i := range r.spec.ResourceClaims {
		r.constrain(constraintDevice, r.namespace+"/"+JSONOf(r.spec.ResourceClaims[i]))
	}
}

// tolerations leaves out those that every pod has, those of nodes that are no place for a new pod, and those of the taints by
// which providers mark spot nodes, which every spot pod gets.
func (r *reader) tolerations() {
	for _, t := range r.spec.Tolerations {
		if label := r.capacity.find(t.Key); label != nil && label.tainted {
			continue
		}
		if t.Effect == corev1.TaintEffectNoExecute && (t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable) {
			continue
		}
		t.TolerationSeconds = nil
		r.found.Tolerations = append(r.found.Tolerations, JSONOf(t))
	}
}

// JSONOf is the JSON of a part of a pod's spec, which can always be written.
func JSONOf(part any) string {
	text, _ := json.Marshal(part)
	return string(text)
}

// PodSpec returns the spec of a pause pod that is as hard to place as a pod with these requirements: what it asks for, and all constraints that a
// pod of another namespace can have. Volumes, devices and topology spread are left out, which makes a probe easier to place
// than a replica, never harder. The image, the steering to spot, the gate and the lowest priority are the caller's.
func (s Requirements) PodSpec() corev1.PodSpec {
	requests := corev1.ResourceList{}
	if s.CPU > 0 {
		requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(s.CPU, resource.DecimalSI)
	}
	if s.Memory > 0 {
		requests[corev1.ResourceMemory] = *resource.NewQuantity(s.Memory, resource.BinarySI)
	}
	limits := corev1.ResourceList{}
	for _, r := range s.Other {
		quantity := *resource.NewQuantity(r.Amount, resource.DecimalSI)
		requests[corev1.ResourceName(r.Name)] = quantity
		if strings.Contains(r.Name, "/") || strings.HasPrefix(r.Name, corev1.ResourceHugePagesPrefix) {
			limits[corev1.ResourceName(r.Name)] = quantity // such resources cannot be asked for without a limit
		}
	}
	container := corev1.Container{Name: "probe", Resources: corev1.ResourceRequirements{Requests: requests, Limits: limits}}
	spec := corev1.PodSpec{}
	for _, c := range s.Constraints {
		kind, text, _ := strings.Cut(c, ":")
		constrainSpec(&spec, &container, kind+":", text)
	}
	for _, text := range s.Tolerations {
		var t corev1.Toleration
		if json.Unmarshal([]byte(text), &t) == nil {
			spec.Tolerations = append(spec.Tolerations, t)
		}
	}
	spec.Containers = []corev1.Container{container}
	return spec
}

func constrainSpec(spec *corev1.PodSpec, container *corev1.Container, kind, text string) {
	switch kind {
	case ConstraintSelector:
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		key, value, _ := strings.Cut(text, "=")
		spec.NodeSelector[key] = value
	case constraintNode:
		if e, ok := parsePart[corev1.NodeSelectorRequirement](text); ok {
			required := requiredNodes(spec)
			if len(required.NodeSelectorTerms) == 0 {
				required.NodeSelectorTerms = make([]corev1.NodeSelectorTerm, 1)
			}
			required.NodeSelectorTerms[0].MatchExpressions = append(required.NodeSelectorTerms[0].MatchExpressions, e)
		}
	case constraintNodes:
		if terms, ok := parsePart[[]corev1.NodeSelectorTerm](text); ok {
			requiredNodes(spec).NodeSelectorTerms = terms
		}
	case constraintNear:
		if term, ok := parsePart[corev1.PodAffinityTerm](text); ok {
			a := affinity(spec)
			if a.PodAffinity == nil {
				a.PodAffinity = &corev1.PodAffinity{}
			}
			list := &a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*list = append(*list, term)
		}
	case constraintApart:
		if term, ok := parsePart[corev1.PodAffinityTerm](text); ok {
			a := affinity(spec)
			if a.PodAntiAffinity == nil {
				a.PodAntiAffinity = &corev1.PodAntiAffinity{}
			}
			list := &a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			*list = append(*list, term)
		}
	case constraintPort:
		protocol, port, _ := strings.Cut(text, "/")
		if number, ok := phrase.Number(port, 65535); ok {
			container.Ports = append(container.Ports, corev1.ContainerPort{
				Protocol: corev1.Protocol(protocol), HostPort: int32(number), ContainerPort: int32(number)})
		}
	case constraintScheduler:
		spec.SchedulerName = text
	}
}

func affinity(spec *corev1.PodSpec) *corev1.Affinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	return spec.Affinity
}

func requiredNodes(spec *corev1.PodSpec) *corev1.NodeSelector {
	a := affinity(spec)
	if a.NodeAffinity == nil {
		a.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{}}
	}
	return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

func parsePart[T any](text string) (part T, ok bool) {
	return part, json.Unmarshal([]byte(text), &part) == nil
}

// MaxSpreads is how many topology spread constraints of a template are looked at, in the order of their texts.
const MaxSpreads = 4

// SpreadConstraints are the topology spread constraints that must hold.
func (s Requirements) SpreadConstraints() []corev1.TopologySpreadConstraint {
	var list []corev1.TopologySpreadConstraint
	for _, constraint := range s.Constraints {
		text, ok := strings.CutPrefix(constraint, constraintSpread)
		_, text, _ = strings.Cut(text, "/") // after the namespace
		if c, read := parsePart[corev1.TopologySpreadConstraint](text); ok && read && len(list) < MaxSpreads {
			if slices.Contains(s.Constraints, constraintSpreadAll+c.TopologyKey) {
				c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
			}
			list = append(list, c)
		}
	}
	return list
}

// InclusionPolicy returns a policy of a topology spread constraint; empty where none is set.
func InclusionPolicy(p *corev1.NodeInclusionPolicy) corev1.NodeInclusionPolicy {
	if p == nil {
		return ""
	}
	return *p
}
