// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/replay"
)

var quiet = slog.New(slog.DiscardHandler)

// TestSyncs counts the syncs of the disk.
func TestSyncs(t *testing.T) {
	for name, want := range map[string]struct {
		mode         replay.SyncMode
		durable, not int64 // for a Durable Append, and for one that is not
	}{
		"state":  {replay.SyncState, 1, 0},
		"always": {replay.SyncAlways, 1, 1},
		"never":  {replay.SyncNever, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				var syncs, creates, closes atomic.Int64
				s, err := open(watchedFS{smallDisk(), ofLog(func(op string) error {
					switch op {
					case "sync":
						syncs.Add(1)
					case "create":
						creates.Add(1)
					case "close":
						closes.Add(1)
					}
					return nil
				})}, "/store", replay.Settings{Sync: want.mode}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				var last uint64
				count := func(what string, want int64, do func() error) {
					t.Helper()
					before := syncs.Load()
					if err := do(); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if got := syncs.Load() - before; got != want {
						t.Errorf("%s: %d syncs, want %d", what, got, want)
					}
				}
				add := func(durable bool) func() error {
					return func() error {
						err := s.Append(t.Context(), replay.Append{Log: "a", Expect: last, Records: [][]byte{make([]byte, 8000)},
							Durable: durable})
						last++
						return err
					}
				}
				for range 3 {
					count("durable", want.durable, add(true))
					count("not durable", want.not, add(false))
					count("not durable", want.not, add(false))
				}
				// Through many files. Each is synced when it ends, and some more often, when a manifest is written. A new file is
				// made twice: it is filled, and then written over.
				before, files := syncs.Load(), creates.Load()
				n := int64(0)
				for creates.Load() < files+12 {
					if err := add(false)(); err != nil {
						t.Fatal(err)
					}
					n++
				}
				if got := syncs.Load() - before - n*want.not; got < 6-6*want.not || got > 120 {
					t.Errorf("%d syncs more than for %d appends, want one at the end of each file", got, n)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if creates.Load() != closes.Load() {
					t.Errorf("%d files were made, %d closed", creates.Load(), closes.Load())
				}
			})
		})
	}
}

// TestSyncTogether has many writers of durable appends: they share syncs, and none returns before a sync begun after it
// was written.
func TestSyncTogether(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var syncs, written atomic.Int64
		goOn := make(chan struct{})
		hold := atomic.Bool{}
		s, err := open(watchedFS{vfs.Default, ofLog(func(op string) error {
			if op == "sync" && hold.Load() {
				syncs.Add(1)
				<-goOn
			}
			return nil
		})}, t.TempDir(), replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		for _, log := range []string{"quiet", "4"} {
			if err := s.Append(t.Context(), replay.Append{Log: log}); err != nil {
				t.Fatal(err)
			}
		}
		hold.Store(true)
		const writers = 10
		for i := range writers {
			go func() {
				a := replay.Append{Log: fmt.Sprint(i), Records: [][]byte{{1}}, Durable: true}
				if i == 4 {
					a.Expect = 1
				}
				if err := s.Append(context.Background(), a); err != nil {
					t.Error(err)
				}
				written.Add(1)
			}()
		}
		synctest.Wait() // for the first sync to stand still
		if written.Load() != 0 || syncs.Load() != 1 {
			t.Errorf("%d appends returned, %d syncs began; want 0 and 1", written.Load(), syncs.Load())
		}
		// No reader gets records a loss of power may still erase.
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, _, r, err := s.Load(context.Background(), "3"); err != nil || len(r) != 1 || hold.Load() {
				t.Errorf("Load: %d records, %v; before the sync: %t", len(r), err, hold.Load())
			}
		})
		wg.Go(func() {
			for r, err := range replay.Follow(context.Background(), s, "4", 0, nil) {
				if err != nil || r.Seq != 1 || hold.Load() {
					t.Errorf("Follow: %d, %v; before the sync: %t", r.Seq, err, hold.Load())
				}
				break
			}
		})
		// An append that is not durable does not wait.
		for i := range uint64(100) {
			if err := s.Append(t.Context(), replay.Append{Log: "quiet", Expect: i + 1, Records: [][]byte{{1}}}); err != nil {
				t.Error(err)
			}
		}
		hold.Store(false)
		close(goOn)
		wg.Wait()
		synctest.Wait()
		if written.Load() != writers {
			t.Errorf("%d appends returned, want %d", written.Load(), writers)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRounds has many durable appends wait for the sync of another one: one write and one sync more is theirs.
func TestRounds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var writes, syncs atomic.Int64
		goOn, watched := make(chan struct{}), atomic.Bool{}
		s, err := open(watchedFS{vfs.Default, ofLog(func(op string) error {
			switch {
			case !watched.Load():
			case op == "write":
				writes.Add(1)
			case op == "sync":
				if syncs.Add(1) == 1 {
					<-goOn
				}
			}
			return nil
		})}, t.TempDir(), replay.Settings{}, quiet)
		if err != nil {
			t.Fatal(err)
		}
		watched.Store(true)
		begin := func(log string) {
			go func() {
				a := replay.Append{Log: log, Records: [][]byte{{1}}, Durable: true}
				if err := s.Append(context.Background(), a); err != nil {
					t.Error(err)
				}
			}()
		}
		begin("first")
		synctest.Wait() // for its sync to stand still
		for i := range 100 {
			begin(fmt.Sprint(i))
		}
		synctest.Wait()
		if w, n := writes.Load(), syncs.Load(); w != 1 || n != 1 {
			t.Errorf("during the first sync there were %d writes and %d syncs, want 1 and 1", w, n)
		}
		close(goOn)
		synctest.Wait()
		if w, n := writes.Load(), syncs.Load(); w != 3 || n != 2 { // the last write records everything as synced
			t.Errorf("in all there were %d writes and %d syncs, want 3 and 2", w, n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFails breaks the disk under the journal, and mends it again. Calls fail at once meanwhile, but for reads.
// Everything acknowledged is there in the end, without another opening and after one, and a follower has it all.
func TestFails(t *testing.T) {
	for _, op := range []string{"create", "write", "sync", "close"} {
		t.Run(op, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				var broken atomic.Bool
				s, err := open(watchedFS{vfs.Default, ofLog(func(did string) error {
					if did == op && broken.Load() {
						return syscall.EIO
					}
					return nil
				})}, dir, replay.Settings{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				var followed atomic.Uint64
				follows := make(chan error, 1)
				if err := s.Append(t.Context(), replay.Append{Log: "followed", Records: [][]byte{{0}}}); err != nil {
					t.Fatal(err)
				}
				go func() {
					for r, err := range replay.Follow(context.Background(), s, "followed", 0, nil) {
						if err != nil || r.Seq != followed.Add(1) {
							follows <- fmt.Errorf("record %d, %w", r.Seq, err)
							return
						}
					}
					follows <- nil
				}()
				var wg sync.WaitGroup
				for round := range uint64(2) { // it fails, and works again, more than once
					synctest.Wait() // for the follower to wait: a read at the moment of a failure gets its error
					reopened := s.Reopened()
					var acked [8]uint64
					for w := range acked {
						if h, err := s.Head(t.Context(), fmt.Sprint(w)); err == nil {
							acked[w] = h.Last
						}
					}
					begun := acked[0]
					for w := range acked {
						wg.Go(func() {
							for {
								if acked[w] == begun+20 && w == 0 {
									broken.Store(true)
									if op == "create" || op == "close" { // of the next segment, and of the one before
										_ = s.journal.Rotate() // fails as the appends do
									}
								}
								err := s.Append(context.Background(), replay.Append{
									Log: fmt.Sprint(w), Expect: acked[w], Records: [][]byte{make([]byte, 3000)}, Durable: acked[w]%4 == 0,
								})
								if err != nil {
									if !errors.Is(err, replay.ErrUnavailable) || !errors.Is(err, syscall.EIO) {
										t.Errorf("Append: %v, want the disk's error", err)
									}
									return
								}
								acked[w]++
							}
						})
					}
					wg.Wait()
					synctest.Wait() // for the database to be opened for reading
					for w, want := range acked {
						checkZeros(t, s, fmt.Sprint(w), want)
					}
					time.Sleep(time.Minute)
					if err := s.Append(t.Context(), replay.Append{Log: "new"}); !errors.Is(err, replay.ErrUnavailable) {
						t.Errorf("Append: %v, want ErrUnavailable", err)
					}
					if err := s.Unavailable(); !errors.Is(err, syscall.EIO) {
						t.Errorf("Unavailable: %v, want the disk's error", err)
					}
					broken.Store(false)
					<-reopened
					if err := s.Unavailable(); err != nil {
						t.Errorf("Unavailable: %v", err)
					}
					for w, want := range acked {
						checkZeros(t, s, fmt.Sprint(w), want)
					}
					a := replay.Append{Log: "followed", Expect: round + 1, Records: [][]byte{{0}}, End: round == 1}
					if err := s.Append(t.Context(), a); err != nil {
						t.Error(err)
					}
				}
				if err := <-follows; err != nil || followed.Load() != 3 {
					t.Errorf("the follower got %d records, %v, want 3", followed.Load(), err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// checkZeros wants at least so many records in a log, and these dense.
func checkZeros(t *testing.T, s *Store, log string, want uint64) {
	t.Helper()
	h, _, records, err := s.Load(t.Context(), log)
	if errors.Is(err, replay.ErrNotFound) && want == 0 {
		return
	}
	if err != nil || h.Last < want || uint64(len(records)) != h.Last {
		t.Errorf("log %s: %d of %d records, head %+v, %v", log, len(records), want, h, err)
	}
}

// TestPowerLoss takes the power away from a disk: it then has some of the unsynced pages, and lacks others.
func TestPowerLoss(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	modes := []replay.SyncMode{replay.SyncState, replay.SyncAlways, replay.SyncNever}
	for round := range 45 / min(15, sparse) {
		mode := modes[round%len(modes)]
		disk := crashableDisk()
		settings := replay.Settings{Sync: mode}
		s, err := open(disk, "store", settings, quiet)
		if err != nil {
			t.Fatal(err)
		}
		const writers = 8
		var returned, durable [writers]atomic.Uint64 // records: appended, and records bound to survive
		var total atomic.Int64
		var wg sync.WaitGroup
		done := make(chan struct{})
		half := make(chan struct{})
		// before the power goes; the first memtables are small, so there are many files
		appends := 100 + rnd.Int64N(1500)
		for w := range writers {
			rnd := rand.New(rand.NewPCG(seed, uint64(round*writers+w+1)))
			wg.Go(func() {
				for last := uint64(0); ; last++ {
					select {
					case <-done:
						return
					default:
					}
					a := replay.Append{
						Log: fmt.Sprint(w), Expect: last, Records: [][]byte{make([]byte, rnd.IntN(4000))}, Durable: rnd.IntN(4) == 0,
					}
					if err := s.Append(context.Background(), a); err != nil {
						t.Error(err)
						return
					}
					if mode == replay.SyncAlways || mode == replay.SyncState && a.Durable {
						durable[w].Store(last + 1)
					}
					returned[w].Store(last + 1)
					if total.Add(1) == appends {
						close(half)
					}
				}
			})
		}
		<-half
		var want [writers]uint64
		for w := range want {
			want[w] = durable[w].Load()
		}
		if mode == replay.SyncState && round%2 == 0 {
			for w := range want {
				want[w] = returned[w].Load()
			}
			// A durable append makes all earlier appends durable.
			if err := s.Append(t.Context(), replay.Append{Log: "last", Records: [][]byte{{0}}, Durable: true}); err != nil {
				t.Error(err)
			}
		}
		clone := crash(disk, vfs.CrashCloneCfg{UnsyncedDataPercent: rnd.IntN(101), RNG: rnd})
		close(done)
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		again, err := open(clone, "store", settings, quiet)
		if err != nil {
			t.Fatalf("round %d, mode %d: %v", round, mode, err)
		}
		for w, n := range want {
			checkZeros(t, again, fmt.Sprint(w), n)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("round %d, mode %d", round, mode)
		}
	}
}
