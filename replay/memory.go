// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"slices"
	"sync"
	"time"
)

// Memory is a Store that lives as long as the process. It drops a log that has ended after Settings.Retention, and
// earlier, least recently used first, when other logs need Settings.Capacity or the ended logs have more than
// Settings.MaxSize.
//
// It has no goroutine of its own: the next call of any method drops what has expired.
type Memory struct {
	mu       sync.Mutex // guards all below, and every memoryLog
	settings Settings
	closed   bool
	logs     map[string]*memoryLog
	names    order[string]                // of logs
	lists    map[string]*order[ListedLog] // by name; none is empty
	ended    list.List                    // logs that have ended, the most recently used in front
	expiring expiryHeap                   // the same logs, the next to be dropped in front
	dueLogs  map[*memoryLog]struct{}      // logs that have a DueAt
	size     int64                        // bytes of all logs
	idle     int64                        // bytes of the logs that have ended
}

// memoryLog is one log of a Memory.
type memoryLog struct {
	name     string
	head     Head
	snapshot []byte
	records  []Record // those kept, oldest first
	size     int64
	expires  time.Time     // when it is dropped
	use      *list.Element // in Memory.ended; nil while it has not ended
	expiring int           // its place in Memory.expiring
	dropped  bool          // no longer in the store
	waiters  Waiters       // of the readers that have caught up
	readers  Positions     // of all readers
}

// What a log, a record and a place in a list take beside their bytes, roughly: the structures, the map entries, the
// slack of the allocator. Capacity bounds memory, not payload.
const (
	logOverhead    = 512
	recordOverhead = 48
	listOverhead   = 160 // of a place in a list
)

// smallLog is the size of a small log, in bytes.
const smallLog = 4 << 10

// readPage is the number of records that a reader takes at a time.
const readPage = 256

// NewMemory returns an empty Memory.
func NewMemory(s Settings) *Memory {
	return &Memory{
		settings: s.WithDefaults(),
		logs:     make(map[string]*memoryLog),
		names:    order[string]{compare: cmp.Compare[string]},
		lists:    make(map[string]*order[ListedLog]),
		dueLogs:  make(map[*memoryLog]struct{}),
	}
}

// enter locks m and drops what has expired. Where it returns an error, m is not locked.
func (m *Memory) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return ErrClosed
	}
	for now := time.Now(); len(m.expiring) > 0 && !m.expiring[0].expires.After(now); {
		if l := m.expiring[0]; !m.postpone(l, now) {
			m.drop(l)
		}
	}
	return nil
}

// drop removes a log that has ended.
func (m *Memory) drop(l *memoryLog) {
	m.remove(l)
	m.idle -= l.size
	m.ended.Remove(l.use)
	heap.Remove(&m.expiring, l.expiring)
}

// postpone has a log that has ended, and is to be dropped, kept for a while if it is pinned.
func (m *Memory) postpone(l *memoryLog, now time.Time) bool {
	if m.lists[PinsOf(l.name)] == nil {
		return false
	}
	at, ok := m.settings.Postpone(l.head.Ended, l.expires, now)
	if ok {
		l.expires = at
		heap.Fix(&m.expiring, l.expiring)
		m.touch(l)
	}
	return ok
}

// remove removes a log.
func (m *Memory) remove(l *memoryLog) {
	l.dropped = true
	m.size -= l.size
	delete(m.logs, l.name)
	m.names.remove(l.name)
	m.relist(l, nil)
	delete(m.dueLogs, l)
}

// relist moves a log to other lists than those that its head says.
func (m *Memory) relist(l *memoryLog, lists []Listing) {
	if slices.Equal(l.head.Lists, lists) {
		return
	}
	for _, was := range l.head.Lists {
		in := m.lists[was.List]
		if in.remove(ListedLog{Log: l.name, At: was.At}); in.size == 0 {
			delete(m.lists, was.List)
		}
	}
	for _, now := range lists {
		in := m.lists[now.List]
		if in == nil {
			in = &order[ListedLog]{compare: ListedLog.Compare}
			m.lists[now.List] = in
		}
		in.add(ListedLog{Log: l.name, At: now.At, Label: now.Label})
	}
}

// touch makes l the log used last.
func (m *Memory) touch(l *memoryLog) {
	if l.use != nil {
		m.ended.MoveToFront(l.use)
	}
}

// Load implements Store.
func (m *Memory) Load(ctx context.Context, log string) (Head, []byte, []Record, error) {
	if err := m.enter(ctx); err != nil {
		return Head{}, nil, nil, err
	}
	defer m.mu.Unlock()
	l := m.logs[log]
	if l == nil {
		return Head{}, nil, nil, ErrNotFound
	}
	m.touch(l)
	return l.head, l.snapshot, l.page(0, len(l.records)), nil
}

// Head implements Store. It is a use of the log, as Load is.
func (m *Memory) Head(ctx context.Context, log string) (Head, error) {
	if err := m.enter(ctx); err != nil {
		return Head{}, err
	}
	defer m.mu.Unlock()
	l := m.logs[log]
	if l == nil {
		return Head{}, ErrNotFound
	}
	m.touch(l)
	return l.head, nil
}

// page returns at most n records that come after a number. It is a part of l.records, whose elements never change.
func (l *memoryLog) page(after uint64, n int) []Record {
	rest := l.records[l.upTo(after):]
	return slices.Clip(rest[:min(n, len(rest))])
}

// upTo returns how many records have numbers up to seq.
func (l *memoryLog) upTo(seq uint64) int {
	n, _ := slices.BinarySearchFunc(l.records, seq+1, func(r Record, seq uint64) int { return cmp.Compare(r.Seq, seq) })
	return n
}

// Append implements Store. It never returns ErrFull for an Append that ends its log, or that frees at least as much as
// it takes: both help a store that is full.
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
	l := m.logs[a.Log]
	if l == nil {
		l = &memoryLog{name: a.Log}
	}
	head, err := a.Next(l.head, time.Now())
	if err != nil {
		return nil, err
	}
	if a.Drop {
		if m.logs[a.Log] == l {
			m.remove(l)
		}
		return l, nil
	}

	kept, added := l.records, a.Records
	first := head.Last + 1 - uint64(len(added)) // number of the first of added
	if trimmed := l.upTo(head.First - 1); trimmed > 0 {
		kept = slices.Clone(kept[trimmed:]) // frees what is dropped
	}
	if head.First > first {
		added = added[min(head.First-first, uint64(len(added))):]
		first = head.First
	}
	snapshot := l.snapshot
	if head.First > max(l.head.First, 1) {
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
	grows := size - l.size
	if grows > 0 && !a.End && m.size-m.idle+grows > m.settings.Capacity {
		return nil, ErrFull
	}

	head.Metadata = bytes.Clone(a.Metadata)
	for i, data := range added {
		kept = append(kept, Record{Seq: first + uint64(i), Data: bytes.Clone(data)})
	}
	m.relist(l, a.Lists)
	l.head, l.snapshot, l.records, l.size = head, snapshot, kept, size
	if m.logs[a.Log] == nil {
		m.logs[a.Log] = l
		m.names.add(a.Log)
	}
	m.size += grows
	if head.DueAt.IsZero() {
		delete(m.dueLogs, l)
	} else {
		m.dueLogs[l] = struct{}{}
	}
	m.evict()
	if a.End {
		m.idle += size
		l.expires = head.Ended.Add(m.settings.Retention)
		l.use = m.ended.PushFront(l)
		heap.Push(&m.expiring, l)
	}
	m.evictEnded()
	return l, nil
}

// evict drops ended logs until the rest fits into Capacity.
func (m *Memory) evict() {
	m.evictWhile(func() bool { return m.size > m.settings.Capacity })
}

// evictEnded drops ended logs until the rest of them fits into MaxSize.
func (m *Memory) evictEnded() {
	m.evictWhile(func() bool { return m.settings.MaxSize > 0 && m.idle > m.settings.MaxSize })
}

// evictWhile drops ended logs, the least recently used first, while they take too much.
func (m *Memory) evictWhile(tooMuch func() bool) {
	for tooMuch() && m.ended.Len() > 0 {
		if l := m.ended.Back().Value.(*memoryLog); !m.postpone(l, time.Now()) {
			m.drop(l)
		}
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
	if m.size-m.idle+smallLog > m.settings.Capacity {
		return ErrFull
	}
	return nil
}

// Configure implements Store. A log that has ended keeps the retention that it ended with.
func (m *Memory) Configure(s Settings) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = s.WithDefaults()
	m.evict()
	m.evictEnded()
}

// Close implements Store.
func (m *Memory) Close() error {
	m.mu.Lock()
	logs := m.logs
	m.closed = true
	m.logs, m.dueLogs, m.expiring, m.lists, m.names.first = nil, nil, nil, nil, [orderLevels]*orderNode[string]{}
	m.ended.Init()
	m.mu.Unlock()
	for _, l := range logs {
		l.waiters.Call()
	}
	return nil
}

// expiryHeap implements heap.Interface. It orders ended logs by the time at which they are dropped.
type expiryHeap []*memoryLog

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].expires.Before(h[j].expires) }
func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].expiring, h[j].expiring = i, j
}

// Push implements heap.Interface.
func (h *expiryHeap) Push(x any) {
	l := x.(*memoryLog)
	l.expiring = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *expiryHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
