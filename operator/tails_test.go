// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
)

// tailNodes returns the tails of gateways that share shards, and have no tasks.
func tailNodes(t *testing.T, n int) (all []*tails) {
	t.Helper()
	shards := replaytest.NewShards(n)
	for range n {
		set := shard.Join(shards.Node(), slog.New(slog.DiscardHandler))
		t.Cleanup(func() {
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
		all = append(all, openTails(set, partner.NewProcess()))
	}
	return all
}

// count returns how many tails other gateways have here.
func (t *tails) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// TestTailEverywhere: each gateway has a tail for a stream at one of them, until the stream ends.
func TestTailEverywhere(t *testing.T) {
	all := tailNodes(t, 3)
	f, err := all[0].follow(t.Context(), partner.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for i, tails := range all {
		if n := tails.count(); n != 1 {
			t.Errorf("gateway %d has %d tails", i, n)
		}
	}
	f.Close()
	for i, tails := range all {
		if n := tails.count(); n != 0 {
			t.Errorf("gateway %d has %d tails when the stream has ended", i, n)
		}
	}
}

// TestTailsClose: what another gateway has asked for lately does not outlive the store.
func TestTailsClose(t *testing.T) {
	tails := tailNodes(t, 1)[0]
	if _, err := tails.answer(tailQuestion{ID: "stream"}); err != nil {
		t.Fatal(err)
	}
	if tails.close(); tails.count() != 0 {
		t.Error("the tail is open still")
	}
	if _, err := tails.answer(tailQuestion{ID: "another"}); !errors.Is(err, replay.ErrClosed) {
		t.Errorf("a question that comes late is answered: %v", err)
	}
}

// TestTailAllLost: what a stream over several gateways leaves out is counted, also where an answer is lost and where a
// gateway is not reached for minutes; and where it cannot be counted, the gateway is named.
func TestTailAllLost(t *testing.T) {
	change := func(n int) (all []partner.Change) {
		for i := range n {
			all = append(all, partner.Change{ID: fmt.Sprint(i)})
		}
		return all
	}
	var sent tailed
	f := &allTail{places: make(map[string]*place), news: make(chan struct{}, 1)}
	steps := []struct {
		name     string
		changes  int
		answered bool // the answer arrives
		begun    bool // the gateway has begun again
		lost     uint64
		want     found
	}{
		{"three", 3, true, false, 0, found{changes: change(3)}},
		{"none", 0, true, false, 0, found{}},
		{"an answer is lost", 2, false, false, 0, found{}},
		{"it comes again", 1, true, false, 0, found{changes: change(3)}},
		{"a slow reader", 4, true, false, 7, found{changes: change(4), lost: 7}},
		{"more than are kept", maxTailed + 5, false, false, 0, found{}},
		{"counted", 2, true, false, 0, found{changes: change(maxTailed), lost: 7}},
		{"it goes on", 1, true, false, 0, found{changes: change(1)}},
		{"begun again", 2, true, true, 0, found{changes: change(2), unknown: []string{"b"}}},
		{"and then", 1, true, false, 0, found{changes: change(1)}},
	}
	for _, step := range steps {
		if step.begun || sent.Tail == "" {
			sent = tailed{Tail: step.name}
		}
		if p := f.places["b"]; p != nil && p.tail == sent.Tail {
			sent.see(p.seen)
		}
		sent.add(change(step.changes), step.lost)
		f.found = found{}
		if step.answered {
			answer := sent
			f.take("b", &answer)
		}
		if len(f.found.changes) != len(step.want.changes) || f.found.lost != step.want.lost ||
			!slices.Equal(f.found.unknown, step.want.unknown) {
			t.Errorf("%s: there are %d changes, %d are lost, and %v are not known", step.name, len(f.found.changes),
				f.found.lost, f.found.unknown)
		}
	}
}

// TestTailAllForgotten: a gateway keeps a tail that is not asked for any more for ten minutes, if no other one needs
// its place.
func TestTailAllForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		quiet := openTails(shard.One(replay.NewMemory(replay.Settings{})), partner.NewProcess())
		ask := func(id string, want error) {
			t.Helper()
			if _, err := quiet.answer(tailQuestion{ID: id}); !errors.Is(err, want) {
				t.Errorf("the error is %v, want %v", err, want)
			}
		}
		for i := range maxTails {
			ask(fmt.Sprint(i), nil)
			bubble.Pass(time.Second)
		}
		for i := maxTails - 20; i < maxTails; i++ {
			ask(fmt.Sprint(i), nil)
		}
		open := func() (n int, first bool) {
			quiet.mu.Lock()
			defer quiet.mu.Unlock()
			return len(quiet.open), quiet.open["0"] != nil
		}
		ask("another", nil) // in place of the first one
		if n, first := open(); n != maxTails || first {
			t.Errorf("there are %d tails, the first one is among them: %v", n, first)
		}
		bubble.Pass(forgetTail + time.Second)
		if n, _ := open(); n > 0 {
			t.Errorf("there are %d tails", n)
		}
	})
}

// TestTailLimit: a stream is refused if another gateway has as many tails as it may.
func TestTailLimit(t *testing.T) {
	all := tailNodes(t, 2)
	defer all[1].close()
	for i := range maxTails {
		if _, err := all[1].answer(tailQuestion{ID: fmt.Sprint("other-", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := all[0].follow(t.Context(), partner.TaskFilter{}); task.KindOf(err) != task.LimitExceeded {
		t.Errorf("the error is %v", err)
	}
	if n := all[0].count(); n > 0 {
		t.Errorf("%d tails are open still at the other gateway", n)
	}
}
