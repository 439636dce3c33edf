// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
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
			got.Get("messages.#.content").Raw != `["which?","blue"]` {
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

// writes is a store counting the appends to the index.
type writes struct {
	replay.Store
	n atomic.Int64
}

func (s *writes) Append(ctx context.Context, a replay.Append) error {
	if strings.HasPrefix(a.Log, string(logname.AUN)) {
		s.n.Add(1)
	}
	return s.Store.Append(ctx, a)
}

// TestNothingOfWhatIsRefused: nothing is stored for a refused call, whatever is wrong with it.
func TestNothingOfWhatIsRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		store := &writes{Store: w.store}
		w.store, w.maxTasks = store, 1
		w.config.Assignees = noAssignees{}
		w.start()
		alice := w.connect("alice.aid.test", "d1")
		id := alice.create(reviewer, "")
		before := store.n.Load()
		for _, call := range [][2]string{
			{"task.create", `{"to":"` + reviewer + `"}`},
			{"task.create", `{"to":"` + reviewer + `","input":5}`},
			{"task.create", `{"to":"` + reviewer + `","input":"one more than the client may have"}`},
			{"task.create", `{"to":"` + reviewer + `","input":"the same","message_id":"m","participants":["bob.aid.test"]}`},
			{"task.create", `{"to":"nobody.aid.test","input":"go"}`},
			{"task.delegate", `{"task_id":"` + id + `","to":"` + translator + `"}`},
			{"task.delegate", `{"task_id":"` + id + `","to":"` + reviewer + `","input":"go"}`},
			{"task.subscribe", `{"task_ids":["none"]}`},
			{"task.unsubscribe", `{"task_ids":["` + id + `"]}`},
		} {
			alice.call(call[0], call[1])
		}
		if n := store.n.Load() - before; n != 0 {
			t.Errorf("%d appends for calls that were refused", n)
		}
		if got := alice.must("task.children", params(id)).Get("children").Raw; got != "[]" {
			t.Errorf("children: %s", got)
		}
		w.stop()
	})
}

// noAssignees are connecting agents without tasks.
type noAssignees struct{ Assignees }

func (noAssignees) Has(string, string) bool              { return false }
func (noAssignees) Connected(string, func(event []byte)) {}

// failing is a store with logs of tasks failing at times: after they were written, or before.
type failing struct {
	replay.Store
	now, before atomic.Bool
	failed      atomic.Bool // an append has failed, so nothing can be read
}

func (s *failing) of(log string) bool {
	return s.now.Load() && strings.HasPrefix(log, string(logname.Task))
}

func (s *failing) Append(ctx context.Context, a replay.Append) error {
	if s.of(a.Log) && s.before.Load() {
		return replay.ErrFull
	}
	if err := s.Store.Append(ctx, a); err != nil || !s.of(a.Log) {
		return err
	}
	s.failed.Store(true)
	return replay.ErrUnavailable
}

func (s *failing) Head(ctx context.Context, log string) (replay.Head, error) {
	if s.of(log) && s.failed.Load() {
		return replay.Head{}, replay.ErrUnavailable
	}
	return s.Store.Head(ctx, log)
}

// TestStartThatMayBeStored: a task keeps its entry after a failure of the store at its start, because the start may be
// stored. Of one not stored nothing is left, and it can be started later.
func TestStartThatMayBeStored(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stop()
		store := &failing{Store: w.store}
		w.store = store
		w.config.Assignees = noAssignees{}
		w.start()
		alice := w.connect("alice.aid.test", "d1")
		parent := alice.create(reviewer, "")
		logs := func() (names []string) {
			for e, err := range store.Store.List(t.Context(), string(logname.AUN), "") {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, e.Log)
			}
			return names
		}
		before := logs()
		delegate := func(message string) (code int) {
			_, code = alice.call("task.delegate",
				`{"task_id":"`+parent+`","to":"`+translator+`","message_id":"`+message+`","input":"go"}`)
			return code
		}
		store.now.Store(true)
		store.before.Store(true)
		if delegate("m1") == 0 {
			t.Error("a task is started that cannot be stored")
		}
		store.now.Store(false)
		if diff := cmp.Diff(before, logs()); diff != "" {
			t.Errorf("logs of the index after a start that was not stored (-want +got):\n%s", diff)
		}
		store.before.Store(false)
		store.now.Store(true)
		if delegate("m2") == 0 {
			t.Error("a task is started that may not be stored")
		}
		store.now.Store(false)
		if n := len(logs()) - len(before); n != 1 {
			t.Errorf("%d logs of a task that may exist are kept, want its entry", n)
		}
		if code := delegate("m1"); code != 0 {
			t.Errorf("the task that was not stored cannot be started later: %d", code)
		}
		if n := len(alice.must("task.children", params(parent)).Get("children").Array()); n != 2 {
			t.Errorf("%d children", n)
		}
		w.stop()
	})
}
