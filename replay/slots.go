// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"slices"
	"time"
)

// Packing packs the driver's own part of a log in an Index.
type Packing[V any] struct {
	Append func(b []byte, v V) []byte // appends v to b
	Parse  func(p *Numbers) V         // reads what Append has appended
}

// slots has logs by numbers. A number is free again after the removal of its log, and free numbers are used first. A
// log is awake, or it rests: then it is packed, as one piece of bytes, and the logs of a page share a slice. So a log
// that rests takes little beside these bytes, and the garbage collector does not look for pointers in it.
type slots[V any] struct {
	packing Packing[V]
	pages   []*slotPage[V]
	free    []uint32
	names   prefixes
	heads   packer
	buffer  []byte
}

const (
	slotsOfPage = 16
	// packedMost is the greatest size of a packed log. A larger one stays awake, as packing saves little of it, and one
	// log of a page is not written without the others.
	packedMost = 4096
)

type slotPage[V any] struct {
	packed []byte                  // the logs that rest
	ends   [slotsOfPage]uint32     // the places in packed where they end
	awake  *[slotsOfPage]*awake[V] // nil if none is awake
	ended  *[slotsOfPage]ending    // nil if none has ended
}

// awake is a log ready for use.
type awake[V any] struct {
	name  string
	value V
	head  Head
	size  int64
	ready bool // it is in Index.ready
}

// ending is what there is of an ended log beside its data; the zero value is that of a log that has not ended.
type ending struct {
	expires      int64  // when it is dropped, Unix time, ns
	newer, older uint32 // the neighbours in the ring of Index.last
	at           uint32 // one more than its place in Index.expiring
}

// page returns the page of a log, and its place there.
func (s *slots[V]) page(slot uint32) (*slotPage[V], int) {
	return s.pages[slot/slotsOfPage], int(slot % slotsOfPage)
}

// add adds a log, and returns its number.
func (s *slots[V]) add(l *awake[V]) uint32 {
	if len(s.free) == 0 {
		first := uint32(len(s.pages) * slotsOfPage)
		s.pages = append(s.pages, &slotPage[V]{})
		for i := range uint32(slotsOfPage) {
			s.free = append(s.free, first+slotsOfPage-1-i)
		}
	}
	slot := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	p, i := s.page(slot)
	p.setAwake(i, l)
	return slot
}

// remove removes a log that is awake, and has not ended.
func (s *slots[V]) remove(slot uint32) {
	p, i := s.page(slot)
	p.setAwake(i, nil)
	s.free = append(s.free, slot)
}

// isAwake returns a log that is awake; nil for one that rests.
func (s *slots[V]) isAwake(slot uint32) *awake[V] {
	p, i := s.page(slot)
	if p.awake == nil {
		return nil
	}
	return p.awake[i]
}

// wake returns a log that is awake from now on.
func (s *slots[V]) wake(slot uint32) *awake[V] {
	if l := s.isAwake(slot); l != nil {
		return l
	}
	l := s.get(slot)
	p, i := s.page(slot)
	s.names.leave(p.data(i))
	p.set(i, nil)
	p.setAwake(i, &l)
	return &l
}

// rest packs a log that is awake.
func (s *slots[V]) rest(slot uint32, l *awake[V]) {
	b := s.names.append(s.buffer[:0], l.name)
	b = binary.AppendUvarint(s.packing.Append(b, l.value), uint64(l.size))
	b = s.heads.pack(b, l.name, &l.head)
	if s.buffer = b; len(b) > packedMost {
		s.names.leave(b)
		s.buffer, s.heads.buffer = nil, nil
		return
	}
	p, i := s.page(slot)
	p.setAwake(i, nil)
	p.set(i, b)
}

// get returns a log. The result has copies only.
func (s *slots[V]) get(slot uint32) awake[V] {
	if l := s.isAwake(slot); l != nil {
		return *l
	}
	var l awake[V]
	var head Numbers
	s.buffer, l.value, l.size, head = s.parts(s.buffer[:0], slot)
	l.name = string(s.buffer)
	l.head = s.heads.unpack(l.name, head.Rest)
	return l
}

// value returns the driver's part of a log, without the cost of its head.
func (s *slots[V]) value(slot uint32) V {
	if l := s.isAwake(slot); l != nil {
		return l.value
	}
	var v V
	s.buffer, v, _, _ = s.parts(s.buffer[:0], slot)
	return v
}

// lists returns the lists of a log.
func (s *slots[V]) lists(slot uint32) []Listing {
	if l := s.isAwake(slot); l != nil {
		return l.head.Lists
	}
	return s.get(slot).head.Lists
}

// due returns the name of a log, appended to b, and when it is due; the zero time for never. It costs little.
func (s *slots[V]) due(b []byte, slot uint32) (name []byte, at time.Time) {
	if l := s.isAwake(slot); l != nil {
		return append(b, l.name...), l.head.DueAt
	}
	name, _, _, head := s.parts(b, slot)
	at, _, _ = s.heads.times(head)
	return name, at
}

// listedAt returns the time of a log in its lists, if it rests, and they all have the same one or the zero one. It
// costs little.
func (s *slots[V]) listedAt(slot uint32) (t time.Time, alone bool) {
	if s.isAwake(slot) != nil {
		return t, false
	}
	var head Numbers
	s.buffer, _, _, head = s.parts(s.buffer[:0], slot)
	_, listed, n := s.heads.times(head)
	return listed, n == 1
}

// name appends the name of a log to b.
func (s *slots[V]) name(b []byte, slot uint32) []byte {
	if l := s.isAwake(slot); l != nil {
		return append(b, l.name...)
	}
	p := s.packed(slot)
	return s.names.read(b, &p)
}

// parts returns what rest has packed: the name of a log, appended to b, the driver's part, the size, and the head.
func (s *slots[V]) parts(b []byte, slot uint32) (name []byte, v V, size int64, head Numbers) {
	head = s.packed(slot)
	name = s.names.read(b, &head)
	v = s.packing.Parse(&head)
	size = int64(head.Next())
	return name, v, size, head
}

// packed returns a log that rests.
func (s *slots[V]) packed(slot uint32) Numbers {
	p, i := s.page(slot)
	return Numbers{Rest: p.data(i)}
}

// used reports whether there is a log with a number.
func (s *slots[V]) used(slot uint32) bool {
	p, i := s.page(slot)
	return len(p.data(i)) > 0 || p.awake != nil && p.awake[i] != nil
}

// ending returns what there is of an ended log beside its data; nil if it has not ended.
func (s *slots[V]) ending(slot uint32) *ending {
	p, i := s.page(slot)
	if p.ended == nil || p.ended[i].at == 0 {
		return nil
	}
	return &p.ended[i]
}

// setEnding sets what ending returns from now on; the zero value is for a log that has not ended.
func (s *slots[V]) setEnding(slot uint32, e ending) *ending {
	p, i := s.page(slot)
	if p.ended == nil {
		p.ended = new([slotsOfPage]ending)
	}
	if p.ended[i] = e; *p.ended == [slotsOfPage]ending{} {
		p.ended = nil
		return nil
	}
	return &p.ended[i]
}

func (p *slotPage[V]) data(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = p.ends[i-1]
	}
	return p.packed[start:p.ends[i]]
}

// set replaces the data of a log.
func (p *slotPage[V]) set(i int, data []byte) {
	was := len(p.data(i))
	at := int(p.ends[i]) - was
	p.packed = slices.Concat(p.packed[:at], data, p.packed[at+was:])
	for ; i < slotsOfPage; i++ {
		p.ends[i] += uint32(len(data) - was)
	}
}

func (p *slotPage[V]) setAwake(i int, l *awake[V]) {
	if p.awake == nil {
		p.awake = new([slotsOfPage]*awake[V])
	}
	if p.awake[i] = l; *p.awake == [slotsOfPage]*awake[V]{} {
		p.awake = nil
	}
}
