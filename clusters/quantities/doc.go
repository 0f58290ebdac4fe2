// Package quantities makes what a stranger sends safe to decode: the resource quantities in it, and how much memory it becomes.
//
// resource.ParseQuantity computes powers of ten exactly: the 13 bytes of 1e-2147483647 keep a processor busy for hours and
// take hundreds of megabytes, and no context ends it. Every quantity is therefore bounded in the encoded text, before any
// decoder sees it: its exponent to [MaxExponent], beyond which the value does not change (Kubernetes rounds everything
// smaller than 1n up to it), and its length to [MaxLength] characters. The text keeps its length, so that nothing around it
// has to change.
//
//   - paths.go: where quantities can be.
//   - json.go, proto.go: the two encodings; clamp.go: one quantity.
//   - limits.go: how large what is decoded may become, and the texts of its metadata ([Limits]).
//
// Where quantities can be follows from the Go types of a scheme: [Paths] finds the paths that lead to one, as JSON field
// names and as protobuf field numbers. Text in other places, a label that looks like a number for example, stays as it is.
package quantities
