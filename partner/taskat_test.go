// SPDX-License-Identifier: Apache-2.0

package partner_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestTaskAt: a task is shown as it was after an event, whatever came later, also if the log has this event, or all
// events up to a later one, in a snapshot only. Its memory is reserved before.
func TestTaskAt(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	status := func(s task.State) *task.Status { return &task.Status{State: s, ChangedAt: at} }
	product := func(text string) task.Product {
		return task.Product{ID: "p", DataItems: []task.DataItem{task.Text(text)}}
	}
	events := []task.Event{
		{Task: &task.Task{ID: "t", Status: *status(task.Working), StatusHistory: []task.Status{*status(task.Working)}}},
		{Chunk: &task.Chunk{Product: product("one")}},
		{Status: status(task.AwaitingInput), Cause: &task.Message{ID: "m"}},
		{Chunk: &task.Chunk{Product: product("two"), Append: true}},
		{Status: status(task.Completed)},
	}
	whole := func(state task.State, texts string) task.Task {
		return task.Task{ID: "t", Status: *status(state), Products: []task.Product{product(texts)}}
	}
	for name, tc := range map[string]struct {
		trim uint64
		at   uint64
		want task.Task
	}{
		"in the middle":                   {0, 3, whole(task.AwaitingInput, "one")},
		"at the end":                      {0, 5, whole(task.Completed, "onetwo")},
		"behind a snapshot":               {2, 3, whole(task.AwaitingInput, "one")},
		"the last event of a snapshot":    {3, 3, whole(task.AwaitingInput, "one")},
		"products of a later snapshot":    {4, 3, whole(task.AwaitingInput, "onetwo")},
		"the end, all else in a snapshot": {4, 5, whole(task.Completed, "onetwo")},
	} {
		t.Run(name, func(t *testing.T) {
			store := replay.NewMemory(replay.Settings{})
			defer store.Close()
			var records [][]byte
			var fold, snapshot task.Fold
			for i, ev := range events {
				ev.Seq = uint64(i + 1)
				records = append(records, task.AppendEvent(nil, &ev))
				if fold.Apply(ev); ev.Seq == tc.trim {
					snapshot = task.NewFold(*fold.Task())
				}
			}
			err := store.Append(t.Context(), replay.Append{Log: "log", Records: records})
			if err == nil && tc.trim > 0 {
				err = store.Append(t.Context(), replay.Append{Log: "log", Expect: 1, Trim: tc.trim,
					Snapshot: task.AppendEvent(nil, &task.Event{Task: snapshot.Task()})})
			}
			if err != nil {
				t.Fatal(err)
			}
			var reserved int64
			reserve := func(_ context.Context, n int64) error { reserved = n; return nil }
			ev := events[tc.at-1]
			ev.Seq = tc.at
			got, err := partner.TaskAt(t.Context(), store, "log", &ev, reserve)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if reserved == 0 {
				t.Error("nothing was reserved")
			}
			refused := errors.New("refused")
			_, err = partner.TaskAt(t.Context(), store, "log", &ev, func(context.Context, int64) error { return refused })
			if err != refused {
				t.Errorf("without memory: %v", err)
			}
		})
	}
	store := replay.NewMemory(replay.Settings{})
	defer store.Close()
	_, err := partner.TaskAt(t.Context(), store, "none", &events[2], nil)
	if task.KindOf(err) != task.TaskNotFound {
		t.Errorf("a log that was dropped: %v", err)
	}
}
