// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay/pebble/wal"
)

// smallBatch is the greatest size, in bytes, of a batch that goes to the backlog: to apply a larger one costs less than
// one more copy.
const smallBatch = 4 << 10

// commit carries b out together with the batches of other commits. When it returns nil, b is written to the journal,
// synced if it is to be durable, and visible in the database (see committed).
func (g *generation) commit(b *pebble.Batch, durable bool) error {
	s, err := g.journal.Append(b.Repr(), 0, durable)
	if err != nil {
		return err
	}
	g.drainBacklog()
	return g.apply(b, s)
}

// commitAppend is commit for an append to a log, with so many records.
func (g *generation) commitAppend(b *pebble.Batch, log string, records int, durable bool) error {
	s, err := g.journal.Append(b.Repr(), records, durable)
	if err != nil {
		return err
	}
	if b.Len() <= smallBatch {
		g.queue(b, log)
		s.Applied()
		return g.disk.Err()
	}
	g.drainBacklogOf(log)
	return g.apply(b, s)
}

// apply applies b, which a segment of the journal has.
func (g *generation) apply(b *pebble.Batch, s *wal.Segment) error {
	if err := b.Commit(pebble.NoSync); err != nil {
		g.notApplied(err)
	}
	s.Applied()
	return g.disk.Err()
}

// openJournal replays the journal into the database and, if the database is to be written, makes it ready for commits.
func (g *generation) openJournal(s *Store, mode openMode, found *wal.Recovery) error {
	found.Write = mode.writes()
	j, err := found.Replay(tables{g}, wal.Config{
		Disk: g.disk, Dir: s.dir, Meter: &s.meter.journal, Size: s.sizes.Segment, Fill: s.sizes.Fill, Part: s.sizes.Part,
	})
	if err != nil || !mode.writes() {
		return err
	}
	if mode == openWrite { // after a failure: without space for tables, the store would only fail again
		if err := g.db.Flush(); err != nil {
			return err
		}
		if err := g.disk.Err(); err != nil {
			return err
		}
	}
	g.journal = j
	g.disk.BeforeManifest(j.SyncWritten)
	j.Start(tables{g})
	return nil
}

// tables are the tables of a database, to its journal.
type tables struct{ *generation }

// flushedKey has the number of the last segment that the tables have all of. It is in no batch of the journal, since it
// speaks of tables: what they do not have of it, they have lost.
var flushedKey = []byte{spaceFlushed}

// flushedIn returns the number of the last segment that the tables say they have all of; 0 if there is none.
func flushedIn(db *pebble.DB) (number uint64, err error) {
	value, closer, err := db.Get(flushedKey)
	if errors.Is(err, pebble.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	number, n := binary.Uvarint(value)
	if n <= 0 {
		err = errMark
	}
	return number, errors.Join(err, closer.Close())
}

// Flushed implements wal.Tables.
func (t tables) Flushed() (uint64, error) { return flushedIn(t.db) }

// Flush implements wal.Tables.
func (t tables) Flush(number uint64) (<-chan struct{}, error) {
	t.drainBacklog()
	if number > 0 {
		if err := t.db.Set(flushedKey, binary.AppendUvarint(nil, number), pebble.NoSync); err != nil {
			return nil, err
		}
	}
	return t.db.AsyncFlush()
}

// Apply implements wal.Tables.
func (t tables) Apply(batch []byte) error {
	b := t.db.NewBatch()
	return errors.Join(b.SetRepr(batch), b.Commit(pebble.NoSync), b.Close())
}
