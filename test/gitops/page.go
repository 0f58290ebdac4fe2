package gitops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-dev/plimsoll/test/kube"
)

// shell finds the commands of a page, also those that are indented within a list.
var shell = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")

// follow runs those commands of docs/gitops.md in which a text is, in the working tree, as whoever reads the page does. Of
// the pairs, the first is replaced by the second.
func (s *Site) follow(ctx context.Context, holds string, pairs ...string) error {
	page, err := os.ReadFile(filepath.Join(s.root, "docs", "gitops.md"))
	if err != nil {
		return err
	}
	environ, err := s.environment()
	if err != nil {
		return err
	}
	for _, block := range shell.FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(block[2], holds) {
			continue
		}
		_, err := run(ctx, s.Repo.Dir, environ, "bash", "-euo", "pipefail", "-c", strings.NewReplacer(pairs...).Replace(block[2]))
		return err
	}
	return fmt.Errorf("docs/gitops.md shows no command with %q", holds)
}

// environment is that of a person with the tools, and the hub cluster as context "hub".
func (s *Site) environment() ([]string, error) {
	config, err := clientcmd.Load(s.Fleet.Hub.Kubeconfig())
	if err != nil {
		return nil, err
	}
	config.Contexts["hub"] = config.Contexts[config.CurrentContext]
	config.CurrentContext = "hub"
	file := filepath.Join(s.dir, "contexts.kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		return nil, err
	}
	testbed, err := kube.BinDir()
	if err != nil {
		return nil, err
	}
	path := []string{filepath.Join(s.built, "bin"), testbed, os.Getenv("PATH")}
	return append(gitEnvironment(), "HOME="+s.dir, "KUBECONFIG="+file, "PATH="+strings.Join(path, string(os.PathListSeparator))), nil
}
