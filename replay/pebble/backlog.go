// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// backlog has the batches that are in the journal, and not in Pebble's memtable yet. To apply one batch costs nearly as
// much as to apply many, and the readers that keep up with a log read its tail: so the batches of a log that runs wait
// here for each other.
//
// Whoever reads the database, or applies another batch, has the backlog applied first (settle). So nobody sees a
// database without it, and the batches of a log are applied in the order of its appends.
type backlog struct {
	mu       sync.Mutex    // held while the backlog is applied, too
	batch    *pebble.Batch // what is to be applied, put together; nil before the first one
	segments []*segment    // of the journal, one for each batch
	waiting  atomic.Int32  // batches; written under mu, and 0 only when all of them are in the memtable
}

// The backlog is applied when it has so many batches, or so many bytes: a read that comes first waits for that.
const (
	backlogBatches = 32
	backlogBytes   = 64 << 10
)

// postpone adds a batch to the backlog that is in a segment of the journal.
func (g *generation) postpone(b *pebble.Batch, s *segment) {
	l := &g.backlog
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil {
		l.batch = g.db.NewBatchWithSize(backlogBytes)
	}
	if err := l.batch.Apply(b, nil); err != nil {
		g.notApplied(err)
	}
	l.segments = append(l.segments, s)
	l.waiting.Store(int32(len(l.segments)))
	// The flush of a segment that has ended waits for its batches.
	if len(l.segments) == backlogBatches || l.batch.Len() >= backlogBytes || s.over.Load() {
		g.applyBacklog()
	}
}

// settle applies the backlog. When it returns, the memtable has every batch that was added before.
func (g *generation) settle() {
	if g.backlog.waiting.Load() == 0 {
		return
	}
	g.backlog.mu.Lock()
	defer g.backlog.mu.Unlock()
	g.applyBacklog()
}

// applyBacklog applies the backlog. The caller holds backlog.mu.
func (g *generation) applyBacklog() {
	l := &g.backlog
	if len(l.segments) == 0 {
		return
	}
	if err := l.batch.Commit(pebble.NoSync); err != nil {
		g.notApplied(err)
	}
	l.batch.Reset()
	for i, s := range l.segments {
		s.applying.Done()
		l.segments[i] = nil
	}
	l.segments = l.segments[:0]
	l.waiting.Store(0)
}

// notApplied raises the fence: the journal has a batch that the memtable lacks.
func (g *generation) notApplied(err error) {
	g.disk.fail(errors.Join(errors.New("a batch could not be applied"), err))
}

// settled returns the database with all that was committed. What only writes to the database need not wait for that.
func (g *generation) settled() *pebble.DB {
	g.settle()
	return g.db
}
