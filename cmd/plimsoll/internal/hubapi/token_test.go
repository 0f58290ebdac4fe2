package hubapi

import (
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestATokenIsOfTheFirstAccountThatThePersonMayUse(t *testing.T) {
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	none, forbidden, broken := apierrors.NewNotFound(accounts, "x"), apierrors.NewForbidden(accounts, "x", nil), errors.New("no route")
	for name, c := range map[string]struct {
		operator, viewer error
		token            string
		failed           func(error) bool // nil: it has not
	}{
		"both":                    {nil, nil, "plimsoll-operator", nil},
		"the first is not there":  {none, nil, "plimsoll-viewer", nil},
		"the first is forbidden":  {forbidden, nil, "plimsoll-viewer", nil},
		"none is there":           {none, none, "", apierrors.IsNotFound},
		"none is allowed":         {forbidden, forbidden, "", apierrors.IsForbidden},
		"one is there, forbidden": {none, forbidden, "", apierrors.IsForbidden}, // somebody can do something about that
		"one is forbidden":        {forbidden, none, "", apierrors.IsForbidden},
		"the cluster is away":     {broken, nil, "", func(err error) bool { return errors.Is(err, broken) }},
	} {
		clients := fake.NewClientset()
		clients.PrependReactor("create", "serviceaccounts/token", func(action clienttesting.Action) (bool, runtime.Object, error) {
			asked := action.(clienttesting.CreateActionImpl)
			request := asked.GetObject().(*authenticationv1.TokenRequest).DeepCopy()
			if s := request.Spec; len(s.Audiences) != 1 || s.Audiences[0] != "plimsoll" || s.ExpirationSeconds == nil || asked.GetNamespace() != "ns" {
				t.Errorf("%s: asked in namespace %s for %+v", name, asked.GetNamespace(), s)
			}
			request.Status.Token = asked.Name
			return true, request, map[string]error{"plimsoll-operator": c.operator, "plimsoll-viewer": c.viewer}[asked.Name]
		})
		cluster := &Cluster{context: "hub", namespace: "ns", core: clients.CoreV1()}
		token, err := cluster.Token(t.Context(), "plimsoll")
		if token != c.token || (err == nil) != (c.failed == nil) || err != nil && !c.failed(err) {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
}
