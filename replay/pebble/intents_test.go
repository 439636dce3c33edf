// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// smallSlot is the size of the first slots in the file.
var smallSlot = int64(classes[0].size)

// intent is one with metadata of its own.
func intent(log string) replay.Append {
	return replay.Append{Log: log, Metadata: []byte("of " + log), DueAt: replay.Recover, Intent: true}
}

// names returns the names of all logs, as List has them.
func names(t *testing.T, s *Store) (names []string) {
	t.Helper()
	for entry, err := range s.List(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Head(t.Context(), entry.Log)
		if d := cmp.Diff(entry.Head, h, cmp.Comparer(bytes.Equal)); d != "" || err != nil {
			t.Errorf("%s: %v (-listed +head):\n%s", entry.Log, err, d)
		}
		names = append(names, entry.Log)
	}
	return names
}

// died returns a disk as left by the death of the process: all writes are there.
func died(disk *vfs.MemFS) *vfs.MemFS {
	return crash(disk, vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
}

// TestIntents has a process die, and the machine, while logs are intents.
func TestIntents(t *testing.T) {
	disk := crashableDisk()
	setBoot(t, disk, "one")
	s, err := open(disk, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	_, before := s.journal.Position()
	for _, log := range []string{"ended", "known", "pending"} {
		appendAll(t, s, []replay.Append{intent(log)})
	}
	if _, length := s.journal.Position(); length > before {
		t.Errorf("%d bytes of intents are in the journal", length-before)
	}
	appendAll(t, s, []replay.Append{
		{Log: "known", Records: texts("one"), Durable: true},
		{Log: "ended", Records: texts("one"), Durable: true, End: true},
	})
	all := []string{"ended", "known", "pending"}
	if d := cmp.Diff(all, names(t, s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	dead, lost := died(disk), crash(disk, vfs.CrashCloneCfg{})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		disk *vfs.MemFS
		boot string
		want []string
	}{
		"the process died":           {dead, "one", all},
		"closed":                     {disk, "one", all},
		"the machine was restarted":  {lost, "two", all[:2]},
		"it was, and has kept all":   {died(dead), "two", all[:2]},
		"it is unknown if it was":    {died(dead), "", all[:2]},
		"closed, and then restarted": {died(disk), "two", all},
	} {
		t.Run(name, func(t *testing.T) {
			setBoot(t, test.disk, test.boot)
			for range 3 {
				s, err := open(test.disk, "/store", replay.Settings{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(test.want, names(t, s)); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				h, err := s.Head(t.Context(), "pending")
				if len(test.want) == 3 && (err != nil || string(h.Metadata) != "of pending" || !h.DueAt.Equal(replay.Recover)) {
					t.Errorf("%+v, %v", h, err)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestIntentsTorn damages slots. Their contents are not taken for intents.
func TestIntentsTorn(t *testing.T) {
	disk := crashableDisk()
	setBoot(t, disk, "one")
	s, err := open(disk, "/store", replay.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		appendAll(t, s, []replay.Append{intent(fmt.Sprint("log", i))})
	}
	dead := died(disk)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := dead.OpenReadWrite(s.intents.path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	for at, b := range map[int64][]byte{0: {1}, 2*smallSlot + slotHeader + 2: {'x'}, 3*smallSlot + 4: {0xff, 0xff}} {
		if _, err := f.WriteAt(b, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = open(dead, "/store", replay.Settings{}, quiet); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"log1"}, names(t, s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestIntentsFault has the disk fail at the write of an intent, and at others. The intents from before are there while
// the disk fails, when it works again, and after the death of the process.
func TestIntentsFault(t *testing.T) {
	for name, slots := range map[string]bool{"slots": true, "commits": false} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				disk := crashableDisk()
				setBoot(t, disk, "one")
				var broken atomic.Bool
				s, err := open(watchedFS{disk, func(op, name string) error {
					base := path.Base(name)
					if broken.Load() && (base == intentsName) == slots || base == probeName && broken.Load() {
						return syscall.EIO
					}
					return nil
				}}, "/store", replay.Settings{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				want := []string{"a", "b"}
				appendAll(t, s, []replay.Append{intent("a"), intent("b")})
				for round := range 3 {
					reopened := s.Reopened()
					broken.Store(true)
					err := s.Append(t.Context(), intent("refused"))
					if !slots {
						err = s.Append(t.Context(), replay.Append{Log: "b", Expect: 1, Records: texts("refused")})
					}
					if !errors.Is(err, replay.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
						t.Errorf("Append: %v, want the disk's error", err)
					}
					synctest.Wait() // for the database to be opened for reading
					for _, log := range want {
						h, err := s.Head(t.Context(), log)
						if err != nil || string(h.Metadata) != "of "+log && h.Last == 0 {
							t.Errorf("round %d: Head(%s): %+v, %v", round, log, h, err)
						}
					}
					broken.Store(false)
					<-reopened
					if got := names(t, s); !slices.Equal(slices.DeleteFunc(got, func(log string) bool {
						return log == "refused"
					}), want) {
						t.Errorf("round %d: %q, want %q", round, got, want)
					}
					log := fmt.Sprint("c", round)
					want = append(want, log)
					appendAll(t, s, []replay.Append{intent(log)})
					if !slots {
						break // the refused append may be there
					}
				}
				dead := died(disk)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if s, err = open(dead, "/store", replay.Settings{}, quiet); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, slices.DeleteFunc(names(t, s), func(log string) bool {
					return log == "refused"
				})); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

// TestIntentsCrash begins, continues, ends and drops logs at random, and has the process die at a random change of the
// disk. Everything acknowledged is there, and nothing dropped before.
func TestIntentsCrash(t *testing.T) {
	crashIntents(t, func(disk *vfs.MemFS) (vfs.FS, func() *vfs.MemFS) {
		return disk, func() *vfs.MemFS { return died(disk) }
	})
}

// crashIntents is TestIntentsCrash. over returns the store's view of a disk, and a function for the disk as left by the
// death of the process.
func crashIntents(t *testing.T, over func(*vfs.MemFS) (system vfs.FS, died func() *vfs.MemFS)) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	const logs = 24
	for round := range uint64(60 / min(15, sparse)) {
		rnd := rand.New(rand.NewPCG(seed, round))
		size := uint64(48 << 20) // a small slot for each log
		if round%12 == 3 {
			size = largeSize
		}
		disk := diskOf(t, size)
		want := make(map[string]uint64) // acknowledged logs, and their last records
		for life := range 3 {
			var left atomic.Int64 // changes of the disk until the process dies
			left.Store(rnd.Int64N(120))
			system, died := over(disk)
			var dying atomic.Bool // appends from now on may be lost
			dead := make(chan *vfs.MemFS, 1)
			die := sync.OnceFunc(func() {
				dying.Store(true)
				dead <- died()
			})
			s, err := open(watchedFS{system, func(op, name string) error {
				if left.Add(-1) == 0 {
					die()
				}
				return nil
			}}, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if life == 0 { // few, so they are used again
				for i := range s.intents.free {
					s.intents.free[i] = s.intents.free[i][:min(4, len(s.intents.free[i]))]
				}
			}
			wantStore(t, s, want, "")
			dropped := make(map[string]bool)
			busy := "" // the log with an append not acknowledged when the process died
			for step := 0; step < 200 && !dying.Load(); step++ {
				log := fmt.Sprintf("%02d", rnd.IntN(logs))
				last, known := want[log]
				h, err := s.Head(t.Context(), log)
				if known != (err == nil) || h.Last != last {
					t.Fatalf("round %d: %s is %+v, %v, want %d", round, log, h, err, last)
				}
				busy = log
				switch {
				case !known:
					begun := intent(log)
					if rnd.IntN(2) == 0 {
						begun = largeIntent(log, rnd.IntN(140<<10))
					}
					appendAll(t, s, []replay.Append{begun})
					last = 0
				case rnd.IntN(3) == 0 && !dropped[log]:
					appendAll(t, s, []replay.Append{{Log: log, Records: texts("end"), End: true}})
					if err := s.drop([]expiry{{log: log, at: expiresOf(t, s, log)}}); err != nil {
						t.Fatal(err)
					}
					if !dying.Load() {
						delete(want, log)
					}
					continue
				default:
					appendAll(t, s, []replay.Append{{Log: log, Records: texts("more")}})
					last++
				}
				if !dying.Load() {
					want[log] = last
				}
			}
			if !dying.Load() {
				busy = ""
				die()
			}
			disk = <-dead
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = open(disk, "/store", replay.Settings{}, quiet); err != nil {
				t.Fatal(err)
			}
			wantStore(t, s, want, busy)
			delete(want, busy)
			if h, err := s.Head(t.Context(), busy); err == nil && h.Ended.IsZero() {
				want[busy] = h.Last
			} else if err == nil {
				if err := s.drop([]expiry{{log: busy, at: expiresOf(t, s, busy)}}); err != nil {
					t.Fatal(err)
				}
			}
			disk = crash(disk, vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rnd})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if t.Failed() {
				t.Fatalf("round %d, life %d", round, life)
			}
		}
	}
}

// wantStore wants these logs in a store, with so many records, and no others; busy may be there or not.
func wantStore(t *testing.T, s *Store, want map[string]uint64, busy string) {
	t.Helper()
	got := make(map[string]uint64)
	for _, log := range names(t, s) {
		h, _, records, err := s.Load(t.Context(), log)
		if err != nil || uint64(len(records)) != h.Last {
			t.Errorf("%s: %+v with %d records, %v", log, h, len(records), err)
		}
		got[log] = h.Last
	}
	want = maps.Clone(want)
	delete(want, busy)
	delete(got, busy)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for w, err := range s.Due(t.Context(), '0', replay.Recover, replay.Recover) {
		if last, ok := got[w.Log]; err != nil || w.Log != busy && (!ok || last > 0) {
			t.Errorf("%s is due, with %d records: %v", w.Log, last, err)
		}
	}
}

func expiresOf(t *testing.T, s *Store, log string) stamp {
	t.Helper()
	h, closer, err := storedHead(s.committed(), log, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := closer.Close(); err != nil {
		t.Fatal(err)
	}
	return h.expires
}

// FuzzSlot reads possibly damaged slots.
func FuzzSlot(f *testing.F) {
	h := head{Head: replay.Head{First: 1, Metadata: []byte("metadata"), DueAt: time.Unix(9, 9)}}
	f.Add(appendSlot(nil, 7, "log", &h), uint32(7))
	f.Add(appendSlot(nil, 7, "log", &h), uint32(8))
	h.Metadata = make([]byte, 70<<10)
	f.Add(appendSlot(nil, 7, "log", &h), uint32(7))
	f.Add(make([]byte, smallSlot), uint32(0))
	f.Add([]byte{}, uint32(0))
	f.Fuzz(func(t *testing.T, b []byte, sum uint32) {
		log, h, ok := parseSlot(b, sum)
		if !ok {
			return
		}
		if again := appendSlot(nil, sum, log, &h); !strings.HasPrefix(string(b), string(again)) {
			t.Fatalf("%x, written again: %x", b, again)
		}
	})
}
