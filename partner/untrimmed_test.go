// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// untrimmed is a store with logs open to writes, but not to reads.
type untrimmed struct {
	replay.Store
	fails bool
}

func (s *untrimmed) Load(ctx context.Context, log string) (replay.Head, []byte, []replay.Record, error) {
	if s.fails {
		return replay.Head{}, nil, nil, errors.New("a bad sector")
	}
	return s.Store.Load(ctx, log)
}

// TestContinueThatCannotBeTrimmed: a continue changes nothing in the remembered task if the log cannot be shortened
// before it.
func TestContinueThatCannotBeTrimmed(t *testing.T) {
	store := &untrimmed{Store: memory(t)}
	fake := &script{run: func(ctx context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
		if !yield(agent.Report{State: task.AwaitingInput, SelfResuming: true}, nil) {
			return
		}
		<-ctx.Done()
	}}
	b := setUp(t, store, fake, func(c *Config) { c.MaxEvents = 3 })
	b.do(call(task.Start, "t1"))
	store.fails = true
	b.want(call(task.Continue, "t1", func(c *Request) { c.Message.ID = "again" }), task.Internal)
	store.fails = false
	// The mark of a watcher is written with the whole remembered task.
	if err := b.Watch(t.Context(), leader, "t1", func(string, task.Position) error { return nil }); err != nil {
		t.Fatal(err)
	}
	head, err := store.Head(t.Context(), b.LogOf(leader, "t1"))
	if err != nil {
		t.Fatal(err)
	}
	var n metadata
	if err := json.Unmarshal(head.Metadata, &n); err != nil || n.State != task.AwaitingInput || !n.SelfResuming ||
		!n.Watched {
		t.Errorf("what is remembered of the task is %s, %v", head.Metadata, err)
	}
	b.wantStates("t1", task.Accepted, task.Working, task.AwaitingInput)
}
