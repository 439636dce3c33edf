// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
)

// TestTask: a task from its creation to its end, as its owner sees it.
func TestTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		alice := w.connect("alice.aid.test", "d1")
		created := alice.must("task.create", `{"to":"`+reviewer+`","input":{"type":"text","content":"go"}}`)
		id := created.Get("task_id").String()
		if got := created.Get("status").String() + " " + created.Get("owner").String() + " " +
			created.Get("assignee").String(); got != "submitted alice.aid.test reviewer.aid.test" || id == "" {
			t.Errorf("created: %s", created.Raw)
		}
		if got := alice.must("task.subscribe", `{"task_ids":["`+id+`"]}`).Get("subscribed.0").String(); got != id {
			t.Errorf("subscribed %q", got)
		}
		w.say(id, working, piece("0", false), piece("1", true), asks)
		var seen []string
		for range 5 {
			seen = append(seen, alice.next().String())
		}
		if got := alice.must("task.get", params(id)); got.Get("status").String() != "input_required" ||
			got.Get("message.content").String() != "which?" || got.Get("artifacts.0.content").String() != "01" {
			t.Errorf("get: %s", got.Raw)
		}
		if got := alice.must("task.send_input", `{"task_id":"`+id+`","input":{"type":"text","content":"blue"}}`).
			Get("status").String(); got != "working" {
			t.Errorf("send_input answers %s", got)
		}
		w.say(id, finished)
		for range 2 {
			seen = append(seen, alice.next().String())
		}
		if diff := cmp.Diff([]string{"updated submitted", "updated working", "artifact 0", "artifact 1",
			"updated input_required", "updated working", "completed completed"}, seen); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		got := alice.must("task.get", params(id))
		if got.Get("status").String() != "completed" || got.Get("input.content").String() != "go" ||
			got.Get("messages.0.content").String() != "blue" {
			t.Errorf("get: %s", got.Raw)
		}
		for method, more := range map[string]string{"task.cancel": "", "task.send_input": `,"input":"x"`} {
			if _, code := alice.call(method, `{"task_id":"`+id+`"`+more+`}`); code != -32171 {
				t.Errorf("%s of a completed task: %d", method, code)
			}
		}
		w.stop()
	})
}

// failing is a store whose logs of tasks fail at times, after they were written.
type failing struct {
	replay.Store
	now atomic.Bool
}

func (s *failing) of(log string) bool {
	return s.now.Load() && strings.HasPrefix(log, string(logname.Task))
}

func (s *failing) Append(ctx context.Context, a replay.Append) error {
	if err := s.Store.Append(ctx, a); err != nil || !s.of(a.Log) {
		return err
	}
	return replay.ErrUnavailable
}

func (s *failing) Head(ctx context.Context, log string) (replay.Head, error) {
	if s.of(log) {
		return replay.Head{}, replay.ErrUnavailable
	}
	return s.Store.Head(ctx, log)
}

// TestStartThatMayBeStored: a task whose start fails with the store keeps its entry, because the start may be stored.
// One that is refused does not exist, and loses its entry.
func TestStartThatMayBeStored(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		store := &failing{Store: w.store}
		w.store = store
		w.start()
		alice := w.connect("alice.aid.test", "d1")
		create := func(message, input string) (dropped bool) {
			params := `{"to":"` + reviewer + `","message_id":"` + message + `","input":` + input + `}`
			if _, code := alice.call("task.create", params); code == 0 {
				t.Errorf("%s is started", message)
			}
			id := (&Session{AID: "alice.aid.test"}).newTaskID(gjson.Parse(params))
			head, err := store.Store.Head(t.Context(), logname.AUNTask(id))
			if err != nil {
				t.Fatal(err)
			}
			return !head.Ended.IsZero()
		}
		if !create("refused", `5`) {
			t.Error("the entry of a task that does not exist is kept")
		}
		store.now.Store(true)
		if create("stored", `"go"`) {
			t.Error("the entry of a task that may exist is dropped")
		}
		store.now.Store(false)
		w.stop()
	})
}
