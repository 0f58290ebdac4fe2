// Command roots writes the certificate authorities that everybody trusts, in PEM, for an image that has no system of its
// own. They are Mozilla's, at the version that go.mod pins.
package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: roots FILE")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "roots:", err)
		os.Exit(1)
	}
}

// write leaves out authorities that are trusted under conditions only: a PEM file cannot say them.
func write(file string) error {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return err
		}
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}
