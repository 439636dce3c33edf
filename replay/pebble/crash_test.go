// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/replay"
)

// childEnv makes the test binary a process of its own: "write <seed>", "begin <seed>" or "hold", in the directory
// childDir.
const (
	childEnv = "REPLAY_PEBBLE_CHILD"
	childDir = "REPLAY_PEBBLE_DIR"
)

func TestMain(m *testing.M) {
	what, arg, _ := strings.Cut(os.Getenv(childEnv), " ")
	if what == "" {
		os.Exit(m.Run())
	}
	seed, _ := strconv.ParseUint(arg, 10, 64)
	// On a small disk the killed process has flushed, and begun segments, too.
	s, err := open(smallDir{vfs.Default}, os.Getenv(childDir), replay.Settings{Sync: replay.SyncMode(seed % 3)}, nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	switch what {
	case "write":
		writeForever(s, seed)
	case "begin":
		beginForever(s, seed)
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent is gone
	os.Exit(0)
}

const childWriters = 8

// content returns the record of a log; it differs from every other one.
func content(log string, seq uint64) []byte {
	rnd := rand.New(rand.NewPCG(seq, uint64(len(log))<<32+uint64(log[0])))
	return append(binary.BigEndian.AppendUint64([]byte(log), seq), make([]byte, rnd.IntN(3000))...)
}

// writeForever appends, and prints the name and the last record of each log appended to.
func writeForever(s *Store, seed uint64) {
	var wg sync.WaitGroup
	for w := range childWriters {
		rnd := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			log := fmt.Sprintf("%c", 'a'+w)
			h, _, _, err := s.Load(context.Background(), log)
			if err != nil && !errors.Is(err, replay.ErrNotFound) {
				panic(err)
			}
			for last, revision := h.Last, h.Revision; ; revision++ {
				a := replay.Append{Log: log, Expect: revision, Durable: rnd.IntN(4) == 0, DueAt: replay.Recover}
				for range 1 + rnd.IntN(3) {
					last++
					a.Records = append(a.Records, content(log, last))
				}
				a.Metadata = strconv.AppendUint(nil, last/8, 10) // so that most appends write no head
				if err := s.Append(context.Background(), a); err != nil {
					panic(err)
				}
				fmt.Printf("%s %d\n", log, last)
			}
		})
	}
	wg.Wait()
}

// beginForever begins logs by intents and appends to most of them, and prints the name and the last record of each log
// appended to.
func beginForever(s *Store, seed uint64) {
	var wg sync.WaitGroup
	for w := range childWriters {
		wg.Go(func() {
			for i := uint64(0); ; i++ {
				log := fmt.Sprintf("%d/%d/%d", seed, w, i)
				a := replay.Append{Log: log, Metadata: []byte(log), DueAt: replay.Recover, Intent: true}
				for last := range min(i%4, 2) + 1 {
					if err := s.Append(context.Background(), a); err != nil {
						panic(err)
					}
					fmt.Printf("%s %d\n", log, last)
					a.Expect, a.Records, a.Intent = last+1, [][]byte{a.Metadata}, false
				}
			}
		})
	}
	wg.Wait()
}

// TestKillIntents kills a process beginning logs by intents, again and again in the same store. All of them are there.
func TestKillIntents(t *testing.T) {
	dir := t.TempDir()
	acked := make(map[string]uint64)
	for round := range uint64(6) {
		cmd, lines := child(t, dir, fmt.Sprintf("begin %d", 3*round)) // with SyncState
		for kill := 20 + rand.IntN(1500); lines.Scan(); kill-- {
			log, n, _ := strings.Cut(lines.Text(), " ")
			last, err := strconv.ParseUint(n, 10, 64)
			if err != nil {
				break // the line was cut
			}
			acked[log] = last
			if kill == 0 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || len(acked) == 0 {
			t.Fatalf("round %d: %d were acknowledged, and the child ended with %v", round, len(acked), err)
		}
		s := openAt(t, dir, replay.Settings{})
		due := make(map[string]bool)
		for class := byte('0'); class <= '9'; class++ {
			for w, err := range s.Due(t.Context(), class, replay.Recover, replay.Recover) {
				if due[w.Log] || err != nil {
					t.Fatalf("round %d: %q is due again, %v", round, w.Log, err)
				}
				due[w.Log] = true
			}
		}
		for log, last := range acked {
			h, _, records, err := s.Load(t.Context(), log)
			if err != nil || h.Last < last || uint64(len(records)) != h.Last || string(h.Metadata) != log || !due[log] {
				t.Fatalf("round %d, log %s: %d of %d records, head %+v, %v", round, log, len(records), last, h, err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// child starts the test binary as another process, and waits until it has opened the store.
func child(t *testing.T, dir, what string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+what, childDir+"="+dir)
	cmd.Stderr = t.Output()
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "open" {
		t.Errorf("the child says %q", lines.Text())
		_ = cmd.Process.Kill()
		t.Fatal(cmd.Wait())
	}
	return cmd, lines
}

// TestKill kills a writing process, again and again in the same store. Everything acknowledged is there.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	acked := make(map[string]uint64)
	for round := range uint64(9) { // each mode three times
		cmd, lines := child(t, dir, fmt.Sprintf("write %d", seed/9*9+round))
		for kill := 20 + rnd.IntN(1500); lines.Scan(); kill-- {
			log, n, _ := strings.Cut(lines.Text(), " ")
			last, err := strconv.ParseUint(n, 10, 64)
			if err != nil {
				break // the line was cut
			}
			acked[log] = max(acked[log], last)
			if kill == 0 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("round %d: the child was not killed, but ended with %v", round, err)
		}
		if len(acked) == 0 {
			t.Fatal("nothing was acknowledged")
		}

		s := openAt(t, dir, replay.Settings{})
		for log, want := range acked {
			h, _, records, err := s.Load(t.Context(), log)
			if err != nil || h.Last < want || uint64(len(records)) != h.Last ||
				string(h.Metadata) != strconv.FormatUint(h.Last/8, 10) {
				t.Fatalf("round %d, log %s: %d of %d records, head %+v, %v", round, log, len(records), want, h, err)
			}
			for _, r := range records {
				if !bytes.Equal(r.Data, content(log, r.Seq)) {
					t.Fatalf("round %d, log %s: record %d is another", round, log, r.Seq)
				}
			}
		}
		listed := 0
		for entry, err := range s.List(t.Context(), "", "") {
			if err != nil {
				t.Fatal(err)
			}
			h, err := s.Head(t.Context(), entry.Log)
			if d := cmp.Diff(entry.Head, h); d != "" || err != nil {
				t.Errorf("round %d, log %s: Head: %v (-listed +got):\n%s", round, entry.Log, err, d)
			}
			due := 0
			for w, err := range s.Due(t.Context(), entry.Log[0], replay.Recover, replay.Recover) {
				if err != nil || w.Log != entry.Log {
					t.Fatalf("round %d: %q is due among the logs of %q, %v", round, w.Log, entry.Log[0], err)
				}
				due++
			}
			if due != 1 {
				t.Errorf("round %d: log %s is due %d times at restart", round, entry.Log, due)
			}
			listed++
		}
		if listed < len(acked) {
			t.Errorf("round %d: %d logs are listed, want %d", round, listed, len(acked))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestInUse opens a directory already open.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	wantError := func(want string) {
		t.Helper()
		s, err := Open(dir, replay.Settings{}, nil)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v, want one with %q and the directory", err, want)
		}
	}
	cmd, _ := child(t, dir, "hold")
	wantError(fmt.Sprintf("is in use: another process (pid %d) has opened the store there", cmd.Process.Pid))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // an error: it was killed
	s := openAt(t, dir, replay.Settings{})
	wantError("is in use")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s = openAt(t, dir, replay.Settings{})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestDamagedLog reads logs with parts not fitting together. The others are not touched by it.
func TestDamagedLog(t *testing.T) {
	entry := func(log string, number uint64, value ...byte) func(*pebble.Batch) error {
		return func(b *pebble.Batch) error { return b.Set(appendEntryKey(nil, log, number), value, nil) }
	}
	inline := func(value ...byte) func(b *pebble.Batch) error {
		h := head{Head: replay.Head{First: 1, Last: 3, Bytes: 3}, inline: true, entry: value}
		return func(b *pebble.Batch) error { return b.Set(appendNameKey(nil, spaceHead, "a"), h.append(nil, "a"), nil) }
	}
	damages := map[string]func(b *pebble.Batch) error{
		"entry lost":        func(b *pebble.Batch) error { return b.Delete(appendEntryKey(nil, "a", 2), nil) },
		"last lost":         func(b *pebble.Batch) error { return b.Delete(appendEntryKey(nil, "a", 3), nil) },
		"head unreadable":   func(b *pebble.Batch) error { return b.Set(appendNameKey(nil, spaceHead, "a"), []byte{1}, nil) },
		"entry empty":       entry("a", 3),
		"no records":        entry("a", 3, 0),
		"too many records":  entry("a", 3, 200, 1, 3),
		"too large":         entry("a", 3, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1),
		"too short":         entry("a", 3, 1, 2, 3),
		"inline: too few":   inline(2, 1, 2, 1, 3),
		"inline: too short": inline(3, 1, 1, 1, 2),
		"inline: too long":  inline(3, 1, 1, 1, 2, 2, 3, 3, 3),
		"inline: none":      inline(),
	}
	names := slices.Collect(maps.Keys(damages))
	for name := range damages { // of a log whose last entries have no head
		if name != "last lost" { // then it is a shorter log
			names = append(names, "followed: "+name)
		}
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openAt(t, dir, replay.Settings{})
			name, followed := strings.CutPrefix(name, "followed: ")
			damage := damages[name]
			for _, log := range []string{"a", "b"} {
				for i := range uint64(3) {
					a := replay.Append{Log: log, Expect: i, Records: [][]byte{{byte(i + 1)}}, Durable: i == 2 && !followed}
					if err := s.Append(t.Context(), a); err != nil {
						t.Fatal(err)
					}
				}
			}
			b := s.committed().NewBatch()
			if err := errors.Join(damage(b), s.commit(b, true), b.Close(), s.Close()); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, dir, replay.Settings{})
			if _, _, r, err := s.Load(t.Context(), "a"); !errors.Is(err, errDamaged) && !errors.Is(err, errHead) {
				t.Errorf("Load: %v, %v", r, err)
			}
			var err error
			for _, e := range replay.Follow(t.Context(), s, "a", 0, nil) {
				if err = e; err != nil {
					break
				}
			}
			if !errors.Is(err, errDamaged) && !errors.Is(err, errHead) {
				t.Errorf("Follow: %v", err)
			}
			if _, err := s.Head(t.Context(), "a"); err != nil && !errors.Is(err, errHead) {
				t.Errorf("Head: %v", err)
			}
			for entry, e := range s.List(t.Context(), "", "") {
				if e != nil && !errors.Is(e, errHead) {
					t.Errorf("List: %q, %v", entry.Log, e)
				}
			}
			if _, _, r, err := s.Load(t.Context(), "b"); err != nil || len(r) != 3 {
				t.Errorf("the other log: %d records, %v", len(r), err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDamagedSnapshot reads a trimmed log without the snapshot for the dropped records.
func TestDamagedSnapshot(t *testing.T) {
	s := openAt(t, t.TempDir(), replay.Settings{})
	if err := s.Append(t.Context(), replay.Append{Log: "a", Records: [][]byte{{1}, {2}}, Trim: 2,
		Snapshot: []byte("s")}); err != nil {
		t.Fatal(err)
	}
	if err := s.committed().Delete(appendNameKey(nil, spaceSnapshot, "a"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	if _, snapshot, _, err := s.Load(t.Context(), "a"); !errors.Is(err, errDamaged) {
		t.Errorf("Load: snapshot %q, %v", snapshot, err)
	}
	if err := s.committed().Delete(appendNameKey(nil, spaceHead, "a"), pebble.NoSync); err != nil {
		t.Fatal(err)
	}
	l := s.logs.use("a")
	l.resting, l.rests = head{}, false // kept since Load
	s.logs.leave(l)
	if h, err := s.Head(t.Context(), "a"); !errors.Is(err, errDamaged) { // the store has known it
		t.Errorf("Head: %+v, %v", h, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
