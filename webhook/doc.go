// Package webhook answers the admission calls of every member's API server, and keeps the webhook configuration in the
// members and the certificates behind it current.
//
// A call arrives as POST /webhook/v1/members/{member}/{token}/pods. The path's token is a capability of that member; the
// body is scanned once, for the few facts that placement needs; the replica that owns the member answers with a patch.
//
// It never is a single point of failure: whatever goes wrong on our side (no owner, no answer in time, a panic) lets the
// pod through unchanged, and the reconciler repairs what slipped through. It never decides a placement itself, never
// creates the configuration in a member, and never writes a token or a key to a log, an error or a metric.
//
// Where to look:
//
//	handler.go   the way of one call; place.go asks the placer, forward.go the owner (forward_silent.go: one that is silent), answer.go writes the answer
//	review.go    which facts are taken from an AdmissionReview (review_affinity.go: those of its node affinity, review_spread.go: its spread);
//	             package jsonscan is the JSON scanner under it
//	server.go    the HTTPS server: connections.go and handshakes.go bound who connects, load.go what is read at once; turns.go
//	             ends turns on the processor between calls, deadline.go those of calls
//	token.go     capability tokens and the URL that carries them
//	ca.go        the hub's own CA in its Secret; leaf.go the certificates it issues; peer.go mutual TLS between replicas;
//	dir.go       certificates from a folder instead; clients.go those of API servers; expiry.go when ours end
//	desired.go   the configuration that a member should have; install.go brings it there;
//	             reach.go proves that the member reaches us, reach_answer.go answers that call
//	kinds.go     calls about kinds of the hub's modules: validate.go, convert.go (convert_read.go reads object by object); safe.go
//	             bounds what they may take
//	kinds_desired.go  what members should have about these kinds; kinds_install.go, kinds_keep.go bring it there
//	metrics.go   what is counted
package webhook
