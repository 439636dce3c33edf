// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"container/heap"
	"container/list"
	"context"
	"slices"
	"strings"
	"time"
)

// Index is for drivers that keep the heads of all logs in memory. It finds logs by the beginnings of their names, in
// lists, and by time, all kept in order. And it knows the ended log to be dropped next. V is the driver's own part of a
// log. A lock of the driver's guards it.
type Index[V any] struct {
	settings Settings
	logs     map[string]*Indexed[V]
	names    order[string]                // of logs
	lists    map[string]*order[ListedLog] // by name; none is empty
	ended    list.List                    // ended logs, the most recently used in front
	expiring expiryHeap[V]                // the same logs, the next to be dropped in front
	due      map[byte]*order[DueLog]      // logs with a DueAt, by class
	size     int64                        // bytes of all logs
	idle     int64                        // bytes of the ended logs
}

// Indexed is one log of an Index. The driver reads its fields, and changes Value.
type Indexed[V any] struct {
	Name    string
	Head    Head
	Expires time.Time // when it is dropped; zero while it has not ended
	Dropped bool      // no longer in the index
	Value   V

	size     int64
	use      *list.Element // in Index.ended; nil while it has not ended
	expiring int           // its place in Index.expiring
}

// indexPage is the number of logs in a page of Entries or Listed.
const indexPage = 256

// NewIndex returns an empty index.
func NewIndex[V any](s Settings) *Index[V] {
	return &Index[V]{
		settings: s.WithDefaults(),
		logs:     make(map[string]*Indexed[V]),
		names:    order[string]{compare: cmp.Compare[string]},
		lists:    make(map[string]*order[ListedLog]),
		due:      make(map[byte]*order[DueLog]),
	}
}

// Configure changes the settings. An ended log keeps the retention it ended with.
func (x *Index[V]) Configure(s Settings) { x.settings = s.WithDefaults() }

// Settings returns the settings, with their defaults.
func (x *Index[V]) Settings() Settings { return x.settings }

// Get returns a log; nil if there is none.
func (x *Index[V]) Get(name string) *Indexed[V] { return x.logs[name] }

// Open returns the number of bytes of the logs that have not ended.
func (x *Index[V]) Open() int64 { return x.size - x.idle }

// Set gives a log its next head, and its size in bytes. A log with a new name is added. A log that ends is dropped
// after the retention, or at its Expires, if set.
func (x *Index[V]) Set(l *Indexed[V], h Head, size int64) {
	if x.logs[l.Name] != l {
		x.logs[l.Name] = l
		x.names.add(l.Name)
	}
	x.relist(l, h.Lists)
	x.size += size - l.size
	if l.use != nil {
		x.idle += size - l.size
	}
	h.DueAt = h.DueAt.Round(0) // by the wall clock alone: with the readings of two clocks, times have no order
	x.reschedule(l, h.DueAt)
	l.Head, l.size = h, size
	if !h.Ended.IsZero() && l.use == nil {
		x.idle += size
		if l.Expires.IsZero() {
			l.Expires = h.Ended.Add(x.settings.Retention)
		}
		l.use = x.ended.PushFront(l)
		heap.Push(&x.expiring, l)
	}
}

// Size returns the size given to the log by Set.
func (l *Indexed[V]) Size() int64 { return l.size }

// Remove removes a log.
func (x *Index[V]) Remove(l *Indexed[V]) {
	l.Dropped = true
	x.size -= l.size
	delete(x.logs, l.Name)
	x.names.remove(l.Name)
	x.relist(l, nil)
	x.reschedule(l, time.Time{})
	if l.use != nil {
		x.idle -= l.size
		x.ended.Remove(l.use)
		heap.Remove(&x.expiring, l.expiring)
	}
}

// relist moves a log to other lists than those in its head.
func (x *Index[V]) relist(l *Indexed[V], lists []Listing) {
	if slices.Equal(l.Head.Lists, lists) {
		return
	}
	for _, was := range l.Head.Lists {
		if slices.Contains(lists, was) {
			continue
		}
		in := x.lists[was.List]
		if in.remove(ListedLog{Log: l.Name, At: was.At}); in.size == 0 {
			delete(x.lists, was.List)
		}
	}
	for _, now := range lists {
		if slices.Contains(l.Head.Lists, now) {
			continue
		}
		in := x.lists[now.List]
		if in == nil {
			in = &order[ListedLog]{compare: ListedLog.Compare}
			x.lists[now.List] = in
		}
		in.add(ListedLog{Log: l.Name, At: now.At, Label: now.Label})
	}
}

// reschedule makes a log due at another time than that in its head; zero for never.
func (x *Index[V]) reschedule(l *Indexed[V], at time.Time) {
	was := l.Head.DueAt
	if was.Equal(at) {
		return
	}
	in := x.due[l.Name[0]]
	if in == nil {
		in = &order[DueLog]{compare: DueLog.Compare}
		x.due[l.Name[0]] = in
	}
	if !was.IsZero() {
		in.remove(DueLog{Log: l.Name, At: was})
	}
	if !at.IsZero() {
		in.add(DueLog{Log: l.Name, At: at})
	}
}

// Touch makes l the log used last.
func (x *Index[V]) Touch(l *Indexed[V]) {
	if l.use != nil {
		x.ended.MoveToFront(l.use)
	}
}

// Expired returns a log whose time is over, and that is not pinned; nil if there is none.
func (x *Index[V]) Expired(now time.Time) *Indexed[V] {
	for len(x.expiring) > 0 && !x.expiring[0].Expires.After(now) {
		if l := x.expiring[0]; !x.postpone(l, now) {
			return l
		}
	}
	return nil
}

// Surplus returns the log to be dropped next because the ended logs take more than MaxSize, or all logs take more than
// a capacity; nil if there is room. 0 is no capacity. For the capacity, the log set last is not dropped.
func (x *Index[V]) Surplus(capacity int64, set *Indexed[V], now time.Time) *Indexed[V] {
	for x.ended.Len() > 0 {
		l := x.ended.Back().Value.(*Indexed[V])
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
	*x = *NewIndex[V](x.settings)
	return logs
}

// postpone keeps an ended log, due to be dropped, for a while if it is pinned.
func (x *Index[V]) postpone(l *Indexed[V], now time.Time) bool {
	if x.lists[PinsOf(l.Name)] == nil {
		return false
	}
	at, ok := x.settings.Postpone(l.Head.Ended, l.Expires, now)
	if ok {
		l.Expires = at
		heap.Fix(&x.expiring, l.expiring)
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
			in := x.due[class]
			if in == nil {
				return due, false, nil
			}
			for l := range in.from(DueLog{At: from}) {
				if l.At.After(until) {
					break
				}
				due = append(due, l)
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
			for name := range x.names.from(from) {
				if !strings.HasPrefix(name, prefix) || len(page) == indexPage {
					break
				}
				page, from = append(page, Entry{Log: name, Head: x.logs[name].Head}), name+"\x00"
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
			in := x.lists[list]
			if in == nil {
				return page
			}
			rest := in.all
			if after.Log != "" {
				rest = in.from(after)
			}
			for l := range rest {
				if len(page) == indexPage {
					break
				}
				if after.Log == "" || after.Compare(l) < 0 {
					page, after = append(page, l), l
				}
			}
			return page
		})
	}
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
type expiryHeap[V any] []*Indexed[V]

func (h expiryHeap[V]) Len() int           { return len(h) }
func (h expiryHeap[V]) Less(i, j int) bool { return h[i].Expires.Before(h[j].Expires) }
func (h expiryHeap[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].expiring, h[j].expiring = i, j
}

// Push implements heap.Interface.
func (h *expiryHeap[V]) Push(x any) {
	l := x.(*Indexed[V])
	l.expiring = len(*h)
	*h = append(*h, l)
}

// Pop implements heap.Interface.
func (h *expiryHeap[V]) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
