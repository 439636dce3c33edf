// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// backlog counts the notifications of all outboxes neither delivered nor dead, by the beginning of their wait. An
// outbox changes it under its own lock. The notifications left in an outbox by an earlier process count when the outbox
// has been read, by the reconciler at the latest.
type backlog struct {
	mu    sync.Mutex
	steps map[int64]int // the number waiting since a step of time; no entry is 0
	total int

	// unread has the outboxes with stored notifications not counted yet, by the hash of the name: it takes about 20 bytes
	// for each outbox in the store at Open, until it is read.
	unread map[uint64]struct{}
	seed   maphash.Seed
}

// backlogStep is the resolution of the age. It bounds the steps to be filled by an endpoint down for long.
const backlogStep = 10 * time.Second

// waiting are notifications of an outbox waiting since the same step.
type waiting struct {
	step  int64
	count int
}

func newBacklog() *backlog {
	return &backlog{steps: make(map[int64]int), unread: make(map[uint64]struct{}), seed: maphash.MakeSeed()}
}

// unknown notes an outbox with unknown contents in the store. None of its notifications count.
func (l *backlog) unknown(outbox string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread[maphash.String(l.seed, outbox)] = struct{}{}
}

// read notes the reading of an outbox, and reports whether its notifications do not count yet.
func (l *backlog) read(outbox string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unread) == 0 {
		return false
	}
	key := maphash.String(l.seed, outbox)
	_, is := l.unread[key]
	delete(l.unread, key)
	return is
}

// replace counts the present notifications of an outbox, instead of the ones before.
func (l *backlog) replace(had, has []waiting) {
	if slices.Equal(had, has) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range had {
		l.add(w.step, -w.count)
	}
	for _, w := range has {
		l.add(w.step, w.count)
	}
}

func (l *backlog) add(step int64, count int) {
	l.total += count
	if l.steps[step] += count; l.steps[step] == 0 {
		delete(l.steps, step)
	}
}

// now returns the number of waiting notifications, and the time the oldest has waited, less up to backlogStep.
func (l *backlog) now(now time.Time) (total int, age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.steps) == 0 {
		return 0, 0
	}
	first := now.UnixMilli()
	for step := range l.steps {
		first = min(first, (step+1)*backlogStep.Milliseconds())
	}
	return l.total, now.Sub(time.UnixMilli(first)).Truncate(time.Millisecond)
}

// wanted reports whether a webhook is notified of a record.
func (m *metadata) wanted(h *hook, en *entry) bool {
	isNew := en.Event > h.SetAfter || en.Generation < m.Generation
	return en.State != task.None && isNew && h.Webhook.Wants(en.State)
}

// waiting appends to dst the waiting notifications, without those of disabled webhooks. Dead letters being delivered
// again are not among them.
func (m *metadata) waiting(dst []waiting) []waiting {
	for i := range m.Queue {
		en, count := &m.Queue[i], 0
		for j := range m.Hooks {
			if h := &m.Hooks[j]; h.Disabled == "" && m.First+uint64(i) > h.Cursor && m.wanted(h, en) {
				count++
			}
		}
		step := en.At / backlogStep.Milliseconds()
		switch n := len(dst); {
		case count == 0:
		case n > 0 && dst[n-1].step == step:
			dst[n-1].count += count
		default:
			dst = append(dst, waiting{step, count})
		}
	}
	return dst
}

// count has the notifications of the outbox count as they are stored now.
func (b *outbox) count() {
	has := b.metadata.waiting(b.spare[:0])
	if b.counted || b.of.backlog.read(b.name) {
		b.of.backlog.replace(b.waiting, has)
	} // else they count since an earlier use
	b.counted, b.waiting, b.spare = true, has, b.waiting
}

// uncount has no notification of the outbox count before it is read again.
func (b *outbox) uncount() {
	b.of.backlog.replace(b.waiting, nil)
	b.of.backlog.unknown(b.name)
	b.counted, b.waiting = false, nil
}
