package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// runbook is a section of docs/runbooks.md.
type runbook struct{ queries, commands []string }

var inBackticks = regexp.MustCompile("`([^`]+)`")

// notRun are commands of runbooks that nothing here could answer, and why.
var notRun = map[string]string{
	"kubectl -n plimsoll-system get certificate,certificaterequest": "cert-manager does not run here",
}

// runbooks are what the sections name under "Look at", by alert: queries for Prometheus, and commands.
func runbooks(t *testing.T) map[string]runbook {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]runbook{}
	for _, section := range strings.Split(string(page), "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		_, text, _ = strings.Cut(text, "**Look at.**")
		text, _, _ = strings.Cut(text, "**Fix.**")
		var found runbook
		for _, match := range inBackticks.FindAllStringSubmatch(text, -1) {
			switch command, _, _ := strings.Cut(match[1], " "); {
			case command == "kubectl" || command == "plimsoll":
				found.commands = append(found.commands, match[1])
			case isQuery(match[1]):
				found.queries = append(found.queries, match[1])
			}
		}
		all[name] = found
	}
	return all
}

// reachable is how long it may take until the metrics show a state, on a machine that is busy with other things.
const reachable = 2 * time.Minute

// An alertState is what an alert, or several, are about.
type alertState struct {
	name   string
	alerts []string
	// bring has the hub come into it, and again, where given, is called after each scrape until the alerts' expressions hold.
	bring, again func(*runbookSite) error
	// end undoes what would be in the way of later states.
	end func(*runbookSite) error
	// workload is the one that the runbook's commands are about, as NAMESPACE/KIND/NAME.
	workload string
}

// TestEachRunbookIsRunInItsState brings a hub into the state of each alert, one after the other. Before, the expression of the alert
// does not hold for it, then it does; the queries of the runbook are answered, and its commands succeed.
func TestEachRunbookIsRunInItsState(t *testing.T) {
	s := newRunbookSite(t)
	rules, books, unanswered := map[string]rulefmt.Rule{}, runbooks(t), queriesOfDashboards(t)
	for _, rule := range alertRules(t) {
		rules[rule.Alert] = rule
	}
	for range 3 {
		s.scrape()
	}
	for name, rule := range rules {
		if held, err := s.recording.holds(rule); err != nil || len(held) > 0 {
			t.Errorf("%s holds for a hub that is well: %v, %v", name, held, err)
		}
	}
	for _, state := range states() {
		t.Run(state.name, func(t *testing.T) {
			s := s.as(t)
			s.reach(state, rules)
			for _, alert := range state.alerts {
				s.follow(books[alert], state)
				delete(rules, alert)
			}
			s.must(s.recording.drop(unanswered))
			if state.end != nil {
				s.must(state.end(s))
			}
		})
	}
	for name := range rules {
		t.Errorf("no state is that of %s, or it was not reached", name)
	}
	s.recording.checkSeen(unanswered)
}

// reach brings the hub into a state, and waits until the expressions of its alerts hold.
func (s *runbookSite) reach(state alertState, rules map[string]rulefmt.Rule) {
	s.Helper()
	before := map[string][]string{}
	for _, alert := range state.alerts {
		var err error
		before[alert], err = s.recording.holds(rules[alert])
		s.must(err)
	}
	s.must(state.bring(s))
	missing, began := state.alerts, time.Now()
	for len(missing) > 0 {
		if time.Since(began) > reachable {
			s.Fatalf("these do not hold after %s: %v; before, these held: %v", reachable, missing, before)
		}
		s.scrape()
		missing = slices.DeleteFunc(slices.Clone(missing), func(alert string) bool {
			held, err := s.recording.holds(rules[alert])
			s.must(err)
			return slices.ContainsFunc(held, func(one string) bool { return !slices.Contains(before[alert], one) })
		})
		if state.again != nil && len(missing) > 0 {
			s.must(state.again(s))
		}
	}
}

// follow does what a runbook says, in its state.
func (s *runbookSite) follow(book runbook, state alertState) {
	s.Helper()
	if len(book.queries)+len(book.commands) == 0 {
		s.Errorf("the runbook of %v names nothing to look at", state.alerts)
	}
	for _, query := range book.queries {
		if answer, err := s.recording.ask(query); err != nil || len(answer) == 0 {
			s.Errorf("%s: %v, %v", query, answer, err)
		}
	}
	for _, command := range book.commands {
		if why := notRun[command]; why != "" {
			s.Logf("not run, because %s: %s", why, command)
			continue
		}
		s.shell(command, state.workload)
	}
}

// shell runs a command as somebody who looks would, with the hub cluster as context and the hub's API in reach.
func (s *runbookSite) shell(command, workload string) {
	s.Helper()
	command = strings.NewReplacer("CLUSTER NAMESPACE/KIND/NAME", "prod-eu "+workload, "--cluster NAME", "--cluster prod-eu").Replace(command)
	if strings.HasPrefix(command, "plimsoll ") {
		command += " --insecure-plaintext --api " + s.hub.GRPC
	}
	testbed, err := kube.BinDir()
	s.must(err)
	run := exec.CommandContext(timeout(s.T, patience), "bash", "-euo", "pipefail", "-c", command)
	run.Env = []string{"KUBECONFIG=" + s.kubeconfig, "HOME=" + filepath.Dir(s.kubeconfig), "PATH=" + filepath.Dir(s.kubeconfig) + ":" + testbed + ":" + os.Getenv("PATH")}
	if said, err := run.CombinedOutput(); err != nil || len(said) == 0 {
		s.Errorf("%s: %v\n%s", command, err, said)
	}
}

// scrape takes the metrics of all replicas, like Prometheus, at a pace of a second.
func (s *runbookSite) scrape() {
	s.Helper()
	<-s.pace.C
	got := map[string]map[string][]fleet.Sample{}
	for _, one := range *s.replicas {
		samples, err := one.Samples(s.Context())
		if err != nil {
			s.Logf("scrape %s: %v", one.Name, err)
		}
		got[one.Name] = samples
	}
	s.recording.add(got)
}
