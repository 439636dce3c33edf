// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"cmp"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// backlog has the batches in the journal and not in Pebble's memtable yet. Applying one batch costs nearly as much as
// applying many, and readers keeping up with a log read its tail: so the batches of running logs wait here for each
// other. Of the writes to one key, mostly the heads of one log, only the last is applied.
//
// Before it reads the database, a goroutine applies the backlog (drainBacklog): so every read finds all commits. For a
// single log it does so only if the backlog may have this log (drainBacklogOf), and the same before it applies a batch
// of a log without the backlog: the batches of a log are applied in the order of its appends.
//
// While batches are applied, others come: Pebble shows applied batches in the order of their beginnings, and an earlier
// large batch may take many milliseconds. Only a reading goroutine waits for those, or one finding the backlog full
// again.
type backlog struct {
	most    int          // the size, in bytes, for the backlog to be applied
	waiting atomic.Int32 // the number of batches; 0 only when all of them are in the memtable
	seed    maphash.Seed

	applying sync.Mutex    // held while batches are applied; locked before mu; guards the next fields
	applied  *pebble.Batch // the batches that are applied, put together; empty when they are
	sorted   *pebble.Batch // the same by keys; kept for its memory
	writes   []keyWrite    // those of applied; kept for its memory

	mu     sync.Mutex    // guards the fields below
	batch  *pebble.Batch // the batches added since, put together; nil before the first one
	queued int32         // their number
	half   int           // of logs, with their bits

	// logs has a bit for each log with a batch here: one half for those of batch, the other for those of applied. A bit is
	// set under mu, and the half of the applied ones is cleared under applying.
	logs [2][backlogBits / 64]atomic.Uint64
}

// The backlog is applied when it has so many batches, or so many bytes: a read coming first waits for that. On a small
// disk it has at most an eighth of a memtable, and as much again while that part is applied.
const (
	backlogBatches = 1024
	backlogBytes   = 512 << 10
	backlogPart    = 8
)

// backlogBits is the number of bits of the logs in a half of the backlog. If it is full, 1 of 32 other logs has the bit
// of one.
const backlogBits = 32 * backlogBatches

func newBacklog(memTable uint64) backlog {
	return backlog{most: int(min(backlogBytes, memTable/backlogPart)), seed: maphash.MakeSeed()}
}

// bitOf returns the bit of a log, and its word in each half.
func (l *backlog) bitOf(log string) (word int, bit uint64) {
	n := maphash.String(l.seed, log) % backlogBits
	return int(n / 64), 1 << (n % 64)
}

// keyWrite is a write to a key in a batch. The slices belong to the batch.
type keyWrite struct {
	key, value []byte
	kind       pebble.InternalKeyKind
	number     int // in the batch
}

// queue adds a batch of a log to the backlog. The journal has it already.
func (g *generation) queue(b *pebble.Batch, log string) {
	l := &g.backlog
	if full, err := l.add(g.db, b, log); err != nil {
		g.notApplied(err)
	} else if full {
		g.applyBacklog()
	}
}

// add is queue without applying anything. It returns whether the backlog is full.
func (l *backlog) add(db *pebble.DB, b *pebble.Batch, log string) (full bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.batch == nil {
		l.batch = db.NewBatchWithSize(l.most)
	}
	if err := l.batch.Apply(b, nil); err != nil {
		return false, err
	}
	word, bit := l.bitOf(log)
	l.logs[l.half][word].Or(bit)
	l.queued++
	l.waiting.Add(1)
	return l.queued >= backlogBatches || l.batch.Len() >= l.most, nil
}

// drainBacklog applies the backlog. When it returns, the memtable has every batch added before.
func (g *generation) drainBacklog() {
	if g.backlog.waiting.Load() > 0 {
		g.applyBacklog()
	}
}

// drainBacklogOf is drainBacklog for the batches of one log. It waits for nothing if the backlog has none of them. The
// caller has seen the appends it looks for: they are in the backlog, or in the memtable.
func (g *generation) drainBacklogOf(log string) {
	l := &g.backlog
	if word, bit := l.bitOf(log); (l.logs[0][word].Load()|l.logs[1][word].Load())&bit != 0 {
		g.drainBacklog()
	}
}

// applyBacklog applies the backlog. When it returns, the memtable has every batch added before.
func (g *generation) applyBacklog() {
	l := &g.backlog
	l.applying.Lock()
	defer l.applying.Unlock()
	n, half := l.take(g.db)
	if n == 0 {
		return
	}
	batch := l.applied
	if l.sort(batch) {
		batch = l.sorted
	}
	if err := batch.Commit(pebble.NoSync); err != nil {
		g.notApplied(err)
	}
	clear(l.writes)
	l.applied.Reset()
	l.sorted.Reset()
	for i := range l.logs[half] {
		l.logs[half][i].Store(0)
	}
	l.waiting.Add(-n)
}

// take moves the batches in batch to applied, and returns their number, and the half of logs with their bits. The
// caller holds applying.
func (l *backlog) take(db *pebble.DB) (n int32, half int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, half = l.queued, l.half
	if n == 0 {
		return 0, half
	}
	if l.applied == nil {
		l.applied, l.sorted = db.NewBatchWithSize(l.most), db.NewBatchWithSize(l.most)
	}
	l.batch, l.applied = l.applied, l.batch
	l.queued, l.half = 0, 1-half
	return n, half
}

// sort writes to sorted the last write to each key of a batch, in the order of the keys: Pebble finds the place of a
// key beside the one before in less time than that of any key. It returns false, and sorted means nothing, if the batch
// has more than sets and deletes: a deleted range has its place among the writes before and after it. The caller holds
// applying.
func (l *backlog) sort(batch *pebble.Batch) bool {
	l.writes = l.writes[:0]
	for r := batch.Reader(); ; {
		kind, key, value, ok, err := r.Next()
		if err != nil {
			return false // and its commit returns the error
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

// close frees the memory of the empty backlog.
func (l *backlog) close() {
	for _, b := range []*pebble.Batch{l.batch, l.applied, l.sorted} {
		if b != nil {
			_ = b.Close() // always nil
		}
	}
}

// notApplied raises the fence: the journal has a batch missing in the memtable.
func (g *generation) notApplied(err error) {
	g.disk.Fail(errors.Join(errors.New("a batch could not be applied"), err))
}

// committed returns the database with all commits. Mere writes to the database need not wait for them.
func (g *generation) committed() *pebble.DB {
	g.drainBacklog()
	return g.db
}

// committedOf returns the database with all commits of a log.
func (g *generation) committedOf(log string) *pebble.DB {
	g.drainBacklogOf(log)
	return g.db
}
