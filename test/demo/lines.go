package main

import (
	"fmt"
	"os"
)

// line is one that is printed for people to paste; the checks run it as it is printed.
type line struct {
	name    string // for the checks
	says    string // what it does
	command string
}

// Numbers in the lines, which the checks need as well.
const (
	changedPercent = 30 // of web in prod-eu, from 70
	scaledUp       = 50 // web in prod-us, from 30
	scaledDown     = 11
)

// lines are all of them, for a hub that listens on these ports. They work from the repository's root. The README shows the same
// ones, in the same order; a test compares them.
func lines(p ports) []line {
	api := ""
	if p.GRPC != usual.GRPC { // the CLI's default
		api = " --server " + loopback(p.GRPC)
	}
	cli := api + " --ca-file " + caFile + " --token-file " + tokenFile
	bearer := `-H "Authorization: Bearer $(cat ` + tokenFile + `)"`
	return []line{
		{"policy", "move replicas: less of web on spot capacity", kubectlLine("prod-eu",
			fmt.Sprintf("annotate deployment/web plimsoll.dev/spot-percentage=%d --overwrite", changedPercent))},
		{"pods", "see every replica's slot and node", kubectlLine("prod-eu", "get pods -l app=web -L plimsoll.dev/slot -o wide")},
		{"up", "scale up: the mix holds, and nothing is evicted", kubectlLine("prod-us", fmt.Sprintf("scale deployment/web --replicas=%d", scaledUp))},
		{"down", "scale down: the same", kubectlLine("prod-us", fmt.Sprintf("scale deployment/web --replicas=%d", scaledDown))},
		{"workloads", "list the workloads: CLI", cliBinary + " workloads" + cli},
		{"explain", "explain a workload: CLI", cliBinary + " explain prod-eu " + namespace + "/deployment/web" + cli},
		{"requeue", "requeue a workload, and wait for the result", cliBinary + " requeue prod-eu " + namespace + "/deployment/web --wait" + cli},
		{"curl", "list the workloads: REST", fmt.Sprintf(`curl -s%s --cacert %s %s 'https://%s/v1/workloads?cluster=prod-eu'`, noProxy(os.Getenv), caFile, bearer, loopback(p.REST))},
		{"grpcurl", "requeue a workload: gRPC", fmt.Sprintf(`%s -cacert %s %s -d '{"cluster":"prod-eu","namespace":"%s","kind":"Deployment","name":"web"}' %s plimsoll.v1.WorkloadService/RequeueWorkload`,
			grpcurl, caFile, bearer, namespace, loopback(p.GRPC))},
	}
}

// lineNamed finds a line by its name.
func lineNamed(p ports, name string) line {
	for _, l := range lines(p) {
		if l.name == name {
			return l
		}
	}
	panic("no printed line " + name) // a slip in this program, not in what it is given
}

// kubectlLine is a line for the admin of a cluster.
func kubectlLine(cluster, arguments string) string {
	return fmt.Sprintf("%s --kubeconfig %s -n %s %s", kubectl, kubeconfig(cluster), namespace, arguments)
}

// noProxy keeps curl from asking a proxy for this machine's own loopback, which the other programs never do.
func noProxy(getenv func(string) string) string {
	for _, name := range []string{"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"} {
		if getenv(name) != "" {
			return " --noproxy '*'"
		}
	}
	return ""
}

// printLines prints them.
func (d *demo) printLines() {
	d.screen.title("Try it, in another terminal, from the repository's root")
	for i, l := range lines(d.ports) {
		if i > 0 {
			d.screen.printf("")
		}
		d.screen.printf("  %s\n    %s", d.screen.paint(faint, "# "+l.says), l.command)
	}
}
