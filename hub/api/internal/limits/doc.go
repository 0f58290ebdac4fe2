// Package limits bounds what one caller may take, so that there is always some for others: pace.go calls, places.go places, arrivals.go
// calls that are not complete (arrivals_grpc.go: those of a gRPC server), budget.go what filters may cost.
package limits
