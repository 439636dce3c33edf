// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/aip-gateway/aip-gateway/replay/pebble/wal"
)

// mark is the store's record of its last opening. By it the next one knows whether records already read by followers
// were lost. The death of the process loses nothing: its writes are the system's. So something may be lost only if the
// store was not closed and the machine has been started again since, or may have been.
//
// The head of a log without a record since such a loss shows it (replay.Head.Lost). Nothing is looked through for this
// when the store is opened: each head has the number of losses up to its log's last record.
type mark struct {
	losses uint64 // the number of times records may have been lost
	closed bool   // the store was closed, with everything synced
	boot   string // the system's name for the time since it was started; empty if it has none
}

// maxLost is more than the number of records of all logs together that can be lost. Only records in the last segment of
// the journal can be lost, since a segment is synced before the next one begins, and a manifest names no table with
// unsynced records.
const maxLost = wal.MaxRecords

var errMark = errors.New("replay/pebble: the mark of the store is damaged")

func (m *mark) append(b []byte) []byte {
	b = binary.AppendUvarint(b, m.losses)
	if m.closed {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	return append(b, m.boot...)
}

func parseMark(b []byte) (mark, error) {
	losses, n := binary.Uvarint(b)
	if n <= 0 || len(b) == n || b[n] > 1 {
		return mark{}, errMark
	}
	return mark{losses: losses, closed: b[n] == 1, boot: string(b[n+1:])}, nil
}

// markIn returns the mark in a database, the zero one if the process died before it had begun.
func markIn(db *pebble.DB) (m mark, err error) {
	value, closer, err := db.Get([]byte{spaceMark})
	if errors.Is(err, pebble.ErrNotFound) {
		return mark{}, nil
	}
	if err != nil {
		return mark{}, err
	}
	m, err = parseMark(value)
	return m, errors.Join(err, closer.Close())
}

// wasUnsynced returns whether the system may have dropped writes of this process, or of the one before.
func (s *Store) wasUnsynced() bool {
	_, err := s.system.Stat(s.system.PathJoin(s.dir, unsyncedName))
	s.noted = err == nil
	return s.begun && s.unsynced || s.noted
}

// begin finds out whether records may have been lost since the database was open before, and records in it, if it is
// writable, that it is open.
func (s *Store) begin(g *generation, mode openMode, boot string, found *wal.Recovery) error {
	var err error
	if g.mark, err = markIn(g.db); err != nil {
		return err
	}
	unsynced := found.Unsynced
	down := !s.begun && !g.mark.closed && (boot == "" || boot != g.mark.boot) || found.Cut && !unsynced
	if unsynced || down {
		g.mark.losses++
	}
	g.logs.losses.Store(g.mark.losses)
	if mode == openRead {
		return nil
	}
	if unsynced {
		s.log.Warn("replay: the store could not be synced before the disk failed; the next events leave out numbers")
	}
	if down {
		s.log.Warn("replay: the store was not closed before the machine went down; the next events leave out numbers")
	}
	g.mark.closed, g.mark.boot = false, boot
	if err := g.setMark(); err != nil {
		return err
	}
	if s.noted {
		_ = s.system.Remove(s.system.PathJoin(s.dir, unsyncedName)) // if it stays, the next opening leaves out numbers again
	}
	s.begun, s.unsynced, s.noted = true, false, false
	return nil
}

// unsyncedName is the file showing the next process that this one could not sync the store. Without it, the next one
// would assume an end without losses, if the machine was not started again.
const unsyncedName = "UNSYNCED" // no name of Pebble's

// noteUnsynced makes the file unsyncedName when it is needed. The disk may not let it be made yet.
func (s *Store) noteUnsynced() {
	if !s.unsynced || s.noted {
		return
	}
	name := s.system.PathJoin(s.dir, unsyncedName)
	f, err := s.system.Create(name, vfs.WriteCategoryUnspecified)
	for err != nil && s.reserve.Release(err) {
		f, err = s.system.Create(name, vfs.WriteCategoryUnspecified)
	}
	if err != nil {
		return
	}
	dir, err := s.system.OpenDir(s.dir)
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	s.noted = errors.Join(err, f.Sync(), f.Close()) == nil
}

// end marks the store in the database as closed. Nothing is written after that.
func (g *generation) end() error {
	g.mark.closed = true
	return g.setMark()
}

// NoteLoss is for a store filled from a copy. It notes that records after those in the store may have been read, so
// their numbers are not used again. No other call may use the store meanwhile.
func (s *Store) NoteLoss() (err error) {
	if err := s.enterToWrite(context.Background()); err != nil {
		return err
	}
	defer s.exit(&err)
	s.mark.losses++
	s.logs.losses.Store(s.mark.losses)
	return s.setMark()
}

// setMark stores the mark, to survive a loss of power.
func (g *generation) setMark() error {
	b := g.db.NewBatch()
	defer b.Close()
	if err := b.Set([]byte{spaceMark}, g.mark.append(nil), nil); err != nil {
		return err
	}
	return g.commit(b, true)
}
