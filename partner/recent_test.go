// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/pebble"
	"github.com/aip-gateway/aip-gateway/task"
)

// storeListed stores the log of a task with its lists.
func storeListed(t testing.TB, s replay.Store, log string, m metadata) {
	t.Helper()
	err := s.Append(t.Context(), replay.Append{Log: log, Records: [][]byte{[]byte("event")}, Metadata: m.encode(),
		DueAt: time.Now().Add(time.Hour), Lists: listingsOf(log, m.rank(), "")})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTasksByLastChange lists tasks, the last changed first.
func TestTasksByLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, now := replay.NewMemory(replay.Settings{}), time.Now()
		defer store.Close()
		for _, x := range []struct {
			partner, leader, id string
			state               task.State
			resumes             bool
			age                 time.Duration
		}{
			{"a", "k", "1", task.Completed, false, 3 * time.Hour},
			{"a", "l", "2", task.Working, false, 2 * time.Hour},
			{"a", "l", "3", task.Failed, false, time.Minute},
			{"b", "l", "4", task.AwaitingInput, true, 2 * time.Minute},
			{"b", "l", "5", task.AwaitingInput, false, 3 * time.Minute},
			{"b", "m", "6", task.None, false, time.Second},
			{"gone", "m", "7", task.Working, false, 4 * time.Minute},
		} {
			m := metadata{State: x.state, Changed: now.Add(-x.age), Session: "s", SelfResuming: x.resumes}
			if x.state == task.None {
				m = metadata{Pending: &task.Message{SessionID: "s"}, PendingAt: now.Add(-x.age)}
			}
			storeListed(t, store, logname.New(x.partner, x.leader, x.id), m)
		}
		e, err := Open(t.Context(), store, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		synctest.Wait()
		b := &bench{t: t, engine: e}
		for name, tt := range map[string]struct {
			filter TaskFilter
			want   string
		}{
			"all":            {TaskFilter{}, "6 3 4 5 7 2 1"},
			"a Partner":      {TaskFilter{Partner: "a"}, "3 2 1"},
			"a Leader":       {TaskFilter{Leader: "l"}, "3 4 5 2"},
			"another Leader": {TaskFilter{Leader: "m"}, "6 7"},
			"an id":          {TaskFilter{Task: "4"}, "4"},
			"no task":        {TaskFilter{Task: "9"}, ""},
			"states":         {TaskFilter{States: []task.State{task.Failed, task.None}}, "6 3"},
			"a state twice":  {TaskFilter{States: []task.State{task.AwaitingInput, task.AwaitingInput}}, "4 5"},
			"old":            {TaskFilter{MinAge: time.Hour}, "2 1"},
			"new":            {TaskFilter{MaxAge: 3 * time.Minute}, "6 3 4 5"},
			"in between":     {TaskFilter{MinAge: 2 * time.Minute, MaxAge: 3 * time.Hour}, "4 5 7 2 1"},
			"a beginning":    {TaskFilter{Search: "7"}, "7"},
			"of a Leader":    {TaskFilter{Search: "k"}, "1"},
			"of an agent":    {TaskFilter{Search: "x", SearchPartners: []string{"b"}}, "6 4 5"},
		} {
			for _, limit := range []int{0, 1, 2} {
				tt.filter.Limit = limit
				ids, pages := b.idsOf(tt.filter)
				if got := strings.Join(ids, " "); got != tt.want || limit == 0 && pages != 1 {
					t.Errorf("%s, %d on a page: %q on %d pages, want %q", name, limit, got, pages, tt.want)
				}
			}
		}

		counts, err := Engines{e}.Count(t.Context(), TaskFilter{Partner: "b"})
		want := []TaskCount{{State: task.None, Count: 1}, {State: task.AwaitingInput, Count: 2}}
		counts = slices.DeleteFunc(counts, func(c TaskCount) bool { return c.Count == 0 })
		if diff := cmp.Diff(want, counts); diff != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	})
}

// BenchmarkNewestTasks measures the first page of 100 of a million tasks, of 12 Partners and 1,000 Leaders.
func BenchmarkNewestTasks(b *testing.B) {
	const all = 1_000_000
	store, err := pebble.Open(b.TempDir(), replay.Settings{Sync: replay.SyncNever}, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	e, err := Open(b.Context(), store, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for i := range 12 {
		defer e.Register(Config{Name: fmt.Sprintf("partner-%02d", i), Log: slog.New(slog.DiscardHandler)}).Unregister()
	}
	states, begin := task.States(), time.Now().Add(-24*time.Hour)
	for i := range all {
		m := metadata{State: states[i*i%len(states)], Changed: begin.Add(time.Duration(i) * time.Millisecond), Session: "s"}
		storeListed(b, store, logname.New(fmt.Sprintf("partner-%02d", i%12), fmt.Sprintf("leader-%04d", i*7%1000),
			fmt.Sprintf("task-%08x", i*2654435761%(1<<32))), m)
	}
	for name, f := range map[string]TaskFilter{
		"all": {}, "a state": {States: []task.State{task.Failed}}, "a Partner": {Partner: "partner-03"},
		"a Leader": {Leader: "leader-0042"}, "the middle": {MinAge: 23*time.Hour + 50*time.Minute},
		"a beginning": {Search: "task-00001"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := (Engines{e}).Tasks(b.Context(), f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			if _, err := (Engines{e}).Count(b.Context(), TaskFilter{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
