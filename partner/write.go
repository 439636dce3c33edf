// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"slices"
	"sync"

	"github.com/aip-gateway/aip-gateway/task"
)

// write holds the stored form of a batch while it is written, since the store keeps no reference to it, or the form of
// a metadata while it is encoded.
type write struct {
	records [][]byte
	buf     []byte // of the records other than pieces
}

var writes = sync.Pool{New: func() any { return new(write) }}

// A write is used again if it is no larger than this: one large message must not take its memory for ever.
const (
	maxWriteBytes   = 256 << 10
	maxWriteRecords = 4 << 10
)

// release gives the write back to the pool.
func (w *write) release() {
	clear(w.records)
	w.records, w.buf = w.records[:0], w.buf[:0]
	if cap(w.buf) <= maxWriteBytes && cap(w.records) <= maxWriteRecords {
		writes.Put(w)
	}
}

// encode makes the records of a batch, and returns their size in bytes.
func (w *write) encode(b *batch) (size int64) {
	for i := range b.events {
		if i == b.pieces.behind {
			size += w.addPieces(&b.pieces)
		}
		ev := &b.events[i]
		if ev.Cause != nil {
			w.buf = slices.Grow(w.buf, 512+int(ev.Cause.Size()))
		}
		from := len(w.buf)
		w.buf = task.AppendEvent(w.buf, ev)
		// If buf has grown, the records before are in its old memory.
		w.records = append(w.records, w.buf[from:len(w.buf):len(w.buf)])
		size += int64(len(w.buf) - from)
	}
	if len(b.events) == b.pieces.behind {
		size += w.addPieces(&b.pieces)
	}
	return size
}

func (w *write) addPieces(p *pieces) (size int64) {
	for i := p.from; i < p.to; i++ {
		rec := p.of.Record(i)
		w.records = append(w.records, rec)
		size += int64(len(rec))
	}
	return size
}
