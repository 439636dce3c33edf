// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// TestTaskIsBounded: the kept part of a task does not grow with its turns.
func TestTaskIsBounded(t *testing.T) {
	const most = 64 << 10
	long := []task.DataItem{task.Text(strings.Repeat("x", 10<<10))}
	for _, tc := range []struct {
		name    string
		message []task.DataItem
		report  agent.Report
	}{
		{"long messages", long, agent.Report{State: task.AwaitingCompletion}},
		{"long news", nil, agent.Report{State: task.AwaitingCompletion, Items: long}},
		{"long products are withdrawn", nil, agent.Report{State: task.AwaitingCompletion, Full: true,
			Products: []task.Product{{ID: "p", DataItems: long}}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			store := memory(t)
			fake := &script{run: func(_ context.Context, _ *agent.Turn,
				yield func(agent.Report, error) bool) {
				yield(tc.report, nil)
			}}
			b := setUp(t, store, fake, func(c *Config) { c.MaxBytes = most })
			b.do(call(task.Start, "t1"))
			var refused *task.Error
			for i := range 400 {
				_, err := b.Do(t.Context(), leader, call(task.Continue, "t1", func(c *Request) {
					c.Message.ID, c.Message.DataItems = fmt.Sprint(i), tc.message
				}))
				if errors.As(err, &refused) {
					break
				}
			}
			if refused == nil || refused.Kind != task.LimitExceeded || refused.Data["limit"] != "max_bytes" {
				t.Errorf("400 turns end with %v", refused)
			}
			head, snapshot, _, err := store.Load(t.Context(), b.LogOf(leader, "t1"))
			if err != nil || len(snapshot) > 2*most || head.Bytes > 2*most {
				t.Errorf("%d bytes are kept behind a snapshot of %d, %v", head.Bytes, len(snapshot), err)
			}
			if got := b.do(call(task.Complete, "t1")); got.Status.State != task.Completed {
				t.Errorf("complete answers %s", got.Status.State)
			}
		})
	}
	t.Run("one turn without an end", func(t *testing.T) {
		fake := &script{run: func(_ context.Context, _ *agent.Turn, yield func(agent.Report, error) bool) {
			for {
				if !yield(agent.Report{State: task.AwaitingInput, SelfResuming: true, Items: long}, nil) ||
					!yield(agent.Report{State: task.Working}, nil) {
					return
				}
			}
		}}
		b := setUp(t, memory(t), fake, func(c *Config) { c.MaxBytes = most })
		s, err := b.Stream(t.Context(), leader, call(task.Start, "t1"))
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range b.follow(t.Context(), &s) {
			if err != nil {
				t.Fatal(err)
			}
		}
		got := b.do(call(task.Get, "t1"))
		if got.Status.State != task.Failed || !strings.Contains(got.Status.DataItems[0].Text,
			"that this gateway keeps of a task") || got.Size() > 2*most {
			t.Errorf("the task ends as %+v", got.Status)
		}
	})
}

// TestAwaitingIsBounded: a Leader may not have a task wait for longer than the gateway allows.
func TestAwaitingIsBounded(t *testing.T) {
	const longest = 30 * 24 * time.Hour
	for _, state := range []task.State{task.AwaitingInput, task.AwaitingCompletion} {
		for asked, want := range map[time.Duration]time.Duration{longest - 1e9: longest - 1e9, math.MaxInt64: longest} {
			store := memory(t)
			b := setUp(t, store, bringTo(state), func(c *Config) { c.MaxAwaiting = longest })
			got := b.do(call(task.Start, "t1", func(c *Request) {
				c.Terms.AwaitingInput, c.Terms.AwaitingCompletion = asked,
					asked
			}))
			head, err := store.Head(t.Context(), b.LogOf(leader, "t1"))
			if wait := head.DueAt.Sub(got.Status.ChangedAt); err != nil || wait != want {
				t.Errorf("a task %s waits for %v where %v was asked for, %v", state, wait, asked, err)
			}
		}
	}
}
