// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// Store is a replay.Store in a directory of its own.
type Store struct {
	system      vfs.FS
	dir         string
	lock        *pebble.Lock
	log         *slog.Logger
	sizes       disk.Sizes
	reserve     *disk.Reserve
	intents     *intents
	orphans     *disk.Orphans
	free        *disk.Space
	meter       meter
	lowReported bool // too little space was logged; of supervise alone
	settings    atomic.Pointer[replay.Settings]

	gate sync.RWMutex // held for reading by a call that uses the generation, for writing by its replacement
	*generation
	available *availability
	begun     bool // a generation could be written; of open and supervise alone
	readOnly  bool // see OpenReadOnly
	unsynced  bool // since then, records others may have read could not be synced; likewise
	noted     bool // unsyncedName is there; likewise

	done       chan struct{}
	closing    sync.Once
	closed     error         // result of Close
	supervised chan struct{} // closed when supervise has ended

	sweeper sweeper

	filterFull  chan struct{} // signals that the filter of names is full
	filtersDone chan struct{} // closed when makeFilters has ended
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

func open(system vfs.FS, dir string, settings replay.Settings, log *slog.Logger) (_ *Store, err error) {
	if err := system.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("replay/pebble: %w", err)
	}
	if err := disk.CheckDir(system, dir); err != nil {
		return nil, err
	}
	s := newStore(system, dir, log)
	s.Configure(settings)
	if s.lock, err = disk.Lock(system, dir); err != nil {
		return nil, err
	}
	s.reserve = disk.NewReserve(system, dir, s.sizes.Reserve)
	s.free = disk.NewSpace(system, dir, s.sizes.Least)
	s.intents = newIntents(system, dir, s.sizes.MemTable)
	if err := s.openFirst(); err != nil {
		s.reserve.Close()
		return nil, errors.Join(err, s.lock.Close())
	}
	go s.supervise()
	go s.sweep()
	go s.makeFilters()
	return s, nil
}

// newStore returns a store that is not open.
func newStore(system vfs.FS, dir string, log *slog.Logger) *Store {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Store{
		system:      system,
		dir:         dir,
		log:         log,
		sizes:       disk.SizesFor(system, dir),
		orphans:     disk.NewOrphans(),
		available:   newAvailability(),
		done:        make(chan struct{}),
		supervised:  make(chan struct{}),
		sweeper:     sweeper{sooner: make(chan struct{}, 1), ended: make(chan struct{})},
		filterFull:  make(chan struct{}, 1),
		filtersDone: make(chan struct{}),
	}
}

// errReplaced is returned after the database was closed, when another one is being opened or has been.
var errReplaced error = &disk.Error{Cause: errors.New("the database is being opened again")}

// enter begins a use of the generation; exit ends it. If enter returns an error, there is no use to end. It waits for
// nothing: while the generation is replaced, the store is unavailable.
func (s *Store) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entered := s.gate.TryRLock()
	var err error
	select {
	case <-s.done:
		err = replay.ErrClosed
	default:
		switch {
		case !entered || s.db == nil:
			err = cmp.Or(s.available.err(), errReplaced)
		default:
			err = s.disk.Err()
		}
	}
	if entered && err != nil {
		s.gate.RUnlock()
	}
	return err
}

// enterToWrite is enter for changes of the store.
func (s *Store) enterToWrite(ctx context.Context) error {
	err := s.enter(ctx)
	if err == nil {
		if err = s.Unavailable(); err != nil {
			s.gate.RUnlock()
		}
	}
	return err
}

// exit ends a use of the generation, with the outcome *err. If the fence of the disk is up, what was changed or read
// may never have reached the disk. A failure of the system to read passes, or does not; the supervisor lets callers try
// again.
func (s *Store) exit(err *error) {
	if failed := s.disk.Err(); failed != nil {
		*err = failed
	} else if _, ok := errors.AsType[syscall.Errno](*err); ok {
		*err = fmt.Errorf("%w: %w", replay.ErrUnavailable, *err)
		signal(s.available.unread)
	}
	s.gate.RUnlock()
}

// Dir returns the directory of the store.
func (s *Store) Dir() string { return s.dir }

// Reopened implements replay.Store.
func (s *Store) Reopened() <-chan struct{} { return s.available.whenReopened() }

// Unavailable returns the reason the store cannot be written now, an error that is replay.ErrUnavailable; nil while it
// can.
func (s *Store) Unavailable() error { return s.available.err() }

// Writable implements replay.Store.
func (s *Store) Writable() error {
	if err := s.enterToWrite(context.Background()); err != nil {
		return err
	}
	defer s.gate.RUnlock()
	return s.free.Err(time.Now())
}

// Configure implements replay.Store. Ended logs keep the retention they ended with.
func (s *Store) Configure(settings replay.Settings) {
	settings = settings.WithDefaults()
	s.settings.Store(&settings)
	s.sweeper.max.Store(settings.MaxSize)
	s.sweeper.sweepSoon()
}

// Close implements replay.Store. It waits for all calls, but not for the callers of Due and List.
func (s *Store) Close() error {
	s.closing.Do(func() {
		close(s.done)
		<-s.supervised
		<-s.sweeper.ended
		<-s.filtersDone
		s.logs.end()
		s.available.waiters.Call()
		s.gate.Lock()
		defer s.gate.Unlock()
		failed := s.Unavailable()
		if failed == nil && s.disk.Err() == nil {
			s.closed = errors.Join(s.intents.end(s.generation), s.end())
		}
		s.intents.close()
		s.closed = errors.Join(s.closed, s.generation.close())
		s.unsynced = s.unsynced || s.disk.Unsynced()
		s.noteUnsynced()
		if s.readOnly {
			failed = nil
		}
		s.closed = errors.Join(s.closed, s.lock.Close(), cmp.Or(s.disk.Err(), failed))
		s.reserve.Close()
	})
	return s.closed
}
