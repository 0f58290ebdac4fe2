package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Scenario runs scripts against members that really reconcile. A script is the comment of a txtar archive, whose files
// are manifests. It has a command on each line, of words that are divided by spaces; a word in single quotes may hold spaces, and # begins a
// remark. $NAME is replaced from Env, in the script and in the files.
//
//	apply MEMBER FILE…           creates the objects of the files, or changes them, by server-side apply
//	patch MEMBER OBJECT FILE     changes an object by a JSON merge patch
//	status MEMBER OBJECT FILE    changes its status so, as the controller would that is not there
//	delete MEMBER OBJECT         deletes an object
//	wait MEMBER OBJECT CHECK…    waits until all checks hold at once
//	expect MEMBER OBJECT CHECK…  wants them to hold now
//	remember MEMBER              notes the moment for expect-no-writes
//	expect-no-writes MEMBER      wants that nothing was written to the member since, see [Target.Writes]
//
// OBJECT is Kind/name in the namespace of Env's NS, or Kind/namespace/name; the kind of a group is Kind.group, for example
// Deployment.apps/web. CHECK is one of
//
//	exists, gone
//	PATH=VALUE    the field has the value; with nothing after =, it is not there
//	PATH~TEXT     the field holds the text
//
// PATH leads through fields by dots, and into lists by [name], which is the type or name of an item, or its number:
// status.conditions[Ready].reason.
type Scenario struct {
	// Members by the names that scripts use.
	Members map[string]Target
	// Env are the words that are replaced. NS is the namespace of objects that name none.
	Env map[string]string
	// Commands are further commands by name. They may not be named like one above.
	Commands map[string]Command
	// Patience bounds one command. Default 30 s.
	Patience time.Duration
}

// A Target is a member as a scenario sees it.
type Target struct {
	// Client reads live and may do everything.
	Client client.Client
	// Writes begins to note what the hub writes, and returns a function that returns what it wrote since. Nil:
	// expect-no-writes cannot be used.
	Writes func() (since func(ctx context.Context) ([]string, error), err error)
}

// A Command does one line of a script; args are the words after its name.
type Command func(ctx context.Context, args []string) error

const defaultPatience = 30 * time.Second

// RunFile runs the script in a file.
func (s *Scenario) RunFile(ctx context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := s.Run(ctx, text); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Run runs a script. An error names the line, and what it found instead.
func (s *Scenario) Run(ctx context.Context, text []byte) error {
	archive := txtar.Parse([]byte(s.expand(string(text))))
	story := &story{Scenario: s, files: map[string][]byte{}, since: map[string]func(context.Context) ([]string, error){}}
	for _, file := range archive.Files {
		story.files[file.Name] = file.Data
	}
	commands, err := s.commands(story)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		words, err := wordsIn(line)
		if err == nil && len(words) > 0 {
			err = s.do(ctx, commands, words)
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", i+1, strings.TrimSpace(line), err)
		}
	}
	return nil
}

// expand replaces the words of Env; what it does not know stays.
func (s *Scenario) expand(text string) string {
	return os.Expand(text, func(name string) string {
		if value, ok := s.Env[name]; ok {
			return value
		}
		return "$" + name
	})
}

func (s *Scenario) commands(story *story) (map[string]Command, error) {
	all := map[string]Command{
		"apply": story.apply, "patch": story.patch, "status": story.status, "delete": story.delete, "wait": story.wait, "expect": story.expect,
		"remember": story.remember, "expect-no-writes": story.expectNoWrites,
	}
	for _, name := range slices.Sorted(maps.Keys(s.Commands)) {
		if all[name] != nil {
			return nil, fmt.Errorf("command %q: there is one of this name", name)
		}
		all[name] = s.Commands[name]
	}
	return all, nil
}

func (s *Scenario) do(ctx context.Context, commands map[string]Command, words []string) error {
	command := commands[words[0]]
	if command == nil {
		return errors.New("there is no such command")
	}
	patience := s.Patience
	if patience == 0 {
		patience = defaultPatience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return command(ctx, words[1:])
}

// wordsIn splits a line.
func wordsIn(line string) (words []string, err error) {
	var word strings.Builder
	open, quoted := false, false // in a word, in quotes
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, open = !quoted, true
		case quoted:
			word.WriteRune(r)
		case r == '#' && !open:
			return words, nil
		case r == ' ' || r == '\t':
			end()
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if end(); quoted {
		return nil, errors.New("a quote is not closed")
	}
	return words, nil
}

// Until tries again until it succeeds, and gives up with the last error when ctx ends. It is for commands that wait.
func Until(ctx context.Context, try func(ctx context.Context) error) error {
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		pause := time.NewTimer(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}
