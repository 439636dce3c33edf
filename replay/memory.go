// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"
)

// Memory is a Store living as long as the process. It drops an ended log after Settings.Retention, and earlier, least
// recently used first, when other logs need Settings.Capacity or the ended logs have more than Settings.MaxSize.
//
// It has no goroutine of its own: the next call of any method drops the expired logs.
type Memory struct {
	mu     sync.Mutex // guards all below, and every memoryLog
	closed bool
	index  *Index[*memoryLog]
}

// memoryLog is the data of a log in a Memory beside its head.
type memoryLog struct {
	snapshot []byte
	records  []Record  // those kept, oldest first
	waiters  Waiters   // of the caught-up readers
	readers  Positions // of all readers
	dropped  bool
}

// The rough sizes of a log, a record and a place in a list beside their bytes: the structures, the map entries, the
// slack of the allocator. Capacity bounds memory, not payload.
const (
	logOverhead    = 512
	recordOverhead = 48
	listOverhead   = 160 // of a place in a list
)

// smallLog is the size of a small log, in bytes.
const smallLog = 4 << 10

// readPage is the number of records a reader takes at a time.
const readPage = 256

// NewMemory returns an empty Memory.
func NewMemory(s Settings) *Memory { return &Memory{index: NewIndex(s, 0, Packing[*memoryLog]{})} }

// enter locks m and drops the expired logs. If it returns an error, m is not locked.
func (m *Memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	now := time.Now()
	for log, ok := m.index.Expired(now); ok; log, ok = m.index.Expired(now) {
		m.drop(log)
	}
	return nil
}

// drop drops a log. m.mu is held.
func (m *Memory) drop(log string) {
	if l, ok := m.index.Value(log); ok {
		l.dropped = true
		m.index.Remove(log)
	}
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context, log string) (Head, []byte, []Record, error) {
	if err := m.enter(ctx); err != nil {
		return Head{}, nil, nil, err
	}
	defer m.mu.Unlock()
	l, ok := m.index.Use(log)
	if !ok {
		return Head{}, nil, nil, ErrNotFound
	}
	return l.Head, l.Value.snapshot, l.Value.page(0, len(l.Value.records)), nil
}

// Head implements Store. It is a use of the log, as Load is.
func (m *Memory) Head(ctx context.Context, log string) (Head, error) {
	if err := m.enter(ctx); err != nil {
		return Head{}, err
	}
	defer m.mu.Unlock()
	l, ok := m.index.Use(log)
	if !ok {
		return Head{}, ErrNotFound
	}
	return l.Head, nil
}

// page returns at most n records after a number. They are a part of l.records; its elements never change.
func (l *memoryLog) page(after uint64, n int) []Record {
	rest := l.records[l.upTo(after):]
	return slices.Clip(rest[:min(n, len(rest))])
}

// upTo returns the number of records with numbers up to seq.
func (l *memoryLog) upTo(seq uint64) int {
	n, _ := slices.BinarySearchFunc(l.records, seq+1, func(r Record, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	return n
}

// Append implements Store. It never returns ErrFull for an Append that ends its log, or frees at least as much as it
// takes: both help a full store.
func (m *Memory) Append(ctx context.Context, a Append) error {
	l, err := m.append(ctx, &a)
	if err == nil && (len(a.Records) > 0 || a.End || a.Drop) {
		l.waiters.Appended()
	}
	return err
}

func (m *Memory) append(ctx context.Context, a *Append) (*memoryLog, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	was, ok := m.index.Get(a.Log)
	l, before := was.Value, was.Head
	if !ok {
		l = &memoryLog{}
	}
	head, err := a.Next(before, time.Now())
	if err != nil {
		return nil, err
	}
	if a.Drop {
		m.drop(a.Log)
		return l, nil
	}

	kept, added := l.records, a.Records
	first := head.Last + 1 - uint64(len(added)) // number of the first of added
	if trimmed := l.upTo(head.First - 1); trimmed > 0 {
		kept = slices.Clone(kept[trimmed:]) // frees the dropped ones
	}
	if head.First > first {
		added = added[min(head.First-first, uint64(len(added))):]
		first = head.First
	}
	snapshot := l.snapshot
	if head.First > max(before.First, 1) {
		snapshot = bytes.Clone(a.Snapshot)
		head.Bytes = 0
		for _, r := range kept {
			head.Bytes += int64(len(r.Data))
		}
		for _, data := range added {
			head.Bytes += int64(len(data))
		}
	}
	size := logOverhead + int64(len(a.Log)+len(a.Metadata)+len(snapshot)) +
		head.Bytes + recordOverhead*int64(len(kept)+len(added))
	for _, in := range a.Lists {
		size += listOverhead + int64(len(in.List)+len(in.Label))
	}
	if grows := size - was.Size; grows > 0 && !a.End && m.index.Open()+grows > m.index.Settings().Capacity {
		return nil, ErrFull
	}

	head.Metadata = bytes.Clone(a.Metadata)
	for i, data := range added {
		kept = append(kept, Record{Seq: first + uint64(i), Data: bytes.Clone(data)})
	}
	l.snapshot, l.records = snapshot, kept
	m.index.Set(a.Log, l, head, size, time.Time{})
	m.evict(a.Log)
	return l, nil
}

// evict drops ended logs until all logs fit into Capacity, and the ended ones into MaxSize. set is the log just
// appended to, if any.
func (m *Memory) evict(set string) {
	now, capacity := time.Now(), m.index.Settings().Capacity
	for log, ok := m.index.Surplus(capacity, set, now); ok; log, ok = m.index.Surplus(capacity, set, now) {
		m.drop(log)
	}
}

// Reopened implements Store. Memory is always available.
func (m *Memory) Reopened() <-chan struct{} { return nil }

// Writable implements Store.
func (m *Memory) Writable() error {
	if err := m.enter(context.Background()); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.index.Open()+smallLog > m.index.Settings().Capacity {
		return ErrFull
	}
	return nil
}

// Configure implements Store. An ended log keeps the retention it ended with.
func (m *Memory) Configure(s Settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index.Configure(s)
	m.evict("")
}

// Due implements Store.
func (m *Memory) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[DueLog, error] {
	return m.index.Due(ctx, m.enter, m.mu.Unlock, class, from, until)
}

// List implements Store. It does not count as a use of a log: a list of all logs must not decide the order of drops.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return m.index.Entries(ctx, m.enter, m.mu.Unlock, prefix, after)
}

// Listed implements Store.
func (m *Memory) Listed(ctx context.Context, list string, after ListedLog) iter.Seq2[ListedLog, error] {
	return m.index.Listed(ctx, m.enter, m.mu.Unlock, list, after)
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	var logs []*memoryLog
	for log := range m.index.Names() {
		l, _ := m.index.Value(log)
		logs = append(logs, l)
	}
	m.index.Clear()
	m.mu.Unlock()
	for _, l := range logs {
		l.waiters.Call()
	}
	return nil
}
