// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestNoWait: a start or continue without a wait is answered at once, and the next command for the task waits as it
// does otherwise.
func TestNoWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			if yield(agent.Report{State: task.Working}, nil) {
				bubble.Pass(time.Second)
				yield(agent.Report{State: task.AwaitingInput}, nil)
			}
		}})
		noWait := func(c *Request) { c.Terms.Response = task.NoWait }
		named := func(id string) func(*Request) { return func(c *Request) { c.Message.ID = id } }
		for _, tc := range []struct {
			how     string
			command *Request
			want    task.State
		}{
			{"a start at once", call(task.Start, "t", noWait), task.Working},
			{"a continue", call(task.Continue, "t", named("1")), task.AwaitingInput},
			{"a continue at once", call(task.Continue, "t", named("2"), noWait), task.Working},
			{"a continue again", call(task.Continue, "t", named("3")), task.AwaitingInput},
		} {
			if got := b.do(tc.command); got.Status.State != tc.want {
				t.Errorf("%s is answered %s, want %s", tc.how, got.Status.State, tc.want)
			}
			bubble.Pass(2 * time.Second)
		}
	})
}

// TestStored: Stored is called when a start is stored, once for each task, and for no other command.
func TestStored(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := &closedTo{Store: memory(t)}
		b := setUp(t, store, answers("hello"))
		started := 0
		b.engine.process.AddAcceptor(acceptor(func(string, task.Position, *Request) (Accepted, error) {
			return Accepted{Stored: func() { started++ }}, nil
		}))
		store.shut = true
		b.want(call(task.Start, "t"), task.StoreUnavailable)
		store.shut = false
		if started != 0 {
			t.Error("called for a start that is not stored")
		}
		b.do(call(task.Start, "t"))
		b.do(call(task.Start, "t"))
		b.do(call(task.Continue, "t"))
		if started != 1 {
			t.Errorf("called %d times", started)
		}
	})
}
