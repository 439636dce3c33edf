// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/internal/leader"
	"github.com/aip-gateway/aip-gateway/task"
)

// stream sends a command by stream and prints its events when they arrive.
func (f *callFlags) stream(cmd *cobra.Command, client *leader.Client, call *task.Call) (int, error) {
	ctx := cmd.Context()
	if f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	out := eventPrinter{printer: printer{w: cmd.OutOrStdout()}, taskID: call.Message.TaskID}
	interrupted := func(err error) {
		out.endText()
		cmd.PrintErrln("the stream was interrupted; resuming it:", clean(err.Error()))
	}
	for ev, err := range client.Follow(ctx, call, interrupted) {
		var refused *leader.Error
		switch {
		case errors.As(err, &refused) && f.json:
			return exitAnsweredError, out.raw(refused.Raw)
		case errors.As(err, &refused):
			out.endText()
			return exitAnsweredError, errors.New(describe(refused))
		case err != nil:
			out.endText()
			return 1, f.explain(call, err)
		case f.json:
			err = out.raw(ev.Raw)
			out.note(&ev.Event)
		default:
			err = out.event(&ev.Event)
		}
		if err != nil {
			return 1, err
		}
		if out.state.Terminal() || out.state.Settled() && !f.follow {
			break
		}
	}
	if !f.json {
		out.next()
	}
	if out.err != nil {
		return 1, out.err
	}
	return verdict(call.Message.Command, out.state)
}

// eventPrinter prints the events of one stream: chunks of text on one line as they arrive, and others on lines of their
// own.
type eventPrinter struct {
	printer
	taskID string
	state  task.State
	text   bool   // a line of text is open
	piece  string // the id of the last product
}

// note keeps the state in an event.
func (p *eventPrinter) note(ev *task.Event) {
	switch {
	case ev.Task != nil:
		p.state = ev.Task.Status.State
	case ev.Status != nil:
		p.state = ev.Status.State
	}
}

func (p *eventPrinter) event(ev *task.Event) error {
	before := p.state
	p.note(ev)
	if ev.Chunk != nil {
		p.chunk(ev.Chunk)
		return p.err
	}
	p.endText()
	switch {
	case ev.Task != nil:
		p.line("task", ev.Task.ID)
		p.line("session", ev.Task.SessionID)
		p.status(&ev.Task.Status)
	case ev.Status != nil && ev.Status.State == before:
		p.items("says", ev.Status.DataItems)
	case ev.Status != nil:
		p.status(ev.Status)
	case ev.Message != nil:
		return p.message(ev.Message)
	}
	return p.err
}

func (p *eventPrinter) status(s *task.Status) {
	p.line("state", string(s.State)+" since "+stamp(s.ChangedAt))
	p.items("says", s.DataItems)
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

// next prints the commands that are possible now.
func (p *eventPrinter) next() {
	p.endText()
	if p.state.Settled() && !p.state.Terminal() {
		p.line("next", "complete, continue or cancel, with --task "+p.taskID)
	}
}
