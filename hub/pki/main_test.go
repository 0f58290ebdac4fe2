package pki

import (
	"context"
	"io"
	"log"
	"testing"

	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	caNamespace = "plimsoll-system"
	caName      = "plimsoll-ca"
)

// newCA creates a CA in a hub cluster of its own.
func newCA(t testing.TB) *CA {
	t.Helper()
	ca, err := EnsureCA(context.Background(), fake.NewClientBuilder().Build(), caNamespace, caName)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func caSecret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: caNamespace, Name: caName}, Type: corev1.SecretTypeTLS, Data: data}
}

func readSecret(g *WithT, c client.Client) *corev1.Secret {
	secret := &corev1.Secret{}
	g.Expect(c.Get(context.Background(), client.ObjectKey{Namespace: caNamespace, Name: caName}, secret)).To(Succeed())
	return secret
}

var discardLog = log.New(io.Discard, "", 0)
