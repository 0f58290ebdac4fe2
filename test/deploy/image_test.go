package deploy

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/hashicorp/hcl/v2/hclparse"
	"github.com/zclconf/go-cty/cty"
)

// bakeFile is what docker buildx bake reads of docker-bake.hcl, as far as ours says it: any other key is an error.
type bakeFile struct {
	Groups []struct {
		Name    string   `hcl:"name,label"`
		Targets []string `hcl:"targets"`
	} `hcl:"group,block"`
	Targets []bakeTarget `hcl:"target,block"`
}

type bakeTarget struct {
	Name       string            `hcl:"name,label"`
	Context    string            `hcl:"context"`
	Dockerfile string            `hcl:"dockerfile"`
	Platforms  []string          `hcl:"platforms"`
	Tags       []string          `hcl:"tags"`
	Args       map[string]string `hcl:"args,optional"`
}

// bakeVariables are what its expressions may name, with the defaults.
type bakeVariables struct {
	Variables []struct {
		Name    string `hcl:"name,label"`
		Default string `hcl:"default"`
	} `hcl:"variable,block"`
	Rest hcl.Body `hcl:",remain"`
}

func readBakeFile(t *testing.T) (file bakeFile) {
	t.Helper()
	parsed, problems := hclparse.NewParser().ParseHCLFile(filepath.Join(root, "deploy", "image", "docker-bake.hcl"))
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	var variables bakeVariables
	if problems := gohcl.DecodeBody(parsed.Body, nil, &variables); problems.HasErrors() {
		t.Fatal(problems)
	}
	known := &hcl.EvalContext{Variables: map[string]cty.Value{}}
	for _, variable := range variables.Variables {
		known.Variables[variable.Name] = cty.StringVal(variable.Default)
	}
	if problems := gohcl.DecodeBody(variables.Rest, known, &file); problems.HasErrors() {
		t.Fatal(problems)
	}
	return file
}

// A machine with buildx is not needed for this: that the Makefile, which says where everything is, is run by other tests.
func TestBakeBuildsFromWhatMakeImageFilesPutsTogether(t *testing.T) {
	file := readBakeFile(t)
	if len(file.Targets) != 1 || len(file.Groups) != 1 || file.Groups[0].Name != "default" || !slices.Equal(file.Groups[0].Targets, []string{file.Targets[0].Name}) {
		t.Fatalf("there is not one target by default: %+v", file)
	}
	target := file.Targets[0]

	// docker build --build-arg TARGETARCH=… -t <image> -f <Dockerfile> <context>
	build := wouldRun(t, "image", "docker build ")
	tag, dockerfile, context := build[slices.Index(build, "-t")+1], build[slices.Index(build, "-f")+1], build[len(build)-1]
	if path.Clean(target.Context) != context || path.Join(target.Context, target.Dockerfile) != dockerfile || !slices.Equal(target.Tags, []string{tag}) {
		t.Errorf("bake builds %+v, and `make image` %s", target, build)
	}

	// sh deploy/image/files.sh <architecture>…
	files := wouldRun(t, "image-files", "files.sh")
	var platforms []string
	for _, arch := range files[slices.IndexFunc(files, func(word string) bool { return strings.HasSuffix(word, "files.sh") })+1:] {
		platforms = append(platforms, "linux/"+arch)
	}
	if want := []string{"linux/amd64", "linux/arm64"}; !slices.Equal(platforms, want) || !slices.Equal(target.Platforms, want) {
		t.Errorf("`make image-files` is for %v, and bake for %v", platforms, target.Platforms)
	}
	script := read(t, "deploy/image/files.sh")
	if !strings.Contains(script, `files="`+context+`/$arch"`) {
		t.Errorf("files.sh does not fill a folder of %s for each architecture:\n%s", context, script)
	}

	text := read(t, dockerfile)
	for _, arg := range regexp.MustCompile(`(?m)^ARG (\w+)$`).FindAllStringSubmatch(text, -1) {
		if _, given := target.Args[arg[1]]; !given && arg[1] != "TARGETARCH" { // BuildKit sets that one itself
			t.Errorf("bake does not set %s", arg[1])
		}
	}
	for name := range target.Args {
		if !strings.Contains(text, "\nARG "+name) {
			t.Errorf("bake sets %s, which the Dockerfile does not know", name)
		}
	}
	if copies := regexp.MustCompile(`(?m)^(COPY|ADD) .*$`).FindAllString(text, -1); !slices.Equal(copies, []string{"COPY ${TARGETARCH}/ /"}) {
		t.Errorf("the Dockerfile takes %q, and files.sh fills a folder for each architecture", copies)
	}
}

// wouldRun is the command of a target of the Makefile that has a text in it, word by word, with the Makefile's defaults.
func wouldRun(t *testing.T, target, has string) []string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "make", "--no-print-directory", "--dry-run", target)
	command.Dir, command.Env = root, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("make --dry-run %s: %v\n%s", target, err, said)
	}
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, has) {
			return strings.Fields(line)
		}
	}
	t.Fatalf("`make %s` does not run %q:\n%s", target, has, said)
	return nil
}

// read is a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
