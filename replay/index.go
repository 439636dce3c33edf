// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"
)

// Index is for drivers that keep the heads of all logs in memory. It finds logs by the beginnings of their names, in
// lists, and by time, all kept in order. And it knows the ended log to be dropped next. V is the driver's own part of a
// log. A lock of the driver's guards it, also for its reads.
//
// It is made for many logs that rest: it packs all but the logs set last, names them by numbers (slots), and holds each
// name and each time once. Its orders have hashes of names and short forms of times. Where two of these are the same,
// the Index compares the names and times of the logs.
type Index[V any] struct {
	settings Settings
	awake    int // see NewIndex
	seed     maphash.Seed
	stamps   stamps
	logs     slots[V]
	hashes   order[hashed] // by the hashes of names
	names    order[uint32] // by names
	listed   order[place]  // by the hashes of lists; as Store.Listed yields them
	due      order[place]  // by class; as Store.Due yields them
	ready    []set[V]      // logs that are awake, as they were set; not used if awake is 0
	last     uint32        // the ended log used least recently, of a ring: before it comes the one used last
	expiring []uint32      // the ended logs, a heap: the next to be dropped in front
	size     int64         // bytes of all logs
	idle     int64         // bytes of the ended logs

	probe       probe
	left, right []byte // memory of comparisons
}

// Indexed is a copy of a log of an Index.
type Indexed[V any] struct {
	Name    string
	Value   V
	Head    Head
	Size    int64
	Expires time.Time // when it is dropped; zero while it has not ended
}

// set is a log as it was set.
type set[V any] struct {
	slot     uint32
	log      *awake[V]
	revision uint64
}

// indexPage is the number of logs in a page of Entries or Listed.
const indexPage = 256

// NewIndex returns an empty index. About the awake logs set last are ready for use, and the others are packed; 0 packs
// none, and needs no Packing.
func NewIndex[V any](s Settings, awake int, p Packing[V]) *Index[V] {
	x := &Index[V]{settings: s.WithDefaults(), awake: awake, seed: maphash.MakeSeed(), stamps: newStamps(time.Now()),
		logs: slots[V]{packing: p}}
	x.Clear()
	return x
}

// Clear removes all logs.
func (x *Index[V]) Clear() {
	x.logs = slots[V]{packing: x.logs.packing}
	x.hashes, x.names = order[hashed]{compare: compareHashes}, order[uint32]{compare: x.compareNames}
	x.listed, x.due = order[place]{compare: x.compareListed}, order[place]{compare: x.compareDue}
	x.ready, x.last, x.expiring, x.size, x.idle = nil, noSlot, nil, 0, 0
}

// Configure changes the settings. An ended log keeps the retention it ended with.
func (x *Index[V]) Configure(s Settings) { x.settings = s.WithDefaults() }

// Settings returns the settings, with their defaults.
func (x *Index[V]) Settings() Settings { return x.settings }

// Get returns a log; false if there is none.
func (x *Index[V]) Get(name string) (Indexed[V], bool) { return x.get(name, false) }

// Use is Get, and makes the log the one used last.
func (x *Index[V]) Use(name string) (Indexed[V], bool) { return x.get(name, true) }

func (x *Index[V]) get(name string, use bool) (Indexed[V], bool) {
	slot, ok := x.find(name)
	if !ok {
		return Indexed[V]{}, false
	}
	if use {
		x.touch(slot)
	}
	l := x.logs.get(slot)
	return Indexed[V]{l.name, l.value, l.head, l.size, x.expires(slot)}, true
}

// Value returns the driver's part of a log; false if there is no such log. It costs less than Get.
func (x *Index[V]) Value(name string) (v V, ok bool) {
	slot, ok := x.find(name)
	if ok {
		v = x.logs.value(slot)
	}
	return v, ok
}

// Names yields the names of all logs, in no order. Logs may be removed meanwhile.
func (x *Index[V]) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for slot := range uint32(len(x.logs.pages) * slotsOfPage) {
			if x.logs.used(slot) && !yield(string(x.logs.name(nil, slot))) {
				return
			}
		}
	}
}

// Len returns the number of logs.
func (x *Index[V]) Len() int { return x.names.size }

// Open returns the number of bytes of the logs that have not ended.
func (x *Index[V]) Open() int64 { return x.size - x.idle }

// Set gives a log its next value and head, and its size in bytes. A log with a new name is added. A log that ends is
// dropped when it expires; the zero time stands for the end of the retention.
func (x *Index[V]) Set(name string, v V, h Head, size int64, expires time.Time) {
	h.DueAt = wall(h.DueAt)
	slot, found := x.find(name)
	if !found {
		slot = x.logs.add(&awake[V]{name: name})
		x.hashes.add(hashed{x.hash(name), slot})
		x.names.add(slot)
	}
	l := x.logs.wake(slot)
	x.move(slot, l, h)
	x.size += size - l.size
	if x.logs.ending(slot) != nil {
		x.idle += size - l.size
	}
	l.value, l.size = v, size
	if !h.Ended.IsZero() && x.logs.ending(slot) == nil {
		x.idle += size
		if expires.IsZero() {
			expires = h.Ended.Add(x.settings.Retention)
		}
		x.end(slot, expires)
	}
	if !l.ready && x.awake > 0 {
		l.ready = true
		x.ready = append(x.ready, set[V]{slot, l, h.Revision})
		x.restOthers()
	}
}

// restOthers packs logs that rest while too many are awake.
func (x *Index[V]) restOthers() {
	for len(x.ready) > x.awake {
		next := x.ready[0]
		x.ready = x.ready[1:]
		switch {
		case x.logs.isAwake(next.slot) != next.log: // it was removed
		case next.log.head.Revision != next.revision: // set again meanwhile
			x.ready = append(x.ready, set[V]{next.slot, next.log, next.log.head.Revision})
		default:
			next.log.ready = false
			x.logs.rest(next.slot, next.log)
		}
	}
}

// move gives a log its next head, and the places of this head.
func (x *Index[V]) move(slot uint32, l *awake[V], h Head) {
	was, now := l.head.Lists, h.Lists
	if slices.EqualFunc(was, now, samePlace) {
		was, now = nil, nil
	}
	for i := range was {
		// Two lists with one hash have one place. Its time may be that of the other one from now on.
		stays := func(in Listing) bool { return in.At.IsZero() && samePlace(in, was[i]) }
		if !slices.ContainsFunc(now, stays) {
			x.listed.remove(x.listing(slot, &was[i]))
		}
	}
	class, due := uint32(l.name[0]), !l.head.DueAt.Equal(h.DueAt)
	if due && !l.head.DueAt.IsZero() {
		x.due.remove(place{class, x.stamps.of(l.head.DueAt), slot})
	}
	l.head = h
	for i := range now { // also those that stay: the other list with the hash has gone
		x.listed.add(x.listing(slot, &now[i]))
	}
	if due && !h.DueAt.IsZero() {
		x.due.add(place{class, x.stamps.of(h.DueAt), slot})
	}
}

// samePlace reports whether a log has the same place in a list by both.
func samePlace(a, b Listing) bool { return a.List == b.List && wall(a.At).Equal(wall(b.At)) }

// listing returns the place of a log in a list.
func (x *Index[V]) listing(slot uint32, l *Listing) place {
	return place{x.hash(l.List), x.stamps.of(l.At), slot}
}

// Remove removes a log, if it is there.
func (x *Index[V]) Remove(name string) {
	slot, found := x.find(name)
	if !found {
		return
	}
	l := x.logs.wake(slot)
	x.move(slot, l, Head{})
	x.hashes.remove(hashed{x.hash(name), slot})
	x.names.remove(slot)
	x.size -= l.size
	if x.logs.ending(slot) != nil {
		x.idle -= l.size
		x.endNot(slot)
	}
	x.logs.remove(slot)
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
			first, last := x.stamps.of(from), x.stamps.of(until)
			x.probe = probe{"", wall(from)}
			for p := range x.due.from(place{uint32(class), first, probed}) {
				if p.key != uint32(class) || p.stamp > last {
					break
				}
				var at time.Time
				if x.left, at = x.logs.due(x.left[:0], p.slot); at.After(until) {
					break
				}
				due = append(due, DueLog{Log: string(x.left), At: at})
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
			x.probe = probe{name: from}
			for slot := range x.names.from(probed) {
				x.left = x.logs.name(x.left[:0], slot)
				if !strings.HasPrefix(string(x.left), prefix) || len(page) == indexPage {
					break
				}
				l := x.logs.get(slot)
				page, from = append(page, Entry{Log: l.name, Head: l.head}), l.name+"\x00"
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
		from := place{x.hash(list), stampLate, probed}
		if x.probe = (probe{"", latest}); after.Log != "" {
			from.stamp, x.probe = x.stamps.of(after.At), probe{after.Log, wall(after.At)}
		}
		for p := range x.listed.from(from) {
			if p.key != from.key {
				return
			}
			lists := x.logs.lists(p.slot)
			for i := range lists { // a list with the same hash has places, too
				l := &lists[i]
				if l.List != list || x.stamps.of(l.At) != p.stamp {
					continue
				}
				x.left = x.logs.name(x.left[:0], p.slot)
				next := ListedLog{Log: string(x.left), At: l.At, Label: l.Label}
				if after.Log != "" && next.Compare(after) == 0 {
					continue
				}
				if !yield(next) {
					return
				}
			}
		}
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
