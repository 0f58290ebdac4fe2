package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Images that `make e2e-images` builds. What the hub's are called is in chart/.
const (
	hubImage          = "plimsoll-hub:dev"
	nextImage         = "plimsoll-hub:next"
	controlPlaneImage = "plimsoll-controlplane:dev"
)

// ErrNoDocker says why nothing can run.
var ErrNoDocker = errors.New("no Docker engine answers, or its images are missing: make e2e-images")

// EngineReady tells whether an engine answers and has the images; if not, the error is an [ErrNoDocker].
func EngineReady(ctx context.Context) error {
	if _, err := docker(ctx, "image", "inspect", hubImage, nextImage, controlPlaneImage); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDocker, err)
	}
	return nil
}

// docker runs a command of its CLI, and returns what it prints.
func docker(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "docker", args...)
	answer, err := command.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", fmt.Errorf("docker %s: %w", strings.Join(args[:min(len(args), 2)], " "), err)
	}
	return strings.TrimSpace(string(answer)), nil
}

// A yard is a set of containers and networks that are removed together. Its methods may be called concurrently.
type yard struct {
	prefix string
	mark   *mark

	mu         sync.Mutex
	containers []string
	networks   []string
	addresses  []address
}

// An address is one that a container was given in a network.
type address struct {
	ip, container string
	since         time.Time // it was not given before
}

// newYard makes an empty one, after what killed runs have left was removed.
func newYard(ctx context.Context) (*yard, error) {
	sweep(ctx)
	made, err := newMark()
	if err != nil {
		return nil, err
	}
	return &yard{prefix: fmt.Sprintf("plimsoll-e2e-%d-", os.Getpid()), mark: made}, nil
}

// name is that of a container or network of this yard.
func (y *yard) name(of string) string { return y.prefix + of }

// network makes one.
func (y *yard) network(ctx context.Context, of string) error {
	y.mu.Lock()
	y.networks = append(y.networks, y.name(of))
	y.mu.Unlock()
	_, err := docker(ctx, append([]string{"network", "create"}, append(y.mark.labels(), y.name(of))...)...)
	return err
}

// create makes a container that does not run yet.
func (y *yard) create(ctx context.Context, of string, args ...string) error {
	y.mu.Lock()
	y.containers = append(y.containers, y.name(of))
	y.mu.Unlock()
	first := append([]string{"create", "--name", y.name(of)}, y.mark.labels()...)
	_, err := docker(ctx, append(first, args...)...)
	return err
}

// start starts a container that was made, or again one that was killed.
func (y *yard) start(ctx context.Context, of string) error {
	return y.addressing(ctx, of, func() error {
		_, err := docker(ctx, "start", y.name(of))
		return err
	})
}

// kill ends a container's first process without warning, or sends it another signal.
func (y *yard) kill(ctx context.Context, of, signal string) error {
	_, err := docker(ctx, "kill", "--signal", signal, y.name(of))
	return err
}

// remove asks a container's first process to end, waits for that as long as it may take, and removes the container.
func (y *yard) remove(ctx context.Context, of string, grace int64) error {
	if _, err := docker(ctx, "stop", "--time", fmt.Sprint(grace), y.name(of)); err != nil {
		return err
	}
	if _, err := docker(ctx, "rm", "--volumes", y.name(of)); err != nil {
		return err
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.containers = slices.DeleteFunc(y.containers, func(name string) bool { return name == y.name(of) })
	return nil
}

// connect puts a container into a network, where it has these names.
func (y *yard) connect(ctx context.Context, network, container string, aliases ...string) error {
	args := []string{"network", "connect"}
	for _, alias := range aliases {
		args = append(args, "--alias", alias)
	}
	return y.addressing(ctx, container, func() error {
		_, err := docker(ctx, append(args, y.name(network), y.name(container))...)
		return err
	})
}

// disconnect takes a container out of a network: its connections there hang, as behind a cable that was pulled.
func (y *yard) disconnect(ctx context.Context, network, container string) error {
	_, err := docker(ctx, "network", "disconnect", y.name(network), y.name(container))
	return err
}

// addressing does something that gives a container addresses, and remembers them.
func (y *yard) addressing(ctx context.Context, container string, do func() error) error {
	before := time.Now()
	if err := do(); err != nil {
		return err
	}
	answer, err := docker(ctx, "inspect", "--format", "{{json .NetworkSettings.Networks}}", y.name(container))
	if err != nil {
		return err
	}
	var networks map[string]struct{ IPAddress string }
	if err := json.Unmarshal([]byte(answer), &networks); err != nil {
		return fmt.Errorf("networks of %s: %w", container, err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, one := range networks {
		if one.IPAddress != "" {
			y.addresses = append(y.addresses, address{ip: one.IPAddress, container: container, since: before})
		}
	}
	return nil
}

// whoHad is the container that had an address at a time, as a control plane's audit log shows it: with another first number
// (see controlplane/). Addresses are given anew only when nobody has them.
func (y *yard) whoHad(ip string, at time.Time) string {
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, known := range slices.Backward(y.addresses) {
		if withoutFirst(known.ip) == withoutFirst(ip) && !known.since.After(at) {
			return known.container
		}
	}
	return ""
}

func withoutFirst(ip string) string {
	_, rest, _ := strings.Cut(ip, ".")
	return rest
}

// address is where this machine finds a port of a container.
func (y *yard) address(ctx context.Context, container string, port int) (string, error) {
	answer, err := docker(ctx, "port", y.name(container), fmt.Sprint(port))
	first, _, _ := strings.Cut(answer, "\n")
	return first, err
}

// logs are the last lines that a container's first process has written.
func (y *yard) logs(of string, lines int) string {
	command := exec.Command("docker", "logs", "--tail", fmt.Sprint(lines), y.name(of))
	said, err := command.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s: %v", said, err)
	}
	return string(said)
}

// clear removes everything.
func (y *yard) clear() error {
	ctx := context.Background()
	var problems []error
	if len(y.containers) > 0 {
		_, err := docker(ctx, append([]string{"rm", "--force", "--volumes"}, y.containers...)...)
		problems = append(problems, err)
	}
	for _, network := range y.networks {
		_, err := docker(ctx, "network", "rm", network)
		problems = append(problems, err)
	}
	y.mark.remove()
	return errors.Join(problems...)
}
