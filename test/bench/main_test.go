package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestRunsAreChosenByNameAndKeepTheirOrder(t *testing.T) {
	g := NewWithT(t)
	chosen, err := choose("admission,burst")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(chosen)).To(Equal("burst,admission"))

	chosen, err = choose("memory")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(chosen)).To(Equal("burst,scale,memory"), "memory is measured after bursts")

	_, err = choose("brust")
	g.Expect(err).To(MatchError(ContainSubstring(`"brust"`)))
}
