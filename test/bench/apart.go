package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"io"
	"os"

	"github.com/plimsoll-dev/plimsoll/test/kube/proc"
)

// partners are what this program does in a process of its own, by its one argument, so that what is measured does not wait for
// goroutines and garbage of who measures it. An order comes in and reports go out, in gob.
var partners = map[string]func(in io.Reader, out io.Writer) error{
	bareCommand: serveBare, loadCommand: sendLoad, apiCommand: callAPI,
}

// A partner is such a process.
type partner struct {
	command string
	process *proc.Process
	output  *os.File
	reports *gob.Decoder
	leave   func() bool
}

// startPartner starts a process that follows an order, until ctx ends or end is called.
func startPartner(ctx context.Context, command string, order any) (*partner, error) {
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
	return &partner{
		command: command, process: process, output: output, reports: gob.NewDecoder(output),
		leave: context.AfterFunc(ctx, func() { _ = process.Kill() }), // so that who waits for a report gets an error
	}, nil
}

// next waits for a report.
func (p *partner) next(report any) error {
	if err := p.reports.Decode(report); err != nil {
		return fmt.Errorf("%s, a process of its own: %w", p.command, err)
	}
	return nil
}

// end kills the process. It has said what it had to say, or failed.
func (p *partner) end() {
	p.leave()
	_ = p.process.Kill() // it may have ended
	_ = p.output.Close()
}

// follow is the first report of a process that follows an order.
func follow(ctx context.Context, command string, order, into any) error {
	p, err := startPartner(ctx, command, order)
	if err != nil {
		return err
	}
	defer p.end()
	return p.next(into)
}
