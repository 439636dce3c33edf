// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"log/slog"
	"time"
)

// A store that rests has dropped nothing for a while, but so many bytes before. Pebble compacts as tables come, and
// where none come, dropped logs keep their room. So a store that rests has Pebble compact all tables, if it has dropped
// half as much as it has on the disk: then at most two bytes are written for one that is given back.
const (
	restTime  = time.Minute
	restBytes = 16 << 20
	restPiece = 64 << 20 // of tables and their large entries, compacted at a time: Close and the next sweep wait for it
)

// giveBack gives the room of dropped logs back, piece by piece, until another sweep is due or the store is closed. It
// reports whether all of it is given back. Only the sweep calls it.
func (s *Store) giveBack() (done bool) {
	bounds, err := s.pieces()
	for i := 1; i < len(bounds) && err == nil; i++ {
		select {
		case <-s.done:
			return false
		case <-s.sweeper.sooner:
			s.sweeper.sweepSoon()
			return false
		default:
			err = s.compact(bounds[i-1], bounds[i])
		}
	}
	if err != nil {
		s.log.Warn("replay: the room of dropped logs is not given back yet", slog.Any("error", err))
	}
	return err == nil && len(bounds) > 0
}

// pieces returns the bounds of parts of all keys with some tables each. It returns none if too little was dropped.
func (s *Store) pieces() (bounds [][]byte, err error) {
	if err := s.enterToWrite(context.Background()); err != nil {
		return nil, err
	}
	defer s.exit(&err)
	m := s.db.Metrics() // after a restart, its DiskSpaceUsage lacks large entries
	if used := m.Table.Local.LiveSize + m.BlobFiles.LiveSize; uint64(s.sweeper.dropped.Load())*2 < used {
		return nil, nil
	}
	// What was dropped last is in memory and in the journal only.
	s.drainBacklog()
	if err := s.journal.Rotate(); err != nil {
		return nil, err
	}
	levels, err := s.db.SSTables()
	if err != nil {
		return nil, err
	}
	bounds = [][]byte{{0}}
	var size uint64
	for _, t := range levels[len(levels)-1] { // in order, and most of them
		one, err := s.db.EstimateDiskUsage(t.Smallest.UserKey, t.Largest.UserKey)
		if err != nil {
			return nil, err
		}
		if size += one; size > restPiece {
			bounds, size = append(bounds, t.Smallest.UserKey), one
		}
	}
	return append(bounds, []byte{0xff}), nil
}

// compact has Pebble compact the tables with some keys.
func (s *Store) compact(from, to []byte) (err error) {
	if err := s.enterToWrite(context.Background()); err != nil {
		return err
	}
	defer s.exit(&err)
	return s.db.Compact(context.Background(), from, to, false)
}
