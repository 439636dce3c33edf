// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"slices"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The limits of the tails in memory, in bytes with recordOverhead. Beyond tailsBytes in all, a log gets tailLeast only.
// So all of them take at most tailsBytes, and tailLeast for each log with readers.
const (
	tailBytes  = 128 << 10 // of one log
	tailsBytes = 64 << 20  // of all logs
	tailLeast  = 4 << 10

	// restingSlab and restingRecords are the capacity an empty tail keeps for the next records.
	restingSlab    = 1 << 10
	restingRecords = 8

	recordOverhead = 48
)

// tail has the last records of a log in memory, for the readers still to read them. All readers share them: neither a
// record nor the data of one changes while a reader holds it.
type tail struct {
	records []replay.Record
	slab    []byte // for the data of the next records; a full one belongs to its records alone
	bytes   int64
}

// add adds records up to the number last. The caller keeps the records' data. If they do not fit, the tail is empty.
func (t *tail) add(data [][]byte, last uint64, all *atomic.Int64) {
	limit := int64(tailBytes)
	if all.Load() > tailsBytes {
		limit = tailLeast
	}
	size := int64(0)
	for _, d := range data {
		size += recordOverhead + int64(len(d))
	}
	if t.bytes+size > limit {
		t.shrink(limit/2-size, all)
	}
	if size > limit {
		return
	}
	t.bytes += size
	all.Add(size)
	if need := int(size) - recordOverhead*len(data); cap(t.slab)-len(t.slab) < need {
		t.slab = make([]byte, 0, max(need, min(2*cap(t.slab), tailBytes/4), restingSlab/2))
	}
	t.records = slices.Grow(t.records, len(data))
	seq := last - uint64(len(data))
	for _, d := range data {
		seq++
		start := len(t.slab)
		t.slab = append(t.slab, d...)
		t.records = append(t.records, replay.Record{Seq: seq, Data: t.slab[start:len(t.slab):len(t.slab)]})
	}
}

// shrink keeps the newest records, of at most so many bytes. Readers may hold dropped records.
func (t *tail) shrink(most int64, all *atomic.Int64) {
	keep := len(t.records)
	bytes := int64(0)
	for ; keep > 0; keep-- {
		n := recordOverhead + int64(len(t.records[keep-1].Data))
		if bytes+n > most {
			break
		}
		bytes += n
	}
	all.Add(bytes - t.bytes)
	t.records, t.slab, t.bytes = slices.Clone(t.records[keep:]), nil, bytes
}

// empty drops the records. No reader holds them any more.
func (t *tail) empty(all *atomic.Int64) {
	if len(t.records) == 0 {
		return
	}
	all.Add(-t.bytes)
	t.bytes = 0
	if cap(t.records) > restingRecords {
		t.records = nil
	}
	if cap(t.slab) > restingSlab {
		t.slab = nil
	}
	clear(t.records)
	t.records, t.slab = t.records[:0], t.slab[:0]
}

// from returns the records from a number on, if the tail has all of them. Without such a number it returns nil.
func (t *tail) from(seq uint64) []replay.Record {
	if len(t.records) == 0 || seq < t.records[0].Seq {
		return nil
	}
	i, _ := slices.BinarySearchFunc(t.records, seq, func(r replay.Record, seq uint64) int {
		switch {
		case r.Seq < seq:
			return -1
		case r.Seq > seq:
			return 1
		}
		return 0
	})
	return t.records[i:len(t.records):len(t.records)]
}
