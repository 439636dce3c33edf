// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestMemoryOfALongTask: the dropped part of a long task is not counted any more.
func TestMemoryOfALongTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 64 << 10
		var counter limit.Counter
		news := strings.Repeat("x", 10<<10)
		fake := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			for i := range 100 {
				if !yield(agent.Report{State: task.Working, Items: []task.DataItem{task.Text(news[i:])}}, nil) {
					return
				}
			}
			<-ctx.Done()
		}}
		b := setUp(t, memory(t), fake, func(c *Config) {
			c.MaxBytes = most
			c.Memory = limit.Budget{Counter: &counter, Limits: limit.Limits{Total: 1 << 20, PerLeader: 1 << 20}}
		})
		if _, err := b.Stream(t.Context(), leader, call(task.Start, "t1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if n := counter.Total(); n == 0 || n > 2*most {
			t.Errorf("%d bytes are held for a task of which %d are kept", n, most)
		}
		b.do(call(task.Cancel, "t1"))
		synctest.Wait()
		if n := counter.Total(); n != 0 {
			t.Errorf("%d bytes are held in the end", n)
		}
	})
}
