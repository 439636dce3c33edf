// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestMemory: a task is counted while a run or a call uses it, a call beyond a Leader's memory is refused before
// anything of it is stored, and nothing is held in the end.
func TestMemory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const kib = 1 << 10
		var counter limit.Counter
		proceed := make(chan struct{})
		fake := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			select {
			case <-proceed:
				yield(finished(strings.Repeat("y", 400*kib)), nil)
			case <-ctx.Done():
			}
		}}
		b := setUp(t, memory(t), fake, func(c *Config) {
			c.Memory = limit.Budget{Counter: &counter, Limits: limit.Limits{Total: 1000 * kib, PerLeader: 250 * kib},
				Patience: time.Second}
		})
		held := func(least, most int64) {
			t.Helper()
			synctest.Wait()
			if n := counter.Total(); n < least*kib || n > most*kib {
				t.Errorf("%d KiB are held, want %d to %d", n/kib, least, most)
			}
		}
		// asks is a call as a front makes it, with the wait for its memory.
		asks := func(leader string, c *Request) (Result, error) {
			memory := b.Memory.Lease(leader)
			defer memory.Release()
			c.Reserve = func(ctx context.Context, n int64) error {
				if n == 0 {
					memory.Release()
				}
				return WaitForMemory(ctx, &memory, n, b.Memory.Patience)
			}
			return b.Do(t.Context(), leader, c)
		}
		large := func(id string) *Request {
			return call(task.Start, id, func(c *Request) {
				c.Message.DataItems = []task.DataItem{task.Text(strings.Repeat("x", 100*kib))}
				c.Terms.Response = time.Millisecond
			})
		}
		b.do(large("t1"))
		held(100, 105)
		b.do(large("t2"))
		held(200, 210)
		began := time.Now()
		_, err := asks(leader, large("t3"))
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("it waited for %v", waited)
		}
		e, _ := errors.AsType[*task.Error](err)
		if diff := cmp.Diff(map[string]any{"limit": "memory_per_leader", "max": int64(250 * kib)},
			e.Data); e.Kind != task.LimitExceeded || diff != "" {
			t.Errorf("got %v %s", err, diff)
		}
		b.want(call(task.Get, "t3"), task.TaskNotFound)
		if got := b.engine.open.counter.Total(); got != 2 {
			t.Errorf("%d tasks are counted as unfinished, want 2", got)
		}
		if _, err := asks("another", large("t3")); err != nil {
			t.Errorf("another Leader's start: %v", err)
		}
		held(300, 315)
		b.do(call(task.Cancel, "t2"))
		held(200, 210)

		close(proceed) // the agents' products are stored, whatever they take
		held(0, 0)
		other := b.Memory.Lease(leader)
		if err := other.Hold(100 * kib); err != nil {
			t.Error(err)
		}
		if _, err := asks(leader, call(task.Get, "t1")); task.KindOf(err) != task.LimitExceeded {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Second/2, other.Release)
		// A Leader without anything else may get more than its limit.
		if got, err := asks(leader, call(task.Get, "t1")); err != nil || task.ProductsSize(got.Task.Products) != 400*kib {
			t.Errorf("got products of %d bytes, and %v", task.ProductsSize(got.Task.Products), err)
		}
		held(0, 0)
	})
}

// TestTwoReadsOfALargeTask: of two reads at once of a task taking all memory of its Leader, the second one waits for
// the end of the first one's answer, and has its own. A waiting read keeps nothing in memory for which it waits itself.
func TestTwoReadsOfALargeTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const kib = 1 << 10
		var counter limit.Counter
		b := setUp(t, memory(t), answers(strings.Repeat("y", 400*kib)), func(c *Config) {
			c.Memory = limit.Budget{Counter: &counter, Limits: limit.Limits{Total: 1000 * kib, PerLeader: 250 * kib},
				Patience: time.Minute}
		})
		b.do(call(task.Start, "t1"))
		var readers sync.WaitGroup
		for range 3 {
			readers.Go(func() {
				memory := b.Memory.Lease(leader)
				defer memory.Release()
				get := call(task.Get, "t1")
				get.Reserve = func(ctx context.Context, n int64) error {
					return WaitForMemory(ctx, &memory, n, b.Memory.Patience)
				}
				got, err := b.Do(t.Context(), leader, get)
				if err != nil || task.ProductsSize(got.Task.Products) != 400*kib {
					t.Errorf("got products of %d bytes, and %v", task.ProductsSize(got.Task.Products), err)
				}
				bubble.Pass(time.Second) // until the answer is sent
			})
		}
		readers.Wait()
		if n := counter.Total(); n != 0 {
			t.Errorf("%d bytes are held in the end", n)
		}
	})
}
