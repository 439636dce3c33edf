// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

func TestTrim(t *testing.T) {
	const pieces = 250
	fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		for i := range pieces {
			p := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(fmt.Sprintf("%d ", i))}}
			if !yield(agent.Report{State: task.Working, Chunks: []task.Chunk{{Product: p, Append: i > 0}}}, nil) {
				return
			}
		}
		yield(agent.Report{State: task.AwaitingCompletion}, nil)
	}}
	store := memory(t)
	b := setUp(t, store, fake, func(c *Config) { c.MaxEvents = 100 })
	got := b.do(call(task.Start, "t1"))
	head, snapshot, records, err := store.Load(t.Context(), logname.New("agent", leader, "t1"))
	if err != nil {
		t.Fatal(err)
	}
	if head.Last != pieces+3 || len(records) > 100 || snapshot == nil || head.First != head.Last-uint64(len(records))+1 {
		t.Errorf("kept %d of %d events from %d on, snapshot %d bytes", len(records), head.Last, head.First, len(snapshot))
	}
	b.engine.Close()
	b = setUp(t, store, hangs())
	again := b.do(call(task.Get, "t1"))
	if diff := cmp.Diff(got.Products, again.Products); diff != "" {
		t.Errorf("products after a restart (-before +after):\n%s", diff)
	}
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingCompletion)
}
