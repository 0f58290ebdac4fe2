// Package inprocess is a gRPC connection to services of the same process: a call goes through the interceptors and into the
// service, as it would through a gRPC server, and over no wire.
//
// inprocess.go has single calls, stream.go streams that take one request.
package inprocess
