package integration

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// cliSite is a hub cluster, a member, and the CLI of a person who reaches both as an administrator.
type cliSite struct {
	hub, member *kube.Cluster
	binary      string
	kubeconfig  string // contexts: hub, member
}

// newCLISite has both clusters. The member has controllers: one of them fills token Secrets.
func newCLISite(t *testing.T) *cliSite {
	t.Helper()
	s := newHubSite(t)
	s.member = kube.New(t, kube.Options{Name: "member"})
	s.write(t, s.kubeconfig, s.hub.Kubeconfig(), s.member.Kubeconfig())
	return s
}

// newHubSite builds the CLI, and starts a hub cluster only.
func newHubSite(t *testing.T) *cliSite {
	t.Helper()
	s := &cliSite{binary: filepath.Join(t.TempDir(), "plimsoll"), kubeconfig: filepath.Join(t.TempDir(), "config")}
	if err := fleet.BuildCLI(t.Context(), "../..", s.binary); err != nil {
		t.Fatal(err)
	}
	s.hub = kube.New(t, kube.Options{Name: "hub", Minimal: true})
	s.write(t, s.kubeconfig, s.hub.Kubeconfig())
	return s
}

// write merges kubeconfigs into a file; the first one's context is the current one.
func (s *cliSite) write(t *testing.T, path string, kubeconfigs ...[]byte) {
	t.Helper()
	all := clientcmdapi.NewConfig()
	for _, content := range kubeconfigs {
		one, err := clientcmd.Load(content)
		if err != nil {
			t.Fatal(err)
		}
		for name := range one.Contexts {
			all.Contexts[name], all.Clusters[name], all.AuthInfos[name] = one.Contexts[name], one.Clusters[name], one.AuthInfos[name]
			all.CurrentContext = orIfEmpty(all.CurrentContext, name)
		}
	}
	if err := clientcmd.WriteToFile(*all, path); err != nil {
		t.Fatal(err)
	}
}

func orIfEmpty(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// ran is what a command line did.
type ran struct {
	code     int
	out, err string
}

// secretLike finds what looks like a token of a service account: no output may hold one.
var secretLike = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]+`)

// plimsoll runs the CLI with the person's kubeconfig.
func (s *cliSite) plimsoll(t *testing.T, args ...string) ran {
	t.Helper()
	return s.plimsollWith(t, []string{"KUBECONFIG=" + s.kubeconfig}, args...)
}

func (s *cliSite) plimsollWith(t *testing.T, environment []string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	command := exec.CommandContext(t.Context(), s.binary, args...)
	command.Stdout, command.Stderr, command.Env = &out, &errs, append(environment, "HOME="+t.TempDir())
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	result := ran{code: command.ProcessState.ExitCode(), out: out.String(), err: errs.String()}
	if secretLike.MatchString(result.out + result.err) {
		t.Errorf("plimsoll %s prints a token:\n%s%s", strings.Join(args, " "), result.out, result.err)
	}
	return result
}

// registered is the registration Secret of a name; nil: there is none.
func (s *cliSite) registered(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := s.hub.Client().Get(t.Context(), client.ObjectKey{Namespace: fleet.Registrations, Name: name}, secret)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// asHub is what the hub connects to a member with.
func (s *cliSite) asHub(t *testing.T, name string) *rest.Config {
	t.Helper()
	secret := s.registered(t, name)
	if secret == nil {
		t.Fatalf("%s is not registered", name)
	}
	return s.asHubWith(t, secret)
}

// asHubWith is what a hub connects with that has the registration as it was.
func (s *cliSite) asHubWith(t *testing.T, secret *corev1.Secret) *rest.Config {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// traces are the objects in a cluster that Kubernetes did not make by itself, of the kinds that registering makes.
func traces(t *testing.T, c *kube.Cluster) []string {
	t.Helper()
	found := []string{}
	for kind, group := range map[string]string{
		"Namespace": "/v1", "Secret": "/v1", "ServiceAccount": "/v1", "ClusterRole": "rbac.authorization.k8s.io/v1",
		"ClusterRoleBinding": "rbac.authorization.k8s.io/v1", "MutatingWebhookConfiguration": "admissionregistration.k8s.io/v1",
	} {
		version, err := schema.ParseGroupVersion(strings.TrimPrefix(group, "/"))
		if err != nil {
			t.Fatal(err)
		}
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(version.WithKind(kind + "List"))
		if err := c.Client().List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			if !strings.HasPrefix(o.Name, "system:") && !strings.HasPrefix(o.Namespace, "kube-") && !strings.HasPrefix(o.Name, "kube-") {
				found = append(found, kind+" "+o.Namespace+"/"+o.Name)
			}
		}
	}
	slices.Sort(found)
	return found
}

// may asks a cluster what somebody may do there.
func may(ctx context.Context, config *rest.Config, wanted authorizationv1.ResourceAttributes) (bool, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, err
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &wanted}}
	answer, err := clients.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// file writes a file that is gone after the test.
func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
