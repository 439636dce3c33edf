// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
)

func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		waits task.State
		want  task.State
		terms task.Terms
		after time.Duration
	}{
		{task.AwaitingInput, task.Canceled, task.Terms{}, time.Hour},
		{task.AwaitingCompletion, task.Completed, task.Terms{}, 2 * time.Hour},
		{task.AwaitingInput, task.Canceled, task.Terms{AwaitingInput: time.Second}, time.Second},
		{task.AwaitingCompletion, task.Completed, task.Terms{AwaitingCompletion: 30 * time.Hour}, 30 * time.Hour},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v/restart=%v", c.waits, c.after, restart), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					store := memory(t)
					b := setUp(t, store, bringTo(c.waits))
					b.do(call(task.Start, "t1", func(call *Request) { call.Terms = c.terms }))
					if restart {
						b.engine.Close()
						b = setUp(t, store, hangs())
					}
					time.Sleep(c.after - 10*time.Millisecond)
					b.wantStates("t1", task.Accepted, task.Working, c.waits)
					time.Sleep(20 * time.Millisecond)
					synctest.Wait()
					b.wantStates("t1", task.Accepted, task.Working, c.waits, c.want)
				})
			})
		}
	}
}

func TestDeadlineIsDroppedWhenTheTaskContinues(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := setUp(t, memory(t), answers("x"))
		b.do(call(task.Start, "t1"))
		time.Sleep(90 * time.Minute)
		b.do(call(task.Continue, "t1"))
		time.Sleep(90 * time.Minute)
		if got := b.do(call(task.Get, "t1")); got.Status.State != task.AwaitingCompletion {
			t.Errorf("the deadline of the first wait ended the second: %s", got.Status.State)
		}
	})
}
