// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// backlog has the batches that are in the journal, and not in Pebble's memtable yet. To apply one batch costs nearly as
// much as to apply many, and the readers that keep up with a log read its tail: so the batches of logs that run wait
// here for each other. Of the writes to one key, which are mostly the heads of one log, only the last is applied.
//
// A goroutine that reads the database, or applies a batch that was not added to the backlog, applies the backlog first
// (drainBacklog). So every read finds all that was committed, and the batches of a log are applied in the order of its
// appends.
type backlog struct {
	most    int           // the size, in bytes, at which the backlog is applied
	mu      sync.Mutex    // held while the backlog is applied, too
	batch   *pebble.Batch // the batches, put together; nil before the first one
	sorted  *pebble.Batch // what is applied; kept for its memory
	writes  []keyWrite    // those of batch; kept for its memory
	waiting atomic.Int32  // the number of batches; written under mu, and 0 only when all of them are in the memtable
}

// The backlog is applied when it has so many batches, or so many bytes: a read that comes first waits for that. On a
// small disk it has at most an eighth of a memtable.
const (
	backlogBatches = 1024
	backlogBytes   = 512 << 10
	backlogPart    = 8
)

func newBacklog(memTable uint64) backlog {
	return backlog{most: int(min(backlogBytes, memTable/backlogPart))}
}

// keyWrite is a write to a key in a batch. The slices belong to the batch.
type keyWrite struct {
	key, value []byte
	kind       pebble.InternalKeyKind
	number     int // in the batch
}

// queue adds a batch to the backlog. The journal has it already.
func (g *generation) queue(b *pebble.Batch) {
	l := &g.backlog
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil {
		l.batch, l.sorted = g.db.NewBatchWithSize(l.most), g.db.NewBatchWithSize(l.most)
	}
	if err := l.batch.Apply(b, nil); err != nil {
		g.notApplied(err)
	}
	if l.waiting.Add(1) == backlogBatches || l.batch.Len() >= l.most {
		g.applyBacklog()
	}
}

// drainBacklog applies the backlog. When it returns, the memtable has every batch that was added before.
func (g *generation) drainBacklog() {
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
	batch := l.batch
	if l.sort() {
		batch = l.sorted
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		g.notApplied(err)
	}
	clear(l.writes)
	l.batch.Reset()
	l.sorted.Reset()
	l.waiting.Store(0)
}

// sort writes to sorted the last write to each key of batch, in the order of the keys: Pebble finds the place of a key
// beside the one before in less time than that of any key. It returns false, and sorted means nothing, if batch has
// more than sets and deletes: a range that is deleted has its place among the writes before and after it.
func (l *backlog) sort() bool {
	l.writes = l.writes[:0]
	for r := l.batch.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if err != nil {
			return false // and the commit of batch says why
		}
		if !ok {
			break
		}
		if kind != pebble.InternalKeyKindSet && kind != pebble.InternalKeyKindDelete {
			return false
		}
		l.writes = append(l.writes, keyWrite{key, value, kind, len(l.writes)})
	}
	slices.SortFunc(l.writes, func(a, b keyWrite) int {
		return cmp.Or(bytes.Compare(a.key, b.key), a.number-b.number)
	})
	for i, w := range l.writes {
		if i+1 < len(l.writes) && bytes.Equal(w.key, l.writes[i+1].key) {
			continue
		}
		var err error
		if w.kind == pebble.InternalKeyKindSet {
			err = l.sorted.Set(w.key, w.value, nil)
		} else {
			err = l.sorted.Delete(w.key, nil)
		}
		if err != nil {
			return false
		}
	}
	return true
}

// close frees the memory of the backlog, which is empty.
func (l *backlog) close() {
	if l.batch != nil {
		_ = l.batch.Close() // always nil
		_ = l.sorted.Close()
	}
}

// notApplied raises the fence: the journal has a batch that the memtable lacks.
func (g *generation) notApplied(err error) {
	g.disk.Fail(errors.Join(errors.New("a batch could not be applied"), err))
}

// committed returns the database with all that was committed. What only writes to the database need not wait for that.
func (g *generation) committed() *pebble.DB {
	g.drainBacklog()
	return g.db
}
