package depend

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

const canary = "s3cr3t-canary"

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

func inDefault(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: name}
}
