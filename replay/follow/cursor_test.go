// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestCursor: two writers of one cursor lose no position, and the data beside it is read again.
func TestCursor(t *testing.T) {
	store := &replaytest.Rival{Store: replay.NewMemory(replay.Settings{}), Classes: "c"}
	type about struct{ Name string }
	one := Cursor{Name: "c", Log: followed, Data: &about{"one"}}
	another := one
	write := func(c *Cursor, seq uint64, created bool) {
		t.Helper()
		c.Seq = seq
		if got, err := c.Write(t.Context(), store); err != nil || got != created {
			t.Errorf("the cursor was created: %v, %v, want %v", got, err, created)
		}
	}
	write(&one, 3, true)
	write(&another, 2, false)
	write(&one, 7, false)
	write(&another, 5, false)
	var read about
	c, err := Read(t.Context(), store, "c", &read)
	if err != nil || !c.Stored() || c.Log != followed || c.Seq != 7 || read.Name != "one" {
		t.Errorf("the cursor is %+v with %+v, %v", c, read, err)
	}
	if after, pinned, err := replay.Pinned(t.Context(), store, followed); after != 7 || !pinned || err != nil {
		t.Errorf("the log is pinned from %d on: %v, %v", after, pinned, err)
	}
	var dropped []bool
	for _, c := range []*Cursor{&one, &another} {
		was, err := c.Drop(t.Context(), store)
		if err != nil {
			t.Error(err)
		}
		dropped = append(dropped, was)
	}
	if diff := cmp.Diff([]bool{true, false}, dropped); diff != "" {
		t.Errorf("the cursor was there (-want +got):\n%s", diff)
	}
	if _, pinned, err := replay.Pinned(t.Context(), store, followed); pinned || err != nil {
		t.Errorf("the log is pinned: %v, %v", pinned, err)
	}
	if c, err := Read(t.Context(), store, "c", nil); c.Stored() || err != nil {
		t.Errorf("the cursor is %+v, %v", c, err)
	}
	if store.Wins() < 3 {
		t.Errorf("another writer was faster %d times only", store.Wins())
	}
	for name, metadata := range map[string]string{"no JSON": "{", "other data": `{"follows":"t","data":1}`} {
		if _, err := Parse(replay.Entry{Log: "c", Head: replay.Head{Metadata: []byte(metadata)}}, &read); err == nil {
			t.Errorf("%s is a cursor", name)
		}
	}
}

// TestTimeOfAPin: an ended log can be read as long as the store keeps it for followers, and no longer.
func TestTimeOfAPin(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := replay.NewMemory(replay.Settings{PinFor: 48 * time.Hour})
		w := newWriter(t, store)
		w.append(replay.Append{}, w.begin())
		w.append(replay.Append{End: true}, w.status(task.Canceled))
		c := Cursor{Name: "c", Log: followed}
		if _, err := c.Write(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			after  time.Duration
			states int
			err    error
		}{{47 * time.Hour, 2, nil}, {2 * time.Hour, 0, replay.ErrNotFound}} {
			bubble.Pass(want.after)
			states := 0
			var failed error
			for s, err := range Follow(t.Context(), store, followed, c.Position) {
				if failed = err; s.Entered {
					states++
				}
			}
			if states != want.states || !errors.Is(failed, want.err) {
				t.Errorf("%d states, %v; want %d, %v", states, failed, want.states, want.err)
			}
		}
	})
}

// TestLostEvents: a follower of events taken by a loss of power goes on with the next events appended.
func TestLostEvents(t *testing.T) {
	store := replay.NewMemory(replay.Settings{})
	w := newWriter(t, store)
	w.append(replay.Append{}, w.begin(), w.status(task.Working))
	f := New(store, followed, Position{Seq: 7, At: w.now, State: task.Working}, false)
	for range 2 {
		if steps, _, err := f.Next(t.Context()); len(steps) > 0 || err != nil {
			t.Fatalf("%d steps, %v", len(steps), err)
		}
	}
	w.append(replay.Append{Skip: 9}, w.piece())
	w.append(replay.Append{End: true}, w.status(task.Failed))
	var seqs []uint64
	for s, err := range Follow(t.Context(), store, followed, f.At()) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, s.Seq)
	}
	if diff := cmp.Diff([]uint64{12, 13}, seqs); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
}
