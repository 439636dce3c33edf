// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// closedTo is a store without writes while it is shut.
type closedTo struct {
	replay.Store
	shut bool
}

func (s *closedTo) Append(ctx context.Context, a replay.Append) error {
	if s.shut {
		return replay.ErrUnavailable
	}
	return s.Store.Append(ctx, a)
}

// acceptor is a function as an Acceptor.
type acceptor func(log string, at task.Position, c *Request) (Accepted, error)

func (a acceptor) Accept(_ context.Context, log string, at task.Position, c *Request) (Accepted, error) {
	return a(log, at, c)
}

// undone returns an Accepted with a count of its undoing.
func undone(times *int) Accepted {
	return Accepted{Undo: func(context.Context) error { *times++; return nil }}
}

// TestAccept: a start and a continue are accepted before they are stored, a refused command is not accepted, and one
// not stored is undone.
func TestAccept(t *testing.T) {
	store := &closedTo{Store: memory(t)}
	w := &witness{hooks: make(map[string]bool), notified: make(map[string][]task.State)}
	b := setUpWith(t, store, answers("hello"), Options{Watcher: w}, func(c *Config) { c.MaxTasks = 1 })
	var calls []task.Position
	undo := 0
	var refuse error
	b.engine.process.AddAcceptor(acceptor(func(log string, at task.Position, c *Request) (Accepted, error) {
		if log != b.LogOf(leader, c.Message.TaskID) || c.Webhook == nil {
			t.Errorf("the log is %q, and the webhook %v", log, c.Webhook)
		}
		calls = append(calls, at)
		return undone(&undo), refuse
	}))
	accept := func(c *Request) { c.Webhook = new(task.Webhook) }
	check := func(when string, want []task.Position, wantUndone int) {
		t.Helper()
		if diff := cmp.Diff(want, calls); diff != "" || undo != wantUndone {
			t.Errorf("%s: accepted (-want +got), and %d undone, want %d:\n%s", when, undo, wantUndone, diff)
		}
		calls, undo = nil, 0
	}
	strictly := func(c *Request) { accept(c); c.Strict = true }

	b.want(call(task.Continue, "t1", accept), task.TaskNotFound)
	check("a task that does not exist", nil, 0)
	store.shut = true
	b.want(call(task.Start, "t1", accept), task.StoreUnavailable)
	check("a start that is not stored", []task.Position{{}}, 1)
	store.shut = false
	refuse = task.Errorf(task.InvalidParams, "no")
	b.want(call(task.Start, "t1", accept), task.InvalidParams)
	check("a start that is refused at the last moment", []task.Position{{}}, 0)
	b.want(call(task.Get, "t1"), task.TaskNotFound)
	refuse = nil

	b.do(call(task.Start, "t1", accept))
	check("a start", []task.Position{{}}, 0)
	b.want(call(task.Start, "t2", accept), task.LimitExceeded)
	check("one task too many", nil, 0)
	b.do(call(task.Start, "t1", accept))
	check("a start again", []task.Position{{Seq: 4, Exists: true}}, 0)

	store.shut = true
	b.want(call(task.Continue, "t1", accept, func(c *Request) { c.Message.ID = "second" }), task.StoreUnavailable)
	check("a continue that is not stored", []task.Position{{Seq: 4, Exists: true}}, 1)
	store.shut = false
	b.do(call(task.Continue, "t1", accept, func(c *Request) { c.Message.ID = "third" }))
	check("a continue", []task.Position{{Seq: 4, Exists: true}}, 0)
	b.do(call(task.Continue, "t1", accept, func(c *Request) { c.Message.ID = "third" }))
	check("a continue again", []task.Position{{Seq: 7, Exists: true}}, 0)
	log := b.LogOf(leader, "t1")
	if diff := cmp.Diff(map[string][]task.State{log: {task.Working, task.AwaitingCompletion}}, w.notified); diff != "" {
		t.Errorf("the notifications from the continue on (-want +got):\n%s", diff)
	}
	b.do(call(task.Complete, "t1"))
	b.want(call(task.Continue, "t1", strictly, func(c *Request) { c.Message.ID = "fourth" }), task.UnsupportedOperation)
	check("a task that has ended", nil, 0)
}

// TestAcceptors: Acceptors are called in their order. If one refuses the command, the work of those before it is undone
// in the reverse order, and so is all of it if the command cannot be stored.
func TestAcceptors(t *testing.T) {
	store := &closedTo{Store: memory(t)}
	b := setUp(t, store, answers("hello"))
	var did []string
	var refuse error
	for _, name := range []string{"one", "none", "two", "three"} {
		b.engine.process.AddAcceptor(acceptor(func(string, task.Position, *Request) (Accepted, error) {
			if did = append(did, name); name == "none" {
				return Accepted{}, nil
			}
			if name == "three" && refuse != nil {
				return Accepted{}, refuse
			}
			return Accepted{
				Stored: func() { did = append(did, name+" stored") },
				Undo:   func(context.Context) error { did = append(did, name+" undone"); return nil },
			}, nil
		}))
	}
	check := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, did); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
		did = nil
	}
	refuse = task.Errorf(task.InvalidParams, "no")
	b.want(call(task.Start, "t1"), task.InvalidParams)
	check("the last one refuses", "one", "none", "two", "three", "two undone", "one undone")
	refuse, store.shut = nil, true
	b.want(call(task.Start, "t1"), task.StoreUnavailable)
	check("it cannot be stored", "one", "none", "two", "three", "three undone", "two undone", "one undone")
	store.shut = false
	b.do(call(task.Start, "t1"))
	check("it is stored", "one", "none", "two", "three", "one stored", "two stored", "three stored")
	b.do(call(task.Start, "t1"))
	check("a repeated start without a webhook")
}
