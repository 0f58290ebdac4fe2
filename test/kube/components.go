package kube

import (
	"path/filepath"
	"strconv"
)

// Component names a process of a cluster.
type Component string

// The five processes of a full cluster. A minimal one has the first two. Karpenter is the sixth of those that
// StartKarpenter was called for.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
	Karpenter         Component = "karpenter"
)

// Issuer is the issuer of service account tokens and, as in most clusters, the audience they have when none is asked
// for. Tokens of other audiences pass a TokenReview that names their audience, and no other door of the API server.
const Issuer = "https://kubernetes.default.svc"

// clientRate lifts the limits that the controllers put on themselves: 20 and 50 requests a second would be what a
// burst test measures.
var clientRate = []string{"--kube-api-qps", "500", "--kube-api-burst", "1000"}

// components are the processes that the cluster consists of, in the order of their start.
func (c *Cluster) components() []Component {
	if c.opts.Minimal {
		return []Component{Etcd, APIServer}
	}
	all := []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok}
	if c.karpenter.Load() != nil {
		all = append(all, Karpenter)
	}
	return all
}

// args are a component's flags. Every one of them names a file in the cluster's folder, which isOurs relies on.
func (c *Cluster) args(component Component) []string {
	switch component {
	case Etcd:
		return c.etcdArgs()
	case APIServer:
		return append(c.apiServerArgs(), c.opts.APIServerArgs...)
	case ControllerManager:
		return append(c.controllerManagerArgs(), c.opts.ControllerManagerArgs...)
	case Scheduler:
		return append([]string{
			"--kubeconfig", c.file("kube-scheduler.kubeconfig"), "--secure-port", "0", "--leader-elect=false",
		}, clientRate...)
	case Karpenter:
		return c.karpenter.Load().args(c)
	case Kwok:
		return []string{
			"--kubeconfig", c.file("kwok.kubeconfig"), "--config", c.file("kwok.yaml"),
			"--manage-all-nodes", "--cidr", "10.64.0.1/12",
			// Without leases every node turns NotReady after about 50 s.
			"--node-lease-duration-seconds", "40",
		}
	}
	return nil
}

func (c *Cluster) etcdArgs() []string {
	client, peer := "http://"+c.etcdPort.address(), "http://"+c.peerPort.address()
	return []string{
		"--name", c.name, "--data-dir", filepath.Join(c.dir, "etcd"),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", c.name + "=" + peer,
		"--socket-reuse-port", "--log-level", "warn",
		// What a power cut would lose is a test's data.
		"--unsafe-no-fsync",
		// The file is for restarts; writing it ten times a second is work beside what is tested.
		"--backend-batch-interval", "1s",
	}
}

func (c *Cluster) apiServerArgs() []string {
	args := []string{
		"--etcd-servers", "http://" + c.etcdPort.address(),
		"--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(c.apiPort.number), "--permit-port-sharing",
		"--cert-dir", c.file("apiserver"),
		"--tls-cert-file", c.file("serving.crt"), "--tls-private-key-file", c.file("serving.key"),
		"--client-ca-file", c.file("ca.crt"), "--token-auth-file", c.file("tokens.csv"),
		"--service-account-issuer", Issuer, "--api-audiences", Issuer,
		"--service-account-key-file", c.file("sa.pub"), "--service-account-signing-key-file", c.file("sa.key"),
		"--authorization-mode", "RBAC", "--allow-privileged",
		"--service-cluster-ip-range", "10.0.0.0/24",
		// The endpoints of the kubernetes Service may not be on loopback, and nobody in here asks for them.
		"--endpoint-reconciler-type", "none",
		"--audit-policy-file", c.file("audit-policy.yaml"), "--audit-log-path", c.file(auditLog),
		// Events are in the file before their request is answered; a rotation would hide them from the reader.
		"--audit-log-mode", "blocking", "--audit-log-maxsize", "100000",
	}
	if c.opts.Minimal {
		// Nobody makes default service accounts there, and the plugin refuses pods that have none.
		args = append(args, "--disable-admission-plugins", "ServiceAccount")
	}
	return args
}

func (c *Cluster) controllerManagerArgs() []string {
	return append([]string{
		"--kubeconfig", c.file("kube-controller-manager.kubeconfig"),
		"--secure-port", "0", "--leader-elect=false",
		"--service-account-private-key-file", c.file("sa.key"), "--root-ca-file", c.file("ca.crt"),
		// As large clusters do: what comes of one pod's start is written once. Nobody in here sends traffic to endpoints.
		"--endpointslice-updates-batch-period", "5s", "--endpoint-updates-batch-period", "5s",
	}, clientRate...)
}
