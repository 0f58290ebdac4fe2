package kube_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

func TestARestoredEtcdHasWhatItHadAtTheTimeOfTheBackup(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	c := kube.New(t, kube.Options{Name: "restored", Minimal: true})
	before, after := configMap("default", "before"), configMap("default", "after")
	g.Expect(c.Client().Create(ctx, before)).To(Succeed())
	backup, err := c.Backup(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(exists(t, c, before)).To(BeTrue(), "a backup changes nothing")
	g.Expect(c.Client().Create(ctx, after)).To(Succeed())

	for range 2 {
		g.Expect(c.Restore(ctx, backup)).To(Succeed())
		g.Expect(exists(t, c, before)).To(BeTrue())
		g.Expect(exists(t, c, configMap("default", "after"))).To(BeFalse())
	}
}
