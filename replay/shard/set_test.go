// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
)

var quiet = slog.New(slog.DiscardHandler)

// events are the events of engines. Shards are closed at the same time.
type events struct {
	mu   sync.Mutex
	list []string
}

func (e *events) add(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, fmt.Sprintf(format, args...))
}

// take returns the events since the call before.
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.list
	e.list = nil
	return list
}

// watched is an engine reporting its opening and its close.
type watched struct {
	name  string
	shard int
}

// watch opens engines adding their events to a list.
func watch(t *testing.T, s *shard.Set, name string, seen *events) *shard.Each[watched] {
	t.Helper()
	each, err := shard.Open(s, func(_ context.Context, i int, _ replay.Store) (*watched, error) {
		seen.add("open %s %d", name, i)
		return &watched{name, i}, nil
	}, func(w *watched) { seen.add("close %s %d", w.name, w.shard) })
	if err != nil {
		t.Fatal(err)
	}
	return each
}

// TestSet proves that each engine is open exactly while its shard is owned, and closed before those opened earlier.
func TestSet(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(3)
		node := shards.Node()
		set := shard.Join(node, quiet)
		var seen events
		expect := func(want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, seen.take()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		a := watch(t, set, "a", &seen)
		expect()
		shards.Assign(1, node, false)
		expect("open a 1")
		b := watch(t, set, "b", &seen)
		expect("open b 1")
		if a.Of(1) == nil || b.Of(1) == nil || a.Of(0) != nil || a.Of(2) != nil {
			t.Error("the engines of another shard are open")
		}
		shards.Assign(1, nil, false)
		expect("close b 1", "close a 1")
		if a.Of(1) != nil {
			t.Error("an engine can be found whose shard is lost")
		}
		shards.Assign(1, node, false)
		expect("open a 1", "open b 1")
		shards.Assign(1, shards.Node(), true) // it does not take the shard yet
		expect()
		b.Close()
		expect("close b 1")
		shards.Assign(0, node, false)
		expect("open a 0")
		if err := set.Close(); err != nil {
			t.Error(err)
		}
		closed := seen.take()
		slices.Sort(closed)
		if diff := cmp.Diff([]string{"close a 0", "close a 1"}, closed); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestFence proves that a former owner of a shard appends nothing more, whether it knows of the loss or not.
func TestFence(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		shards := replaytest.NewShards(1)
		one, two := shards.Node(), shards.Node()
		shards.Assign(0, one, false)
		former, lost, err := one.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		begin := replay.Append{Log: "a", Metadata: []byte("1")}
		if err := former.Append(t.Context(), begin); err != nil {
			t.Fatal(err)
		}
		shards.Assign(0, two, true)
		now, _, err := two.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		<-lost
		next := replay.Append{Log: "a", Expect: 1, Metadata: []byte("2")}
		if err := former.Append(t.Context(), next); !errors.Is(err, replay.ErrFenced) || !errors.Is(err, replay.ErrClosed) {
			t.Errorf("the former owner appends: %v", err)
		}
		if err := now.Append(t.Context(), next); err != nil {
			t.Error(err)
		}
		for _, s := range []replay.Store{former, now} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOne proves that a store that is not shared is one shard, owned until the set is closed, and an engine failing to
// open leaves none open.
func TestOne(t *testing.T) {
	set := shard.One(replay.NewMemory(replay.Settings{}))
	var seen events
	a := watch(t, set, "a", &seen)
	failure := errors.New("damaged")
	_, err := shard.Open(set, func(context.Context, int, replay.Store) (*watched, error) { return nil, failure }, nil)
	if !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
	if a.Count() != 1 || a.Of(0) == nil {
		t.Error("the engine is not open")
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"open a 0", "close a 0"}, seen.take()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
