// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// counting is a store with a count of the reads of logs.
type counting struct {
	replay.Store
	loads, heads atomic.Int64
}

func (s *counting) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	s.loads.Add(1)
	return s.Store.Load(ctx, log)
}

func (s *counting) Head(ctx context.Context, log string) (replay.Head, error) {
	s.heads.Add(1)
	return s.Store.Head(ctx, log)
}

// reads are the numbers of calls of Load and of Head.
type reads struct{ loads, heads int64 }

// during returns the number of reads of the store while f runs.
func (s *counting) during(f func()) reads {
	before := reads{s.loads.Load(), s.heads.Load()}
	f()
	return reads{s.loads.Load() - before.loads, s.heads.Load() - before.heads}
}

// TestHistoriesOfAnAnswer: a command to be answered with the histories reads the log once, and its answer is the same
// as to a get.
func TestHistoriesOfAnAnswer(t *testing.T) {
	store := &counting{Store: memory(t)}
	b := setUp(t, store, answers("hello"))
	for _, command := range []task.Command{task.Start, task.Continue, task.Complete} {
		var got task.Task
		n := store.during(func() { got = b.do(call(command, "t1", func(c *Request) { c.Histories = true })) })
		if n.loads > 1 {
			t.Errorf("%s loads the log %d times", command, n.loads)
		}
		if want := b.do(call(task.Get, "t1")); len(got.MessageHistory) == 0 || !cmp.Equal(want, got) {
			t.Errorf("%s (-get +answer):\n%s", command, cmp.Diff(want, got))
		}
		if got := b.do(call(task.Start, "t1")); got.MessageHistory != nil || got.StatusHistory != nil {
			t.Errorf("an answer has the histories, which its caller did not want")
		}
	}
}
