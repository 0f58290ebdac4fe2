package pki

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestTheClientAuthorityIsReadAgainAndABadFileIsNoReasonToForgetTheGoodOne(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	_, err := ClientAuthorityOf(file)
	g.Expect(err).To(MatchError(ContainSubstring(file)))
	g.Expect(os.WriteFile(file, []byte("nothing"), 0o600)).To(Succeed())
	_, err = ClientAuthorityOf(file)
	g.Expect(err).To(MatchError(ContainSubstring("no certificate in PEM")))

	first, second := newCA(t), newCA(t)
	g.Expect(os.WriteFile(file, first.Bundle(), 0o600)).To(Succeed())
	a, err := ClientAuthorityOf(file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a.current(time.Now()).Equal(first.pool)).To(BeTrue())
	g.Expect(os.WriteFile(file, second.Bundle(), 0o600)).To(Succeed())
	g.Expect(a.current(time.Now().Add(dirCheckEvery)).Equal(second.pool)).To(BeTrue())
	g.Expect(os.WriteFile(file, []byte("nothing"), 0o600)).To(Succeed())
	g.Expect(a.current(time.Now().Add(3 * dirCheckEvery)).Equal(second.pool)).To(BeTrue())
}
