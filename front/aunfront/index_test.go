// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

// slowLog is a store with one slow log.
type slowLog struct {
	replay.Store
	name string
	goOn chan struct{}
}

func (s *slowLog) Append(ctx context.Context, a replay.Append) error {
	if a.Log == s.name {
		<-s.goOn
	}
	return s.Store.Append(ctx, a)
}

// TestChangesOfEntries: a change of an entry waits for no change of another one.
func TestChangesOfEntries(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := replay.NewMemory(replay.Settings{})
		defer memory.Close()
		before := OpenIndex(shard.One(memory), slog.New(slog.DiscardHandler))
		for _, id := range []string{"slow", "other"} {
			if err := before.put(t.Context(), id, &entry{Log: "t" + id}, false); err != nil {
				t.Fatal(err)
			}
		}
		before.Close()
		store := &slowLog{memory, logname.AUNTask("slow"), make(chan struct{})}
		x := OpenIndex(shard.One(store), slog.New(slog.DiscardHandler))
		defer x.Close()
		done := make(chan error, 1)
		go func() {
			_, err := x.addChild(t.Context(), "slow", "one")
			done <- err
		}()
		synctest.Wait()
		if _, err := x.addChild(t.Context(), "other", "two"); err != nil {
			t.Error(err)
		}
		if len(done) != 0 {
			t.Error("the store was not slow")
		}
		close(store.goOn)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if e, err := x.get(t.Context(), "slow"); err != nil || len(e.Children) != 1 {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

// slowList is a store with lists beginning on permission.
type slowList struct {
	replay.Store
	goOn chan struct{}
}

func (s *slowList) List(ctx context.Context, prefix, after string) iter.Seq2[replay.Entry, error] {
	<-s.goOn
	return s.Store.List(ctx, prefix, after)
}

// TestPositionsAreCountedOnce: a position written, or dropped, during the count of an earlier process's positions
// counts once.
func TestPositionsAreCountedOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := replay.NewMemory(replay.Settings{})
		defer memory.Close()
		position := func(x *Index, id string) *follow.Cursor {
			c, err := x.cursor(t.Context(), id, "t"+id, follower{"alice.aid.test", "d1", ""})
			if err != nil {
				t.Fatal(err)
			}
			return &c
		}
		write := func(x *Index, id string) {
			c := position(x, id)
			if c.Seq = 1; x.write(t.Context(), c) != nil {
				t.Error("the position was not written")
			}
		}
		before := OpenIndex(shard.One(memory), slog.New(slog.DiscardHandler))
		write(before, "stays")
		write(before, "ends")
		before.Close()
		store := &slowList{memory, make(chan struct{})}
		x := OpenIndex(shard.One(store), slog.New(slog.DiscardHandler))
		defer x.Close()
		var changes sync.WaitGroup
		changes.Go(func() { write(x, "new") })
		changes.Go(func() {
			c := position(x, "ends")
			if err := x.end(t.Context(), "ends", follower{"alice.aid.test", "d1", ""}, c); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(store.goOn)
		changes.Wait()
		synctest.Wait()
		if n := x.homes.Of(0).positions.Total(); n != 2 {
			t.Errorf("%d positions are counted", n)
		}
	})
}

// TestIndexConflicts has another writer of the index be faster than each write, once. Nothing known to either is lost.
func TestIndexConflicts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		memory := replay.NewMemory(replay.Settings{})
		defer memory.Close()
		rival := &replaytest.Rival{Store: memory, Classes: string(logname.AUN)}
		x := OpenIndex(shard.One(rival), slog.New(slog.DiscardHandler))
		defer x.Close()
		device := follower{"alice.aid.test", "d1", ""}
		undo, err := x.begin(t.Context(), "parent", &entry{Log: "tparent", Creator: device.creator()})
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range []string{"one", "two", "three"} {
			if _, err := x.addChild(t.Context(), "parent", child); err != nil {
				t.Error(err)
			}
		}
		if err := x.removeChild(t.Context(), "parent", "two"); err != nil {
			t.Error(err)
		}
		e, err := x.get(t.Context(), "parent")
		if err != nil || !slices.Equal(e.Children, []string{"one", "three"}) {
			t.Errorf("%+v, %v", e, err)
		}
		// The same message twice at a time: the second one knows nothing of the first.
		if _, err := x.begin(t.Context(), "parent", &entry{Log: "tparent", Creator: device.creator()}); err != nil {
			t.Error(err)
		}
		if e, err := x.get(t.Context(), "parent"); err != nil || len(e.Children) != 2 {
			t.Errorf("after the same message again: %+v, %v", e, err)
		}

		at := func(c follow.Cursor, seq uint64) follow.Cursor {
			c.Seq = seq
			if err := x.write(t.Context(), &c); err != nil {
				t.Error(err)
			}
			return c
		}
		read := func() follow.Cursor {
			c, err := x.cursor(t.Context(), "parent", "tparent", device)
			if err != nil {
				t.Error(err)
			}
			return c
		}
		none := read()
		one := none
		for seq := range uint64(4) {
			one = at(one, seq+1)
		}
		another := at(none, 2) // of another connection of the device, less advanced
		if c := read(); !c.Stored() || c.Seq != 4 {
			t.Errorf("the position is %+v", c)
		}
		if n := x.homes.Of(0).positions.Total(); n != 1 {
			t.Errorf("%d positions are counted", n)
		}
		for _, c := range []follow.Cursor{one, another} { // both connections report its end
			if err := x.end(t.Context(), "parent", device, &c); err != nil {
				t.Error(err)
			}
		}
		if n := x.homes.Of(0).positions.Total(); n != 0 {
			t.Errorf("%d positions are counted when it is over", n)
		}
		if e, err := x.get(t.Context(), "parent"); err != nil || e.Creator != "" {
			t.Errorf("%+v, %v", e, err)
		}
		if err := undo(t.Context()); err != nil {
			t.Error(err)
		}
		if e, err := x.get(t.Context(), "parent"); e != nil || err != nil {
			t.Errorf("the entry of a task that was not started is %+v, %v", e, err)
		}
		if rival.Wins() < 8 {
			t.Errorf("the other writer was faster %d times only", rival.Wins())
		}
	})
}
