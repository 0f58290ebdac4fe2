package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/testcontainers/testcontainers-go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// A Release is what the chart renders for one set of values in chart/, of which test/deploy proves that it does: replicas run as
// its Deployment says, with the configuration of its ConfigMap.
type Release struct {
	config    corev1.ConfigMap
	pod       corev1.PodSpec
	container corev1.Container
}

// Install is the release that a site begins with, and Upgrade another image with another configuration.
const (
	Install = "install"
	Upgrade = "upgrade"
)

// release reads one.
func release(name string) (*Release, error) {
	root, err := repository()
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(root, "test", "e2e", "chart", name+".yaml"))
	if err != nil {
		return nil, err
	}
	var deployment appsv1.Deployment
	r := &Release{}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for _, into := range []any{&r.config, &deployment} {
		if err := documents.Decode(into); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("release %s: %w", name, err)
		}
	}
	r.pod = deployment.Spec.Template.Spec
	if len(r.config.Data) == 0 || len(r.pod.Containers) != 1 {
		return nil, fmt.Errorf("release %s: want a ConfigMap, and a Deployment of one container", name)
	}
	r.container = r.pod.Containers[0]
	return r, nil
}

// clusterFolder is where a replica finds the kubeconfig of the hub cluster, which in a pod is the service account's.
const clusterFolder = "/var/run/plimsoll"

// request is what a replica's container is made from: its pod, as far as an engine without Kubernetes can. files is a folder in
// which the ConfigMap's content is put and the kubeconfig is already.
func (r *Release) request(replica, files string) (testcontainers.ContainerRequest, error) {
	none := testcontainers.ContainerRequest{}
	pod, own := r.pod.SecurityContext, r.container.SecurityContext
	mounts, err := r.mounts(files)
	if err != nil {
		return none, err
	}
	mounts = append(mounts, files+":"+clusterFolder+":ro")
	environment := map[string]string{}
	for _, variable := range r.container.Env {
		value, given, err := valueOf(variable, replica)
		if err != nil {
			return none, err
		}
		if given {
			environment[variable.Name] = value
		}
	}
	// A replica that is cut off cannot ask its hub cluster who scrapes it, and these specs look at such replicas.
	environment["PLIMSOLL_METRICS_UNAUTHENTICATED"] = "true"
	// A container has an address for each of its networks, so that the others find it by its name.
	environment["PLIMSOLL_PEER_ADVERTISE"] = replica + ":9444"
	environment["PLIMSOLL_HUB_KUBECONFIG"] = clusterFolder + "/kubeconfig"
	return testcontainers.ContainerRequest{
		Image: r.container.Image, Cmd: r.container.Args, Env: environment,
		ConfigModifier: func(config *container.Config) {
			config.User = fmt.Sprintf("%d:%d", *pod.RunAsUser, *pod.RunAsGroup)
		},
		HostConfigModifier: func(host *container.HostConfig) {
			host.Binds = mounts
			host.ReadonlyRootfs = *own.ReadOnlyRootFilesystem
			if !*own.AllowPrivilegeEscalation {
				host.SecurityOpt = []string{"no-new-privileges"}
			}
			for _, capability := range own.Capabilities.Drop {
				host.CapDrop = append(host.CapDrop, string(capability))
			}
			host.Memory = r.container.Resources.Limits.Memory().Value() // 0 is no limit
		},
	}, nil
}

// mounts writes the ConfigMap's content, and is where it is mounted from and to.
func (r *Release) mounts(files string) ([]string, error) {
	var binds []string
	for _, mount := range r.container.VolumeMounts {
		for _, volume := range r.pod.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			if volume.ConfigMap == nil || volume.ConfigMap.Name != r.config.Name {
				return nil, fmt.Errorf("volume %s: only the hub's ConfigMap can be mounted here", volume.Name)
			}
			// The image's tag keeps what replicas of several releases mount apart.
			folder := filepath.Join(files, "config-"+strings.ReplaceAll(filepath.Base(r.container.Image), ":", "-"))
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return nil, err
			}
			for name, content := range r.config.Data {
				if err := writeFile(filepath.Join(folder, name), []byte(content)); err != nil {
					return nil, err
				}
			}
			binds = append(binds, folder+":"+mount.MountPath+":ro")
		}
	}
	return binds, nil
}

// valueOf is what Kubernetes would give a variable; it is not given where only a pod has such a thing.
func valueOf(variable corev1.EnvVar, replica string) (value string, given bool, err error) {
	if variable.ValueFrom == nil {
		return variable.Value, true, nil
	}
	if field := variable.ValueFrom.FieldRef; field != nil {
		switch field.FieldPath {
		case "metadata.namespace":
			return fleet.Namespace, true, nil
		case "metadata.name":
			return replica, true, nil
		case "status.podIP":
			return "", false, nil
		}
	}
	return "", false, fmt.Errorf("variable %s: its value is not known here", variable.Name)
}
