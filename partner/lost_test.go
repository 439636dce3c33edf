// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// bereft is a store that may have lost records of each log, as after a loss of power.
type bereft struct {
	replay.Store
	lost uint64
	cut  bool // as after a repair
}

func (s bereft) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	h, snapshot, records, err := s.Store.Load(ctx, log)
	if len(h.Gaps) == 0 && h.Last > 0 {
		h.Lost, h.Cut = s.lost, s.cut
	}
	return h, snapshot, records, err
}

// TestLostEvents continues a turn after a loss of power. Events read by a Leader and lost events are distinguished.
func TestLostEvents(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		b := setUp(t, store, hangs())
		b.do(call(task.Start, "t1")) // the events 1 and 2
		b.engine.Close()

		speak := make(chan struct{})
		fake := &script{resume: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			<-speak
			yield(finished("x"), nil)
		}}
		b = setUp(t, bereft{Store: store, lost: 1000}, fake)
		synctest.Wait()
		from := func(seq uint64) ([]uint64, error) {
			s, err := b.Stream(t.Context(), leader, call(task.ReStream, "t1", func(c *Request) { c.AfterSeq = seq }))
			if err != nil {
				return nil, err
			}
			var got []uint64
			for r, err := range b.follow(t.Context(), &s) {
				if err != nil {
					return got, err
				}
				if got = append(got, r.Seq); !r.More {
					break
				}
			}
			return got, nil
		}
		if _, err := from(3); task.KindOf(err) != task.InvalidParams {
			t.Errorf("an event that is not there any more, while there is no later one: %v", err)
		}
		close(speak)
		synctest.Wait()
		for seq, want := range map[uint64][]uint64{0: {1, 2, 1003, 1004}, 2: {1003, 1004}, 1002: {1003, 1004}, 1003: {1004}} {
			got, err := from(seq)
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("after %d: %v (-want +got):\n%s", seq, err, d)
			}
		}
		for _, seq := range []uint64{3, 1001} {
			_, err := from(seq)
			if task.KindOf(err) != task.TaskNotFound {
				t.Errorf("after %d, which was lost: %v", seq, err)
			}
		}
		b.do(call(task.Complete, "t1"))
		head, err := store.Head(t.Context(), logname.New("agent", leader, "t1"))
		if err != nil || head.Last != 1005 || !cmp.Equal(head.Gaps, []replay.Gap{{From: 3, To: 1002}}) {
			t.Errorf("in the end: %+v, %v", head, err)
		}
	})
}

// TestCutStart continues a turn in a repaired store. An agent with the turn ends it. To one without, it is not sent
// again, even if nothing of it was sent as far as the store knows: the store may have lost the record of the sending.
func TestCutStart(t *testing.T) {
	finishes := func(yield func(agent.Report, error) bool) { yield(finished("x"), nil) }
	for name, test := range map[string]struct {
		begun  *script
		resume func(yield func(agent.Report, error) bool)
		want   task.State
	}{
		"known":           {hangs(), finishes, task.AwaitingCompletion},
		"unknown":         {hangs(), notReceived, task.Failed},
		"unknown, queued": {&script{run: queued}, notReceived, task.Failed},
		"known, queued":   {&script{run: queued}, finishes, task.AwaitingCompletion},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := memory(t)
				b := setUp(t, store, test.begun)
				b.do(call(task.Start, "t1"))
				b.engine.Close()

				fake := answers("a second time")
				fake.resume = func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) { test.resume(yield) }
				b = setUp(t, bereft{Store: store, lost: 1000, cut: true}, fake)
				synctest.Wait()
				got := b.do(call(task.Get, "t1"))
				if got.Status.State != test.want || fake.turnCount() > 0 {
					t.Errorf("%+v after %d runs, want %s", got.Status, fake.turnCount(), test.want)
				}
			})
		})
	}
}

// notReceived reports a turn as not received by the agent.
func notReceived(yield func(agent.Report, error) bool) {
	yield(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent has not received the message"))
}

// queued is a turn of an unreachable agent.
func queued(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
	yield(agent.Report{Delivery: agent.DeliveryQueued}, nil)
	<-ctx.Done()
	yield(agent.Report{}, task.Errorf(task.Internal, "stopped").WithCause(ctx.Err()))
}
