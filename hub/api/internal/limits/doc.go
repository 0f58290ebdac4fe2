// Package limits bounds what one caller may take, so that there is always some for others: pace.go calls, arrivals.go
// calls of which it is not known yet whose they are (arrivals_grpc.go: those of a gRPC server), budget.go what lists and filters may cost,
// questions.go what plans may take that nothing comes of.
package limits
