// Command controlplane is the first process of a container that holds one control plane: it starts the five processes of a
// cluster, passes port 6443 on to the API server, kills and starts all five when it gets SIGHUP, and ends them when it is asked
// to end.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// state is where the cluster keeps what it has, and where its admin's kubeconfig is found.
const state = "/state"

//go:embed audit-policy.yaml
var auditPolicy []byte

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		fmt.Fprintln(os.Stderr, "usage: controlplane NAME [minimal]")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, os.Args[1], len(os.Args) == 3); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, minimal bool) (err error) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	policy := filepath.Join(os.TempDir(), "audit-policy.yaml")
	if err := os.WriteFile(policy, auditPolicy, 0o600); err != nil {
		return err
	}
	cluster, err := kube.Start(ctx, kube.Options{
		Name: name, Dir: state, Minimal: minimal, Log: os.Stderr, APIServerArgs: []string{"--audit-policy-file", policy},
		// A container that is paused is a cluster that does not answer, and not one whose nodes have died.
		ControllerManagerArgs: []string{"--node-monitor-grace-period=30m"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	if !minimal {
		for _, capacity := range []string{kube.Spot, kube.OnDemand} {
			if _, err := cluster.AddNodes(ctx, 2, kube.NodeSpec{Capacity: capacity, Pods: 100}); err != nil {
				return err
			}
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":6443")
	if err != nil {
		return err
	}
	go accept(listener, strings.TrimPrefix(cluster.URL(), "https://"))
	// What waits for this file finds a cluster that works.
	if err := os.WriteFile(filepath.Join(state, "admin.kubeconfig"), cluster.Kubeconfig(), 0o600); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hangups:
			if err := restart(ctx, cluster, minimal); err != nil {
				return err
			}
			// What waits for this line finds a cluster that works again.
			fmt.Fprintln(os.Stderr, "cluster", name+": restarted")
		}
	}
}

// restart kills every process of the control plane, and starts them again with the state that they have left.
func restart(ctx context.Context, cluster *kube.Cluster, minimal bool) error {
	components := []kube.Component{kube.Etcd, kube.APIServer, kube.ControllerManager, kube.Scheduler, kube.Kwok}
	if minimal {
		components = components[:2]
	}
	for _, component := range components {
		if err := cluster.Kill(component); err != nil {
			return err
		}
	}
	for _, component := range components {
		if err := cluster.Revive(ctx, component); err != nil {
			return err
		}
	}
	return nil
}

// accept passes connections on until the process ends.
func accept(listener net.Listener, to string) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go forward(conn, to)
	}
}

func forward(conn net.Conn, to string) {
	defer func() { _ = conn.Close() }()
	backend, err := (&net.Dialer{LocalAddr: standIn(conn.RemoteAddr())}).Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = backend.Close() }()
	var ends sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, backend}, {backend, conn}} {
		ends.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either end may go at any time
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	ends.Wait()
}

// standIn is the loopback address by which the API server, and so its audit log, distinguishes callers: the caller's own with
// 127 in front. All of 127.0.0.0/8 is this machine.
func standIn(caller net.Addr) net.Addr {
	tcp, ok := caller.(*net.TCPAddr)
	if !ok || tcp.IP.To4() == nil {
		return nil
	}
	own := tcp.IP.To4()
	return &net.TCPAddr{IP: net.IPv4(127, own[1], own[2], own[3])}
}
