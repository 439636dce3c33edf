// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
)

const followed = "tlog"

// writer appends to the log of a task, as the life-cycle does, and remembers the states followers must read.
type writer struct {
	t        *testing.T
	store    replay.Store
	fold     task.Fold
	revision uint64
	now      time.Time
	states   []state // all states entered by the task
	pieces   int
	beyond   bool // events still needed by a cursor were trimmed
}

// state is a state as seen by a folding follower.
type state struct {
	State    task.State
	At       time.Time
	Products string // the text; "?" if it may be unknown
}

func newWriter(t *testing.T, store replay.Store) *writer {
	return &writer{t: t, store: store, now: time.Unix(1_800_000_000, 0).UTC()}
}

func textOf(t *task.Task) (text string) {
	for _, p := range t.Products {
		for _, item := range p.DataItems {
			text += item.Text
		}
	}
	return text
}

// append appends events, and ends the log with the last one if end is set.
func (w *writer) append(a replay.Append, events ...task.Event) {
	w.t.Helper()
	for i := range events {
		ev := &events[i]
		before := w.fold.Status().State
		a.Records = append(a.Records, task.AppendEvent(nil, ev))
		ev.Seq = w.fold.Seq + 1
		w.fold.Apply(*ev)
		if s := w.fold.Status(); s.State != before {
			w.states = append(w.states, state{s.State, s.ChangedAt, textOf(w.fold.Task())})
		}
	}
	a.Log, a.Expect = followed, w.revision
	if err := w.store.Append(w.t.Context(), a); err != nil {
		w.t.Fatal(err)
	}
	w.revision++
}

// status returns the event by which the task enters a state, or updates its present state.
func (w *writer) status(s task.State) task.Event {
	if had := w.fold.Status(); had.State == s {
		return task.Event{Status: &task.Status{State: s, ChangedAt: had.ChangedAt}}
	}
	w.now = w.now.Add(time.Millisecond)
	return task.Event{Status: &task.Status{State: s, ChangedAt: w.now}}
}

func (w *writer) begin() task.Event {
	s := w.status(task.Accepted)
	return task.Event{Task: &task.Task{ID: "t", Status: *s.Status}}
}

func (w *writer) piece() task.Event {
	w.pieces++
	p := task.Product{ID: "p", DataItems: []task.DataItem{task.Text(fmt.Sprint(w.pieces, " "))}}
	return task.Event{Chunk: &task.Chunk{Product: p, Append: w.pieces > 1}}
}

// trim replaces events by a snapshot of the task up to a number.
func (w *writer) trim(upTo uint64) {
	head, snapshot, records, err := w.store.Load(w.t.Context(), followed)
	if err != nil {
		w.t.Fatal(err)
	}
	var fold task.Fold
	for s, err := range Steps(Position{Seq: head.Last}, head, snapshot, records) {
		if err != nil {
			w.t.Fatal(err)
		}
		if s.Seq <= upTo {
			fold.Apply(s.Event)
		}
	}
	w.append(replay.Append{Trim: upTo, Snapshot: task.AppendEvent(nil, &task.Event{Task: fold.Task()})})
}

// reader is a follower with a cursor, and the states it has read.
type reader struct {
	w      *writer
	folds  bool
	cursor Cursor
	f      *Follower
	got    []state
	kept   int // least number of got behind the stored cursor
	ended  bool
}

// open makes the follower anew, as after a crash.
func (r *reader) open(name string) {
	c, err := Read(context.Background(), r.w.store, name, nil)
	if err != nil {
		r.w.t.Fatal(err)
	}
	c.Log = followed
	r.cursor, r.f = c, New(r.w.store, followed, c.Position, r.folds)
}

// step reads at most n steps, and checks each state. With fails, the last one is not taken.
func (r *reader) step(n int, fails bool) {
	t := r.w.t
	t.Helper()
	steps, _, err := r.f.Next(t.Context())
	if err != nil && err != io.EOF && !errors.Is(err, replay.ErrNotFound) {
		t.Fatal(err)
	}
	r.ended = err == io.EOF
	for i := range steps {
		s := &steps[i]
		if i == n-1 && fails || i == n {
			r.f.Rest()
			return
		}
		if s.Seq <= r.f.At().Seq {
			t.Fatalf("event %d was read after %d", s.Seq, r.f.At().Seq)
		}
		snapshot := s.Task != nil && s.Seq > 1
		if snapshot && !r.w.beyond {
			t.Fatalf("event %d is a snapshot, but the log was pinned", s.Seq)
		}
		whole := r.f.Take(s)
		if !s.Entered {
			continue
		}
		got := state{r.f.At().State, r.f.At().At, "?"}
		if r.folds && !snapshot {
			got.Products = textOf(whole)
		}
		r.enter(got)
	}
}

// enter checks that a state is the next one, or, after a crash, one read before.
func (r *reader) enter(got state) {
	for i, had := range r.got {
		if had.At.Equal(got.At) {
			if i < r.kept {
				r.w.t.Fatalf("%v was read again, and the cursor was behind it", got)
			}
			r.got = r.got[:i] // the following states are read again, too
			break
		}
	}
	r.got = append(r.got, got)
	want := r.w.states[len(r.got)-1]
	if got.Products == "?" {
		want.Products = "?"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		r.w.t.Fatalf("state %d (-want +got):\n%s", len(r.got), diff)
	}
}

func (r *reader) save() {
	r.cursor.Position = r.f.At()
	if _, err := r.cursor.Write(r.w.t.Context(), r.w.store); err != nil {
		r.w.t.Fatal(err)
	}
	for r.kept < len(r.got) && !r.got[r.kept].At.After(r.f.At().At) {
		r.kept++
	}
}

// TestFollowers: in any order of appends, trims, deliveries and crashes, each follower reads every state exactly in
// order, as the task was then if the log still had it. States read behind a cursor are not read again.
func TestFollowers(t *testing.T) {
	states := []task.State{task.Working, task.AwaitingInput, task.Working, task.AwaitingCompletion}
	for seed := range uint64(400) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var store replay.Store = replay.NewMemory(replay.Settings{})
			if seed%3 == 0 {
				store = &replaytest.Rival{Store: store, Classes: "c"}
			}
			w := newWriter(t, store)
			w.append(replay.Append{}, w.begin())
			readers := []*reader{{w: w, folds: true}, {w: w}, {w: w, folds: true}}
			names := []string{"c1", "c2", "c3"}
			for i, r := range readers {
				r.open(names[i])
				r.save()
			}
			for range 60 {
				i := random.IntN(len(readers))
				r := readers[i]
				switch random.IntN(8) {
				case 0, 1:
					w.append(replay.Append{}, w.status(states[random.IntN(len(states))]))
				case 2:
					w.append(replay.Append{}, w.piece(), w.piece(), w.status(states[random.IntN(len(states))]), w.piece())
				case 3:
					upTo := random.Uint64N(w.fold.Seq + 1)
					after, pinned, err := replay.Pinned(t.Context(), store, followed)
					if err != nil {
						t.Fatal(err)
					}
					if pinned && upTo > after {
						if random.IntN(4) > 0 {
							upTo = after
						} else {
							w.beyond = true
						}
					}
					w.trim(upTo)
				case 4, 5:
					r.step(1+random.IntN(6), random.IntN(4) == 0)
				case 6:
					r.save()
				case 7:
					r.open(names[i])
				}
			}
			w.append(replay.Append{End: true}, w.piece(), w.status(task.Completed))
			for i, r := range readers {
				for !r.ended {
					r.step(1000, false)
				}
				if len(r.got) != len(w.states) {
					t.Errorf("follower %d has read %d of %d states", i, len(r.got), len(w.states))
				}
			}
		})
	}
}
