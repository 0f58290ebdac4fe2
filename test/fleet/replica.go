package fleet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// Settings are configuration keys of a hub by their path, for example "spot.moveCooldown": "1s".
type Settings map[string]any

// A Replica is a hub with a configuration file and ports of its own, running or not.
type Replica struct {
	// Name of the replica, for its files.
	Name string
	// ConfigFile is what `plimsoll-hub --config` is given.
	ConfigFile string
	// LogFile is where the replica's log goes.
	LogFile string
	// Addresses that the replica listens on, as host:port.
	Webhook, GRPC, REST, Peer, Metrics, Probes string

	fleet *Fleet
}

// NewReplica writes a configuration: the testbed's addresses, and the settings over it.
func (f *Fleet) NewReplica(name string, settings Settings) (*Replica, error) {
	r := &Replica{
		fleet:      f,
		Name:       name,
		ConfigFile: filepath.Join(f.dir, name+".yaml"),
		LogFile:    filepath.Join(f.dir, name+".log"),
	}
	err := FreeAddresses(&r.Webhook, &r.GRPC, &r.REST, &r.Peer, &r.Metrics, &r.Probes)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	host, port, err := net.SplitHostPort(r.Webhook)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	all := Settings{
		"hub.namespace": Namespace, "hub.registrationNamespace": Registrations, "hub.kubeconfig": f.hubKubeconfig(),
		"webhook.bindAddress": host, "webhook.port": number, "webhook.ips": []string{host},
		"webhook.url": "https://" + f.Balancer.Address(),
		// Nobody sends calls to a replica that stops, where nothing else is asked for: the balancer looks for who listens.
		"webhook.stopDelay": "0s",
		"api.grpcAddress":   r.GRPC, "api.restAddress": r.REST, "api.unauthenticated": true,
		"peer.address": r.Peer, "peer.advertise": r.Peer,
		"metrics.address": r.Metrics, "probes.address": r.Probes,
		"clusters.allowedNetworks": []string{"127.0.0.0/8"},
	}
	for key, value := range settings {
		all[key] = value
	}
	return r, writeConfig(r.ConfigFile, all)
}

// writeConfig writes settings as the nested keys of one YAML file.
func writeConfig(path string, settings Settings) error {
	root := map[string]any{}
	for key, value := range settings {
		branch := root
		segments := strings.Split(key, ".")
		for _, segment := range segments[:len(segments)-1] {
			next, ok := branch[segment].(map[string]any)
			if !ok {
				next = map[string]any{}
				branch[segment] = next
			}
			branch = next
		}
		branch[segments[len(segments)-1]] = value
	}
	content, err := yaml.Marshal(root)
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// Ports that are tried: Linux gives those from 32768 on to connections and to listeners that name none, so what is found here is
// still free when its process starts, or starts again, whatever else connects meanwhile.
const (
	lowestPort, ports = 20_000, 12_000
	portTries         = 100
)

// FreeAddresses finds loopback ports that nobody has. All are held until the last is found, so they differ.
func FreeAddresses(into ...*string) error {
	for _, address := range into {
		listener, err := listenSomewhere()
		if err != nil {
			return fmt.Errorf("find a free port: %w", err)
		}
		defer func() { _ = listener.Close() }()
		*address = listener.Addr().String()
	}
	return nil
}

func listenSomewhere() (listener net.Listener, err error) {
	for range portTries {
		port := lowestPort + rand.IntN(ports)
		if listener, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return listener, nil
		}
	}
	return nil, err
}
