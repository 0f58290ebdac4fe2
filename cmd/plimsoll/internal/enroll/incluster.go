package enroll

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// InClusterServer is where pods of a cluster find its own API server.
	InClusterServer = "https://kubernetes.default.svc"
	// rootCA is the ConfigMap in every namespace with what pods trust there.
	rootCA    = "kube-root-ca.crt"
	rootCAKey = "ca.crt"

	// InClusterAccount is the account of the registration where the member is the hub's own cluster, and its role. There the hub itself runs
	// as [Account] and reads its keys, which a token among the registrations must not open. No tenant has a name like it.
	InClusterAccount = "plimsoll-in-cluster"
)

// InClusterCA returns what pods of a cluster trust its API server by; nil where the cluster publishes nothing: what the kubeconfig says is
// then all that is known.
func InClusterCA(ctx context.Context, at *Context) ([]byte, error) {
	cluster, err := Connect(SideMember, at)
	if err != nil {
		return nil, err
	}
	published, err := cluster.typed.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, rootCA, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, cluster.failed("read configmap/"+metav1.NamespaceSystem+"/"+rootCA, err)
	}
	if published.Data[rootCAKey] == "" {
		return nil, nil
	}
	return []byte(published.Data[rootCAKey]), nil
}

// sameServer reports whether two contexts lead to one API server, as far as their addresses show it.
func sameServer(one, other *Context) bool { return one.Config.Host == other.Config.Host }

// ownCluster reports whether the member, whose kube-system namespace has that UID, is the hub's own cluster. Where that namespace of the
// hub cluster may not be read, the addresses decide.
func (e *enrolment) ownCluster(ctx context.Context, uid string) (bool, error) {
	system, err := e.hub.typed.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if apierrors.IsForbidden(err) {
		return e.member.config.Host == e.hub.config.Host, nil
	}
	if err != nil {
		return false, e.hub.failed("read namespace/kube-system", err)
	}
	return string(system.UID) == uid, nil
}

// hubNamespaces are those of the hub and of registrations, where the member is the hub's own cluster.
func (r Registration) hubNamespaces() []string {
	if !r.InCluster {
		return nil
	}
	return []string{cmp.Or(r.HubNamespace, DefaultNamespace), r.Namespace}
}

// runner names a Deployment of the namespace whose pods run as an account; "": there is none.
func (c *Cluster) runner(ctx context.Context, namespace, account string) (string, error) {
	all, err := c.typed.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", c.failed("list the Deployments in namespace/"+namespace, err)
	}
	for i := range all.Items {
		if all.Items[i].Spec.Template.Spec.ServiceAccountName == account {
			return "deployment/" + namespace + "/" + all.Items[i].Name, nil
		}
	}
	return "", nil
}

// ofNobodyElse refuses an account as which pods run, as a hub's do in its own cluster: whoever reads registrations would have its rights.
func (e *enrolment) ofNobodyElse(ctx context.Context) error {
	account := e.names().account
	runner, err := e.member.runner(ctx, e.MemberNamespace, account)
	if apierrors.IsForbidden(err) || err == nil && runner == "" {
		return nil
	}
	if err != nil {
		return err
	}
	return e.member.failed("use serviceaccount/"+e.MemberNamespace+"/"+account, fmt.Errorf("%s runs as it, and a token of it among the registrations "+
		"would give its rights to everyone who reads them: set --member-namespace to another namespace", runner))
}
