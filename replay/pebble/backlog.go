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
// A goroutine that reads the database, or applies a batch that was not added to the backlog, applies the backlog first
// (settle). So every read finds all that was committed, and the batches of a log are applied in the order of its
// appends.
type backlog struct {
	mu      sync.Mutex    // held while the backlog is applied, too
	batch   *pebble.Batch // the batches, put together; nil before the first one
	waiting atomic.Int32  // the number of batches; written under mu, and 0 only when all of them are in the memtable
}

// The backlog is applied when it has so many batches, or so many bytes: a read that comes first waits for that.
const (
	backlogBatches = 32
	backlogBytes   = 64 << 10
)

// postpone adds a batch to the backlog. The journal has it already.
func (g *generation) postpone(b *pebble.Batch) {
	l := &g.backlog
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil {
		l.batch = g.db.NewBatchWithSize(backlogBytes)
	}
	if err := l.batch.Apply(b, nil); err != nil {
		g.notApplied(err)
	}
	if l.waiting.Add(1) == backlogBatches || l.batch.Len() >= backlogBytes {
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
	if g.backlog.waiting.Load() > 0 {
		g.applyBacklog()
	}
}

// applyBacklog applies the backlog, which is not empty. The caller holds backlog.mu.
func (g *generation) applyBacklog() {
	l := &g.backlog
	if err := l.batch.Commit(pebble.NoSync); err != nil {
		g.notApplied(err)
	}
	l.batch.Reset()
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
