// Package webhook answers the admission calls of every member's API server about pods, and keeps the webhook configuration in the
// members current. Package kinds below it does the same for the kinds of the hub's modules.
//
// A call arrives as POST /webhook/v1/members/{member}/{token}/pods. The path's token is a capability of that member; the
// body is scanned once, for the few facts that placement needs; the replica that owns the member answers with a patch.
//
// It is never a single point of failure: if the hub fails (no owner, no answer in time, a panic), the pod is admitted
// unchanged, and the reconciler corrects it later. It never decides a placement itself, never
// creates the configuration in a member, and never writes a token or a key to a log, an error or a metric.
//
// Where to look:
//
//	handler.go   one call from request to answer; place.go asks the placer, forward.go the owner (forward_silent.go: one that does not answer), answer.go writes the answer
//	review.go    which facts are taken from an AdmissionReview (review_affinity.go: those of its node affinity, review_spread.go: its spread);
//	             package jsonscan is the JSON scanner under it
//	server.go    the HTTPS server: connections.go and handshakes.go bound who connects, load.go what is read at once; turns.go
//	             ends turns on the processor between calls, deadline.go those of calls. Package calls: how large calls may be, how soon they are refused
//	token.go     capability tokens and the URL that carries them
//	clients.go   which calls need a client certificate; package hub/pki is where certificates come from
//	desired.go   the configuration that a member should have; install.go brings it there;
//	             reach.go checks that the member reaches us, reach_answer.go answers that call
//	metrics.go   metrics
package webhook
