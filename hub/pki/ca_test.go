package pki

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func TestTheFirstReplicaMakesTheCAAndTheNextReadsIt(t *testing.T) {
	g := NewWithT(t)
	hub := fake.NewClientBuilder().Build()
	first, err := EnsureCA(t.Context(), hub, caNamespace, caName)
	g.Expect(err).NotTo(HaveOccurred())
	secret := readSecret(g, hub)
	g.Expect(secret.Type).To(Equal(corev1.SecretTypeTLS))
	g.Expect(secret.Data[TokenKeyField]).To(HaveLen(32))

	second, err := EnsureCA(t.Context(), hub, caNamespace, caName)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Bundle()).To(Equal(first.Bundle()))
	g.Expect(second.tokenKey).To(Equal(first.tokenKey))
	g.Expect(readSecret(g, hub).ResourceVersion).To(Equal(secret.ResourceVersion), "a second start writes nothing")
}

func TestReplicasThatStartAtOnceShareOneCA(t *testing.T) {
	g := NewWithT(t)
	const replicas = 8
	var ready sync.WaitGroup // every replica finds no Secret before the first of them creates it
	ready.Add(replicas)
	hub := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			ready.Done()
			ready.Wait()
			return c.Create(ctx, obj, opts...)
		},
	}).Build()
	var done sync.WaitGroup
	bundles, errs := make([][]byte, replicas), make([]error, replicas)
	for i := range replicas {
		done.Go(func() {
			ca, err := EnsureCA(context.Background(), hub, caNamespace, caName)
			if errs[i] = err; err == nil {
				bundles[i] = ca.Bundle()
			}
		})
	}
	done.Wait()
	g.Expect(errors.Join(errs...)).NotTo(HaveOccurred())
	for _, bundle := range bundles {
		g.Expect(bundle).To(Equal(bundles[0]))
	}
}

func TestAnEmptySecretIsFilledInAndOnlyOnce(t *testing.T) {
	g := NewWithT(t)
	hub := fake.NewClientBuilder().WithObjects(caSecret(nil)).Build()
	first, err := EnsureCA(t.Context(), hub, caNamespace, caName)
	g.Expect(err).NotTo(HaveOccurred())
	second, err := EnsureCA(t.Context(), hub, caNamespace, caName)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(second.Bundle()).To(Equal(first.Bundle()))
}

func TestABrokenCASecretIsNamedAndNeverOverwrittenOrQuoted(t *testing.T) {
	good, err := newCAData(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := newCAData(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	with := func(key string, value []byte) map[string][]byte {
		data := maps.Clone(good)
		data[key] = value
		return data
	}
	const canary = "canary-9d41"
	for name, test := range map[string]struct {
		data map[string][]byte
		says string
	}{
		"no certificate":         {with(corev1.TLSCertKey, nil), "key tls.crt: no certificate in PEM"},
		"garbage certificate":    {with(corev1.TLSCertKey, []byte("-----BEGIN CERTIFICATE-----\nY2FuYXJ5LTlkNDE=\n-----END CERTIFICATE-----\n")), "key tls.crt: not a valid X.509 certificate"},
		"no key":                 {with(corev1.TLSPrivateKeyKey, []byte(canary)), "key tls.key: no private key in PEM"},
		"garbage key":            {with(corev1.TLSPrivateKeyKey, []byte("-----BEGIN EC PRIVATE KEY-----\nY2FuYXJ5LTlkNDE=\n-----END EC PRIVATE KEY-----\n")), "key tls.key: not an ECDSA private key"},
		"another key":            {with(corev1.TLSPrivateKeyKey, other[corev1.TLSPrivateKeyKey]), "key tls.key does not belong to the first certificate of tls.crt"},
		"a short token key":      {with(TokenKeyField, []byte(canary)), "key token-key: 11 bytes, and must be at least 32"},
		"a certificate of no CA": {leafAsCA(t), "key tls.crt: the first certificate is not a CA certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			hub := fake.NewClientBuilder().WithObjects(caSecret(test.data)).Build()
			before := readSecret(g, hub)
			_, err := EnsureCA(t.Context(), hub, caNamespace, caName)
			g.Expect(err).To(MatchError(ContainSubstring("Secret plimsoll-system/plimsoll-ca: " + test.says)))
			g.Expect(err.Error()).NotTo(ContainSubstring(canary))
			g.Expect(err.Error()).NotTo(ContainSubstring("Y2FuYXJ5"))
			g.Expect(readSecret(g, hub).Data).To(Equal(before.Data))
		})
	}
}

// leafAsCA holds a certificate that a CA issued, where that of a CA should be.
func leafAsCA(t *testing.T) map[string][]byte {
	t.Helper()
	leaf, err := newCA(t).newPeerLeaf().current(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{corev1.TLSCertKey: certPEM(leaf), corev1.TLSPrivateKeyKey: keyPEM(t, leaf), TokenKeyField: make([]byte, 32)}
}

func TestAnExpiredCAStopsTheStartAndSaysWhatToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		hub := fake.NewClientBuilder().Build()
		ca, err := EnsureCA(t.Context(), hub, caNamespace, caName)
		g.Expect(err).NotTo(HaveOccurred())
		time.Sleep(caLifetime + time.Hour)
		_, err = EnsureCA(t.Context(), hub, caNamespace, caName)
		g.Expect(err).To(MatchError(ContainSubstring("delete the Secret, and the hub creates a new one")))
		_, err = ca.ServerTLS([]string{"hub"}, nil).GetCertificate(nil)
		g.Expect(err).To(MatchError(ContainSubstring("expired")))
	})
}

func TestFurtherCertificatesInTheSecretAreTrustedToo(t *testing.T) {
	g := NewWithT(t)
	older, err := newCAData(time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	data, err := newCAData(time.Now())
	g.Expect(err).NotTo(HaveOccurred())
	issuing := data[corev1.TLSCertKey]
	data[corev1.TLSCertKey] = bytes.Join([][]byte{issuing, older[corev1.TLSCertKey]}, []byte("a comment\n"))
	ca, err := EnsureCA(t.Context(), fake.NewClientBuilder().WithObjects(caSecret(data)).Build(), caNamespace, caName)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(ca.Bundle())).To(Equal(string(issuing) + string(older[corev1.TLSCertKey])))
}

func TestAHubThatMayNotReadItsSecretSaysSo(t *testing.T) {
	g := NewWithT(t)
	hub := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("forbidden")
		},
	}).Build()
	_, err := EnsureCA(t.Context(), hub, caNamespace, caName)
	g.Expect(err).To(MatchError("certificate authority: Secret plimsoll-system/plimsoll-ca: forbidden"))
}

func TestKeysOfTheCAAreInNoErrorAndNoBundle(t *testing.T) {
	g := NewWithT(t)
	ca := newCA(t)
	g.Expect(strings.Count(string(ca.Bundle()), "-----BEGIN ")).To(Equal(1))
	g.Expect(string(ca.Bundle())).To(HavePrefix("-----BEGIN CERTIFICATE-----"))
	g.Expect(string(ca.Bundle())).NotTo(ContainSubstring(base64.StdEncoding.EncodeToString(ca.tokenKey)))
}
