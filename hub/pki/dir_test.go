package pki

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
)

// put writes a fresh certificate of ca into dir, as a mounted Secret would.
func put(t *testing.T, dir string, ca *CA, withCA bool) {
	t.Helper()
	pair, err := (&leaf{ca: ca, template: ca.newPeerLeaf().template}).current(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"tls.crt": certPEM(pair), "tls.key": keyPEM(t, pair)}
	if withCA {
		files["ca.crt"] = ca.Bundle()
	}
	for name, content := range files {
		write(t, dir, name, content)
	}
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesOfAFolderAreServedAndTakenUpWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		dir, first, second := t.TempDir(), newCA(t), newCA(t)
		put(t, dir, first, true)
		certificates, err := DirTLS(dir)
		g.Expect(err).NotTo(HaveOccurred())
		served := func() []byte {
			pair, err := certificates.ServerTLS().GetCertificate(nil)
			g.Expect(err).NotTo(HaveOccurred())
			return pair.Certificate[0]
		}
		before := served()
		g.Expect(certificates.Bundle()).To(Equal(first.Bundle()))

		put(t, dir, second, true)
		time.Sleep(dirCheckEvery)
		g.Expect(served()).NotTo(Equal(before))
		g.Expect(certificates.Bundle()).To(Equal(second.Bundle()))
		g.Expect(certificates.Err()).To(Succeed())
	})
}

func TestAFolderThatDoesNotFitTogetherLeavesTheOldCertificateInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		dir, first := t.TempDir(), newCA(t)
		put(t, dir, first, false)
		certificates, err := DirTLS(dir)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(certificates.Bundle()).To(BeNil(), "without ca.crt members trust what their system trusts")
		before, err := certificates.ServerTLS().GetCertificate(nil)
		g.Expect(err).NotTo(HaveOccurred())

		write(t, dir, "tls.key", []byte("canary-77aa"))
		time.Sleep(dirCheckEvery)
		after, err := certificates.ServerTLS().GetCertificate(nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after).To(Equal(before))
		g.Expect(certificates.Err()).To(MatchError(And(ContainSubstring(dir), Not(ContainSubstring("canary")))))

		g.Expect(os.Remove(filepath.Join(dir, "tls.crt"))).To(Succeed())
		time.Sleep(dirCheckEvery)
		g.Expect(certificates.Err()).To(MatchError(ContainSubstring("tls.crt")))

		put(t, dir, first, true)
		time.Sleep(dirCheckEvery)
		g.Expect(certificates.Err()).To(Succeed())
		g.Expect(certificates.Bundle()).To(Equal(first.Bundle()))
	})
}

func TestABadFolderStopsTheStart(t *testing.T) {
	g := NewWithT(t)
	_, err := DirTLS(filepath.Join(t.TempDir(), "missing"))
	g.Expect(err).To(MatchError(ContainSubstring("missing")))
	dir := t.TempDir()
	put(t, dir, newCA(t), true)
	write(t, dir, "ca.crt", []byte("no certificate"))
	_, err = DirTLS(dir)
	g.Expect(err).To(MatchError(ContainSubstring("ca.crt: no certificate in PEM")))
}
