// Package rest serves the API's methods as REST beside gRPC: the same calls, over a connection that goes through the same
// interceptors.
//
// rest.go puts it together, errors.go writes errors and refuses what is no call, query.go knows the query parameters of each
// path, streams.go writes watches, arrive.go reads bodies, public.go serves what needs no token.
package rest
