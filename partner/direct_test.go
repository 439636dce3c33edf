// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// verbatim returns a report as one of an agent of AIP.
func verbatim(rep agent.Report) agent.Report {
	rep.Verbatim = true
	return rep
}

// reports is an agent. It answers a turn by the first report, and makes the others at a signal.
func reports(more <-chan struct{}, list ...agent.Report) *script {
	return &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		for i, rep := range list {
			if i > 0 {
				select {
				case <-more:
				case <-ctx.Done():
					return
				}
			}
			if !yield(rep, nil) {
				return
			}
		}
		<-ctx.Done()
	}}
}

// direct makes a request one of a caller of AIP.
func direct(c *Request) { c.Direct = true }

// saying is a report of a state with a text.
func saying(state task.State, text string) agent.Report {
	return agent.Report{State: state, NativeState: string(state), Items: []task.DataItem{task.Text(text)}}
}

// TestFirstAnswerOfAPartner: if the caller and the agent speak AIP, the agent's first answer is the answer, in its
// words and at once. All others wait for the turn to settle.
func TestFirstAnswerOfAPartner(t *testing.T) {
	for name, c := range map[string]struct {
		first agent.Report
		want  task.State
	}{
		"accepted":              {agent.Report{State: task.Accepted, NativeState: "accepted"}, task.Accepted},
		"accepted, with a text": {saying(task.Accepted, "queued"), task.Accepted},
		"working":               {agent.Report{State: task.Working, NativeState: "working"}, task.Working},
		"working, with a text":  {saying(task.Working, "on it"), task.Working},
		"working, with products": {
			agent.Report{State: task.Working, Full: true, Products: finished("a").Products}, task.Working,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				more := make(chan struct{}, 1)
				b := setUp(t, memory(t), reports(more, verbatim(c.first), verbatim(finished("done"))))
				began := time.Now()
				got := b.do(call(task.Start, "t1", direct))
				if diff := cmp.Diff(task.Status{State: c.want, DataItems: c.first.Items},
					task.Status{State: got.Status.State, DataItems: got.Status.DataItems}); diff != "" {
					t.Errorf("the start is answered with (-want +got):\n%s", diff)
				}
				if len(got.Products) != len(c.first.Products) {
					t.Errorf("it is answered with the products %+v", got.Products)
				}
				if waited := time.Since(began); waited != 0 {
					t.Errorf("it is answered after %v", waited)
				}
				more <- struct{}{}
				synctest.Wait()
				b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)

				// Of another dialect.
				go func() {
					time.Sleep(time.Second)
					more <- struct{}{}
				}()
				if got := b.do(call(task.Start, "t2")); got.Status.State != task.AwaitingCompletion {
					t.Errorf("a caller of another dialect is answered with %+v", got.Status)
				}
			})
		})
	}
	t.Run("of an agent of another dialect", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			more := make(chan struct{}, 1)
			b := setUp(t, memory(t), reports(more, saying(task.Working, "on it"), finished("done")))
			go func() {
				time.Sleep(time.Second)
				more <- struct{}{}
			}()
			if got := b.do(call(task.Start, "t1", direct)); got.Status.State != task.AwaitingCompletion {
				t.Errorf("the start is answered with %+v", got.Status)
			}
		})
	})
}

// TestFirstAnswerToAContinue is TestFirstAnswerOfAPartner for a continue: also if the Partner has only acknowledged it.
func TestFirstAnswerToAContinue(t *testing.T) {
	for name, first := range map[string]agent.Report{
		"working":     {State: task.Working, NativeState: "working"},
		"with a text": saying(task.Working, "on it"),
		"with members of its own": {State: task.Working, Extensions: json.RawMessage(`{"aip":{"progress":1}}`),
			TaskExtensions: json.RawMessage(`{"aip":{"cost":2}}`)},
		"acknowledged": {Delivery: agent.DeliveryAcknowledged},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				more, turns := make(chan struct{}, 1), 0
				asks, goesOn := reports(more, verbatim(saying(task.AwaitingInput, "which?"))),
					reports(more, verbatim(first), verbatim(finished("done")))
				b := setUp(t, memory(t), &script{
					run: func(ctx context.Context, turn *agent.Turn, yield func(agent.Report, error) bool) {
						turns++
						next := asks
						if turns > 1 {
							next = goesOn
						}
						for rep, err := range next.Run(ctx, turn, false) {
							if !yield(rep, err) {
								return
							}
						}
					}})
				if got := b.do(call(task.Start, "t1", direct)); got.Status.State != task.AwaitingInput {
					t.Fatalf("the start is answered with %+v", got.Status)
				}
				began := time.Now()
				got := b.do(call(task.Continue, "t1", direct))
				if diff := cmp.Diff(first.Items, got.Status.DataItems); got.Status.State != task.Working || diff != "" {
					t.Errorf("the continue is answered with %+v: (-want +got)\n%s", got.Status, diff)
				}
				if string(got.Status.Extensions) != string(first.Extensions) ||
					string(got.Extensions) != string(first.TaskExtensions) {
					t.Errorf("it has the members %s and %s", got.Status.Extensions, got.Extensions)
				}
				if waited := time.Since(began); waited != 0 {
					t.Errorf("it is answered after %v", waited)
				}
				more <- struct{}{}
				synctest.Wait()
				b.wantStates("t1", task.Accepted, task.Working, task.AwaitingInput, task.Working, task.AwaitingCompletion)
			})
		})
	}
}

// TestPartnerThatCompletes: a Partner completing its task by itself has completed the task of a Leader of AIP. The
// Leader can continue it no more than it could at the Partner; also after a crash.
func TestPartnerThatCompletes(t *testing.T) {
	completed := verbatim(finished("done"))
	completed.Closed = true
	all := []task.State{task.Accepted, task.Working, task.AwaitingCompletion, task.Completed}
	t.Run("at once", func(t *testing.T) {
		b := setUp(t, memory(t), reports(nil, completed))
		got := b.do(call(task.Start, "t1", direct))
		if diff := cmp.Diff(completed.Products, got.Products); got.Status.State != task.Completed || diff != "" {
			t.Errorf("the start is answered with %+v: (-want +got)\n%s", got.Status, diff)
		}
		b.wantStates("t1", all...)
		if got := b.do(call(task.Start, "t2")); got.Status.State != task.AwaitingCompletion {
			t.Errorf("a caller of another dialect is answered with %+v", got.Status)
		}
	})
	t.Run("later", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			more := make(chan struct{}, 1)
			b := setUp(t, memory(t), reports(more, verbatim(saying(task.Working, "on it")), completed))
			b.do(call(task.Start, "t1", direct))
			more <- struct{}{}
			synctest.Wait()
			b.wantStates("t1", all...)
		})
	})
	t.Run("after a crash", func(t *testing.T) {
		bubble.Test(t, func(t *testing.T) {
			store := memory(t)
			first := setUp(t, store, reports(nil, verbatim(saying(task.Working, "on it"))))
			first.do(call(task.Start, "t1", direct))
			first.engine.Close()
			second := setUp(t, store, &script{
				resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
					yield(completed, nil)
				}})
			synctest.Wait()
			second.wantStates("t1", all...)
		})
	})
}

// TestReasonOfALateRejection: the table has no edge from accepted to rejected, so the task fails, with the reason of
// the Partner as it gives it. The text of another agent comes behind its own word for the state.
func TestReasonOfALateRejection(t *testing.T) {
	for name, c := range map[string]struct {
		no   agent.Report
		want string
	}{
		"with a reason": {saying(task.Rejected, "not my job"), "not my job"},
		"without one": {
			agent.Report{State: task.Rejected, NativeState: "rejected"}, "the agent says that the task is rejected",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				more := make(chan struct{}, 1)
				b := setUp(t, memory(t), reports(more, verbatim(agent.Report{State: task.Accepted}), verbatim(c.no)))
				b.do(call(task.Start, "t1", direct))
				more <- struct{}{}
				synctest.Wait()
				got := b.do(call(task.Get, "t1"))
				if diff := cmp.Diff([]task.DataItem{task.Text(c.want)}, got.Status.DataItems); got.Status.State != task.Failed ||
					diff != "" {
					t.Errorf("the task is %+v: (-want +got)\n%s", got.Status, diff)
				}
				b.wantStates("t1", task.Accepted, task.Working, task.Failed)
			})
		})
	}
	bubble.Test(t, func(t *testing.T) {
		more := make(chan struct{}, 1)
		more <- struct{}{}
		b := setUp(t, memory(t), reports(more, saying(task.Working, "on it"), saying(task.Rejected, "not my job")))
		b.do(call(task.Start, "t1"))
		want := []task.DataItem{task.Text("the agent says that the task is rejected"), task.Text("not my job")}
		if diff := cmp.Diff(want, b.do(call(task.Get, "t1")).Status.DataItems); diff != "" {
			t.Errorf("another agent's rejection (-want +got):\n%s", diff)
		}
	})
}

// TestFirstAnswerAfterAMove: a start repeated at the next owner of its shard, after that has resumed the turn, is
// answered with the first answer of the Partner there.
func TestFirstAnswerAfterAMove(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store, silent := memory(t), hangs()
		first := setUp(t, store, silent)
		moved := make(chan struct{})
		go func() {
			defer close(moved)
			if _, err := first.Do(t.Context(), leader, call(task.Start, "t1", direct)); err == nil {
				t.Error("the start is answered by an owner that is gone")
			}
		}()
		synctest.Wait()
		first.engine.Close()
		<-moved
		second := setUp(t, store, &script{
			resume: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
				time.Sleep(time.Second)
				yield(verbatim(saying(task.Accepted, "queued")), nil)
				<-ctx.Done()
			}})
		began := time.Now()
		got := second.do(call(task.Start, "t1", direct, func(c *Request) { c.Waited = time.Millisecond }))
		if waited := time.Since(began); got.Status.State == task.AwaitingCompletion || waited > time.Second {
			t.Errorf("after %v the start is answered with %+v", waited, got.Status)
		}
	})
}
