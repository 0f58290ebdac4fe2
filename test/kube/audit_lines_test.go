package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
)

// An API server may be writing a line at any moment: what is read from a mark on must begin with a line.
func TestAMarkIsAtTheBeginningOfALine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		content        string
		offset, marked int64
	}{
		"complete":                             {"1234\n1234\n", 5, 10},
		"within a line":                        {"1234\n1234\n12", 5, 10},
		"from within a line":                   {"1234\n1234\n12", 2, 10},
		"only a part of a line":                {"1234\n12", 5, 5},
		"nothing was written since":            {"1234\n", 5, 5},
		"from within a line, to within a line": {"1234\n12", 3, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := gomega.NewWithT(t)
			path := filepath.Join(t.TempDir(), "audit.log")
			g.Expect(os.WriteFile(path, []byte(test.content), 0o600)).To(gomega.Succeed())
			g.Expect(linesEnd(path, test.offset)).To(gomega.Equal(test.marked))
		})
	}
}
