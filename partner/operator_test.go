// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// storeTask stores a task with a state since a time, and some events.
func storeTask(t *testing.T, s replay.Store, log string, m metadata, events ...string) {
	t.Helper()
	records := make([][]byte, 0, len(events))
	for _, ev := range events {
		records = append(records, []byte(ev))
	}
	a := replay.Append{Log: log, Records: records, Metadata: m.encode(), DueAt: time.Now().Add(time.Hour)}
	if err := s.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// idsOf returns the ids of the tasks on all pages of a filter, and the number of pages.
func (b *bench) idsOf(f TaskFilter) (ids []string, pages int) {
	b.t.Helper()
	for {
		list, next, err := Engines{b.engine}.Tasks(b.t.Context(), f)
		if err != nil {
			b.t.Fatal(err)
		}
		pages++
		for _, o := range list {
			ids = append(ids, o.ID)
		}
		if next == "" {
			return ids, pages
		}
		f.After = next
	}
}

// TestTasks lists the tasks of all Partners and Leaders.
func TestTasks(t *testing.T) {
	b := setUp(t, memory(t), hangs())
	now := time.Now()
	for _, x := range []struct {
		partner, leader, id string
		state               task.State
		age                 time.Duration
	}{
		{"a", "k", "1", task.Completed, 3 * time.Hour},
		{"a", "l", "1", task.Working, 2 * time.Hour},
		{"a", "l", "10", task.Failed, time.Minute},
		{"b", "l", "1", task.AwaitingInput, time.Minute},
		{"b", "l", "2", task.None, time.Second},
	} {
		m := metadata{State: x.state, Changed: now.Add(-x.age), Session: "s"}
		if x.state == task.None {
			m = metadata{Pending: &task.Message{SessionID: "s"}, PendingAt: now.Add(-x.age)}
		}
		storeTask(t, b.store, logname.New(x.partner, x.leader, x.id), m, "event")
	}
	for _, log := range []string{logname.OutboxOf(logname.New("a", "l", "7")), logname.InboxOf("a")} { // no tasks
		storeTask(t, b.store, log, metadata{}, "record")
	}
	for name, tt := range map[string]struct {
		filter TaskFilter
		want   string
	}{
		"all":                {TaskFilter{}, "1 1 10 1 2"},
		"a Partner":          {TaskFilter{Partner: "a"}, "1 1 10"},
		"a Leader":           {TaskFilter{Leader: "l"}, "1 10 1 2"},
		"both":               {TaskFilter{Partner: "a", Leader: "l"}, "1 10"},
		"one task":           {TaskFilter{Partner: "a", Leader: "l", Task: "1"}, "1"},
		"an id":              {TaskFilter{Task: "1"}, "1 1 1"},
		"the id of a Leader": {TaskFilter{Leader: "l", Task: "1"}, "1 1"},
		"no task":            {TaskFilter{Partner: "a", Leader: "l", Task: "3"}, ""},
		"states":             {TaskFilter{States: []task.State{task.Failed, task.None}}, "10 2"},
		"old":                {TaskFilter{MinAge: time.Hour}, "1 1"},
		"new":                {TaskFilter{MaxAge: time.Hour}, "10 1 2"},
		"in between":         {TaskFilter{MinAge: 30 * time.Second, MaxAge: 150 * time.Minute}, "1 10 1"},
	} {
		for _, limit := range []int{0, 1, 2} {
			tt.filter.Limit, tt.filter.ByName = limit, true
			ids, pages := b.idsOf(tt.filter)
			if got := strings.Join(ids, " "); got != tt.want || limit == 0 && pages != 1 {
				t.Errorf("%s, %d on a page: %q on %d pages, want %q", name, limit, got, pages, tt.want)
			}
		}
	}
	list, _, err := Engines{b.engine}.Tasks(t.Context(), TaskFilter{Partner: "b", ByName: true})
	if diff := cmp.Diff([]Overview{
		{Partner: "b", Leader: "l", ID: "1", Session: "s", State: task.AwaitingInput, Since: now.Add(-time.Minute),
			First: 1, Last: 1, Bytes: 5},
		{Partner: "b", Leader: "l", ID: "2", Session: "s", Since: now.Add(-time.Second), First: 1, Last: 1, Bytes: 5},
	}, list); diff != "" || err != nil {
		t.Errorf("the tasks of a Partner: %v (-want +got):\n%s", err, diff)
	}
	for _, after := range []string{"?", "eA"} {
		_, _, err := Engines{b.engine}.Tasks(t.Context(), TaskFilter{After: after, ByName: len(after) > 1})
		if task.KindOf(err) != task.InvalidParams {
			t.Errorf("a page after %q: %v", after, err)
		}
	}
}

// TestTasksBounded lists few tasks among many: each page reads a bounded number of them.
func TestTasksBounded(t *testing.T) {
	b := setUp(t, memory(t), hangs())
	const n = 2*maxTasksRead + 1
	for i := range n {
		m := metadata{State: task.Working, Changed: time.Now(), Session: "s"}
		if i == n-1 {
			m.State = task.Failed
		}
		storeTask(t, b.store, logname.New("a", "l", fmt.Sprintf("%06d", i)), m)
	}
	ids, pages := b.idsOf(TaskFilter{States: []task.State{task.Failed}, ByName: true})
	if diff := cmp.Diff([]string{fmt.Sprintf("%06d", n-1)}, ids); diff != "" || pages != 3 {
		t.Errorf("%d pages, want 3 (-want +got):\n%s", pages, diff)
	}
	list, next, err := Engines{b.engine}.Tasks(t.Context(), TaskFilter{Limit: n, ByName: true})
	if len(list) != maxTaskPage || next == "" || err != nil {
		t.Errorf("a page has %d tasks: %v", len(list), err)
	}
}

// TestEvents reads the events of ended and of trimmed tasks, and of tasks with gaps, or large events.
func TestEvents(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "done"))
	b.do(call(task.Complete, "done"))
	filter := func(id string) EventFilter { return EventFilter{Partner: "agent", Leader: leader, Task: id} }
	one, all, more, err := b.engine.Events(t.Context(), filter("done"))
	if err != nil || more || one.State != task.Completed || uint64(len(all)) != one.Last {
		t.Fatalf("%+v with %d events, more: %v, %v", one, len(all), more, err)
	}
	var kinds, causes string
	for i, ev := range all {
		kinds += string(ev.Kind)
		if ev.Cause != nil {
			causes += fmt.Sprint(ev.Seq, " ")
		}
		f := filter("done")
		f.After, f.Limit = uint64(i), 1
		_, page, more, err := b.engine.Events(t.Context(), f)
		if diff := cmp.Diff(all[i:i+1], page); diff != "" || err != nil || more != (i < len(all)-1) {
			t.Errorf("the event after %d, more: %v, %v (-want +got):\n%s", i, more, err, diff)
		}
	}
	if kinds != "tscss" || causes != "1 5 " {
		t.Errorf("the kinds of the events are %q, and %q have causes", kinds, causes)
	}

	status := func(n int) string { return fmt.Sprintf(`s{"state":"working","more":"%s"}`, strings.Repeat("x", n)) }
	log := logname.New("agent", leader, "odd")
	working := metadata{State: task.Working, Changed: time.Now(), Session: "s"}
	storeTask(t, b.store, log, working, status(1), status(2), status(3))
	for _, a := range []replay.Append{
		{Expect: 1, Records: [][]byte{[]byte(status(maxEventBytes)), []byte(status(5))}, Trim: 2, Snapshot: []byte("t{}")},
		{Expect: 2, Skip: 10, Records: [][]byte{[]byte(status(600 << 10)), []byte(status(600 << 10))}},
	} {
		a.Log, a.Metadata, a.DueAt = log, working.encode(), time.Now().Add(time.Hour)
		if err := b.store.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	for after, want := range map[uint64]string{
		0:  "3 -4 5 16 more", // the older ones were trimmed, and 4 is too large
		2:  "3 -4 5 16 more",
		5:  "16 more",
		9:  "16 more", // in the gap
		16: "17",
		17: "",
	} {
		f := filter("odd")
		f.After = after
		one, list, more, err := b.engine.Events(t.Context(), f)
		var got []string
		for _, ev := range list {
			seq := fmt.Sprint(ev.Seq)
			if ev.Value == nil {
				seq = "-" + seq
			}
			got = append(got, seq)
		}
		if more {
			got = append(got, "more")
		}
		if strings.Join(got, " ") != want || err != nil || one.First != 3 || one.Last != 17 {
			t.Errorf("the events after %d are %q of %d to %d, want %q: %v", after, got, one.First, one.Last, want, err)
		}
	}

	f := filter("odd")
	f.After = 18
	if _, _, _, err := b.engine.Events(t.Context(), f); task.KindOf(err) != task.InvalidParams {
		t.Errorf("the events after one that does not exist: %v", err)
	}
	if _, _, _, err := b.engine.Events(t.Context(), filter("none")); task.KindOf(err) != task.TaskNotFound {
		t.Errorf("the events of no task: %v", err)
	}
	storeTask(t, b.store, logname.New("agent", leader, "damaged"), working, "s{")
	if _, _, _, err := b.engine.Events(t.Context(), filter("damaged")); task.KindOf(err) != task.Internal {
		t.Errorf("the events of a damaged task: %v", err)
	}
}
