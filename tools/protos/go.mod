// The third-party .proto files that ours import, and nothing else: neither module is built, and protovalidate has no Go
// package at all, so `go mod tidy` would empty this file. tools/protos/copy.sh says what is taken from each.
module github.com/plimsoll-dev/plimsoll/tools/protos

go 1.26.3

require (
	github.com/bufbuild/protovalidate v1.2.2
	github.com/grpc-ecosystem/grpc-gateway v1.16.0
)
