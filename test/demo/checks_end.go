package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// leavingMember is unregistered at the end.
const leavingMember = "staging"

// noteUntouched remembers what is in the member that leaves later, to compare.
func (d *demo) noteUntouched(ctx context.Context) error {
	member, err := d.member(leavingMember)
	if err != nil {
		return err
	}
	d.untouched, err = traces(ctx, member)
	return err
}

// leaving checks that a member that is unregistered is as it was before it was registered, but for its workloads.
func (c *checks) leaving(ctx context.Context) {
	c.check(ctx, "plimsoll unregister leaves "+leavingMember+" clean", func(ctx context.Context) (string, error) {
		member, err := c.member(leavingMember)
		if err != nil {
			return "", err
		}
		line := unregisterLine(leavingMember)
		if _, _, err := run(ctx, line); err != nil {
			return "", err
		}
		err = await(ctx, "nothing of ours to be left", func(ctx context.Context) error {
			now, err := traces(ctx, member)
			more, gone := without(now, c.untouched), without(c.untouched, now)
			if err == nil && len(more)+len(gone) > 0 {
				err = fmt.Errorf("added since the registration: [%s], removed: [%s]", strings.Join(more, ", "), strings.Join(gone, ", "))
			}
			return err
		})
		if err != nil {
			return "", err
		}
		return "it is as before, and the hub has forgotten it", c.awaitGone(ctx)
	})
	c.check(ctx, "its replicas stay where they are", func(ctx context.Context) (string, error) {
		return c.mixInMember(ctx, sampleOf(leavingMember, "worker"))
	})
}

// awaitGone waits until the hub knows nothing of the member that left.
func (c *checks) awaitGone(ctx context.Context) error {
	return await(ctx, "the hub to forget "+leavingMember, func(ctx context.Context) error {
		all, err := c.api.clusters(ctx)
		for _, cluster := range all {
			if cluster.GetName() == leavingMember {
				err = errors.New("it is still listed")
			}
		}
		return err
	})
}

// tracesOf are the kinds of which registering makes objects. Secrets and ConfigMaps are among them for what a namespace of
// ours may hold.
var tracesOf = []schema.GroupVersionKind{
	{Version: "v1", Kind: "NamespaceList"},
	{Version: "v1", Kind: "SecretList"},
	{Version: "v1", Kind: "ServiceAccountList"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleList"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBindingList"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleList"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBindingList"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfigurationList"},
}

// traces are the objects of those kinds that Kubernetes itself did not make, sorted; the samples' namespace is left out.
func traces(ctx context.Context, cluster *kube.Cluster) ([]string, error) {
	found := []string{}
	for _, kind := range tracesOf {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := cluster.Client().List(ctx, list); err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("%s: list %s: %w", cluster.Name(), kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			if !ofKubernetes(object) {
				found = append(found, strings.TrimSuffix(kind.Kind, "List")+" "+client.ObjectKeyFromObject(object).String())
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// without is what is in one list and not in the other.
func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(item string) bool { return slices.Contains(other, item) })
}

// ofKubernetes reports whether an object is one that a cluster makes for itself, or of the samples.
func ofKubernetes(object client.Object) bool {
	for _, name := range []string{object.GetName(), object.GetNamespace()} {
		if strings.HasPrefix(name, "system:") || strings.HasPrefix(name, "kube-") || name == namespace {
			return true
		}
	}
	return false
}

// interrupt ends the demo as Ctrl-C does, and checks that nothing is left of it.
func (c *checks) interrupt(ctx context.Context) {
	c.check(context.WithoutCancel(ctx), "Ctrl-C leaves no process and no folder", func(context.Context) (string, error) {
		running, ok := descendants()
		if !ok {
			return "", skip("this system has no /proc to see processes in")
		}
		if len(running) == 0 {
			return "", errors.New("no process is seen to run, so none would be seen to be left")
		}
		var folders []string
		for _, cluster := range c.clusters() {
			folders = append(folders, cluster.Dir())
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			return "", err
		}
		select {
		case <-ctx.Done(): // from here on the demo does what it does whenever it is interrupted
		case <-time.After(patience):
			return "", errors.New("the signal was not noticed")
		}
		if err := c.stop(); err != nil {
			return "", err
		}
		if left := stillThere(running); len(left) > 0 {
			return "", fmt.Errorf("still there: %s", strings.Join(left, ", "))
		}
		for _, folder := range folders {
			if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
				return "", fmt.Errorf("folder %s is still there", folder)
			}
		}
		return fmt.Sprintf("%d processes ended, %d folders removed", len(running), len(folders)), nil
	})
}
