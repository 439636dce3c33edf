// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestReStreamWithoutLoading: the stream of a settled task outside of memory is the same as of a task in memory, and
// begins without loading it.
func TestReStreamWithoutLoading(t *testing.T) {
	for _, state := range []task.State{
		task.AwaitingInput, task.AwaitingCompletion, task.Completed, task.Canceled, task.Rejected, task.Failed, task.Working,
	} {
		for _, resuming := range []bool{false, true} {
			if resuming && state != task.AwaitingInput {
				continue
			}
			fake := bringTo(state)
			if resuming {
				fake = &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					yield(agent.Report{State: state, NativeState: "auth-required", SelfResuming: true}, nil)
				}, resume: func(ctx context.Context, _ *agent.Turn, _ func(agent.Report, error) bool) {
					<-ctx.Done() // it still waits
				}}
			}
			store := &counting{Store: memory(t)}
			b := setUp(t, store, fake)
			b.do(call(task.Start, "t1", func(c *Request) {
				c.Message.GroupID = "g"
				if state == task.Working || state == task.Canceled { // the agent hangs
					c.Terms.Response = time.Millisecond
				}
			}))
			switch state {
			case task.Completed:
				b.do(call(task.Complete, "t1"))
			case task.Canceled:
				b.do(call(task.Cancel, "t1"))
			}
			b.engine.Close()
			head, err := store.Head(t.Context(), logname.New("agent", leader, "t1"))
			if err != nil {
				t.Fatal(err)
			}
			last := head.Last
			for _, command := range []task.Command{task.ReStream, task.Start} {
				for after := range last + 2 {
					short := state.Settled() && !resuming && last > 0 && (command == task.Start || after < last)
					what := fmt.Sprintf("%s after %d of %d, %s", command, after, last, state)
					at := func(c *Request) { c.AfterSeq = after }
					var again *bench
					var got, want Result
					var err, wantErr error
					n := store.during(func() {
						again = setUp(t, store, fake) // resumes a turn under way, and so loads the task
						got, err = again.Stream(t.Context(), leader, call(command, "t1", at))
					})
					if loads := n.loads > 0; short == loads {
						t.Errorf("%s: %d loads", what, n.loads)
					}
					again.do(call(task.Get, "t1")) // it is in memory now
					want, wantErr = again.Stream(t.Context(), leader, call(command, "t1", at))
					if (err == nil) != (wantErr == nil) || task.KindOf(err) != task.KindOf(wantErr) {
						t.Errorf("%s: error %v, want %v", what, err, wantErr)
					}
					if short { // without a snapshot, nothing else is promised of the task
						want.Task = task.Task{ID: want.Task.ID, SessionID: want.Task.SessionID, GroupID: want.Task.GroupID}
					}
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("%s (-in memory +not):\n%s", what, d)
					}
					again.engine.Close()
				}
			}
			for name, change := range map[string]func(*Request){
				"snapshot": func(c *Request) { c.Snapshot = true }, "strict": func(c *Request) { c.Strict = true },
			} {
				var again *bench
				n := store.during(func() {
					again = setUp(t, store, fake)
					_, _ = again.Stream(t.Context(), leader, call(task.ReStream, "t1", change))
				})
				if n.loads == 0 {
					t.Errorf("%s of a task that is %s: the task was not loaded", name, state)
				}
				again.engine.Close()
			}
		}
	}
}
