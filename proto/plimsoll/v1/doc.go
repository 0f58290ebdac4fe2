// Package plimsollv1 is the wire contract of the hub's API: what buf generates from the .proto files beside it, and the
// OpenAPI document of its REST side ([OpenAPI]).
//
// Start with cluster_service.proto, workload_service.proto and object_service.proto; each has its messages in the file
// without "_service". It holds no behaviour: package hub/api serves it, and the rules that the .proto files state for
// requests are checked there. `make generate` writes everything that ends in .pb.go, .pb.gw.go or .swagger.json.
package plimsollv1
