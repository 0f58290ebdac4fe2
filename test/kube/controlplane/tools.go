//go:build tools

package main

import (
	// The main package of KWOK, which plays the nodes, is kept in go.mod by this import; build.sh builds it on its own.
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
