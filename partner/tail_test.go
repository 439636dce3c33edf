// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// changesOf returns the changes in a Tail, as "id state", and the number of lost ones.
func changesOf(t *Tail) (list []string, lost uint64) {
	changes, lost := t.Next()
	for _, c := range changes {
		list = append(list, strings.TrimSpace(c.ID+" "+string(c.State)))
	}
	return list, lost
}

// TestTail follows the changes of state of tasks, by several filters.
func TestTail(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	want := map[*Tail][]string{
		b.engine.process.Tail(TaskFilter{}): {
			"a", "a accepted", "a working", "a awaiting-completion", "b", "b accepted", "b working",
			"b awaiting-completion", "a completed",
		},
		b.engine.process.Tail(TaskFilter{Partner: b.Name, Leader: leader, Task: "b"}): {
			"b", "b accepted", "b working", "b awaiting-completion"},
		b.engine.process.Tail(TaskFilter{States: []task.State{task.None, task.Completed}}): {"a", "b", "a completed"},
		b.engine.process.Tail(TaskFilter{Leader: "other"}):                                 nil,
		b.engine.process.Tail(TaskFilter{Partner: "other"}):                                nil,
	}
	late := b.engine.process.Tail(TaskFilter{})
	b.do(call(task.Start, "a"))
	b.do(call(task.Start, "b"))
	late.Next()
	late.Close()
	b.do(call(task.Complete, "a"))
	want[late] = nil
	for tail, changes := range want {
		news := false
		select {
		case <-tail.News():
			news = true
		default:
		}
		got, lost := changesOf(tail)
		if diff := cmp.Diff(changes, got); diff != "" || lost > 0 || news != (len(changes) > 0 || tail == late) {
			t.Errorf("%+v: %d lost, news: %v (-want +got):\n%s", tail.filter, lost, news, diff)
		}
		if again, _ := tail.Next(); again != nil {
			t.Errorf("what was returned is returned again: %v", again)
		}
		tail.Close()
	}
	if b.engine.process.tails.list.Load() != nil {
		t.Error("a Tail that was closed is still given changes")
	}
}

// TestTailNotRead: of an unread Tail, the first changes are kept, and the later ones are counted.
func TestTailNotRead(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"), func(c *Config) { c.MaxTasks = 0 })
	tail := b.engine.process.Tail(TaskFilter{})
	defer tail.Close()
	const starts = maxTailed/4 + 5 // each is four changes
	for i := range starts {
		b.do(call(task.Start, fmt.Sprint(i)))
	}
	list, lost := changesOf(tail)
	if len(list) != maxTailed || list[maxTailed-1] != fmt.Sprint(maxTailed/4-1, " awaiting-completion") || lost != 20 {
		t.Errorf("%d changes, the last of them %q, and %d lost", len(list), list[len(list)-1], lost)
	}
	b.do(call(task.Complete, "0"))
	if list, lost = changesOf(tail); len(list) != 1 || lost != 0 {
		t.Errorf("after it was read, it has %q, and %d lost", list, lost)
	}
}

// TestTailEvents follows the events of a task to its end, over events not kept, and over a gap.
func TestTailEvents(t *testing.T) {
	b := setUp(t, memory(t), answers("hello"))
	b.do(call(task.Start, "t"))
	filter := EventFilter{Partner: b.Name, Leader: leader, Task: "t"}
	tail, err := TailEvents(t.Context(), b.engine.store, filter)
	if err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	var kinds string
	next := func(want int) error {
		t.Helper()
		events, skipped, err := tail.Next(t.Context())
		if len(events) != want || skipped > 0 {
			t.Errorf("%d events, %d skipped, %v", len(events), skipped, err)
		}
		for _, ev := range events {
			kinds += string(ev.Kind)
		}
		return err
	}
	_, _ = next(4), next(0)
	b.do(call(task.Complete, "t"))
	<-tail.News()
	if next(1) != nil || next(0) != io.EOF || kinds != "tscss" {
		t.Errorf("the kinds of the events are %q", kinds)
	}

	status := []byte(`s{"state":"working"}`)
	log := logname.New(b.Name, leader, "odd")
	working := metadata{State: task.Working, Changed: time.Now(), Session: "s"}
	storeTask(t, b.store, log, working, string(status), string(status), string(status))
	for _, a := range []replay.Append{
		{Expect: 1, Records: [][]byte{status}, Trim: 2, Snapshot: []byte("t{}")},
		{Expect: 2, Skip: 10, Records: [][]byte{status}},
	} {
		a.Log, a.Metadata, a.DueAt = log, working.encode(), time.Now().Add(time.Hour)
		if err := b.store.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	filter.Task = "odd"
	if tail, err = TailEvents(t.Context(), b.engine.store, filter); err != nil {
		t.Fatal(err)
	}
	defer tail.Close()
	var got []string
	for range 6 {
		events, skipped, err := tail.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if skipped > 0 {
			got = append(got, fmt.Sprint("to ", skipped))
		}
		for _, ev := range events {
			got = append(got, fmt.Sprint(ev.Seq))
		}
	}
	if diff := cmp.Diff([]string{"to 2", "3", "4", "15"}, got); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}

	filter.After = 16
	if _, err := TailEvents(t.Context(), b.engine.store, filter); task.KindOf(err) != task.InvalidParams {
		t.Errorf("the events after one that does not exist: %v", err)
	}
	filter.Task = "none"
	if _, err := TailEvents(t.Context(), b.engine.store, filter); task.KindOf(err) != task.TaskNotFound {
		t.Errorf("the events of no task: %v", err)
	}
}
