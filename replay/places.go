// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math"
	"time"
)

// place is the place of a log in a list, or among those of its class that are due.
type place struct {
	key   uint32 // hash of the list, or class
	stamp uint32 // see stamps
	slot  uint32
}

// hashed is the place of a log among all, by the hash of its name.
type hashed struct{ hash, slot uint32 }

// probed is the number of no log, but of what an order is searched for: see Index.probe.
const probed = math.MaxUint32

// probe is what an order is searched for.
type probe struct {
	name string
	time time.Time
}

// latest is the latest time.
var latest = time.Unix(math.MaxInt64-62135596800, 0) // the greatest number of seconds that a time has, by year 1

// stamps are short forms of times: an earlier time has no greater stamp. Some times are alone with their stamp.
type stamps struct{ begin time.Time }

const (
	stampFarther = iota // of times before the zero time
	stampZero           // of the zero time alone
	stampBefore         // of times before Recover
	stampRecover        // of Recover alone
	stampEarly          // of times before the present years
	stampFirst          // those of the present years begin here
	stampLate    = math.MaxUint32

	// stampShift is the number of bits that a stamp leaves out of a time in nanoseconds: it is as fine as 67 ms.
	stampShift = 26
)

// newStamps returns those for the years around a time.
func newStamps(now time.Time) stamps { return stamps{wall(now).Add(-1 << (32 + stampShift - 1))} }

// wall returns a time by the wall clock alone: with the readings of two clocks, times have no order.
func wall(t time.Time) time.Time { return t.Round(0) }

// of returns the stamp of a time.
func (s stamps) of(t time.Time) uint32 {
	switch {
	case t.IsZero():
		return stampZero
	case t.Before(time.Time{}):
		return stampFarther
	case t.Before(Recover):
		return stampBefore
	case t.Equal(Recover):
		return stampRecover
	case t.Before(s.begin):
		return stampEarly
	}
	return uint32(min(uint64(t.Sub(s.begin))>>stampShift+stampFirst, stampLate)) // the longest duration is stampLate
}

// exact reports whether all times with a stamp are the same.
func exact(stamp uint32) bool { return stamp == stampZero || stamp == stampRecover }

// compareNames compares logs by the names.
func (x *Index[V]) compareNames(a, b uint32) int {
	if a == b {
		return 0
	}
	x.left, x.right = x.nameOf(x.left[:0], a), x.nameOf(x.right[:0], b)
	return bytes.Compare(x.left, x.right)
}

func (x *Index[V]) nameOf(b []byte, slot uint32) []byte {
	if slot == probed {
		return append(b, x.probe.name...)
	}
	return x.logs.name(b, slot)
}

// comparePlaces compares places by their keys, then by their times, with direction -1 the latest first, and then by
// the names of their logs. timeOf returns the time of a place.
func (x *Index[V]) comparePlaces(a, b place, direction int, timeOf func(place) time.Time) int {
	if c := cmp.Or(cmp.Compare(a.key, b.key), direction*cmp.Compare(a.stamp, b.stamp)); c != 0 || a.slot == b.slot {
		return c
	}
	if !exact(a.stamp) {
		if c := direction * timeOf(a).Compare(timeOf(b)); c != 0 {
			return c
		}
	}
	return x.compareNames(a.slot, b.slot)
}

// compareListed is the order of Index.listed.
func (x *Index[V]) compareListed(a, b place) int { return x.comparePlaces(a, b, -1, x.listedAt) }

// compareDue is the order of Index.due.
func (x *Index[V]) compareDue(a, b place) int { return x.comparePlaces(a, b, 1, x.dueAt) }

// listedAt returns the time of a place in a list.
func (x *Index[V]) listedAt(p place) time.Time {
	if p.slot == probed {
		return x.probe.time
	}
	if t, alone := x.logs.listedAt(p.slot); alone {
		return t
	}
	lists := x.logs.lists(p.slot)
	for i := range lists {
		if l := &lists[i]; x.hash(l.List) == p.key && x.stamps.of(l.At) == p.stamp {
			return wall(l.At)
		}
	}
	return time.Time{}
}

// dueAt returns the time of a place among what is due.
func (x *Index[V]) dueAt(p place) time.Time {
	if p.slot == probed {
		return x.probe.time
	}
	var at time.Time
	x.left, at = x.logs.due(x.left[:0], p.slot)
	return at
}

// hash returns the hash of the name of a log, or the key of the places in a list.
func (x *Index[V]) hash(name string) uint32 { return uint32(maphash.String(x.seed, name)) }

// find returns the number of a log; false if there is none with the name.
func (x *Index[V]) find(name string) (uint32, bool) {
	hash := x.hash(name)
	for n := range x.hashes.from(hashed{hash, 0}) {
		if n.hash != hash {
			break
		}
		x.left = x.logs.name(x.left[:0], n.slot)
		if string(x.left) == name {
			return n.slot, true
		}
	}
	return 0, false
}

func compareHashes(a, b hashed) int {
	return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.slot, b.slot))
}
