// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// refused is the cause of an error, a Refusal.
type refused struct{ error }

func (refused) Refused() bool { return true }

// refusing is an agent refusing every start after a time.
func refusing(after time.Duration) *script {
	return &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		select {
		case <-time.After(after):
			yield(agent.Report{}, task.Errorf(task.ContentTypeNotSupported, "no films").
				WithCause(refused{errors.New("refused")}))
		case <-ctx.Done():
		}
	}}
}

// TestRefusedStart: a start refused by the agent is answered by the error of the agent, and leaves nothing, if the
// dialect has it so, its caller still waits, and no caller has seen the task. Otherwise the task fails. The agent is
// not asked about a task it has not made.
func TestRefusedStart(t *testing.T) {
	refusable := func(c *Request) { c.Refusable = true }
	for name, tc := range map[string]struct {
		after  time.Duration // when the agent refuses
		change func(*Request)
		stream bool
		leaves time.Duration // when the caller leaves; 0 for never
		seen   bool          // by another call, meanwhile
		taken  bool          // the start is taken back
	}{
		"a message":             {change: refusable, taken: true},
		"a message, later":      {after: 5 * time.Second, change: refusable, taken: true},
		"a stream":              {change: refusable, stream: true, taken: true},
		"a stream, later":       {after: time.Second, change: refusable, stream: true},
		"of another dialect":    {change: func(*Request) {}},
		"seen by another call":  {after: 5 * time.Second, change: refusable, seen: true},
		"after the caller left": {after: 5 * time.Second, change: refusable, leaves: time.Second},
		"answered at once": {after: 5 * time.Second, change: func(c *Request) {
			c.Refusable, c.Terms.Response = true, task.NoWait
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				fake := refusing(tc.after)
				fake.resume = func(context.Context, *agent.Turn, func(agent.Report, error) bool) {
					t.Error("the agent is asked about the task")
				}
				b := setUp(t, memory(t), fake)
				undo := 0
				b.engine.process.AddAcceptor(acceptor(func(string, task.Position, *Request) (Accepted, error) {
					return undone(&undo), nil
				}))
				start := call(task.Start, "t1", tc.change)
				if tc.seen {
					time.AfterFunc(time.Second, func() { b.do(call(task.Get, "t1")) })
				}
				ctx := t.Context()
				if tc.leaves > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.leaves)
					defer cancel()
				}
				var err error
				if tc.stream {
					_, err = b.Stream(ctx, leader, start)
				} else {
					_, err = b.Do(ctx, leader, start)
				}
				if got := task.KindOf(err) == task.ContentTypeNotSupported; got != tc.taken || (undo == 1) != tc.taken {
					t.Errorf("it is answered %v; undone: %d", err, undo)
				}
				bubble.Pass(time.Minute)
				if !tc.taken {
					b.wantStates("t1", task.Accepted, task.Working, task.Failed)
					return
				}
				b.want(call(task.Get, "t1"), task.TaskNotFound)
				if _, err := b.store.Head(t.Context(), b.LogOf(leader, "t1")); !errors.Is(err, replay.ErrNotFound) {
					t.Errorf("the log: %v", err)
				}
				if n, pending := b.engine.Unfinished(), b.engine.InState(task.None); n != 0 || pending != 0 {
					t.Errorf("%d tasks are counted, and %d as pending", n, pending)
				}
				b.want(start, task.ContentTypeNotSupported) // the id is free
			})
		})
	}
}

// TestRefusedStartOfAFailingStore: a caller is answered at once if the start cannot be taken back now. As it has not
// learnt the outcome of the task, the task fails, unless the store has removed it after all.
func TestRefusedStartOfAFailingStore(t *testing.T) {
	for name, written := range map[string]bool{"not written": false, "written": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := ill(t)
				fake := refusing(time.Second)
				b := setUp(t, store, fake)
				time.AfterFunc(time.Second/2, func() { store.ail(replay.ErrUnavailable, written) })
				b.want(call(task.Start, "t1", func(c *Request) { c.Refusable = true }), task.StoreUnavailable)
				store.heal(true)
				bubble.Pass(time.Minute)
				if written {
					b.want(call(task.Get, "t1"), task.TaskNotFound)
				} else {
					b.wantStates("t1", task.Accepted, task.Working, task.Failed)
				}
				if n, pending := b.engine.Unfinished(), b.engine.InState(task.None); n != 0 || pending != 0 {
					t.Errorf("%d tasks are counted, and %d as pending", n, pending)
				}
			})
		})
	}
}
