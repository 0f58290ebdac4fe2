package gitops

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
)

// Members of the fleet repository, and the environment of each.
var Members = map[string]string{"prod-eu": "production", "prod-us": "production", "staging": "staging"}

// regions of the members, which are labels of their registrations.
var regions = map[string]string{"prod-eu": "eu", "prod-us": "us", "staging": "eu"}

// A Site is a fleet with Flux in the hub cluster, and its repository.
type Site struct {
	Fleet *fleet.Fleet
	Repo  *Repository
	Flux  *Flux

	root       string // of this repository's checkout
	dir        string
	kubeconfig string // of the hub cluster
	built      string // what make flux has built
}

// Start starts the clusters and Flux, and commits the fleet repository: the hub and what goes into members, and no member
// nor workload yet. root is this repository's checkout.
func Start(ctx context.Context, root, dir string, options fleet.Options) (_ *Site, err error) {
	s := &Site{root: root, dir: dir, kubeconfig: filepath.Join(dir, "hub.kubeconfig")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Stop())
		}
	}()
	if s.built, err = builtDir(); err != nil {
		return nil, err
	}
	options.Members = append(options.Members, "prod-eu", "prod-us", "staging")
	if s.Fleet, err = fleet.Start(ctx, options); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.kubeconfig, s.Fleet.Hub.Kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	if s.Repo, err = NewRepository(ctx, dir); err != nil {
		return nil, err
	}
	if s.Flux, err = StartFlux(ctx, s.kubeconfig, filepath.Join(dir, "flux")); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		func() error { return s.fill(root) },
		func() error { return s.follow(ctx, "age-keygen") },
		func() error { return s.Repo.Commit(ctx, "The hub, and what goes into members") },
		func() error { return s.deployers(ctx) },
		func() error { return s.follow(ctx, "apply -f flux/") },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// fill copies the example, with the testbed's addresses and short intervals.
func (s *Site) fill(root string) error {
	deploy := filepath.Join(root, "deploy")
	for from, to := range map[string]string{
		"gitops/hub": "hub", "gitops/members": "members", "gitops/placements": "placements", "gitops/in-member": "in-member", "gitops/flux": "flux",
		"kustomize": "plimsoll/kustomize", "member": "plimsoll/member",
	} {
		if err := s.Repo.Copy(filepath.Join(deploy, filepath.FromSlash(from)), to); err != nil {
			return err
		}
	}
	return errors.Join(
		s.Repo.Replace("flux/source.yaml", "https://git.example.com/platform/fleet", s.Repo.URL, "interval: 1m", "interval: 5s"),
		s.Repo.Replace("flux/hub.yaml", "interval: 10m", "interval: 5s"),
		s.Repo.Replace("flux/members.yaml", "interval: 10m", "interval: 5s"),
		s.Repo.Write("hub/config.yaml", `webhook:
  url: https://`+s.Fleet.Balancer.Address()+`
clusters:
  allowedNetworks: [127.0.0.0/8]
controller:
  resyncPeriod: 10m
spot:
  moveCooldown: 2s
fleet:
  enabled: true
`),
	)
}

// deployers make the Secrets with which Flux works in the members.
func (s *Site) deployers(ctx context.Context) error {
	for _, m := range s.Fleet.Members {
		file := filepath.Join(s.dir, m.Name+".kubeconfig")
		if err := os.WriteFile(file, m.Cluster.Kubeconfig(), 0o600); err != nil {
			return err
		}
		if err := s.follow(ctx, "-deployer", "prod-eu", m.Name); err != nil {
			return err
		}
	}
	return nil
}

// Seal writes the sealed registration of a member, with this kubeconfig, into the working tree.
func (s *Site) Seal(ctx context.Context, m *fleet.Member, kubeconfig []byte) error {
	if err := s.Repo.Write("member.kubeconfig", string(kubeconfig)); err != nil {
		return err
	}
	if err := s.follow(ctx, "sops encrypt", "prod-eu", m.Name, "region=eu", "region="+regions[m.Name]); err != nil {
		return err
	}
	name := "members/" + m.Name + ".yaml"
	sealed, err := os.ReadFile(s.Repo.Path(name))
	if err == nil && (!strings.Contains(string(sealed), "ENC[") || strings.Contains(string(sealed), base64.StdEncoding.EncodeToString(kubeconfig))) {
		err = fmt.Errorf("%s is not sealed", name)
	}
	return err
}

// Register seals the registrations of all members with the tokens that are in them, and commits that.
func (s *Site) Register(ctx context.Context) error {
	var files []string
	for _, m := range s.Fleet.Members {
		kubeconfig, err := s.HubKubeconfig(ctx, m)
		if err != nil {
			return err
		}
		if err := s.Seal(ctx, m, kubeconfig); err != nil {
			return err
		}
		files = append(files, m.Name+".yaml")
	}
	if err := s.Repo.Replace("members/kustomization.yaml", "resources: []", "resources: ["+strings.Join(files, ", ")+"]"); err != nil {
		return err
	}
	return s.Repo.Commit(ctx, "Register the members")
}

// HubKubeconfig waits for the token that Flux has had made in a member, and returns what the hub gets of it.
func (s *Site) HubKubeconfig(ctx context.Context, m *fleet.Member) ([]byte, error) {
	var token corev1.Secret
	err := fleet.Await(ctx, "the hub's token in "+m.Name, func(ctx context.Context) (bool, error) {
		err := m.Client().Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: "plimsoll-hub-token"}, &token)
		return err == nil && len(token.Data["token"]) > 0, err
	})
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["member"] = &clientcmdapi.Cluster{Server: m.Cluster.URL(), CertificateAuthorityData: m.Cluster.CAData()}
	config.AuthInfos["hub"] = &clientcmdapi.AuthInfo{Token: string(token.Data["token"])}
	config.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "hub"}
	config.CurrentContext = "member"
	return clientcmd.Write(*config)
}

// Config waits for the hub's Deployment that Flux has brought into the hub cluster, and returns the configuration that it mounts.
func (s *Site) Config(ctx context.Context) (string, error) {
	var text string
	err := fleet.Await(ctx, "the hub's Deployment", func(ctx context.Context) (bool, error) {
		var deployment appsv1.Deployment
		if err := s.Fleet.Hub.Client().Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: "plimsoll-hub"}, &deployment); err != nil {
			return false, err
		}
		for _, volume := range deployment.Spec.Template.Spec.Volumes {
			if volume.ConfigMap == nil {
				continue
			}
			var mounted corev1.ConfigMap
			if err := s.Fleet.Hub.Client().Get(ctx, client.ObjectKey{Namespace: fleet.Namespace, Name: volume.ConfigMap.Name}, &mounted); err != nil {
				return false, err
			}
			text = mounted.Data["config.yaml"]
			return text != "", nil
		}
		return false, errors.New("it mounts no ConfigMap")
	})
	return text, err
}

// CommitApps commits the workloads of the example.
func (s *Site) CommitApps(ctx context.Context, root string) error {
	if err := s.Repo.Copy(filepath.Join(root, "deploy", "gitops", "apps"), "apps"); err != nil {
		return err
	}
	return s.Repo.Commit(ctx, "The first workload")
}

// AwaitApplied waits until a Kustomization of Flux has applied the commit that is the latest now.
func (s *Site) AwaitApplied(ctx context.Context, kustomization string) error {
	head, err := s.Repo.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	return fleet.Await(ctx, "Flux to apply "+kustomization, func(ctx context.Context) (bool, error) {
		applied, err := kubectl(ctx, s.kubeconfig, "-n", fluxNamespace, "get", "kustomization", kustomization, "-o", "jsonpath={.status.lastAppliedRevision}")
		if err == nil && !strings.HasSuffix(applied, head) {
			err = fmt.Errorf("it has applied %s, not %s", applied, head)
		}
		return err == nil, err
	})
}

// Web is the workload of the example in a member.
func Web(m *fleet.Member) *fleet.Workload {
	return &fleet.Workload{Member: m, Kind: "Deployment", Namespace: "shop", Name: "web"}
}

// AwaitPlaced waits until the replicas in every member are ready where a policy wants them.
func (s *Site) AwaitPlaced(ctx context.Context, percent map[string]int) error {
	for _, m := range s.Fleet.Members {
		environment := Members[m.Name]
		spot, onDemand := fleet.Want(sizes[environment], percent[environment], 2)
		if err := Web(m).AwaitMix(ctx, spot, onDemand); err != nil {
			return err
		}
	}
	return nil
}

// sizes are the replicas of the example in each environment.
var sizes = map[string]int{"staging": 5, "production": 20}

// Stop ends everything.
func (s *Site) Stop() error {
	var problems []error
	if s.Flux != nil {
		problems = append(problems, s.Flux.Stop())
	}
	if s.Repo != nil && s.Repo.server != nil {
		s.Repo.Close()
	}
	if s.Fleet != nil {
		problems = append(problems, s.Fleet.Stop())
	}
	return errors.Join(problems...)
}
