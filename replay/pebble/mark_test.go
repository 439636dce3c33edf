// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// setBoot gives a disk the name of a start of the machine.
func setBoot(t *testing.T, system vfs.FS, id string) {
	t.Helper()
	if err := system.MkdirAll("/proc/sys/kernel/random", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := system.Create(disk.BootIDFile, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(id)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// appendRecords appends records like a writer with numbers known to others.
func appendRecords(t *testing.T, s *Store, log string, durable bool, records ...string) {
	t.Helper()
	h, err := s.Head(t.Context(), log)
	if err != nil && !errors.Is(err, replay.ErrNotFound) {
		t.Fatal(err)
	}
	a := replay.Append{Log: log, Expect: h.Revision, Skip: h.Lost, Durable: durable}
	for _, r := range records {
		a.Records = append(a.Records, []byte(r))
	}
	if err := s.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// after returns the records a follower of a log that has not ended gets at once, as "<number> <record>", or the error.
func after(t *testing.T, s *Store, log string, seq uint64) (got []string, err error) {
	t.Helper()
	h, err := s.Head(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	if seq == h.Last {
		return nil, nil
	}
	for r, err := range replay.Follow(t.Context(), s, log, seq, nil) {
		if err != nil {
			return got, err
		}
		got = append(got, fmt.Sprintf("%d %s", r.Seq, r.Data))
		if !r.More {
			break
		}
	}
	return got, nil
}

// TestLostNumbers has a follower read records then lost, because they were not synced. It never gets other records
// under the numbers it knows.
func TestLostNumbers(t *testing.T) {
	for name, boot := range map[string][2]string{
		"the machine was started again":         {"one", "two"},
		"it is unknown whether it was":          {"", ""},
		"the disk was moved to another machine": {"one", ""},
	} {
		t.Run(name, func(t *testing.T) {
			disk := crashableDisk()
			setBoot(t, disk, boot[0])
			s, err := open(disk, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			appendRecords(t, s, "a", true, "a1", "a2")
			appendRecords(t, s, "b", true, "b1")
			appendRecords(t, s, "a", false, "a3", "a4")
			if got, err := after(t, s, "a", 3); err != nil || !cmp.Equal(got, []string{"4 a4"}) {
				t.Fatalf("before the loss: %q, %v", got, err)
			}
			lost := crash(disk, vfs.CrashCloneCfg{})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}

			setBoot(t, lost, boot[1])
			s, err = open(lost, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := after(t, s, "a", 1); err != nil || !cmp.Equal(got, []string{"2 a2"}) {
				t.Errorf("what was synced: %q, %v", got, err)
			}
			_, err = after(t, s, "a", 4)
			if d := cmp.Diff(&replay.FutureError{After: 4, Last: 2}, err); d != "" {
				t.Errorf("while nothing is newer (-want +got):\n%s", d)
			}
			appendRecords(t, s, "a", false, "x3", "x4")
			appendRecords(t, s, "a", true, "x5") // right after the one before
			appendRecords(t, s, "new", true, "n1", "n2")
			const next = 2 + maxLost + 1
			for _, lost := range []uint64{3, 4, next - 2} {
				_, err = after(t, s, "a", lost)
				if d := cmp.Diff(&replay.CompactedError{After: lost, First: next, Last: next + 2}, err); d != "" {
					t.Errorf("after %d, which was lost (-want +got):\n%s", lost, d)
				}
			}
			want := []string{fmt.Sprintf("%d x3", next), fmt.Sprintf("%d x4", next+1), fmt.Sprintf("%d x5", next+2)}
			for seq, want := range map[uint64][]string{2: want, next - 1: want, next: want[1:]} {
				if got, err := after(t, s, "a", seq); err != nil || !cmp.Equal(got, want) {
					t.Errorf("after %d: %q, %v, want %q", seq, got, err, want)
				}
			}
			if got, err := after(t, s, "new", 0); err != nil || !cmp.Equal(got, []string{"1 n1", "2 n2"}) {
				t.Errorf("a log that is new: %q, %v", got, err)
			}
			if h, err := s.Head(t.Context(), "b"); err != nil || h.Lost != maxLost {
				t.Errorf("a log that has got no record since: %+v, %v", h, err)
			}
			for entry, err := range s.List(context.Background(), "", "") {
				if h, _ := s.Head(t.Context(), entry.Log); err != nil || !cmp.Equal(h, entry.Head) {
					t.Errorf("%s is listed as %+v, %v, and is %+v", entry.Log, entry.Head, err, h)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestLostAgain loses the records appended after a loss, too. Each loss leaves out other numbers.
func TestLostAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := crashableDisk()
		setBoot(t, disk, "0")
		seen := make(map[uint64]string) // records known to a follower
		for round := range 4 {
			s, err := open(disk, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the flush of the replayed batches has ended: it syncs the journal
			if round == 0 {
				appendRecords(t, s, "a", true, "kept")
			}
			appendRecords(t, s, "a", false, fmt.Sprint("lost ", round))
			h, _, records, err := s.Load(t.Context(), "a")
			if err != nil || len(records) != 2 {
				t.Fatalf("round %d: %+v, %d records, %v", round, h, len(records), err)
			}
			for _, r := range records {
				if was, ok := seen[r.Seq]; ok && was != string(r.Data) {
					t.Errorf("record %d was %q, and is %q", r.Seq, was, r.Data)
				}
				seen[r.Seq] = string(r.Data)
			}
			lost := crash(disk, vfs.CrashCloneCfg{})
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			disk = lost
			setBoot(t, disk, fmt.Sprint(round+1))
		}
		if len(seen) != 5 {
			t.Errorf("%d records were seen, want 5", len(seen))
		}
	})
}

// TestNoLoss ends a store in the ways without losses.
func TestNoLoss(t *testing.T) {
	for name, test := range map[string]struct {
		boot  [2]string
		close bool
	}{
		"the process died":                      {[2]string{"one", "one"}, false},
		"closed":                                {[2]string{"one", "one"}, true},
		"closed, and the machine started again": {[2]string{"one", "two"}, true},
		"closed, on a system without names":     {[2]string{"", ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			disk := crashableDisk()
			setBoot(t, disk, test.boot[0])
			for round := range 3 {
				s, err := open(disk, "/store", replay.Settings{}, quiet)
				if err != nil {
					t.Fatal(err)
				}
				appendRecords(t, s, "a", false, fmt.Sprint(round))
				all := vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))}
				if !test.close {
					disk = crash(disk, all)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if test.close {
					disk = crash(disk, vfs.CrashCloneCfg{})
				}
				setBoot(t, disk, test.boot[1])
			}
			s, err := open(disk, "/store", replay.Settings{}, quiet)
			if err != nil {
				t.Fatal(err)
			}
			got, err := after(t, s, "a", 0)
			if d := cmp.Diff([]string{"1 0", "2 1", "3 2"}, got); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
