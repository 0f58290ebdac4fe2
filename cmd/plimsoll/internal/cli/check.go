package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/connection"
	"github.com/plimsoll-dev/plimsoll/cmd/plimsoll/internal/enroll"
	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// errProblems is what `check` ends with when it has found something; what that is was printed.
var errProblems = errors.New("the installation has problems")

func checkCommand(env Environment) *cobra.Command {
	conn := connection.New(env.Getenv)
	command := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Report problems of the installation, and how to fix them",
		Long: `Report problems of the hub and its clusters, and how to fix them.

For the hub, it checks that it answers, the expiry of its certificate, its clock, and its version. For every cluster that you may see, or
those that you name, it checks the owner, the connection, the hub's rights, the cached kinds, that the cluster reaches and trusts the webhook,
the expiry of the hub's token, and the Kubernetes version.

The exit code is 1 if it finds a problem.`,
		Example: `  # Check the hub and all clusters
  plimsoll check

  # Check one cluster
  plimsoll check prod-eu`,
		ValidArgsFunction: completeClusters(conn),
		RunE: func(c *cobra.Command, names []string) error {
			api, err := conn.Open(c.Context())
			if err != nil {
				return err
			}
			defer api.Close()
			about, err := askAbout(c.Context(), api, env)
			if err != nil {
				return err
			}
			members, err := namedClusters(c.Context(), api, &query{}, names)
			if err != nil {
				return err
			}
			return check(env.Out, about, env.Now(), members.GetClusters())
		},
	}
	conn.AddFlags(command)
	return command
}

// check prints the problems of the hub and of members, and fails when there are some.
func check(to io.Writer, hub aboutHub, now time.Time, members []*plimsollv1.Cluster) error {
	found := findings(to, "hub", problemsOfHub(hub, clientVersion(), now))
	if len(members) == 0 {
		fmt.Fprintln(to, "No clusters are registered, or none that you may see.")
		fmt.Fprintln(to, "  do: register one with `plimsoll register`, or ask for the right to list clusters of api.plimsoll.dev")
		return errProblems
	}
	for _, member := range members {
		found += findings(to, member.GetName(), problemsOf(member))
		for _, is := range member.GetConditions() {
			if slices.Contains(chosen, is.GetType()) && is.GetStatus() == "True" {
				fmt.Fprintf(to, "%s: note: %s\n", plain(member.GetName()), plain(is.GetMessage()))
			}
		}
	}
	if found == 0 {
		return nil
	}
	return errProblems
}

// findings prints the problems of one part of the installation, and returns how many there are.
func findings(to io.Writer, part string, problems []problem) int {
	if len(problems) == 0 {
		fmt.Fprintf(to, "%s: ok\n", plain(part))
	}
	for _, p := range problems {
		fmt.Fprintf(to, "%s: %s\n  do: %s\n", plain(part), plain(p.what), p.remedy)
	}
	return len(problems)
}

// A problem is something that is wrong with a member, and what to do about it.
type problem struct{ what, remedy string }

// problemsOf finds what is wrong with a member, by its owner and its conditions. A kind that is not cached shows in Warm.
func problemsOf(member *plimsollv1.Cluster) []problem {
	var problems []problem
	if member.GetOwner() == "" {
		problems = append(problems, problem{"no replica of the hub owns it", "see the hub's pods and the Lease in its namespace; the hub's log says who holds it"})
	}
	if v, err := version.ParseGeneric(member.GetKubernetesVersion()); err == nil && v.LessThan(oldestKubernetes) {
		problems = append(problems, problem{"Kubernetes " + member.GetKubernetesVersion() + " is older than 1.30, and has no policies that restrict the hub's account",
			"upgrade the cluster (docs/operate.md, Versions)"})
	}
	for _, is := range member.GetConditions() {
		if slices.Contains(chosen, is.GetType()) {
			continue
		}
		expected := expectationOf(is.GetType())
		if is.GetStatus() == expected.status || isOwnKind(is.GetType()) && is.GetReason() == "Missing" { // not every member has that kind
			continue
		}
		problems = append(problems, problem{fmt.Sprintf("%s is %s, %s", is.GetType(), is.GetStatus(), reasonOf(is.GetReason(), is.GetMessage())), expected.remedy})
	}
	return problems
}

// expectation is the status that a condition has when all is well, and what to do when it has another one.
type expectation struct{ status, remedy string }

// badConditions are those that are True when something is wrong. Every other one is True when all is well.
var badConditions = []string{"TokenExpiring", "Detached"}

// remedies say what to do about a condition.
var remedies = map[string]string{
	"Accepted":      "correct the registration Secret, or run `plimsoll register` again",
	"Reachable":     "check that the member's API server runs, that the hub's network reaches it, and that clusters.allowedNetworks includes its address",
	"Warm":          "see the kinds in `plimsoll cluster NAME`; the hub retries",
	"Permitted":     "run `plimsoll register` for the member again: it grants the rights that the hub needs",
	"Current":       "check whether the member's API server is overloaded; the hub reopens the watches",
	"Separate":      "move the registration to the namespace of registrations, as docs/upgrade.md says",
	"Webhook":       "check that the member reaches webhook.url and trusts its certificate; for Unproven run `plimsoll register` for the member again (docs/runbooks.md, PlimsollWebhookUnreached)",
	"Steering":      "correct the annotation plimsoll.dev/steer-by of the registration Secret",
	"TokenExpiring": "run `plimsoll register` for the member again (docs/runbooks.md, PlimsollMemberTokenExpires)",
	"Detached":      "register the member again when it is back, or unregister it",
}

// isOwnKind reports whether a condition is about a kind of this repository.
func isOwnKind(condition string) bool {
	return slices.ContainsFunc(ownKinds(), func(own enroll.Kind) bool { return own.Title == condition })
}

func expectationOf(kind string) expectation {
	expected := expectation{status: "True", remedy: remedies[kind]}
	if slices.Contains(badConditions, kind) {
		expected.status = "False"
	}
	for _, own := range ownKinds() {
		if own.Title == kind {
			expected.remedy = "install the kind in the member again, with " + strings.TrimSuffix(own.InstallWith, ",")
		}
	}
	if expected.remedy == "" {
		expected.remedy = "see `plimsoll cluster NAME` and the hub's log"
	}
	return expected
}
