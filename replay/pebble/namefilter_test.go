// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
)

// TestNameFilter adds more names than the first layer takes, from several goroutines. The filter has all of them, and
// few others.
func TestNameFilter(t *testing.T) {
	n := newNameFilter(make(chan struct{}, 1))
	const adders, each = 4, 1.5 * firstLayer * blockNames / 4
	var group sync.WaitGroup
	for a := range adders {
		group.Go(func() {
			for i := range int(each) {
				n.add(fmt.Sprint(a, " ", i))
			}
		})
	}
	group.Wait()
	if layers := len(*n.layers.Load()); layers != 2 {
		t.Errorf("%d layers", layers)
	}
	if !n.mayHave("x") {
		t.Error("it was used before it was complete")
	}
	n.complete.Store(true)
	wrong := 0
	for i := range int(each) {
		for a := range adders {
			if !n.mayHave(fmt.Sprint(a, " ", i)) {
				t.Fatalf("%d %d is missing", a, i)
			}
		}
		if n.mayHave(fmt.Sprint("other ", i)) {
			wrong++
		}
	}
	if share := float64(wrong) / each; share > 0.03 {
		t.Errorf("it has %.3f of the names that were not added", share)
	}
}

// beginLogs begins logs by several writers at once, some by intents, and ends some.
func beginLogs(t *testing.T, s *Store, round uint64) {
	t.Helper()
	var group sync.WaitGroup
	for w := range 4 {
		rnd := rand.New(rand.NewPCG(round, uint64(w)))
		group.Go(func() {
			for i := range 500 {
				log := fmt.Sprintf("%x %d %d %d", rnd.IntN(256), round, w, i)
				appends := []replay.Append{{Log: log, Records: [][]byte{[]byte("a")}}}
				if rnd.IntN(2) == 0 {
					appends = []replay.Append{{Log: log, Intent: true}, {Log: log, Expect: 1, Records: [][]byte{[]byte("a")}}}
				}
				last := &appends[len(appends)-1]
				last.End = rnd.IntN(4) == 0
				for _, a := range appends {
					if err := s.Append(t.Context(), a); err != nil {
						t.Error(err)
						return
					}
				}
				if !s.logs.filter.Load().mayHave(log) {
					t.Errorf("the filter does not have %q", log)
				}
				if i%10 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	group.Wait()
}

// TestNamesOfAll begins logs while the filter is made, over several pages, in a store that is closed, has its process
// die, its disk fail, and its filter replaced. The filter has all logs, and few others.
func TestNamesOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := diskOf(t, 256<<20)
		for round, end := range []string{"close", "die", "fail", "replace", "close"} {
			s, err := open(disk, "/store", replay.Settings{Sync: replay.SyncNever}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			beginLogs(t, s, uint64(2*round))
			switch end {
			case "fail":
				reopened := s.Reopened()
				s.disk.Fail(errors.New("failed"))
				<-reopened
			case "replace":
				n := s.logs.filter.Load()
				n.left.Store(-1)
				n.layers.Store(new(append(*n.layers.Load(), make(nameLayer, 1), make(nameLayer, 1))))
				signal(s.filterFull)
			}
			beginLogs(t, s, uint64(2*round+1))
			time.Sleep(time.Minute)
			synctest.Wait()
			n := s.logs.filter.Load()
			if !n.complete.Load() {
				t.Fatalf("round %d: there is no filter", round)
			}
			logs, wrong := 0, 0
			for entry, err := range s.List(t.Context(), "", "") {
				if err != nil {
					t.Fatal(err)
				}
				if logs++; !n.mayHave(entry.Log) {
					t.Fatalf("round %d, %s: the filter does not have %q", round, end, entry.Log)
				}
				if n.mayHave(entry.Log + "x") {
					wrong++
				}
			}
			if logs < 2*namesPage || wrong > logs/10 {
				t.Errorf("round %d: of %d other names, the filter has %d", round, logs, wrong)
			}
			if end == "die" {
				disk = crash(disk, vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestTooManyNames leaves a store without a filter if it has more logs than a filter is good for.
func TestTooManyNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := diskOf(t, 256<<20)
		s, err := open(disk, "/store", replay.Settings{Sync: replay.SyncNever}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			if err := s.Append(t.Context(), replay.Append{Log: fmt.Sprint(i), Records: [][]byte{[]byte("a")}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait() // the store has made its filter; from here on only this test makes one
		for most, want := range map[int]bool{10: true, 9: false} {
			s.logs.filter.Store(nil)
			if err := s.makeFilter(most); err != nil {
				t.Fatal(err)
			}
			n := s.logs.filter.Load()
			if has := n != nil && n.complete.Load(); has != want {
				t.Errorf("with at most %d names, there is a filter: %t", most, has)
			}
			if _, err := s.Head(t.Context(), "other"); !errors.Is(err, replay.ErrNotFound) {
				t.Error(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestFullFilter adds more names than a filter takes. It says so, and still has all of them.
func TestFullFilter(t *testing.T) {
	full := make(chan struct{}, 1)
	n := newNameFilter(full)
	n.complete.Store(true)
	for i := range nameLayers + 1 {
		n.left.Store(0)
		n.add(fmt.Sprint(i))
	}
	if !n.isFull() || len(full) == 0 {
		t.Error("it did not say that it is full")
	}
	for i := range nameLayers + 1 {
		if !n.mayHave(fmt.Sprint(i)) {
			t.Errorf("%d is missing", i)
		}
	}
}
