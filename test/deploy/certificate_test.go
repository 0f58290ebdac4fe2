package deploy

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-dev/plimsoll/test/fleet"
	"github.com/plimsoll-dev/plimsoll/test/kube"
	"github.com/plimsoll-dev/plimsoll/webhook"
)

// fromCertManager are the chart's values for a webhook's certificate of cert-manager.
func fromCertManager() map[string]any {
	return map[string]any{"certificate": map[string]any{"secretName": "webhook-tls", "issuerRef": map[string]any{"name": "issuer"}}}
}

// volume is a Secret as a kubelet mounts it, with a certificate in it as cert-manager issues it.
type volume struct {
	dir    string
	ca     []byte // the ca.crt in it, in PEM
	writes int
}

// mount makes the volume with the certificate that the chart has asked for, and returns where the hub finds it. That the
// hub's pod has the Certificate's Secret where its configuration says, is checked here, as no pod runs.
func (s *site) mount(certDir string) *volume {
	s.Helper()
	var hub appsv1.Deployment
	s.must(s.fleet.Hub.Client().Get(s.Context(), client.ObjectKey{Namespace: Namespace, Name: "plimsoll-hub"}, &hub))
	secrets := map[string]string{}
	for _, volume := range hub.Spec.Template.Spec.Volumes {
		if volume.Secret != nil {
			secrets[volume.Name] = volume.Secret.SecretName
		}
	}
	found := ""
	for _, mount := range hub.Spec.Template.Spec.Containers[0].VolumeMounts {
		if mount.MountPath == certDir {
			found = secrets[mount.Name]
		}
	}
	if found == "" || found != s.asked()["secretName"] {
		s.Fatalf("Secret %q is mounted at %s, and cert-manager is to fill %v", found, certDir, s.asked()["secretName"])
	}
	v := &volume{dir: s.TempDir()}
	s.issue(v)
	return v
}

// asked is what the chart asks of cert-manager.
func (s *site) asked() map[string]any {
	s.Helper()
	certificate := &unstructured.Unstructured{}
	certificate.SetGroupVersionKind(schema.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Certificate"})
	s.must(s.fleet.Hub.Client().Get(s.Context(), client.ObjectKey{Namespace: Namespace, Name: "plimsoll-webhook"}, certificate))
	return certificate.Object["spec"].(map[string]any)
}

// issue writes a certificate for the names that are asked for, and for no other, from a new authority, over what is there.
func (s *site) issue(v *volume) {
	s.Helper()
	template := func(serial int64) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		}
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	ca := template(1)
	ca.Subject = pkix.Name{CommonName: "issuer"} // the same each time, as an issuer's is
	ca.IsCA, ca.BasicConstraintsValid, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	s.must(err)

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s.must(err)
	leaf, spec := template(2), s.asked()
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.DNSNames, _, err = unstructured.NestedStringSlice(spec, "dnsNames")
	s.must(err)
	addresses, _, err := unstructured.NestedStringSlice(spec, "ipAddresses")
	s.must(err)
	for _, address := range addresses {
		leaf.IPAddresses = append(leaf.IPAddresses, net.ParseIP(address))
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	s.must(err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	s.must(err)

	v.ca = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	s.must(v.write(map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leafDER}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
		"ca.crt":  v.ca,
	}))
}

// write puts files into the volume as a kubelet does: each is a link through ..data, which is replaced for all at once.
func (v *volume) write(files map[string][]byte) error {
	v.writes++
	version := "..version" + string(rune('0'+v.writes))
	if err := os.Mkdir(filepath.Join(v.dir, version), 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(v.dir, version, name), content, 0o600); err != nil {
			return err
		}
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.dir, name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := os.Symlink(version, filepath.Join(v.dir, "..data_tmp")); err != nil {
		return err
	}
	return os.Rename(filepath.Join(v.dir, "..data_tmp"), filepath.Join(v.dir, "..data"))
}

// servesWhatCertManagerIssues makes a pod that is placed with the certificate that is there, and one after another of
// another authority has taken its place.
func (s *site) servesWhatCertManagerIssues(r *running, v *volume) {
	namespace, err := s.member.NewNamespace(s.Context(), "certified", fleet.Enabled())
	s.must(err)
	s.trusted(r, v)
	s.placed(namespace, "issued")
	s.issue(v)
	s.trusted(r, v)
	s.placed(namespace, "replaced")
}

// trusted waits until the member is configured to trust the authority that is in the volume, and is served with its certificate.
func (s *site) trusted(r *running, v *volume) {
	s.Helper()
	s.must(fleet.Await(timeout(s.T, patience), "the authority of cert-manager in the member", func(ctx context.Context) (bool, error) {
		var told admissionregistrationv1.MutatingWebhookConfiguration
		if err := s.member.Client().Get(ctx, client.ObjectKey{Name: webhook.ConfigurationName}, &told); err != nil {
			return false, err
		}
		return len(told.Webhooks) > 0 && bytes.Equal(told.Webhooks[0].ClientConfig.CABundle, v.ca), nil
	}))
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(v.ca)
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(timeout(s.T, patience), "tcp", r.addr.Webhook)
	s.must(err)
	_ = conn.Close()
}

// placed makes a workload that belongs on spot, and waits for a pod of it that has been sent there: by the webhook, because
// nobody can do that later. One that was let through, when the hub's answer did not come in time, makes way for the next.
func (s *site) placed(namespace, name string) {
	s.Helper()
	w, err := s.member.Create(s.Context(), fleet.Deployment(namespace, name, 1, fleet.Policy(100, 0)))
	s.must(err)
	s.must(fleet.Await(timeout(s.T, patience), "a pod of "+w.String()+" that was placed by the webhook", func(ctx context.Context) (bool, error) {
		pods, err := w.Pods(ctx)
		for i := range pods {
			switch {
			case pods[i].Spec.NodeSelector[kube.CapacityLabel] == kube.Spot:
				return true, nil
			case pods[i].DeletionTimestamp == nil:
				err = errors.Join(err, client.IgnoreNotFound(s.member.Client().Delete(ctx, &pods[i])))
			}
		}
		return false, err
	}))
}
