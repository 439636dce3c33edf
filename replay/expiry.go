// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"container/heap"
	"math"
	"time"
)

// noSlot is the number of no log.
const noSlot = math.MaxUint32

// nanoseconds returns a time as Unix time, and the greatest one for all later ones, in the year 2262.
func nanoseconds(t time.Time) int64 {
	if latest := time.Unix(0, math.MaxInt64); t.After(latest) {
		t = latest
	}
	return t.UnixNano()
}

// end makes a log an ended one.
func (x *Index[V]) end(slot uint32, expires time.Time) {
	x.logs.setEnding(slot, ending{expires: nanoseconds(expires), at: noSlot})
	x.use(slot)
	heap.Push(expiryHeap[V]{x}, slot)
}

// endNot is the contrary of end.
func (x *Index[V]) endNot(slot uint32) {
	x.unlink(slot)
	heap.Remove(expiryHeap[V]{x}, int(x.logs.ending(slot).at-1))
	x.logs.setEnding(slot, ending{})
}

// expires returns when a log is dropped; the zero time while it has not ended.
func (x *Index[V]) expires(slot uint32) time.Time {
	if e := x.logs.ending(slot); e != nil {
		return time.Unix(0, e.expires)
	}
	return time.Time{}
}

// use makes an ended log the one used last.
func (x *Index[V]) use(slot uint32) {
	e := x.logs.ending(slot)
	if x.last == noSlot {
		e.newer, e.older, x.last = slot, slot, slot
		return
	}
	e.newer, e.older = x.last, x.logs.ending(x.last).older
	x.logs.ending(e.older).newer, x.logs.ending(e.newer).older = slot, slot
}

func (x *Index[V]) unlink(slot uint32) {
	e := x.logs.ending(slot)
	x.logs.ending(e.newer).older, x.logs.ending(e.older).newer = e.older, e.newer
	if x.last == slot {
		x.last = e.newer
	}
	if x.last == slot {
		x.last = noSlot
	}
}

// touch makes a log the one used last.
func (x *Index[V]) touch(slot uint32) {
	if x.logs.ending(slot) != nil {
		x.unlink(slot)
		x.use(slot)
	}
}

// Expired returns the name of a log whose time is over, and that is not pinned; false if there is none.
func (x *Index[V]) Expired(now time.Time) (name string, ok bool) {
	for len(x.expiring) > 0 && x.logs.ending(x.expiring[0]).expires <= now.UnixNano() {
		slot := x.expiring[0]
		if name := string(x.logs.name(nil, slot)); !x.postpone(slot, name, now) {
			return name, true
		}
	}
	return "", false
}

// Surplus returns the name of the log to be dropped next because the ended logs take more than MaxSize, or all logs
// take more than a capacity; false if there is room. 0 is no capacity. For the capacity, the log set last is not
// dropped.
func (x *Index[V]) Surplus(capacity int64, set string, now time.Time) (name string, ok bool) {
	for x.last != noSlot {
		over := capacity > 0 && x.size > capacity
		if surplus := x.settings.MaxSize > 0 && x.idle > x.settings.MaxSize; !over && !surplus {
			break
		} else if name = string(x.logs.name(nil, x.last)); !surplus && name == set {
			break
		}
		if !x.postpone(x.last, name, now) {
			return name, true
		}
	}
	return "", false
}

// postpone keeps an ended log, due to be dropped, for a while if it is pinned.
func (x *Index[V]) postpone(slot uint32, name string, now time.Time) bool {
	pinned := false
	for range x.in(PinsOf(name), ListedLog{}) {
		pinned = true
		break
	}
	if !pinned {
		return false
	}
	at, ok := x.settings.Postpone(x.logs.get(slot).head.Ended, x.expires(slot), now)
	e := x.logs.ending(slot)
	if ok = ok && nanoseconds(at) != e.expires; ok {
		e.expires = nanoseconds(at)
		heap.Fix(expiryHeap[V]{x}, int(e.at-1))
		x.touch(slot)
	}
	return ok
}

// expiryHeap implements heap.Interface for Index.expiring. It orders ended logs by the time of their drop.
type expiryHeap[V any] struct{ *Index[V] }

func (h expiryHeap[V]) Len() int { return len(h.expiring) }
func (h expiryHeap[V]) Less(i, j int) bool {
	return h.logs.ending(h.expiring[i]).expires < h.logs.ending(h.expiring[j]).expires
}
func (h expiryHeap[V]) Swap(i, j int) {
	all := h.expiring
	all[i], all[j] = all[j], all[i]
	h.logs.ending(all[i]).at, h.logs.ending(all[j]).at = uint32(i+1), uint32(j+1)
}

// Push implements heap.Interface.
func (h expiryHeap[V]) Push(x any) {
	slot := x.(uint32)
	h.expiring = append(h.expiring, slot)
	h.logs.ending(slot).at = uint32(len(h.expiring))
}

// Pop implements heap.Interface.
func (h expiryHeap[V]) Pop() any {
	last := len(h.expiring) - 1
	slot := h.expiring[last]
	h.expiring = h.expiring[:last]
	return slot
}
