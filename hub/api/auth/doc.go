// Package auth finds out who calls the API, and what they may do.
//
// Who calls is found from a bearer token, which the hub cluster reviews, or from a client certificate ([Identifier]). What they may
// do is an [Access], about which the hub cluster is asked by a SubjectAccessReview. What it said is remembered for seconds, and a
// flood of bad tokens does not become one of reviews.
//
// Where to look: identity.go for the words; bearer.go, tokens.go and certificates.go for who calls, strangers.go for those who show
// bad tokens; access.go for what they may do, unlisted.go for what they may not see.
//
// It passes no token on, and writes none to a log or an error.
package auth
