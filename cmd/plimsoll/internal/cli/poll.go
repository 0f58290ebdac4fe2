package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	plimsollv1 "github.com/plimsoll-dev/plimsoll/proto/plimsoll/v1"
)

// pollEvery is the time between two lists where the API has no watch.
const pollEvery = 2 * time.Second

// polled is a list that is followed without a watch: it is read again and again, and what differs is printed like the messages of a watch.
type polled[T proto.Message] struct {
	env  Environment
	out  *output
	kind string // the field of the item in JSON
	// read lists everything.
	read func(context.Context) ([]T, []*plimsollv1.UnreachableMember, error)
	// name and line show an item, by its name and in one line.
	name, line func(T) string

	known  map[string]T
	warned string // the members that were missing the last time
}

// follow prints everything, and then what changes, until ctx ends or a list fails.
func (p *polled[T]) follow(ctx context.Context, every time.Duration) error {
	p.known = map[string]T{}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		items, missing, err := p.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			err = p.show(items, missing)
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// show prints what is new, what has changed, and what is gone. What may only be missing because a member did not answer is not gone.
func (p *polled[T]) show(items []T, missing []*plimsollv1.UnreachableMember) error {
	now := make(map[string]T, len(items))
	for _, item := range items {
		name := p.name(item)
		now[name] = item
		if before, ok := p.known[name]; ok && proto.Equal(before, item) {
			continue
		}
		if err := p.print(item, plimsollv1.WatchEventType_WATCH_EVENT_TYPE_PUT); err != nil {
			return err
		}
	}
	for name, item := range p.known {
		if _, ok := now[name]; ok {
			continue
		}
		if len(missing) > 0 {
			now[name] = item
			continue
		}
		if err := p.print(item, plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED); err != nil {
			return err
		}
	}
	p.known = now
	if text := fmt.Sprint(missing); text != p.warned {
		p.warned = text
		warn(p.env.Err, missing)
	}
	return nil
}

func (p *polled[T]) print(item T, what plimsollv1.WatchEventType) error {
	switch {
	case p.out.format == formatName:
		_, err := fmt.Fprintln(p.env.Out, plain(p.name(item)))
		return err
	case p.out.forPeople():
		line := plain(p.line(item))
		if what == plimsollv1.WatchEventType_WATCH_EVENT_TYPE_REMOVED {
			line += removed
		}
		_, err := fmt.Fprintln(p.env.Out, line)
		return err
	}
	text, err := protojson.Marshal(item)
	if err != nil {
		return err
	}
	message, err := json.Marshal(map[string]any{"type": what.String(), p.kind: json.RawMessage(text)})
	if err != nil {
		return err
	}
	return p.out.writeChange(p.env.Out, message)
}
