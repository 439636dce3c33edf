// SPDX-License-Identifier: Apache-2.0

package storepebble

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/caddymodule/metric/metrictest"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/replay"
)

// opens opens a store until the test ends.
func opens(t *testing.T, dir string) opened {
	t.Helper()
	s, err := (&Store{Dir: dir}).Open(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // twice, if the test has
	return s.(opened)
}

// write begins a log.
func write(t *testing.T, s replay.Store, log string) {
	t.Helper()
	a := replay.Append{Log: log, Records: [][]byte{[]byte(log)}, Durable: true}
	if err := s.Append(t.Context(), a); err != nil {
		t.Fatal(err)
	}
}

// TestOpenDropsNothing: a store that is opened by a configuration with a smaller size drops logs when that is in force.
func TestOpenDropsNothing(t *testing.T) {
	dir := t.TempDir()
	ended := func(s replay.Store, log string) {
		t.Helper()
		a := replay.Append{Log: log, Records: [][]byte{make([]byte, 1000)}, End: true}
		if err := s.Append(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	before := opens(t, dir)
	ended(before, "before")
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	smaller := &Store{Dir: dir, Limits: store.Limits{MaxSize: 1, Retention: 1}}
	s, err := smaller.Open(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	isGone := func(log string) func() bool {
		return func() bool {
			_, err := s.Head(t.Context(), log)
			return errors.Is(err, replay.ErrNotFound)
		}
	}
	ended(s, "after")
	asynctest.Eventually(t, "the log whose retention is over is dropped", isGone("after"))
	if isGone("before")() {
		t.Error("a store that was opened has dropped a log by its size")
	}
	s.Configure(smaller.Settings())
	asynctest.Eventually(t, "the log is dropped by the size", isGone("before"))
}

// TestDirectory: the directory is absolute, with what its placeholders stand for.
func TestDirectory(t *testing.T) {
	t.Setenv("AIP_TEST_DIR", "tasks")
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"":                         filepath.Join(caddy.AppDataDir(), "aip"),
		"/var/{env.AIP_TEST_DIR}":  "/var/tasks",
		"a/../{env.AIP_TEST_DIR}/": filepath.Join(here, "tasks"),
	} {
		s := &Store{Dir: dir}
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Errorf("%q: %v", dir, err)
		}
		if s.Location() != want {
			t.Errorf("%q is %q, want %q", dir, s.Location(), want)
		}
	}
	s := &Store{Dir: "{env.AIP_TEST_NONE}"}
	if err := s.Provision(caddy.Context{}); err == nil || !strings.HasPrefix(err.Error(), "store: the directory ") {
		t.Errorf("of a variable that is not set, the error is %v", err)
	}
}

// TestRead: what the driver takes in a Caddyfile, and what is wrong with it.
func TestRead(t *testing.T) {
	for text, want := range map[string]struct {
		store Store
		err   string
	}{
		"pebble":      {},
		"pebble /dir": {store: Store{Dir: "/dir"}},
		"pebble /dir {\nsync never\nretention 1h\n}": {store: Store{Dir: "/dir", Sync: "never",
			Limits: store.Limits{Retention: caddy.Duration(time.Hour)}}},
		"pebble {\nsync\n}": {err: "sync needs exactly one value, at Testfile:2"},
		"pebble /a /b":      {store: Store{Dir: "/a"}, err: `store pebble takes no argument "/b", at Testfile:1`},
	} {
		p, s, said := conftest.Parser(text), new(Store), ""
		s.Read(p)
		if err := p.Failed(); err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff([]any{want.store, want.err}, []any{*s, said}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
	s := &Store{Sync: "sometimes"}
	if err := s.CheckWritten(); err == nil || !strings.HasPrefix(err.Error(), "store: ") {
		t.Errorf("of sync sometimes, the error is %v", err)
	}
	if s = (&Store{Sync: "never"}); s.CheckWritten() != nil || !cmp.Equal(*s, Store{Sync: "never"}) ||
		s.Settings().Sync != replay.SyncNever {
		t.Errorf("what was checked has changed: %+v", s)
	}
}

// TestBackupAndRead: a copy has the logs of the store, is read without a change, and one of no store makes none.
func TestBackupAndRead(t *testing.T) {
	dir, copied := filepath.Join(t.TempDir(), "store"), filepath.Join(t.TempDir(), "copy")
	var driver Store
	if err := driver.Backup(t.Context(), dir, copied); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no store, the error is %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a backup has made a store: %v", err)
	}
	s := opens(t, dir)
	write(t, s, "one")
	err := driver.Backup(t.Context(), dir, copied)
	if err == nil || strings.Contains(err.Error(), "replay/pebble") {
		t.Errorf("of a store in use, the error is %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := driver.Backup(t.Context(), dir, copied); err != nil {
		t.Fatal(err)
	}
	read, err := driver.OpenToRead(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if _, _, records, err := read.Load(t.Context(), "one"); err != nil || len(records) != 1 {
		t.Errorf("the copy has %d records: %v", len(records), err)
	}
	if err := read.Append(t.Context(), replay.Append{Log: "two"}); err == nil {
		t.Error("a store that is open to be read is written")
	}
}

// TestImport: an imported store has the logs of the exported one.
func TestImport(t *testing.T) {
	s := opens(t, t.TempDir())
	write(t, s, "one")
	var archive bytes.Buffer
	if _, err := replay.Export(t.Context(), s, &archive); err != nil {
		t.Fatal(err)
	}
	var driver Store
	dir := filepath.Join(t.TempDir(), "imported")
	if n, err := driver.Import(t.Context(), &archive, dir); err != nil || n.Logs != 1 {
		t.Fatalf("%d logs were imported: %v", n.Logs, err)
	}
	if _, _, records, err := opens(t, dir).Load(t.Context(), "one"); err != nil || len(records) != 1 {
		t.Errorf("the imported store has %d records: %v", len(records), err)
	}
}

// TestExamine: an operator reads what is wrong with a store, without the name of a package.
func TestExamine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := (&Store{Dir: file}).Examine()
	if err == nil || !strings.HasPrefix(err.Error(), file+" is a file, but must be a directory") {
		t.Errorf("of a file, the error is %v", err)
	}
	opens(t, filepath.Join(dir, "store"))
	if err := (&Store{Dir: filepath.Join(dir, "store")}).Examine(); err != nil {
		t.Errorf("of a store, the error is %v", err)
	}
}

// TestMetrics: an open store collects all that its driver describes, and counts what was written.
func TestMetrics(t *testing.T) {
	s := opens(t, t.TempDir())
	write(t, s, "one")
	got := metrictest.Gather(t, s)
	want := []string{"aip_store_appends_total", "aip_store_compactions", "aip_store_disk_bytes",
		"aip_store_failures_total", "aip_store_free_bytes", "aip_store_journal_bytes_total", "aip_store_min_free_bytes",
		"aip_store_sync_seconds", "aip_store_unread_bytes"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the metrics (-want +got):\n%s", diff)
	}
	if got["aip_store_appends_total"] != 1 || got["aip_store_failures_total"] != 0 ||
		got["aip_store_journal_bytes_total"] == 0 || got["aip_store_sync_seconds"] == 0 {
		t.Errorf("after an append: %v", got)
	}
}
