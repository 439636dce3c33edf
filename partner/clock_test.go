// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestClockSteps steps the wall clock, as a suspended machine does. The deadlines of waiting tasks, and of tasks
// started afterwards, are kept.
func TestClockSteps(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"two hours forward": 2 * time.Hour, "ten minutes back": -10 * time.Minute, "two hours back": -2 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := memory(t)
				var ahead atomic.Int64
				e, err := Open(t.Context(), store,
					Options{wall: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
				if err != nil {
					t.Fatal(err)
				}
				b := setUp(t, memory(t), bringTo(task.AwaitingInput))
				p := e.Register(b.Config)
				defer e.Close()
				defer p.Unregister()
				start := func(id string, wait time.Duration) {
					t.Helper()
					if _, err := p.Do(t.Context(), leader, call(task.Start, id,
						func(c *Request) { c.Terms.AwaitingInput = wait })); err != nil {
						t.Fatal(err)
					}
				}
				want := func(id string, want task.State) {
					t.Helper()
					got, err := p.Do(t.Context(), leader, call(task.Get, id))
					if err != nil || got.Task.Status.State != want {
						t.Errorf("%s is %q, %v, want %q", id, got.Task.Status.State, err, want)
					}
				}
				start("first", time.Second)
				time.Sleep(2 * time.Second)
				want("first", task.Canceled)
				start("waiting", 90*time.Minute)
				ahead.Store(int64(step))
				start("after", 5*time.Second)
				time.Sleep(15 * time.Second) // the longest sleep between two looks at the clock
				synctest.Wait()
				want("after", task.Canceled)
				if step > 0 {
					want("waiting", task.Canceled)
				} else {
					want("waiting", task.AwaitingInput)
					time.Sleep(90*time.Minute - step)
					synctest.Wait()
					want("waiting", task.Canceled)
				}
			})
		})
	}
}

// TestClocksDiffer has owners of a shard with different clocks go on with a task, one after the other. No time of a
// state is before the one before it, or the same.
func TestClocksDiffer(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := memory(t)
		b := setUp(t, memory(t), bringTo(task.AwaitingInput))
		var got task.Task
		for i, c := range []struct {
			ahead   time.Duration
			command task.Command
		}{
			{time.Hour, task.Start}, {-time.Hour, task.Continue}, {0, task.Continue}, {-time.Minute, task.Cancel},
		} {
			e, err := Open(t.Context(), store, Options{wall: func() time.Time { return time.Now().Add(c.ahead) }})
			if err != nil {
				t.Fatal(err)
			}
			p := e.Register(b.Config)
			r, err := p.Do(t.Context(), leader, call(c.command, "t", func(q *Request) { q.Message.ID = fmt.Sprint(i) }))
			if err != nil {
				t.Fatal(err)
			}
			if r, err = p.Do(t.Context(), leader, call(task.Get, "t")); err != nil {
				t.Fatal(err)
			}
			got = r.Task
			p.Unregister()
			e.Close()
		}
		if n := len(got.StatusHistory); n < 8 || got.Status.State != task.Canceled {
			t.Fatalf("the task has %d states, and is %s", n, got.Status.State)
		}
		for i, s := range got.StatusHistory[1:] {
			if before := got.StatusHistory[i]; !s.ChangedAt.After(before.ChangedAt) {
				t.Errorf("%s at %v comes after %s at %v", s.State, s.ChangedAt, before.State, before.ChangedAt)
			}
		}
	})
}
