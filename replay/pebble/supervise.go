// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/dustin/go-humanize"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/pebble/disk"
)

// The supervisor's waits before it tries again: the first, the longest, and the time the store has to have worked
// before it begins with the first again.
const (
	retryFirst  = time.Second
	retryMost   = 30 * time.Second
	retryForget = time.Minute
)

// availability is whether the store can be written. Callers can wait for a change.
type availability struct {
	why atomic.Pointer[disk.Error] // reason the store cannot be written; nil while it can

	unread chan struct{} // signals that something could not be read; the store is not opened again for it

	replaced atomic.Uint64  // number of changes of the generation
	waiters  replay.Waiters // of the readers waiting for the next one

	mu       sync.Mutex
	reopened chan struct{} // closed when the store can be written again
}

func newAvailability() *availability {
	return &availability{unread: make(chan struct{}, 1), reopened: make(chan struct{})}
}

// signal sends on a channel that holds one value, unless the value is there already.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// err returns the reason the store cannot be written, nil while it can.
func (a *availability) err() error {
	if why := a.why.Load(); why != nil {
		return why
	}
	return nil
}

// whenReopened returns a channel that is closed the next time the store can be written again.
func (a *availability) whenReopened() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reopened
}

// announceReopened announces a store writable again.
func (a *availability) announceReopened() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.reopened)
	a.reopened = make(chan struct{})
}

// announceReplaced announces another generation.
func (a *availability) announceReplaced() {
	a.replaced.Add(1)
	a.waiters.Call()
}

// openFirst opens the database for a new Store. If the disk does not let it be written, but has a readable one, the
// store begins as a failed one.
func (s *Store) openFirst() (err error) {
	desc, err := pebble.Peek(s.dir, s.system)
	if err != nil {
		return fmt.Errorf("replay/pebble: %s cannot be read: %w", s.dir, err)
	}
	s.generation, err = s.openGeneration(openNew)
	if why, ok := errors.AsType[*disk.Error](err); ok && desc.Exists {
		var failed error
		if s.generation, failed = s.openReadable(); failed != nil {
			return err
		}
		s.fails(why)
		return nil
	}
	return err
}

// fails records the reason the store cannot be written.
func (s *Store) fails(why *disk.Error) {
	if s.available.why.Swap(why) != nil {
		return
	}
	s.meter.failures.Add(1)
	// What to do: see docs/operations.md#a-full-disk-or-one-that-fails.
	s.log.Error("replay: the store cannot be written; it tries again by itself", slog.Any("error", why.Cause))
}

// supervise replaces the generation when its disk fails, and makes good the losses from the disk, until the store is
// closed. Only supervise replaces the generation.
func (s *Store) supervise() {
	defer close(s.supervised)
	var wait time.Duration
	var again <-chan time.Time // fires for the next try; nil while there is nothing to try
	var failed, reopened time.Time
	unread := false // callers wait until they are to try again
	if s.available.err() != nil {
		failed = time.Now()
	}
	s.restore()
	for {
		if again == nil && (unread || s.ailing()) {
			wait = min(max(2*wait, retryFirst), retryMost)
			again = time.After(wait - rand.N(wait/4))
		}
		select {
		case <-s.done:
			return
		case <-again:
			again = nil
			if s.available.err() != nil && s.reopen() {
				s.log.Warn("replay: the store can be written again", slog.Duration("after", time.Since(failed)))
				unread = true
			}
			if unread && s.available.err() == nil {
				unread, reopened = false, time.Now()
				s.available.announceReopened()
			}
			s.restore()
			continue
		case <-s.disk.Raised:
			if s.available.err() == nil {
				failed = time.Now()
			}
			s.fails(s.disk.Failure())
			_ = s.replace(s.openReadable) // without, every call fails until the next try
			if s.gone() == nil {
				s.noteUnsynced()
			}
			again = nil
		case <-s.available.unread:
			unread = true
		case <-s.free.Changed:
			s.reportSpace()
		case <-s.reserve.Used:
		}
		if again == nil && time.Since(reopened) > retryForget {
			wait = 0
		}
	}
}

// ailing returns whether there is something to be made good.
func (s *Store) ailing() bool {
	return s.available.err() != nil || s.free.Low() > 0 || !s.reserve.Complete()
}

// gone returns an error if the store is not in its directory any more, as when its volume was unmounted. Nothing may be
// written to the directory then: it would be in the way of the volume, or hidden by it.
func (s *Store) gone() error {
	desc, err := pebble.Peek(s.dir, s.system)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !desc.Exists {
		return fmt.Errorf("there is no store in %s now", s.dir)
	}
	return nil // or an error others meet, too
}

// restore makes good the losses that do not keep the store from being written.
func (s *Store) restore() {
	if s.available.err() != nil && s.gone() != nil {
		return
	}
	s.noteUnsynced()
	if err := s.reserve.Restore(); err != nil {
		s.log.Debug("replay: the reserve cannot be made", slog.Any("error", err))
	}
	if s.free.Low() > 0 {
		s.free.Check()
	}
}

// reportSpace logs the change to an almost full disk, or to one with room again.
func (s *Store) reportSpace() {
	low := s.free.Low()
	if short := low > 0; short == s.lowReported {
		return
	}
	if s.lowReported = low > 0; s.lowReported {
		// What to do: see docs/operations.md#a-full-disk-or-one-that-fails.
		s.log.Warn("replay: the disk is almost full; new tasks are refused",
			slog.String("free", humanize.IBytes(low)), slog.String("needed", humanize.IBytes(s.free.Least)))
		return
	}
	s.log.Warn("replay: the disk has room again; new tasks are accepted")
	if s.available.err() == nil {
		s.available.announceReopened()
	}
}

// reopen tries to open the database for writing, and returns whether it succeeded.
func (s *Store) reopen() bool {
	err := s.gone()
	if err == nil {
		err = s.probe()
	}
	if err == nil {
		err = s.replace(func() (*generation, error) { return s.openGeneration(openWrite) })
	}
	if err != nil {
		if s.db == nil { // it could not even be read when it failed
			_ = s.replace(s.openReadable)
		}
		s.log.Debug("replay: the store cannot be written yet", slog.Any("error", err))
		return false
	}
	s.available.why.Store(nil)
	return true
}

// replace closes the generation, and puts the result of open in its place. If open fails, there is a readable one, or
// one without a database.
func (s *Store) replace(open func() (*generation, error)) error {
	s.put(s.newGeneration(openRead))
	g, err := open()
	if err != nil {
		g, _ = s.openReadable()
	}
	if g != nil {
		s.put(g)
	}
	s.available.announceReplaced()
	return err
}

// openReadable opens the database for reading, and removes the remains of tables from the failure of the disk.
func (s *Store) openReadable() (*generation, error) {
	g, err := s.openGeneration(openRead)
	if err != nil {
		return nil, err
	}
	parts, err := g.tables()
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	s.orphans.Remove(s.system, func(table string) bool { return parts[s.system.PathBase(table)] })
	return g, nil
}

// put puts a generation in the place of the current one, and closes the old one.
func (s *Store) put(g *generation) {
	s.gate.Lock()
	old := s.generation
	s.generation = g
	s.gate.Unlock()
	old.logs.end()
	if err := old.close(); err != nil {
		s.log.Debug("replay: the database was not closed cleanly", slog.Any("error", err))
	}
	s.unsynced = s.unsynced || old.disk.Unsynced()
}

// The file to be written before the database is opened again, and its size in bytes.
const (
	probeName = "PROBE" // no name of Pebble's
	probeSize = 4096
)

// probe returns an error if the disk cannot be written, or has no room for the store to continue.
func (s *Store) probe() error {
	err := s.reserve.Restore()
	if err != nil && (!disk.IsFull(err) || disk.IsFull(s.available.err())) {
		return err
	}
	name := s.system.PathJoin(s.dir, probeName)
	f, err := s.system.Create(name, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Sync(), f.Close(), s.system.Remove(name))
}
