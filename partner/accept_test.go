// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// closedTo is a store that takes no writes while it is shut.
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

// TestAccept: a start and a continue are accepted before they are stored, what is refused is not accepted, and what
// cannot be stored is undone.
func TestAccept(t *testing.T) {
	store := &closedTo{Store: memory(t)}
	w := &witness{hooks: make(map[string]bool), notified: make(map[string][]task.State)}
	b := setUpWith(t, store, answers("hello"), Options{Watcher: w}, func(c *Config) { c.MaxTasks = 1 })
	var calls []task.Position
	undone := 0
	var refuse error
	accept := func(c *Request) {
		c.Accept = func(log string, at task.Position) (func(), error) {
			if log != b.LogOf(leader, c.Message.TaskID) {
				t.Errorf("the log is %q", log)
			}
			calls = append(calls, at)
			return func() { undone++ }, refuse
		}
	}
	check := func(when string, want []task.Position, wantUndone int) {
		t.Helper()
		if diff := cmp.Diff(want, calls); diff != "" || undone != wantUndone {
			t.Errorf("%s: accepted (-want +got), and %d undone, want %d:\n%s", when, undone, wantUndone, diff)
		}
		calls, undone = nil, 0
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
