// SPDX-License-Identifier: Apache-2.0

package a2a_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/translatetest"
)

// olderDialect is a dialect before 1.0, with its gaps.
type olderDialect struct {
	server translate.Server
	client translate.Client
	// state returns a state as a caller sees it.
	state func(task.State) task.State
	// product returns the task's index-th product as a caller knows it.
	product func(p task.Product, index int) task.Product
	auto    bool // awaiting completion is left out
}

func olderDialects() (all []olderDialect) {
	for _, confirm := range []bool{false, true} {
		finished := task.AwaitingCompletion
		if confirm {
			finished = task.AwaitingInput
		}
		state := func(s task.State) task.State {
			switch s {
			case task.AwaitingCompletion:
				return finished
			case task.Completed: // by whom, is not said
				return task.AwaitingCompletion
			}
			return s
		}
		all = append(all,
			olderDialect{a2a.LegacyServer(confirm), a2a.Legacy(), func(s task.State) task.State {
				if s == task.Rejected {
					return task.Failed
				}
				return state(s)
			}, func(p task.Product, index int) task.Product {
				if p.ID = fmt.Sprintf("artifact-%d", index); p.Name != "" {
					p.ID += "-" + p.Name
				}
				return p
			}, false},
			olderDialect{a2a.V03Server(confirm), a2a.V03(), state, func(p task.Product, _ int) task.Product {
				p.DataItems = joined(p.DataItems)
				return p
			}, !confirm})
	}
	return all
}

// joined makes one of adjacent texts.
func joined(items []task.DataItem) (out []task.DataItem) {
	for _, it := range items {
		last := len(out) - 1
		if last >= 0 && it.Kind == task.TextItem && it.Metadata == nil && out[last].Kind == task.TextItem &&
			out[last].Metadata == nil {
			out[last].Text += it.Text
			continue
		}
		out = append(out, it)
	}
	return out
}

// taskLog makes up the log of a task: a legal path of states, products in pieces, words of both sides.
type taskLog struct {
	rnd    *rand.Rand
	fold   task.Fold
	events []task.Event
	now    time.Time
}

func (l *taskLog) text() string {
	for {
		list := translatetest.Strings()
		s := strings.ToValidUTF8(list[l.rnd.IntN(len(list))], "?")
		if s != "" {
			return s
		}
	}
}

func (l *taskLog) items(most int) (out []task.DataItem) {
	for range l.rnd.IntN(most + 1) {
		var it task.DataItem
		switch l.rnd.IntN(4) {
		case 0:
			it = task.DataItem{Kind: task.FileItem, Name: l.text(), MIMEType: "text/plain", URI: l.text()}
		case 1:
			it = task.DataItem{Kind: task.FileItem, Bytes: "QUJD"}
		case 2:
			it = task.DataItem{Kind: task.DataKind, Data: json.RawMessage(`{"a":[1.0,null,{}]}`)}
		default:
			it = task.Text(l.text())
		}
		if l.rnd.IntN(4) == 0 {
			it.Metadata = json.RawMessage(`{"m":"\n"}`)
		}
		out = append(out, it)
	}
	return out
}

func (l *taskLog) add(ev task.Event) {
	ev.Seq = uint64(len(l.events) + 1)
	l.events = append(l.events, ev)
	l.fold.Apply(ev)
}

func (l *taskLog) grow() {
	l.now = l.now.Add(time.Duration(1+l.rnd.IntN(2000)) * time.Millisecond)
	state := l.fold.Status().State
	switch n := l.rnd.IntN(10); {
	case n < 5 && state == task.Working:
		i := l.rnd.IntN(3)
		c := task.Chunk{Product: task.Product{ID: fmt.Sprintf("p%d", i), DataItems: l.items(3)},
			Last: l.rnd.IntN(2) == 0}
		for _, p := range l.fold.Task().Products {
			if p.ID == c.Product.ID {
				c.Append = l.rnd.IntN(4) > 0
			}
		}
		if i > 0 && (!c.Append || l.rnd.IntN(2) == 0) {
			c.Product.Name = fmt.Sprintf("name %d", i)
		}
		if !c.Append {
			c.Product.Description = l.text()
		}
		l.add(task.Event{Chunk: &c})
	case n < 6 && state == task.Working:
		l.add(task.Event{Status: &task.Status{State: state, ChangedAt: l.now, DataItems: l.items(2)}})
	default:
		var next []task.State
		for _, s := range task.States() {
			if task.CanMove(state, s) {
				next = append(next, s)
			}
		}
		if len(next) == 0 {
			return
		}
		st := &task.Status{State: next[l.rnd.IntN(len(next))], ChangedAt: l.now, DataItems: l.items(2)}
		if st.State == task.Completed {
			st.DataItems = nil
		}
		var cause *task.Message
		if state.Settled() {
			cause = &task.Message{ID: "m", SentAt: l.now, SenderRole: task.Leader, Command: task.Continue,
				DataItems: l.items(2)}
		}
		l.add(task.Event{Status: st, Cause: cause})
	}
}

// A client of the same dialect reads back a server's answers: states, words, products, and the end of a turn.
func TestLegacyRoundTrip(t *testing.T) {
	for _, d := range olderDialects() {
		for seed := range uint64(300) {
			l := &taskLog{rnd: rand.New(rand.NewPCG(seed, 5)), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			l.add(task.Event{Task: &task.Task{ID: "t", SessionID: "s",
				Status: task.Status{State: task.Accepted, ChangedAt: l.now}}})
			encoder := d.server.NewStream(jsonrpc.ID("1"), new(translate.Call), l.events[0].Task)
			reader := d.client.NewStream(nil)
			var seen task.Fold // the products as the caller has put them together
			seen.Apply(task.Event{Task: &task.Task{}})
			var untold []task.DataItem
			for n := 0; n < len(l.events) && n < 40; n++ {
				ev := &l.events[n]
				frame := encoder.Event(nil, ev)
				if frame.Data == nil {
					if !d.auto || ev.Status == nil || ev.Status.State != task.AwaitingCompletion || frame.End {
						t.Fatalf("%s, seed %d: nothing is written of %+v", d.server.Name(), seed, ev)
					}
					untold = ev.Status.DataItems
				} else {
					rep, err := reader.Event(frame.Name, frame.Data)
					if err != nil {
						t.Fatalf("%s, seed %d: %v, for\n%s", d.server.Name(), seed, err, frame.Data)
					}
					for i := range rep.Chunks {
						seen.Apply(task.Event{Chunk: &rep.Chunks[i]})
					}
					d.sameNews(t, ev, &frame, &rep, untold)
					d.sameTask(t, l, seen.Task().Products, rep.Revision)
				}
				l.grow()
			}
		}
	}
}

// sameNews compares an event with its report.
func (d *olderDialect) sameNews(t *testing.T, ev *task.Event, frame *translate.Frame, rep *agent.Report,
	untold []task.DataItem) {
	t.Helper()
	if frame.End != rep.EndsTurn() {
		t.Fatalf("%s: the end is %t, for\n%s", d.server.Name(), frame.End, frame.Data)
	}
	switch {
	case ev.Status != nil:
		want := ev.Status.DataItems
		if d.auto && ev.Status.State == task.Completed {
			want = untold
		}
		if diff := cmp.Diff(d.state(ev.Status.State), rep.State) + cmp.Diff(want, rep.Items); diff != "" {
			t.Fatalf("%s: %s (-want +got):\n%s", d.server.Name(), frame.Data, diff)
		}
	case ev.Chunk != nil:
		if len(rep.Chunks) != 1 || rep.Chunks[0].Append != ev.Chunk.Append || rep.Chunks[0].Last != ev.Chunk.Last {
			t.Fatalf("%s: %s is read as %+v", d.server.Name(), frame.Data, rep.Chunks)
		}
	}
}

// sameTask compares the answer to a get and the notification of a webhook with the task, and with the reports of a
// stream so far.
func (d *olderDialect) sameTask(t *testing.T, l *taskLog, streamed []task.Product, stamp string) {
	t.Helper()
	now := l.fold.Task()
	asked, err := d.client.Reply(d.server.AppendTask(nil, jsonrpc.ID("1"), new(translate.Call), now), nil)
	if err != nil {
		t.Fatal(err)
	}
	bare := *now
	bare.MessageHistory = nil
	pushed, err := d.client.Push(d.server.AppendNotification(nil, &bare), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asked, pushed); diff != "" {
		t.Fatalf("%s: (-asked +pushed):\n%s", d.server.Name(), diff)
	}
	var want []task.Product
	for i, p := range now.Products {
		want = append(want, d.product(p, i))
	}
	unread := cmpopts.IgnoreFields(task.Product{}, "Extensions") // the gateway's own metadata
	if diff := cmp.Diff(want, asked.Products, unread); diff != "" {
		t.Fatalf("%s: (-want +got):\n%s", d.server.Name(), diff)
	}
	if chunks := task.Diff(streamed, asked.Products); len(chunks) > 0 {
		t.Fatalf("%s: a stream has reported %+v, a task %+v", d.server.Name(), streamed, asked.Products)
	}
	if diff := cmp.Diff(d.state(now.Status.State), asked.State); diff != "" {
		t.Fatalf("%s: (-want +got):\n%s", d.server.Name(), diff)
	}
	if d.client.Name() == "a2a/0.3" {
		if diff := cmp.Diff(&agent.Ref{Task: "t", Session: "s"}, asked.Ref); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	if state := now.Status.State; state.Settled() && stamp != asked.Revision && (state != task.Completed || d.auto) {
		t.Fatalf("%s: %s is stamped %q in a stream and %q when asked for", d.server.Name(), state, stamp,
			asked.Revision)
	}
}
