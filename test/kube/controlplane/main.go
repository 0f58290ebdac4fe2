// Command kube-all is the Kubernetes control plane in one binary: the name it is called by says which part it is.
//
// The testbed (package test/kube) starts every part of a cluster from it, and the demo uses its kubectl, so that a
// machine needs nothing installed but Go. It is built by build.sh and never becomes part of the product.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	_ "time/tzdata" // schedules in a named time zone must work on a machine without a zone database

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's sign-in plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics on /metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // build info on /metrics
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// parts are the names this binary answers to. Each main runs until the process is to end.
var parts = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { serve(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { serve(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { serve(scheduler.NewSchedulerCommand()) },
	"kubectl":                 kubectl,
}

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	run, ok := parts[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "%s: no such part: link this binary to one of %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	run()
}

// names lists what this binary can be, in order.
func names() []string {
	all := make([]string, 0, len(parts))
	for name := range parts {
		all = append(all, name)
	}
	sort.Strings(all)
	return all
}

// serve runs a server part and ends the process with its exit code.
func serve(command *cobra.Command) { os.Exit(cli.Run(command)) }

// kubectl runs the command line client, which prints its errors in a way of its own.
func kubectl() {
	// kubectl logs while it is being put together, before cobra has parsed -v.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
