package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// errProblems is what `check` ends with when it has found something; what that is was printed.
var errProblems = errors.New("something is wrong with the installation")

func checkCommand(env Environment) *cobra.Command {
	conn := connection{env: env}
	command := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Report what is wrong with the installation, and what to do about it",
		Long: `Report what is wrong with the hub and its members, and what to do about it.

It asks the hub's API, and shows every member that you may see, or those that are named: who acts on it, whether the hub reaches
it, has the rights that it needs there and caches every kind, whether the member reaches the webhook, and whether its token is
about to expire. The exit code is 1 when something is wrong.`,
		Example: `  plimsoll check
  plimsoll check prod-eu`,
		RunE: func(c *cobra.Command, names []string) error {
			api, err := conn.open(c.Context())
			if err != nil {
				return err
			}
			defer api.close()
			members, err := namedClusters(c.Context(), api, names)
			if err != nil {
				return err
			}
			return check(env.Out, members)
		},
	}
	conn.flags(command)
	return command
}

// namedClusters are the members with these names, or all. Who is unreachable shows in no other way than by having no owner.
func namedClusters(ctx context.Context, api *caller, names []string) ([]*plimsollv1.Cluster, error) {
	if len(names) == 0 {
		all, err := listClusters(ctx, api, &query{})
		return all.GetClusters(), err
	}
	members := make([]*plimsollv1.Cluster, 0, len(names))
	for _, name := range names {
		found, err := getCluster(ctx, api, name)
		if err != nil {
			return nil, err
		}
		members = append(members, found.GetCluster())
	}
	return members, nil
}

// check prints the problems of members, and fails when there are some.
func check(to io.Writer, members []*plimsollv1.Cluster) error {
	if len(members) == 0 {
		fmt.Fprintln(to, "No clusters are registered, or none that you may see.")
		fmt.Fprintln(to, "  do: register one with `plimsoll register`, or ask for the right to list clusters of api.plimsoll.dev")
		return errProblems
	}
	found := 0
	for _, member := range members {
		problems := problemsOf(member)
		if len(problems) == 0 {
			fmt.Fprintf(to, "%s: ok\n", plain(member.GetName()))
			continue
		}
		found += len(problems)
		for _, p := range problems {
			fmt.Fprintf(to, "%s: %s\n  do: %s\n", plain(member.GetName()), plain(p.what), p.remedy)
		}
	}
	if found == 0 {
		return nil
	}
	return errProblems
}

// A problem is something that is wrong with a member, and what to do about it.
type problem struct{ what, remedy string }

// problemsOf finds what is wrong with a member, by its owner and its conditions. A kind that is not cached shows in Warm.
func problemsOf(member *plimsollv1.Cluster) []problem {
	var problems []problem
	if member.GetOwner() == "" {
		problems = append(problems, problem{"no replica of the hub acts on it", "see the hub's pods and the Lease in its namespace; the hub's log says who holds it"})
	}
	for _, is := range member.GetConditions() {
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
