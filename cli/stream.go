// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// stream sends a command by stream and prints its events when they arrive.
func (c *leaderCall) stream(ctx context.Context, to printer) (int, error) {
	out := eventPrinter{printer: to}
	c.last = c.after
	history, err := c.existing(ctx)
	if err != nil {
		return 1, c.explain(err)
	}
	rest := rest{get: c.get, history: history || c.call.Message.Command == task.ReStream}
	begun := false
	waiting := c.progress("waiting for events")
	defer waiting.stop()
	interrupted := func(err error) {
		waiting.pause()
		out.endText()
		c.cmd.PrintErrf("the stream was interrupted; resuming it after event %d: %s\n", c.last, clean(err.Error()))
	}
	for ev, err := range c.client.Follow(ctx, c.call, interrupted) {
		waiting.pause()
		if err != nil {
			out.endText()
			return 1, c.explain(err)
		}
		if !begun && !c.json && c.call.Message.Command == task.Start {
			out.begin(c.call.Message.TaskID) // now there is one
		}
		begun = true
		if c.json {
			err = out.raw(ev.Raw)
			out.note(&ev.Event)
		} else {
			err = out.event(&ev.Event)
		}
		if err != nil {
			return 1, err
		}
		c.last = ev.Seq
		if out.now.State.Terminal() || !c.follow && out.now.State.Settled() && rest.reached(ctx, &out.now) {
			break
		}
		if !out.text {
			waiting.resume()
		}
	}
	waiting.stop()
	out.endText()
	if out.now.State == "" { // no event follows --after, because the task has ended
		if t, err := c.get(ctx); err == nil && t != nil {
			out.now = t.Status
			if !c.json {
				out.status(&out.now)
			}
		}
	}
	if !c.json {
		out.next(out.now.State, c.call.Message.TaskID)
	}
	if out.err != nil {
		return 1, out.err
	}
	return verdict(c.call.Message.Command, out.now.State)
}

// rest finds the end of the history at the beginning of a stream.
type rest struct {
	get     func(context.Context) (*task.Task, error)
	history bool // the stream begins with events of the past
	current time.Time
}

// reached reports whether a status is the task's current one, and not one of the past. Nothing follows such a status
// before the Leader acts. If the Partner does not say, it is.
func (r *rest) reached(ctx context.Context, s *task.Status) bool {
	if !r.history {
		return true
	}
	if s.ChangedAt.Before(r.current) {
		return false
	}
	t, err := r.get(ctx)
	if err != nil || t == nil {
		return true
	}
	r.current = t.Status.ChangedAt
	return !s.ChangedAt.Before(r.current)
}

// eventPrinter prints the events of one stream: chunks of text on one line as they arrive, and others on lines of their
// own.
type eventPrinter struct {
	printer
	now   task.Status // of the task, in the last event
	text  bool        // a line of text is open
	piece string      // the id of the last product
}

// note keeps the status in an event.
func (p *eventPrinter) note(ev *task.Event) {
	switch {
	case ev.Task != nil:
		p.now = ev.Task.Status
	case ev.Status != nil:
		p.now = *ev.Status
	}
}

func (p *eventPrinter) event(ev *task.Event) error {
	before := p.now.State
	p.note(ev)
	p.remark = fmt.Sprintf("(event %d)", ev.Seq)
	defer func() { p.remark = "" }()
	if ev.Chunk != nil {
		p.chunk(ev.Chunk)
		return p.err
	}
	p.endText()
	switch {
	case ev.Task != nil && before == "":
		p.head(ev.Task)
		p.status(&p.now)
	case (ev.Task != nil || ev.Status != nil) && p.now.State == before:
		p.items("says", p.now.DataItems)
	case ev.Task != nil || ev.Status != nil: // the products of a Task have been pieces before
		p.status(&p.now)
	case ev.Message != nil:
		return p.message(ev.Message)
	}
	return p.err
}

func (p *eventPrinter) chunk(c *task.Chunk) {
	if !c.Append || p.piece != c.Product.ID {
		p.endText()
		p.line("product", joined(c.Product.ID, c.Product.Name, c.Product.Description))
		p.piece = c.Product.ID
	}
	for i := range c.Product.DataItems {
		it := &c.Product.DataItems[i]
		if it.Kind != task.TextItem {
			p.endText()
			p.items("", c.Product.DataItems[i:i+1])
			continue
		}
		if !p.text {
			p.write(strings.Repeat(" ", 10))
			p.text = true
		}
		p.write(strings.ReplaceAll(clean(it.Text), "\n", "\n          "))
	}
}

func (p *eventPrinter) endText() {
	if p.text {
		p.write("\n")
		p.text = false
	}
}

func (p *eventPrinter) write(s string) {
	if _, err := fmt.Fprint(p.w, s); p.err == nil {
		p.err = err
	}
}
