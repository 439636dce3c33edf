// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestCaller: turns and cancels are for the task's Leader, with the proof and the subject of the command; without a
// command, as after a crash, with those of the last start or continue.
func TestCaller(t *testing.T) {
	by := func(proof string) func(*Request) {
		return func(c *Request) { c.Proof, c.Subject = proof, "for "+proof }
	}
	caller := func(proof string) agent.Caller {
		return agent.Caller{Leader: leader, Proof: proof, Subject: "for " + proof}
	}
	bubble.Test(t, func(t *testing.T) {
		var got []agent.Caller
		store, fake := memory(t), hangs()
		working := fake.run
		fake.run = func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
			if got = append(got, turn.Caller); turn.Message.Command == task.Start {
				yield(agent.Report{State: task.AwaitingInput}, nil)
				return
			}
			working(ctx, turn, yield)
		}
		fake.resume = func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
			got = append(got, turn.Caller)
			working(ctx, turn, yield)
		}
		fake.cancel = func(_ context.Context, turn *agent.Turn) (agent.Report, error) {
			got = append(got, turn.Caller)
			return agent.Report{State: task.Canceled}, nil
		}
		b := setUp(t, store, fake)
		b.do(call(task.Start, "t", by("certificate")))
		b.do(call(task.Continue, "t", by("token"), func(c *Request) { c.Terms.Response = task.NoWait }))
		synctest.Wait()
		b.engine.Close()

		after := setUp(t, store, fake)
		synctest.Wait()
		if _, err := after.engine.Cancel(t.Context(), "agent", leader, "t", "enough"); err != nil {
			t.Fatal(err)
		}
		want := []agent.Caller{caller("certificate"), caller("token"), caller("token"), caller("token")}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestCallerWhoCancels: a cancel has the proof of the canceling caller, or none if that has none.
func TestCallerWhoCancels(t *testing.T) {
	for _, proof := range []string{"broker", ""} {
		bubble.Test(t, func(t *testing.T) {
			var got agent.Caller
			fake := hangs()
			fake.cancel = func(_ context.Context, turn *agent.Turn) (agent.Report, error) {
				got = turn.Caller
				return agent.Report{State: task.Canceled}, nil
			}
			b := setUp(t, memory(t), fake)
			b.do(call(task.Start, "t", func(c *Request) { c.Proof, c.Terms.Response = "certificate", task.NoWait }))
			b.do(call(task.Cancel, "t", func(c *Request) { c.Proof = proof }))
			if diff := cmp.Diff(agent.Caller{Leader: leader, Proof: proof}, got); diff != "" {
				t.Errorf("%q: (-want +got):\n%s", proof, diff)
			}
		})
	}
}
