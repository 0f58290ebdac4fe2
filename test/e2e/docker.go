package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// Images that `make e2e-images` builds. What the hub's are called is in chart/.
const (
	hubImage          = "plimsoll-hub:dev"
	nextImage         = "plimsoll-hub:next"
	controlPlaneImage = "plimsoll-controlplane:dev"
)

// ErrNoDocker says why nothing can run.
var ErrNoDocker = errors.New("no Docker engine answers, or its images are missing: make e2e-images")

// EngineReady reports whether an engine answers and has the images; if not, the error is an [ErrNoDocker], of one line.
func EngineReady(ctx context.Context) error {
	api, err := engine()
	for _, image := range []string{hubImage, nextImage, controlPlaneImage} {
		if err == nil {
			_, err = api.ImageInspect(ctx, image)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %s", ErrNoDocker, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return nil
}

// engine is the Docker engine that testcontainers finds, for what testcontainers itself has no call for. The first caller sets
// testcontainers up for the whole process: without its reaper, whose image would have to be pulled and whose work mark and
// sweep do, and without its report of every step.
var engine = sync.OnceValues(func() (*testcontainers.DockerClient, error) {
	if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
		return nil, err
	}
	log.SetDefault(log.NewNoopLogger())
	return testcontainers.NewDockerClientWithOpts(context.Background())
})

// A yard is a set of containers and networks that are removed together. Its methods may be called concurrently.
type yard struct {
	engine *testcontainers.DockerClient
	prefix string
	mark   *mark

	mu         sync.Mutex
	containers map[string]testcontainers.Container
	addresses  []address
}

// An address is one that a container was given in a network.
type address struct {
	ip, container string
	since         time.Time // it was not given before
}

// newYard makes an empty one, after what killed runs have left was removed.
func newYard(ctx context.Context) (*yard, error) {
	api, err := engine()
	if err != nil {
		return nil, err
	}
	sweep(ctx, api)
	made, err := newMark()
	if err != nil {
		return nil, err
	}
	return &yard{
		engine: api, prefix: fmt.Sprintf("plimsoll-e2e-%d-", os.Getpid()), mark: made,
		containers: map[string]testcontainers.Container{},
	}, nil
}

// name is that of a container or network of this yard.
func (y *yard) name(of string) string { return y.prefix + of }

// network makes one. Its name is ours, which testcontainers would not let it be: the engine publishes a container's ports in the
// first of its networks by name, and that must stay its own "bridge", from which no container is ever cut off.
func (y *yard) network(ctx context.Context, of string) error {
	_, err := y.engine.NetworkCreate(ctx, y.name(of), client.NetworkCreateOptions{
		Driver: testcontainers.Bridge, Labels: y.mark.labels(),
	})
	if err != nil {
		return fmt.Errorf("network %s: %w", of, err)
	}
	return nil
}

// loopback is where ports are published: for this machine alone.
var loopback = netip.MustParseAddr("127.0.0.1")

// tcp is how the engine calls a port.
func tcp(port uint16) network.Port {
	named, _ := network.PortFrom(port, network.TCP) // it has a protocol
	return named
}

// create makes a container that does not run yet, and some of whose ports are published.
func (y *yard) create(ctx context.Context, of string, request testcontainers.ContainerRequest, ports ...uint16) error {
	request.Name, request.Labels = y.name(of), y.mark.labels()
	bindings := network.PortMap{}
	for _, port := range ports {
		request.ExposedPorts = append(request.ExposedPorts, tcp(port).String())
		bindings[tcp(port)] = []network.PortBinding{{HostIP: loopback}}
	}
	modify := request.HostConfigModifier
	request.HostConfigModifier = func(host *container.HostConfig) {
		host.PortBindings = bindings
		if modify != nil {
			modify(host)
		}
	}
	made, err := testcontainers.GenericContainer(ctx, testcontainers.GenericContainerRequest{ContainerRequest: request})
	if err != nil {
		return fmt.Errorf("container %s: %w", of, err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.containers[of] = made
	return nil
}

// container is one that was made and not removed.
func (y *yard) container(of string) (testcontainers.Container, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	made := y.containers[of]
	if made == nil {
		return nil, fmt.Errorf("no container %s", of)
	}
	return made, nil
}

// do does something to a container, by what the engine calls it.
func (y *yard) do(what, of string, do func(id string) error) error {
	made, err := y.container(of)
	if err == nil {
		err = do(made.GetContainerID())
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, of, err)
	}
	return nil
}

// start starts a container that was made, or again one that was killed.
func (y *yard) start(ctx context.Context, of string) error {
	return y.addressing(ctx, of, func(made testcontainers.Container) error { return made.Start(ctx) })
}

// kill ends a container's first process without warning, or sends it another signal.
func (y *yard) kill(ctx context.Context, of, signal string) error {
	return y.do("kill", of, func(id string) error {
		_, err := y.engine.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: signal})
		return err
	})
}

// pause stops all processes of a container where they are.
func (y *yard) pause(ctx context.Context, of string) error {
	return y.do("pause", of, func(id string) error {
		_, err := y.engine.ContainerPause(ctx, id, client.ContainerPauseOptions{})
		return err
	})
}

// unpause lets them go on.
func (y *yard) unpause(ctx context.Context, of string) error {
	return y.do("unpause", of, func(id string) error {
		_, err := y.engine.ContainerUnpause(ctx, id, client.ContainerUnpauseOptions{})
		return err
	})
}

// remove asks a container's first process to end, waits for that as long as it may take, and removes the container.
func (y *yard) remove(ctx context.Context, of string, grace time.Duration) error {
	made, err := y.container(of)
	if err != nil {
		return err
	}
	if err := made.Terminate(ctx, testcontainers.StopTimeout(grace)); err != nil {
		return fmt.Errorf("remove %s: %w", of, err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.containers, of)
	return nil
}

// connect puts a container into a network, where it has these names.
func (y *yard) connect(ctx context.Context, to, of string, aliases ...string) error {
	return y.addressing(ctx, of, func(made testcontainers.Container) error {
		_, err := y.engine.NetworkConnect(ctx, y.name(to), client.NetworkConnectOptions{
			Container: made.GetContainerID(), EndpointConfig: &network.EndpointSettings{Aliases: aliases},
		})
		return err
	})
}

// disconnect takes a container out of a network: its connections there hang, as behind a cable that was pulled.
func (y *yard) disconnect(ctx context.Context, from, of string) error {
	return y.do("disconnect", of, func(id string) error {
		_, err := y.engine.NetworkDisconnect(ctx, y.name(from), client.NetworkDisconnectOptions{Container: id})
		return err
	})
}

// addressing does something that gives a container addresses, and remembers them.
func (y *yard) addressing(ctx context.Context, of string, do func(testcontainers.Container) error) error {
	before := time.Now()
	made, err := y.container(of)
	if err != nil {
		return err
	}
	if err := do(made); err != nil {
		return fmt.Errorf("container %s: %w", of, err)
	}
	is, err := made.Inspect(ctx)
	if err != nil {
		return fmt.Errorf("networks of %s: %w", of, err)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	for _, one := range is.NetworkSettings.Networks {
		if one.IPAddress.IsValid() {
			y.addresses = append(y.addresses, address{ip: one.IPAddress.String(), container: of, since: before})
		}
	}
	return nil
}

// whoHad is the container that had an address at a time, as a control plane's audit log shows it: with another first number
// (see controlplane/). Addresses are given again only when nobody has them.
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
func (y *yard) address(ctx context.Context, of string, port uint16) (string, error) {
	made, err := y.container(of)
	if err != nil {
		return "", err
	}
	published, err := made.MappedPort(ctx, tcp(port).String())
	if err != nil {
		return "", fmt.Errorf("port %d of %s: %w", port, of, err)
	}
	return net.JoinHostPort(loopback.String(), published.Port()), nil
}

// read reads a file in a container.
func (y *yard) read(ctx context.Context, of, path string) ([]byte, error) {
	made, err := y.container(of)
	if err != nil {
		return nil, err
	}
	file, err := made.CopyFileFromContainer(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", path, of, err)
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", path, of, err)
	}
	return content, nil
}

// logs are the last lines that a container's first process has written.
func (y *yard) logs(of string, lines int) string {
	var said bytes.Buffer
	err := y.do("logs of", of, func(id string) error {
		stream, err := y.engine.ContainerLogs(context.Background(), id, client.ContainerLogsOptions{
			ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(lines),
		})
		if err != nil {
			return err
		}
		defer func() { _ = stream.Close() }()
		_, err = stdcopy.StdCopy(&said, &said, stream)
		return err
	})
	if err != nil {
		fmt.Fprintf(&said, "%v", err)
	}
	return said.String()
}

// clear removes everything, also what was made by a call that has failed.
func (y *yard) clear() error {
	err := removeRun(context.Background(), y.engine, y.mark.labels())
	y.mark.remove()
	return err
}
