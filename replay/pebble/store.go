// SPDX-License-Identifier: Apache-2.0

// Package pebble is the replay.Store that keeps its logs on the disk, in a Pebble database.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
)

// Store is a replay.Store in a directory of its own.
type Store struct {
	db       *pebble.DB
	lock     *pebble.Lock
	wal      *wal
	log      *slog.Logger
	logs     *logs
	mark     mark // of Open and Close alone
	settings atomic.Pointer[replay.Settings]
	reopened chan struct{}

	gate    sync.RWMutex // held for reading by whoever uses db, for writing by Close
	done    chan struct{}
	closing sync.Once
	closed  error // what Close returns

	snapshotsMu sync.Mutex
	snapshots   map[*pebble.Snapshot]struct{}

	sweeper sweeper
}

var _ replay.Store = (*Store)(nil)

// Open opens the store in a directory, and makes it if there is none. The directory must be used by nothing else.
func Open(dir string, s replay.Settings, log *slog.Logger) (*Store, error) {
	dir, err := filepath.Abs(dir) // the lock within the process is one of the name
	if err != nil {
		return nil, err
	}
	return open(vfs.Default, dir, s, log)
}

func open(disk vfs.FS, dir string, settings replay.Settings, log *slog.Logger) (_ *Store, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := disk.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("replay/pebble: %w", err)
	}
	if err := checkDir(disk, dir); err != nil {
		return nil, err
	}
	s := &Store{
		wal:       newWAL(),
		log:       log,
		logs:      newLogs(),
		reopened:  make(chan struct{}),
		done:      make(chan struct{}),
		snapshots: make(map[*pebble.Snapshot]struct{}),
		sweeper:   sweeper{sooner: make(chan struct{}, 1), ended: make(chan struct{})},
	}
	s.Configure(settings)
	if s.lock, err = lockDir(disk, dir); err != nil {
		return nil, err
	}
	cache := pebble.NewCache(cacheSize)
	defer cache.Unref()
	if s.db, err = pebble.Open(dir, options(walFS{disk, s.wal}, s.lock, cache, log)); err != nil {
		return nil, errors.Join(fmt.Errorf("replay/pebble: %s cannot be opened: %w", dir, err), s.lock.Close())
	}
	if err := s.checkFormat(dir); err != nil {
		return nil, errors.Join(err, s.db.Close(), s.lock.Close())
	}
	if err := s.begin(disk); err != nil {
		return nil, errors.Join(fmt.Errorf("replay/pebble: %s cannot be opened: %w", dir, err), s.db.Close(), s.lock.Close())
	}
	go s.sweep()
	return s, nil
}

// What the database may take of memory, in bytes. A memtable takes what is written until it is full, then it is
// flushed: at 10 MB/s, every three seconds, by when most of the wake index and many heads have been replaced and
// never reach the disk. Pebble takes the memtables out of the cache, two of them as a rule, so the cache is what
// is to be left for blocks, and those two.
const (
	memTableSize = 32 << 20
	cacheSize    = 64<<20 + 2*memTableSize
)

func options(disk vfs.FS, lock *pebble.Lock, cache *pebble.Cache, log *slog.Logger) *pebble.Options {
	o := &pebble.Options{
		FS:    disk,
		Lock:  lock,
		Cache: cache,
		// The last format before logs that say of themselves up to where they were synced. Ours would say so of
		// syncs that were left out, and Pebble would take what a power loss took for corruption.
		FormatMajorVersion: pebble.FormatColumnarBlocks,

		MemTableSize:                memTableSize,
		MemTableStopWritesThreshold: 4,
		// Streams need the file descriptors; a store of 100 GB has about a thousand files.
		MaxOpenFiles:          512,
		L0CompactionThreshold: 4,
		L0StopWritesThreshold: 24,
		// A second compaction only when the first does not keep up.
		CompactionConcurrencyRange: func() (int, int) { return 1, 2 },
		Logger:                     logger{log},
	}
	for i := range o.Levels {
		// Most first reads are of logs that do not exist yet. Pebble asks the filters of all levels but the last one.
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	return o
}

// lockDir locks a directory against other stores.
func lockDir(disk vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, disk)
	if err == nil {
		return lock, nil
	}
	if _, isPath := errors.AsType[*fs.PathError](err); isPath {
		return nil, fmt.Errorf("replay/pebble: %w", err)
	}
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return nil, fmt.Errorf("replay/pebble: %s is in use: another process has opened the store there", dir)
	}
	return nil, fmt.Errorf("replay/pebble: %s is in use: %w", dir, err)
}

// checkDir returns an error for a directory that holds files, but no database. What an interrupted first
// opening leaves is none of them, nor is what a new volume has in it.
func checkDir(disk vfs.FS, dir string) error {
	desc, err := pebble.Peek(dir, disk)
	if err != nil {
		return fmt.Errorf("replay/pebble: %s cannot be read: %w", dir, err)
	}
	if desc.Exists {
		return nil
	}
	names, err := disk.List(dir)
	if err != nil {
		return fmt.Errorf("replay/pebble: %w", err)
	}
	if i := slices.IndexFunc(names, func(name string) bool {
		return name != "LOCK" && name != "lost+found" && !strings.HasPrefix(name, "MANIFEST-") && !strings.HasPrefix(name, "marker.")
	}); i >= 0 {
		return fmt.Errorf("replay/pebble: %s is not a store, but holds files, such as %q", dir, names[i])
	}
	return nil
}

// checkFormat returns an error if the database is not ours. An empty one becomes ours.
func (s *Store) checkFormat(dir string) error {
	value, closer, err := s.db.Get(formatKey)
	if err == nil {
		got := string(value)
		if err := closer.Close(); err != nil {
			return err
		}
		if got == formatBefore {
			return s.setFormat(nil)
		}
		if got != format {
			return fmt.Errorf("replay/pebble: %s has the format %.64q, but this version knows only %q", dir, got, format)
		}
		return nil
	}
	if !errors.Is(err, pebble.ErrNotFound) {
		return fmt.Errorf("replay/pebble: %s cannot be read: %w", dir, err)
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	foreign := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if foreign {
		return fmt.Errorf("replay/pebble: %s is a database of something else", dir)
	}
	return s.setFormat(&mark{closed: true})
}

// setFormat makes the database one of this format, with a mark if there is none to be kept.
func (s *Store) setFormat(m *mark) error {
	b := s.db.NewBatch()
	defer b.Close()
	if err := b.Set(formatKey, []byte(format), nil); err != nil {
		return err
	}
	if m != nil {
		if err := b.Set([]byte{spaceMark}, m.append(nil), nil); err != nil {
			return err
		}
	}
	return s.commit(b, true)
}

// enter begins a use of the database, which ends with exit. Where it returns an error, there is none.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.gate.RLock()
	var err error
	select {
	case <-s.done:
		err = replay.ErrClosed
	default:
		err = s.wal.err()
	}
	if err != nil {
		s.gate.RUnlock()
	}
	return err
}

func (s *Store) exit() { s.gate.RUnlock() }

// Sync implements replay.Store.
func (s *Store) Sync(ctx context.Context) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.exit()
	if s.settings.Load().Sync == replay.SyncNever {
		return nil
	}
	s.wal.sync() // an Append that has returned is written
	return s.wal.err()
}

// Reopened implements replay.Store.
func (s *Store) Reopened() <-chan struct{} { return s.reopened }

// Configure implements replay.Store. Logs that have ended keep the retention that they ended with.
func (s *Store) Configure(settings replay.Settings) {
	settings = settings.WithDefaults()
	s.settings.Store(&settings)
	s.sweeper.max.Store(settings.MaxSize)
	s.sweeper.look()
}

// Close implements replay.Store. It waits for all calls, but not for the callers that Follow, Due and List yield to.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.done)
		<-s.sweeper.ended
		s.gate.Lock()
		defer s.gate.Unlock()
		s.snapshotsMu.Lock()
		defer s.snapshotsMu.Unlock()
		for snapshot := range s.snapshots {
			_ = snapshot.Close() // always nil
		}
		clear(s.snapshots)
		var err error
		if s.wal.err() == nil {
			err = s.end()
		}
		s.closed = errors.Join(err, s.db.Close(), s.lock.Close(), s.wal.err())
	})
	return s.closed
}

// logger gives what Pebble has to say to slog: its news to those who debug, its errors to all.
type logger struct{ log *slog.Logger }

// Infof implements pebble.Logger.
func (l logger) Infof(format string, args ...any) {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		l.log.Debug("replay: pebble: " + fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l logger) Errorf(format string, args ...any) {
	l.log.Error("replay: pebble: " + fmt.Sprintf(format, args...))
}

// Fatalf implements pebble.Logger. It must not return: the database is in no state to go on from. An HTTP server
// recovers the panics of its handlers and would leave Pebble's locks held, so it is raised where nobody does.
func (l logger) Fatalf(format string, args ...any) {
	msg := "replay: pebble: " + fmt.Sprintf(format, args...)
	l.log.Error(msg)
	go panic(msg)
	select {}
}
