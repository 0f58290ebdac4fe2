package main

import (
	"context"
	_ "embed" // the hub's configuration, and what it may do
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

const (
	// hubNamespace is where the hub keeps what is its own.
	hubNamespace = "plimsoll-system"
	// registrations is the namespace of registration Secrets.
	registrations = "plimsoll-members"
	// caSecret holds the certificate that the API's own is issued by.
	caSecret = "plimsoll-hub-ca"
	// audience is what the API's tokens are made for: the hub's default.
	audience = "plimsoll"
	// fleetKind is the kind FleetPlacement, which the chart brings elsewhere.
	fleetKind = "reconcile/fleet/crd/fleet.plimsoll.dev_fleetplacements.yaml"
	// hubStop is how long the hub may take to hand over and end.
	hubStop = 40 * time.Second
)

//go:embed rbac.yaml
var rbac string

//go:embed hub.yaml
var hubTemplate string

// startHub makes what the hub needs in the hub cluster, starts it, waits until it is ready, and leaves its CA and a token
// for the printed lines.
func (d *demo) startHub(ctx context.Context) error {
	if err := keep(folder+"/rbac.yaml", []byte(rbac)); err != nil {
		return err
	}
	if _, _, err := run(ctx, kubectl+" --kubeconfig "+kubeconfig("hub")+" apply -f "+folder+"/rbac.yaml"); err != nil {
		return err
	}
	if _, _, err := run(ctx, kubectl+" --kubeconfig "+kubeconfig("hub")+" apply -f "+fleetKind); err != nil {
		return err
	}
	account, err := d.hubCluster.KubeconfigFor(ctx, "system:serviceaccount:"+hubNamespace+":plimsoll-hub")
	if err != nil {
		return err
	}
	if err := keep(hubAccount, account); err != nil {
		return err
	}
	if d.ports, err = findPorts(); err != nil {
		return err
	}
	config, err := renderHubConfig(d.ports)
	if err != nil {
		return err
	}
	if err := keep(hubConfig, []byte(config)); err != nil {
		return err
	}
	d.hub, err = proc.Start(proc.Command{Program: hubBinary, Args: []string{"--config", hubConfig}, Env: userEnvironment(), Log: hubLog})
	if err != nil {
		return err
	}
	go func(hub *proc.Process) {
		<-hub.Done()
		if err := hub.Failure(); err != nil {
			d.fail(err) // nothing that waits for it has to wait any longer
		}
	}(d.hub)
	if err := d.awaitHub(ctx); err != nil {
		return err
	}
	return d.openAPI(ctx)
}

// renderHubConfig is the hub's configuration file.
func renderHubConfig(p ports) (string, error) {
	parsed, err := template.New("hub.yaml").Parse(hubTemplate)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = parsed.Execute(&text, struct {
		Kubeconfig, Namespace, Registrations string
		Ports                                ports
	}{hubAccount, hubNamespace, registrations, p})
	return text.String(), err
}

// awaitHub waits until the hub says that it is ready.
func (d *demo) awaitHub(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	return d.hub.AwaitReady(ctx, proc.OK(nil, "http://"+loopback(d.ports.Probes)+"/readyz"))
}

// stopHub ends the hub in order, and kills it when that takes too long.
func stopHub(hub *proc.Process) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), hubStop, fmt.Errorf("not within %s", hubStop))
	defer cancel()
	if err := hub.Stop(ctx); err != nil {
		return err
	}
	return hub.Wait()
}

// openAPI makes a client of the API, and the files that do the same for curl and grpcurl.
func (d *demo) openAPI(ctx context.Context) error {
	var secret corev1.Secret
	key := client.ObjectKey{Namespace: hubNamespace, Name: caSecret}
	if err := d.hubCluster.Client().Get(ctx, key, &secret); err != nil {
		return fmt.Errorf("read the hub's CA: %w", err)
	}
	ca := secret.Data[corev1.TLSCertKey]
	token, err := d.hubCluster.Token(ctx, hubNamespace, "demo", audience)
	if err != nil {
		return err
	}
	if err := errors.Join(keep(caFile, ca), keep(tokenFile, []byte(token))); err != nil {
		return err
	}
	d.api, err = newAPI(loopback(d.ports.GRPC), ca, token)
	return err
}
