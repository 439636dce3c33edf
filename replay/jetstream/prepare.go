// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// prepare makes the values of an op. s.mu is held.
func (s *Store) prepare(o *op, now time.Time) error {
	st, room := s.st, s.st.room()
	if o.confirms() {
		return o.ctx.Err()
	}
	if o.marks > 0 {
		o.values = []value{st.markValue(o.marks)}
		return nil
	}
	if o.a == nil {
		o.values = []value{{subject: st.headSubject(o.dropped), parts: [][]byte{nil}}}
		return nil
	}
	if err := o.ctx.Err(); err != nil {
		return err
	}
	a := o.a
	l, found := s.index.Get(a.Log)
	if !found {
		l.Value.begun = s.last // no message of a former log comes after it
	}
	before := l.Head
	o.entry, o.first = l.Value, before.First
	next, err := a.Next(before, now)
	if err != nil {
		return err
	}
	if a.Drop {
		o.values = []value{{subject: st.headSubject(a.Log), parts: [][]byte{nil}}}
		return nil
	}
	h := head{Head: next, begun: l.Value.begun, snapshot: l.Value.snapshot}
	if a.End {
		h.expires = now.Add(s.index.Settings().Retention)
	}
	records, first := a.Records, next.Last+1-uint64(len(a.Records))
	if next.First > first {
		n := min(next.First-first, uint64(len(records)))
		records, first = records[n:], first+n
	}
	if next.First > max(before.First, 1) {
		if o.trim.revision != before.Revision {
			return replay.ErrConflict // the log was another one when the drop was looked up
		}
		h.Bytes = o.trim.kept
		for _, r := range records {
			h.Bytes += int64(len(r))
		}
		h.snapshot = uint64(len(a.Snapshot)) + 1
		if o.trim.before == 0 {
			o.trim.before = s.last + 1
		}
	}
	inline, err := inline(o, &before, &next, first, records)
	if err != nil {
		return err
	}
	if len(inline.data) <= s.st.inlineBytes() {
		h.inline = inline
	} else if o.values, err = recordValues(st, a.Log, inline, room); err != nil {
		return err
	}
	if h.snapshot != l.Value.snapshot || next.First > max(before.First, 1) {
		o.values = append(o.values, newValue(st.snapshotSubject(a.Log), slices.Clone(a.Snapshot), room))
	}
	h.Metadata = slices.Clone(a.Metadata)
	o.head = h
	o.size = sizeOf(a.Log, &h)
	o.values = append(o.values, newValue(st.headSubject(a.Log), appendHead(nil, &h), room))
	return nil
}

// inline returns the records of the head before an op and those of the op, without those dropped by it. first is the
// number of the first one of the op.
func inline(o *op, before, next *replay.Head, first uint64, records [][]byte) (inlined, error) {
	if o.entry.inline == 0 {
		return inlined{}.with(0, first, records), nil
	}
	if o.base.revision != before.Revision {
		return inlined{}, replay.ErrConflict // the log was another one when its head was read
	}
	return o.base.inline.with(before.Last, first, records).from(next.First), nil
}

// recordValues returns records as values: one if they have no gaps and fit into a message.
func recordValues(st *stream, log string, of inlined, room int) (values []value, err error) {
	records, err := of.records()
	if err != nil {
		return nil, err
	}
	for len(records) > 0 {
		n, size := 0, 16
		var data [][]byte
		for n < len(records) && records[n].Seq == records[0].Seq+uint64(n) &&
			(n == 0 || size+len(records[n].Data)+8 <= room) {
			size += len(records[n].Data) + 8
			data = append(data, records[n].Data)
			n++
		}
		values = append(values, newValue(st.recordSubject(log, records[0].Seq), encodeRecords(data), room))
		records = records[n:]
	}
	return values, nil
}

// logOverhead is the rough size of a log beside its bytes.
const logOverhead = 512

// sizeOf returns the number of bytes of a log.
func sizeOf(log string, h *head) int64 {
	size := logOverhead + int64(2*len(log)+len(h.Metadata)) + h.Bytes + int64(h.snapshot)
	for _, l := range h.Lists {
		size += int64(len(l.List) + len(l.Label) + 16)
	}
	return size
}
