package cli

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// What is wrong with a hub.
const (
	// mostSkew is how far clocks may be apart: more spoils ages, windows, and tokens.
	mostSkew = 30 * time.Second
	// certificateWarning is how long before its end a certificate is reported. The hub renews its own earlier.
	certificateWarning = 7 * 24 * time.Hour
)

// oldestKubernetes is what members have to be for everything to work.
var oldestKubernetes = version.MustParseGeneric("1.30")

// chosen are conditions that a person brought about: they are reported, and are no problem.
var chosen = []string{"Cordoned", "Paused"}

// problemsOfHub finds what is wrong with the replica of the hub that answered; client is the version of this command.
func problemsOfHub(hub aboutHub, client string, now time.Time) (problems []problem) {
	if hub.skew.Abs() > mostSkew {
		problems = append(problems, problem{fmt.Sprintf("its clock differs by %s from that of this machine", hub.skew.Abs().Round(time.Second)),
			"synchronize the clocks of the hub's nodes and of this machine: disruption windows and tokens depend on them"})
	}
	switch left := hub.certificate.Sub(now); {
	case hub.certificate.IsZero():
	case left <= 0:
		problems = append(problems, problem{"the certificate of its API expired at " + hub.certificate.UTC().Format(time.RFC3339), remedyCertificate})
	case left < certificateWarning:
		problems = append(problems, problem{"the certificate of its API expires at " + hub.certificate.UTC().Format(time.RFC3339), remedyCertificate})
	}
	if known(hub.version) && known(client) && hub.version != client {
		problems = append(problems, problem{fmt.Sprintf("its version is %s, but the version of this command is %s", hub.version, client),
			"use the command with the hub's version"})
	}
	return problems
}

const remedyCertificate = "check the renewal of the certificate in api.certDir; a hub that creates its own certificate renews it, so check its log and restart it"

// known reports whether a version is one of a release.
func known(text string) bool {
	_, err := version.ParseSemantic(text)
	return err == nil
}
