package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// checks runs checks and counts how they end.
type checks struct {
	*demo
	passed, failed, skipped int
	ran                     map[string]bool // printed lines, by name
}

// skip is an error that says why something cannot be checked here.
type skip string

// Error implements error.
func (s skip) Error() string { return string(s) }

// check runs all checks, the last of which ends the demo as Ctrl-C does, and returns how many have failed.
func (d *demo) check(ctx context.Context) (int, error) {
	d.printLines()
	d.printPage()
	c := &checks{demo: d, ran: map[string]bool{}}
	d.screen.title("Checks")
	for _, part := range []func(context.Context){
		c.members, c.burst, c.questions, c.orders, c.commands, c.pages, c.policyChange, c.scaling, c.drought, c.overFleet, c.everyLine, c.leaving, c.rights,
	} {
		part(ctx)
		if ctx.Err() != nil {
			return c.failed, context.Cause(ctx)
		}
	}
	if c.failed > 0 {
		d.keepLogs() // before the clusters go
	}
	c.interrupt(ctx)
	d.screen.printf("\n%s", c.summary())
	return c.failed, nil
}

func (c *checks) summary() string {
	text := fmt.Sprintf("%d passed, %d failed", c.passed, c.failed)
	if c.skipped > 0 {
		text = fmt.Sprintf("%d skipped, %s", c.skipped, text)
	}
	return fmt.Sprintf("%s in %.0f s", text, time.Since(c.begun).Seconds())
}

// check does one check and prints its line: what it has found, or what has gone wrong.
func (c *checks) check(ctx context.Context, name string, do func(context.Context) (string, error)) {
	found, err := do(ctx)
	if ctx.Err() != nil && err != nil {
		return // the check was not given the time to end
	}
	if why := skip(""); errors.As(err, &why) {
		c.skipped++
		c.screen.printf("%s %s: %s", c.screen.paint(notable, "skip"), name, why)
		return
	}
	if err != nil {
		c.failed++
		c.screen.printf("%s %s: %v", c.screen.paint(bad, "FAIL"), name, err)
		return
	}
	c.passed++
	if found != "" {
		name += ": " + found
	}
	c.screen.printf("%s   %s", c.screen.paint(good, "ok"), name)
}

// paste runs a printed line as it is printed.
func (c *checks) paste(ctx context.Context, name string) (stdout string, err error) {
	c.ran[name] = true
	stdout, _, err = run(ctx, lineNamed(c.ports, name).command)
	return stdout, err
}

// everyLine fails for a printed line that no check has run.
func (c *checks) everyLine(ctx context.Context) {
	c.check(ctx, "every printed line was run as it is printed", func(context.Context) (string, error) {
		var missing []string
		for _, l := range lines(c.ports) {
			if !c.ran[l.name] {
				missing = append(missing, l.command)
			}
		}
		if len(missing) > 0 {
			return "", fmt.Errorf("not run: %s", strings.Join(missing, "; "))
		}
		return fmt.Sprintf("%d lines", len(c.ran)), nil
	})
}
