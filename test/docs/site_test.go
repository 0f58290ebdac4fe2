package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// navigation are the pages of mkdocs.yml, in their order.
func navigation(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "mkdocs.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var site struct {
		Nav []any `json:"nav"`
	}
	if err := yaml.Unmarshal(text, &site); err != nil {
		t.Fatal(err)
	}
	var found []string
	var walk func(any)
	walk = func(part any) {
		switch part := part.(type) {
		case string:
			found = append(found, part)
		case []any:
			for _, one := range part {
				walk(one)
			}
		case map[string]any:
			for _, one := range part {
				walk(one)
			}
		}
	}
	walk(site.Nav)
	return found
}

// pagesOfDocs are the pages of docs/, but for single decisions, which their list leads to.
func pagesOfDocs(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{"decisions/README.md"}
	for _, path := range paths {
		pages = append(pages, filepath.Base(path))
	}
	return pages
}

// Somebody who comes to the site or to docs/README.md finds every page from there.
func TestEveryPageIsInTheNavigationAndInTheIndex(t *testing.T) {
	index, err := os.ReadFile(filepath.Join(root, "docs", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown, pages := navigation(t), pagesOfDocs(t)
	for _, page := range pages {
		if !slices.Contains(shown, page) {
			t.Errorf("mkdocs.yml does not lead to %s", page)
		}
		if page != "README.md" && !strings.Contains(string(index), "]("+page) {
			t.Errorf("docs/README.md does not lead to %s", page)
		}
	}
	for i, page := range shown {
		if !slices.Contains(pages, page) || slices.Contains(shown[:i], page) {
			t.Errorf("mkdocs.yml leads to %s, which is no page or was there already", page)
		}
	}
}

// Links that lead nowhere are warnings of MkDocs, and fail a strict build; those out of docs/ are rewritten by tools/site/links.py.
func TestTheSiteIsBuiltWithoutBrokenLinks(t *testing.T) {
	mkdocs, err := exec.LookPath("mkdocs")
	if err != nil {
		t.Skip("there is no mkdocs on this machine (Debian: apt-get install mkdocs): the site is not built")
	}
	site := t.TempDir()
	build := exec.CommandContext(t.Context(), mkdocs, "build", "--strict", "--quiet", "--site-dir", site)
	build.Dir = root
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("mkdocs build --strict: %v\n%s", err, said)
	}
	page, err := os.ReadFile(filepath.Join(site, "architecture", "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `href="https://github.com/plimsoll-dev/plimsoll/blob/main/reconcile/doc.go"`; !strings.Contains(string(page), want) {
		t.Errorf("architecture.md has no %s on the site", want)
	}
}

var (
	heading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	anchor  = regexp.MustCompile(`\]\(([^):#]*)#([^)]+)\)`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	code    = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
)

// anchorsOf are what a link can lead to in a page, as GitHub and MkDocs name headings.
func anchorsOf(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(code.ReplaceAllString(text, ""), -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(match[1]), "")
		found[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return found
}

// That the file is there, another test says (test/demo).
func TestLinksIntoPagesLeadToAHeading(t *testing.T) {
	checked := 0
	for _, page := range append(pagesOfDocs(t), "../README.md", "../deploy/chart/plimsoll/README.md") {
		path := filepath.Join(root, "docs", filepath.FromSlash(page))
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range anchor.FindAllStringSubmatch(string(text), -1) {
			target := path
			if link[1] != "" {
				target = filepath.Join(filepath.Dir(path), filepath.FromSlash(link[1]))
			}
			if !strings.HasSuffix(target, ".md") {
				continue
			}
			there, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: %v", page, err)
				continue
			}
			checked++
			if !anchorsOf(string(there))[link[2]] {
				t.Errorf("%s links to #%s of %s, which has no such heading", page, link[2], link[1])
			}
		}
	}
	if checked < 40 {
		t.Errorf("%d links were checked: the expression finds too few", checked)
	}
}
