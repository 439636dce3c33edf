// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"container/heap"
	"context"
	"hash/maphash"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Index is for drivers that keep the heads of all logs in memory. It finds logs by the beginnings of their names, in
// lists, and by time, all kept in order. And it knows the ended log to be dropped next. V is the driver's own part of a
// log. A lock of the driver's guards it.
//
// It is made for many logs that rest: it packs the heads of all but the logs set last, and has the names of lists in
// the heads alone. A place in a list has a hash of the list's name, and whether the log is in the list is looked up in
// its head.
type Index[V any] struct {
	settings Settings
	awake    int // see NewIndex
	seed     maphash.Seed
	logs     map[string]*Indexed[V]
	names    order[*Indexed[V]]
	listed   order[place[V]] // by the hashes of lists; as Store.Listed yields them
	due      order[place[V]] // by class; as Store.Due yields them
	packer   packer
	ready    []set[V]      // logs with a head that is not packed, as they were set; not used if awake is 0
	last     *ending[V]    // the ended log used least recently, of a ring: before it comes the one used last
	expiring expiryHeap[V] // the ended logs, the next to be dropped in front
	size     int64         // bytes of all logs
	idle     int64         // bytes of the ended logs

	was, now []place[V] // memory of relist
}

// Indexed is one log of an Index. The driver reads its fields, and changes Value.
type Indexed[V any] struct {
	Name  string
	Value V

	head   *Head      // nil while it is packed
	packed string     // the head
	size   int64      // -1 when it is dropped
	ended  *ending[V] // nil while it has not ended
}

// ending is an ended log.
type ending[V any] struct {
	log          *Indexed[V]
	expires      int64 // when it is dropped, Unix time, ns
	newer, older *ending[V]
	at           int // in Index.expiring
}

// nanoseconds returns a time as Unix time, and the greatest one for all later ones, in the year 2262.
func nanoseconds(t time.Time) int64 {
	if latest := time.Unix(0, math.MaxInt64); t.After(latest) {
		t = latest
	}
	return t.UnixNano()
}

// place is the place of a log in a list, or among those of its class that are due.
type place[V any] struct {
	key  uint32 // hash of the list, or class
	nsec int32
	sec  int64
	log  *Indexed[V]
}

// set is a log as it was set.
type set[V any] struct {
	log      *Indexed[V]
	revision uint64
}

// indexPage is the number of logs in a page of Entries or Listed.
const indexPage = 256

// NewIndex returns an empty index. The heads of about the awake logs set last are ready for use, and the others are
// packed; 0 packs none.
func NewIndex[V any](s Settings, awake int) *Index[V] {
	return &Index[V]{
		settings: s.WithDefaults(),
		awake:    awake,
		seed:     maphash.MakeSeed(),
		logs:     make(map[string]*Indexed[V]),
		names:    order[*Indexed[V]]{compare: func(a, b *Indexed[V]) int { return strings.Compare(a.Name, b.Name) }},
		listed: order[place[V]]{compare: func(a, b place[V]) int {
			return cmp.Or(cmp.Compare(a.key, b.key), b.compareTime(a), strings.Compare(a.log.Name, b.log.Name))
		}},
		due: order[place[V]]{compare: func(a, b place[V]) int {
			return cmp.Or(cmp.Compare(a.key, b.key), a.compareTime(b), strings.Compare(a.log.Name, b.log.Name))
		}},
	}
}

// at returns the place of a log.
func at[V any](key uint32, t time.Time, l *Indexed[V]) place[V] {
	return place[V]{key, int32(t.Nanosecond()), t.Unix(), l}
}

func (p place[V]) compareTime(other place[V]) int {
	return cmp.Or(cmp.Compare(p.sec, other.sec), cmp.Compare(p.nsec, other.nsec))
}

// Configure changes the settings. An ended log keeps the retention it ended with.
func (x *Index[V]) Configure(s Settings) { x.settings = s.WithDefaults() }

// Settings returns the settings, with their defaults.
func (x *Index[V]) Settings() Settings { return x.settings }

// Get returns a log; nil if there is none.
func (x *Index[V]) Get(name string) *Indexed[V] { return x.logs[name] }

// All yields all logs, in no order. They may be removed meanwhile.
func (x *Index[V]) All() iter.Seq[*Indexed[V]] { return maps.Values(x.logs) }

// Len returns the number of logs.
func (x *Index[V]) Len() int { return len(x.logs) }

// Open returns the number of bytes of the logs that have not ended.
func (x *Index[V]) Open() int64 { return x.size - x.idle }

// Head returns the head of a log; the zero one before Set.
func (x *Index[V]) Head(l *Indexed[V]) Head {
	if l.head != nil {
		return *l.head
	}
	return x.packer.unpack(l.Name, l.packed)
}

// Set gives a log its next head, and its size in bytes. A log with a new name is added. A log that ends is dropped
// when it expires; the zero time stands for the end of the retention.
func (x *Index[V]) Set(l *Indexed[V], h Head, size int64, expires time.Time) {
	if x.logs[l.Name] != l {
		x.logs[l.Name] = l
		x.names.add(l)
	}
	was := x.Head(l)
	x.relist(l, was.Lists, h.Lists)
	x.size += size - l.size
	if l.ended != nil {
		x.idle += size - l.size
	}
	h.DueAt = h.DueAt.Round(0) // by the wall clock alone: with the readings of two clocks, times have no order
	x.reschedule(l, was.DueAt, h.DueAt)
	l.size = size
	x.wake(l, h)
	if !h.Ended.IsZero() && l.ended == nil {
		x.idle += size
		if expires.IsZero() {
			expires = h.Ended.Add(x.settings.Retention)
		}
		l.ended = &ending[V]{log: l, expires: nanoseconds(expires)}
		x.use(l.ended)
		heap.Push(&x.expiring, l.ended)
	}
}

// wake gives a log its head, and packs the one of another log that rests.
func (x *Index[V]) wake(l *Indexed[V], h Head) {
	if l.head != nil {
		*l.head = h
		return
	}
	l.head, l.packed = new(Head), ""
	*l.head = h // h itself would be moved to the heap in every call
	if x.awake == 0 {
		return
	}
	x.ready = append(x.ready, set[V]{l, h.Revision})
	for len(x.ready) > x.awake {
		next := x.ready[0]
		x.ready = x.ready[1:]
		switch {
		case next.log.Dropped() || next.log.head == nil:
		case next.log.head.Revision != next.revision: // set again meanwhile
			x.ready = append(x.ready, set[V]{next.log, next.log.head.Revision})
		default:
			next.log.packed, next.log.head = x.packer.pack(next.log.Name, next.log.head), nil
		}
	}
}

// Size returns the size given to the log by Set.
func (l *Indexed[V]) Size() int64 { return l.size }

// Dropped reports whether the log is no longer in the index.
func (l *Indexed[V]) Dropped() bool { return l.size < 0 }

// Expires returns when the log is dropped; the zero time while it has not ended.
func (l *Indexed[V]) Expires() time.Time {
	if l.ended == nil {
		return time.Time{}
	}
	return time.Unix(0, l.ended.expires)
}

// Remove removes a log. It keeps its head.
func (x *Index[V]) Remove(l *Indexed[V]) {
	h := x.Head(l)
	l.head, l.packed = &h, ""
	delete(x.logs, l.Name)
	x.names.remove(l)
	x.relist(l, h.Lists, nil)
	x.reschedule(l, h.DueAt, time.Time{})
	x.size -= l.size
	if l.ended != nil {
		x.idle -= l.size
		x.unlink(l.ended)
		heap.Remove(&x.expiring, l.ended.at)
		l.ended = nil
	}
	l.size = -1
}

// hash returns the key of the places in a list.
func (x *Index[V]) hash(list string) uint32 { return uint32(maphash.String(x.seed, list)) }

// relist moves a log from some lists to others.
func (x *Index[V]) relist(l *Indexed[V], was, now []Listing) {
	if slices.Equal(was, now) {
		return
	}
	x.was, x.now = x.places(x.was[:0], l, was), x.places(x.now[:0], l, now)
	for _, p := range x.was {
		if !slices.Contains(x.now, p) {
			x.listed.remove(p)
		}
	}
	for _, p := range x.now {
		if !slices.Contains(x.was, p) {
			x.listed.add(p)
		}
	}
	clear(x.was)
	clear(x.now)
}

// places appends the places of a log in lists.
func (x *Index[V]) places(all []place[V], l *Indexed[V], lists []Listing) []place[V] {
	for i := range lists {
		all = append(all, at(x.hash(lists[i].List), lists[i].At, l))
	}
	return all
}

// reschedule makes a log due at another time than before; zero for never.
func (x *Index[V]) reschedule(l *Indexed[V], was, now time.Time) {
	if was.Equal(now) {
		return
	}
	class := uint32(l.Name[0])
	if !was.IsZero() {
		x.due.remove(at(class, was, l))
	}
	if !now.IsZero() {
		x.due.add(at(class, now, l))
	}
}

// use makes an ended log the one used last.
func (x *Index[V]) use(e *ending[V]) {
	if x.last == nil {
		e.newer, e.older, x.last = e, e, e
		return
	}
	e.newer, e.older = x.last, x.last.older
	e.older.newer, e.newer.older = e, e
}

func (x *Index[V]) unlink(e *ending[V]) {
	if e.newer.older, e.older.newer = e.older, e.newer; x.last == e {
		x.last = e.newer
	}
	if x.last == e {
		x.last = nil
	}
	e.newer, e.older = nil, nil
}

// Touch makes l the log used last.
func (x *Index[V]) Touch(l *Indexed[V]) {
	if l.ended != nil {
		x.unlink(l.ended)
		x.use(l.ended)
	}
}

// Expired returns a log whose time is over, and that is not pinned; nil if there is none.
func (x *Index[V]) Expired(now time.Time) *Indexed[V] {
	for len(x.expiring) > 0 && x.expiring[0].expires <= now.UnixNano() {
		if l := x.expiring[0].log; !x.postpone(l, now) {
			return l
		}
	}
	return nil
}

// Surplus returns the log to be dropped next because the ended logs take more than MaxSize, or all logs take more than
// a capacity; nil if there is room. 0 is no capacity. For the capacity, the log set last is not dropped.
func (x *Index[V]) Surplus(capacity int64, set *Indexed[V], now time.Time) *Indexed[V] {
	for x.last != nil {
		l := x.last.log
		full := capacity > 0 && x.size > capacity && l != set
		if !full && (x.settings.MaxSize <= 0 || x.idle <= x.settings.MaxSize) {
			break
		}
		if !x.postpone(l, now) {
			return l
		}
	}
	return nil
}

// Clear removes all logs, and returns them.
func (x *Index[V]) Clear() map[string]*Indexed[V] {
	logs := x.logs
	*x = *NewIndex[V](x.settings, x.awake)
	return logs
}

// postpone keeps an ended log, due to be dropped, for a while if it is pinned.
func (x *Index[V]) postpone(l *Indexed[V], now time.Time) bool {
	pinned := false
	for range x.in(PinsOf(l.Name), ListedLog{}) {
		pinned = true
		break
	}
	if !pinned {
		return false
	}
	at, ok := x.settings.Postpone(x.Head(l).Ended, l.Expires(), now)
	if ok = ok && nanoseconds(at) != l.ended.expires; ok {
		l.ended.expires = nanoseconds(at)
		heap.Fix(&x.expiring, l.ended.at)
		x.Touch(l)
	}
	return ok
}

// Due yields the same as Store.Due. lock is as in Entries.
func (x *Index[V]) Due(
	ctx context.Context, lock func(context.Context) error, unlock func(), class byte, from, until time.Time,
) func(yield func(DueLog, error) bool) {
	return func(yield func(DueLog, error) bool) {
		InPages(ctx, yield, func(due []DueLog) (_ []DueLog, more bool, err error) {
			if err := lock(ctx); err != nil {
				return nil, false, err
			}
			defer unlock()
			end := at[V](uint32(class), until, nil)
			for p := range x.due.from(at(uint32(class), from, &Indexed[V]{})) {
				if p.key != end.key || p.compareTime(end) > 0 {
					break
				}
				due = append(due, DueLog{Log: p.log.Name, At: time.Unix(p.sec, int64(p.nsec))})
			}
			return due, false, nil
		})
	}
}

// Entries yields the same as Store.List. lock locks the driver, or returns the error with which the sequence ends.
func (x *Index[V]) Entries(
	ctx context.Context, lock func(context.Context) error, unlock func(), prefix, after string,
) func(yield func(Entry, error) bool) {
	return func(yield func(Entry, error) bool) {
		from := prefix
		if after != "" {
			from = max(prefix, after+"\x00") // the least greater name
		}
		pages(ctx, lock, unlock, yield, func(page []Entry) []Entry {
			for l := range x.names.from(&Indexed[V]{Name: from}) {
				if !strings.HasPrefix(l.Name, prefix) || len(page) == indexPage {
					break
				}
				page, from = append(page, Entry{Log: l.Name, Head: x.Head(l)}), l.Name+"\x00"
			}
			return page
		})
	}
}

// Listed yields the same as Store.Listed. lock is as in Entries.
func (x *Index[V]) Listed(
	ctx context.Context, lock func(context.Context) error, unlock func(), list string, after ListedLog,
) func(yield func(ListedLog, error) bool) {
	return func(yield func(ListedLog, error) bool) {
		after := after
		pages(ctx, lock, unlock, yield, func(page []ListedLog) []ListedLog {
			for l := range x.in(list, after) {
				if len(page) == indexPage {
					break
				}
				page, after = append(page, l), l
			}
			return page
		})
	}
}

// in yields the logs of a list that come after one; the zero one comes before all.
func (x *Index[V]) in(list string, after ListedLog) func(yield func(ListedLog) bool) {
	return func(yield func(ListedLog) bool) {
		key := x.hash(list)
		from := place[V]{key: key, sec: 1<<63 - 1, log: &Indexed[V]{}}
		if after.Log != "" {
			from = at(key, after.At, &Indexed[V]{Name: after.Log})
		}
		for p := range x.listed.from(from) {
			if p.key != key {
				return
			}
			if after.Log != "" && x.listed.compare(p, from) == 0 {
				continue
			}
			if l, ok := x.listing(p, list); ok && !yield(l) {
				return
			}
		}
	}
}

// listing returns the log at a place of a list; false if the place is in another list with the same key.
func (x *Index[V]) listing(p place[V], list string) (ListedLog, bool) {
	lists := x.lists(p.log)
	for i := range lists {
		if l := &lists[i]; l.List == list && l.At.Unix() == p.sec && l.At.Nanosecond() == int(p.nsec) {
			return ListedLog{Log: p.log.Name, At: l.At, Label: l.Label}, true
		}
	}
	return ListedLog{}, false
}

// lists returns the lists in the head of a log.
func (x *Index[V]) lists(l *Indexed[V]) []Listing {
	if l.head != nil {
		return l.head.Lists
	}
	return x.packer.unpack(l.Name, l.packed).Lists
}

// pages is InPages for functions reading pages of indexPage while the driver is locked.
func pages[T any](
	ctx context.Context, lock func(context.Context) error, unlock func(), yield func(T, error) bool,
	read func(page []T) []T,
) {
	InPages(ctx, yield, func(page []T) (_ []T, more bool, err error) {
		if err := lock(ctx); err != nil {
			return nil, false, err
		}
		defer unlock()
		page = read(page)
		return page, len(page) == indexPage, nil
	})
}

// expiryHeap implements heap.Interface. It orders ended logs by the time of their drop.
type expiryHeap[V any] []*ending[V]

func (h expiryHeap[V]) Len() int           { return len(h) }
func (h expiryHeap[V]) Less(i, j int) bool { return h[i].expires < h[j].expires }
func (h expiryHeap[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *expiryHeap[V]) Push(x any) {
	e := x.(*ending[V])
	e.at = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *expiryHeap[V]) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return e
}
