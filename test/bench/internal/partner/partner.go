// Package partner runs this program again for what must not share a process with what is measured.
package partner

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"os"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// A Partner is a process of its own of this program, which does one thing by its one argument, so that what is measured does not wait for
// goroutines and garbage of who measures it. An order comes in and reports go out, in gob.
type Partner struct {
	command string
	process *proc.Process
	output  *os.File
	reports *gob.Decoder
	leave   func() bool
}

// Start starts a process that follows an order, until ctx ends or End is called.
func Start(ctx context.Context, command string, order any) (*Partner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var input bytes.Buffer
	if err := gob.NewEncoder(&input).Encode(order); err != nil {
		return nil, err
	}
	output, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	process, err := proc.Start(proc.Command{Name: "bench " + command, Program: self, Args: []string{command}, Env: os.Environ(), Stdin: &input, Stdout: theirs})
	_ = theirs.Close() // the child has a copy of its own
	if err != nil {
		_ = output.Close()
		return nil, err
	}
	return &Partner{
		command: command, process: process, output: output, reports: gob.NewDecoder(output),
		leave: context.AfterFunc(ctx, func() { _ = process.Kill() }), // so that who waits for a report gets an error
	}, nil
}

// Next waits for a report.
func (p *Partner) Next(report any) error {
	if err := p.reports.Decode(report); err != nil {
		return fmt.Errorf("%s, a process of its own: %w", p.command, err)
	}
	return nil
}

// End kills the process. It has said what it had to say, or failed.
func (p *Partner) End() {
	p.leave()
	_ = p.process.Kill() // it may have ended
	_ = p.output.Close()
}

// Follow is the first report of a process that follows an order.
func Follow(ctx context.Context, command string, order, into any) error {
	p, err := Start(ctx, command, order)
	if err != nil {
		return err
	}
	defer p.End()
	return p.Next(into)
}
