package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/version"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// errProblems is what `check` ends with when it has found something; what that is was printed.
var errProblems = errors.New("something is wrong with the installation")

func checkCommand(env Environment) *cobra.Command {
	conn := connection{env: env}
	command := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Report what is wrong with the installation, and what to do about it",
		Long: `Report what is wrong with the hub and its clusters, and what to do about it.

Of the hub: whether it answers, whether its certificate is about to expire, how far its clock is from that of this machine, and its version. Of
every cluster that you may see, or of those that you name: who acts on it, whether the hub reaches it, has its rights there, and caches every
kind, whether the cluster reaches the webhook and trusts it, whether its token is about to expire, and whether its Kubernetes is old.

The exit code is 1 if something is wrong.`,
		Example: `  # Check the hub and all clusters
  plimsoll check

  # Check one cluster
  plimsoll check prod-eu`,
		ValidArgsFunction: completeClusters(&conn),
		RunE: func(c *cobra.Command, names []string) error {
			api, err := conn.open(c.Context())
			if err != nil {
				return err
			}
			defer api.close()
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
	conn.flags(command)
	return command
}

// check prints the problems of the hub and of members, and fails when there are some.
func check(to io.Writer, hub aboutHub, now time.Time, members []*plimsollv1.Cluster) error {
	found := findings(to, "hub", problemsOfHub(hub, now))
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
		problems = append(problems, problem{"no replica of the hub acts on it", "see the hub's pods and the Lease in its namespace; the hub's log says who holds it"})
	}
	if v, err := version.ParseGeneric(member.GetKubernetesVersion()); err == nil && v.LessThan(oldestKubernetes) {
		problems = append(problems, problem{"Kubernetes " + member.GetKubernetesVersion() + " is older than 1.30, and has no policies that bind the hub's account",
			"upgrade the cluster (docs/operate.md, Versions)"})
	}
	for _, is := range member.GetConditions() {
		if slices.Contains(chosen, is.GetType()) {
			continue
		}
		expected := expectationOf(is.GetType())
		if is.GetStatus() == expected.status || is.GetType() == "WebApps" && is.GetReason() == "Missing" { // not every member has that kind
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
	"Accepted":      "correct the registration Secret, or let `plimsoll register` write it again",
	"Reachable":     "see whether the member's API server runs, whether the hub's network reaches it, and whether clusters.allowedNetworks has its address",
	"Warm":          "see the kinds in `plimsoll cluster NAME`; the hub tries again by itself",
	"Permitted":     "run `plimsoll register` for the member again: it writes the rights that the hub needs",
	"Current":       "see whether the member's API server is overloaded; the hub opens the watches again by itself",
	"Separate":      "move the registration to the namespace of registrations, as docs/upgrade.md says",
	"Webhook":       "see whether the member reaches webhook.url and trusts its certificate; for Unproven run `plimsoll register` for the member again (docs/runbooks.md, PlimsollWebhookUnreached)",
	"WebApps":       "run `plimsoll webapps install` for the member again",
	"Steering":      "correct the annotation of the registration Secret that says what pods are steered by",
	"TokenExpiring": "run `plimsoll register` for the member again (docs/runbooks.md, PlimsollMemberTokenExpires)",
	"Detached":      "register the member again when it is back, or unregister it",
}

func expectationOf(kind string) expectation {
	expected := expectation{status: "True", remedy: remedies[kind]}
	if slices.Contains(badConditions, kind) {
		expected.status = "False"
	}
	if expected.remedy == "" {
		expected.remedy = "see `plimsoll cluster NAME` and the hub's log"
	}
	return expected
}
