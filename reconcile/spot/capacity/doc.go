// Package capacity says what capacity types are, how nodes and pods show theirs, how pods are sent to one, and what pods ask of
// nodes beside it. It is pure: it calls no API and asks for no time.
//
//   - labels.go: capacity types, and what node labels, selectors and affinities say about them ([Type], [Labels]);
//   - steering.go, affinity.go: how a member's pods are sent to a capacity type, by what its nodes carry ([Steering]);
//   - requirements.go, requirements_of.go: what the scheduler asks of a node for a pod, in a partial order ([Requirements]);
//   - node_requirements.go: which nodes meet a pod's own selector and affinity ([NodeRequirements]);
//   - tally.go: numbers by capacity type ([Tally], [Code]).
package capacity
