// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
)

func TestMemory(t *testing.T) {
	open := func(_ *testing.T, s replay.Settings) replay.Store { return replay.NewMemory(s) }
	t.Run("bubble", func(t *testing.T) { replaytest.Run(t, open, replaytest.Options{Bubble: true}) })
	t.Run("real time", func(t *testing.T) { replaytest.Run(t, open, replaytest.Options{}) })
	t.Run("packed", func(t *testing.T) {
		replaytest.Run(t, func(_ *testing.T, s replay.Settings) replay.Store { return replay.NewPackedMemory(s) },
			replaytest.Options{Bubble: true})
	})
}

func BenchmarkMemory(b *testing.B) {
	replaytest.Benchmark(b, func(_ *testing.B, s replay.Settings) replay.Store { return replay.NewMemory(s) })
}

// add appends one record of n bytes to a log.
func add(m *replay.Memory, log string, expect uint64, n int, end bool) error {
	a := replay.Append{Log: log, Expect: expect, Records: [][]byte{make([]byte, n)}, End: end}
	return m.Append(context.Background(), a)
}

func kept(m *replay.Memory, logs ...string) (kept []string) {
	for _, log := range logs {
		if _, _, _, err := m.Load(context.Background(), log); err == nil {
			kept = append(kept, log)
		}
	}
	return kept
}

// TestMemoryFull fills a store with logs of 100 kB each and little beside it.
func TestMemoryFull(t *testing.T) {
	const size = 100_000
	m := replay.NewMemory(replay.Settings{Capacity: 5*size + size/2})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(want ...string) {
		t.Helper()
		if d := cmp.Diff(want, kept(m, "a", "b", "c", "d", "e", "f", "g", "h")); d != "" {
			t.Fatalf("kept (-want +got):\n%s", d)
		}
	}
	must(add(m, "a", 0, size, true))
	must(add(m, "b", 0, size, true))
	must(add(m, "c", 0, size, false))
	must(add(m, "d", 0, size, true))
	must(add(m, "e", 0, size, false))
	want("a", "b", "c", "d", "e") // also a use of them, in this order
	if _, _, _, err := m.Load(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	must(add(m, "f", 0, size, false)) // for b, the least recently used ended one
	want("a", "c", "d", "e", "f")
	for _, err := range replay.Follow(t.Context(), m, "a", 0, nil) { // is a use, too
		must(err)
	}
	must(add(m, "c", 1, size, false)) // for d
	want("a", "c", "e", "f")
	must(add(m, "g", 0, size, false)) // for a
	want("c", "e", "f", "g")
	for _, refused := range []error{
		add(m, "h", 0, size, false), add(m, "c", 2, size, false), add(m, "h", 0, 10*size, false),
	} {
		if !errors.Is(refused, replay.ErrFull) {
			t.Errorf("error %v, want ErrFull", refused)
		}
	}
	want("c", "e", "f", "g")
	h, _, r, err := m.Load(t.Context(), "c")
	if err != nil || h.Last != 2 || h.Bytes != 2*size || len(r) != 2 {
		t.Errorf("after ErrFull: %+v, %d records, %v", h, len(r), err)
	}

	// An append freeing room, or ending its log, is never refused.
	must(m.Append(t.Context(), replay.Append{
		Log: "c", Expect: 2, Records: [][]byte{make([]byte, size/2)}, Trim: 2, Snapshot: make([]byte, size),
	}))
	must(add(m, "e", 1, size, true))
	want("c", "e", "f", "g")
	must(add(m, "h", 0, size, false)) // for e
	want("c", "f", "g", "h")

	m.Configure(replay.Settings{Capacity: 2 * size}) // logs that have not ended stay
	want("c", "f", "g", "h")
	for _, log := range []string{"f", "g", "h"} {
		must(add(m, log, 1, 1, true))
	}
	if err := add(m, "a", 0, 1, false); err != nil {
		t.Errorf("with all but one ended: %v", err)
	}
	if got := kept(m, "c", "f", "g", "h"); len(got) != 1 || got[0] != "c" {
		t.Errorf("kept %q, want c alone", got)
	}
	must(m.Close())
}

// TestMemoryMany writes many times more than the capacity, and checks the kept bytes to stay below it.
func TestMemoryMany(t *testing.T) {
	const capacity = 1 << 20
	m := replay.NewMemory(replay.Settings{Capacity: capacity})
	rnd := rand.New(rand.NewPCG(1, 2))
	var names []string
	for i := range 3000 {
		log := fmt.Sprint(i)
		names = append(names, log)
		if err := add(m, log, 0, 1000, false); err != nil {
			t.Fatal(err)
		}
		a := replay.Append{
			Log: log, Expect: 1, Trim: uint64(rnd.IntN(2)), Metadata: make([]byte, rnd.IntN(3000)), End: true,
		}
		if err := m.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	total := int64(0)
	left := kept(m, names...)
	for _, log := range left {
		h, s, _, err := m.Load(t.Context(), log)
		if err != nil {
			t.Fatal(err)
		}
		total += h.Bytes + int64(len(h.Metadata)+len(s))
	}
	if total > capacity || total < capacity/2 || left[len(left)-1] != "2999" {
		t.Errorf("%d logs with %d bytes are kept, the last is %s", len(left), total, left[len(left)-1])
	}
}
