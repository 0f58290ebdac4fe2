package enroll

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// InClusterServer is where pods of a cluster find its own API server.
	InClusterServer = "https://kubernetes.default.svc"
	// rootCA is the ConfigMap in every namespace with what pods trust there.
	rootCA    = "kube-root-ca.crt"
	rootCAKey = "ca.crt"
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
