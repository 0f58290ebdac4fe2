package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// workloadKey names a workload of a member.
type workloadKey struct{ cluster, namespace, kind, name string }

// kinds are those that are placed, in every way that kubectl takes them.
var kinds = map[string]string{
	"deployment": "Deployment", "deployments": "Deployment", "deploy": "Deployment", "deployment.apps": "Deployment", "deployments.apps": "Deployment",
	"statefulset": "StatefulSet", "statefulsets": "StatefulSet", "sts": "StatefulSet", "statefulset.apps": "StatefulSet", "statefulsets.apps": "StatefulSet",
	"replicaset": "ReplicaSet", "replicasets": "ReplicaSet", "rs": "ReplicaSet", "replicaset.apps": "ReplicaSet", "replicasets.apps": "ReplicaSet",
}

// kindOf reads a kind: one of Kubernetes' own, or one of another group with that group, as in rollout.argoproj.io. The hub
// knows how the rest of it is written.
func kindOf(text string) (string, bool) {
	if kind, ok := kinds[strings.ToLower(text)]; ok {
		return kind, true
	}
	kind, group, ok := strings.Cut(text, ".")
	if !ok || kind == "" || group == "" {
		return "", false
	}
	return strings.ToUpper(kind[:1]) + kind[1:] + "." + strings.ToLower(group), true
}

// workloadUse is what commands about one workload take, beside CLUSTER KIND NAME.
const workloadUse = "CLUSTER KIND/NAME"

// workloadLong explains it.
const workloadLong = `

The workload is KIND/NAME with its namespace in -n, or NAMESPACE/KIND/NAME.`

// workloadNamespace is the flag -n of a command about one workload.
func workloadNamespace(command *cobra.Command, into *string) {
	command.Flags().StringVarP(into, "namespace", "n", "", "namespace of the workload")
}

// workloadArguments takes what parseWorkloadArguments reads.
func workloadArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) < 2:
		return usage(c, errors.New("missing: "+strings.Join([]string{"CLUSTER", "NAMESPACE/KIND/NAME"}[len(args):], " ")))
	case len(args) > 3:
		return usage(c, errors.New("too many arguments: "+strings.Join(args[3:], " ")))
	}
	return nil
}

// parseWorkloadArguments reads CLUSTER and a workload, which is one argument or KIND and NAME. namespace is that of -n; "": it was not given.
func parseWorkloadArguments(args []string, namespace string) (workloadKey, error) {
	if len(args) == 2 {
		return parseWorkload(args[0], args[1], namespace)
	}
	kind, name := args[1], args[2]
	if in, rest, ok := strings.Cut(name, "/"); ok {
		return parseWorkload(args[0], in+"/"+kind+"/"+rest, namespace)
	}
	if namespace == "" {
		return workloadKey{}, fmt.Errorf("%q: must be NAMESPACE/NAME, as in shop/cart, or NAME with its namespace in -n", name)
	}
	return parseWorkload(args[0], kind+"/"+name, namespace)
}

// parseWorkload reads NAMESPACE/KIND/NAME, or KIND/NAME in a namespace.
func parseWorkload(cluster, text, namespace string) (workloadKey, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 2 && namespace != "" {
		parts = append([]string{namespace}, parts...)
	}
	if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
		return workloadKey{}, fmt.Errorf("%q: must be NAMESPACE/KIND/NAME, as in shop/deployment/cart, or KIND/NAME with its namespace in -n", text)
	}
	if namespace != "" && parts[0] != namespace {
		return workloadKey{}, fmt.Errorf("%q: -n says %q: give one namespace", text, namespace)
	}
	kind, ok := kindOf(parts[1])
	if !ok {
		return workloadKey{}, fmt.Errorf("%q: the kind must be deployment, statefulset, replicaset, or one with its group such as rollout.argoproj.io", text)
	}
	return workloadKey{cluster: cluster, namespace: parts[0], kind: kind, name: parts[2]}, nil
}

func (k workloadKey) get() *plimsollv1.GetWorkloadRequest {
	return &plimsollv1.GetWorkloadRequest{Cluster: k.cluster, Namespace: k.namespace, Kind: k.kind, Name: k.name}
}

func (k workloadKey) requeue(force bool) *plimsollv1.RequeueWorkloadRequest {
	return &plimsollv1.RequeueWorkloadRequest{Cluster: k.cluster, Namespace: k.namespace, Kind: k.kind, Name: k.name, Force: force}
}

// String is the key as it is given.
func (k workloadKey) String() string {
	return fmt.Sprintf("%s/%s/%s of %s", k.namespace, strings.ToLower(k.kind), k.name, k.cluster)
}
