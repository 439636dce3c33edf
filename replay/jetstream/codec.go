// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// head is a log's head as it is stored. A log that does not exist has the zero one.
type head struct {
	replay.Head
	seq uint64 // of its message; it comes after all messages of the head; not stored
	// begun is the sequence of the stream before the log began: older messages, at the subjects of the log, belong to a
	// dropped one.
	begun    uint64
	expires  time.Time // time of its drop; zero while it has not ended
	snapshot uint64    // its size in bytes + 1; 0 for none
	inline   inlined   // the last records
}

// The first byte of a head: of one without records, and of one with some. Nodes with protocol 1 know the first alone.
const (
	formatHead   = 1
	formatInline = 2
)

// appendHead appends a stored head to b.
func appendHead(b []byte, h *head) []byte {
	if h.inline.first > 0 {
		b = append(b, formatInline)
	} else {
		b = append(b, formatHead)
	}
	for _, n := range []uint64{h.begun, h.snapshot, h.Revision, h.First, h.Last, uint64(h.Bytes)} {
		b = binary.AppendUvarint(b, n)
	}
	b = appendTime(b, h.DueAt)
	b = appendTime(b, h.Ended)
	b = appendTime(b, h.expires)
	b = replay.AppendGaps(b, h.Gaps)
	b = binary.AppendUvarint(b, uint64(len(h.Lists)))
	for _, l := range h.Lists {
		b = replay.AppendText(b, l.List)
		b = appendTime(b, l.At)
		b = replay.AppendText(b, l.Label)
	}
	if h.inline.first > 0 {
		b = binary.AppendUvarint(b, h.inline.first)
		b = binary.AppendUvarint(b, uint64(len(h.inline.data)))
		b = append(b, h.inline.data...)
	}
	return append(b, h.Metadata...)
}

var errDamaged = errors.New("a message is damaged")

// parseHead reads a stored head. Metadata and records are parts of b.
func parseHead(b []byte) (h head, err error) {
	if len(b) == 0 || b[0] != formatHead && b[0] != formatInline {
		return h, fmt.Errorf("the head of a log has a format that this version does not know: %w", errDamaged)
	}
	p := numbers{replay.Numbers{Rest: b[1:]}}
	h.begun, h.snapshot = p.Next(), p.Next()
	h.Revision, h.First, h.Last, h.Bytes = p.Next(), p.Next(), p.Next(), int64(p.Next())
	h.DueAt, h.Ended, h.expires = p.time(), p.time(), p.time()
	h.Gaps = p.Gaps()
	for n := p.Next(); n > 0 && !p.Failed; n-- {
		h.Lists = append(h.Lists, replay.Listing{List: string(p.Bytes()), At: p.time(), Label: string(p.Bytes())})
	}
	if b[0] == formatInline {
		h.inline = inlined{first: p.Next(), data: p.Bytes()}
		p.Failed = p.Failed || h.inline.first == 0 || h.inline.first > h.Last
	}
	h.Metadata = p.Rest
	if p.Failed || h.Revision == 0 || h.First == 0 || h.First > h.Last+1 {
		return head{}, fmt.Errorf("the head of a log: %w", errDamaged)
	}
	return h, nil
}

// appendTime appends a time: 0 for the zero one, else 1, seconds and nanoseconds.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// encodeRecords returns the records of an append as one value: their number, and each with its length before it.
func encodeRecords(records [][]byte) []byte {
	n := binary.MaxVarintLen64
	for _, r := range records {
		n += binary.MaxVarintLen32 + len(r)
	}
	b := binary.AppendUvarint(make([]byte, 0, n), uint64(len(records)))
	for _, r := range records {
		b = binary.AppendUvarint(b, uint64(len(r)))
		b = append(b, r...)
	}
	return b
}

// decodeRecords appends the records of a value to all. The first one has the number seq. The data are parts of b.
func decodeRecords(all []replay.Record, b []byte, seq uint64) ([]replay.Record, error) {
	p := numbers{replay.Numbers{Rest: b}}
	for n := p.Next(); n > 0 && !p.Failed; n-- {
		all = append(all, replay.Record{Seq: seq, Data: p.Bytes()})
		seq++
	}
	if p.Failed || len(p.Rest) > 0 {
		return nil, fmt.Errorf("the records of a log: %w", errDamaged)
	}
	return all, nil
}

// numbers reads the numbers of a message.
type numbers struct{ replay.Numbers }

func (p *numbers) time() time.Time {
	if p.Next() == 0 {
		return time.Time{}
	}
	sec, size := binary.Varint(p.Rest)
	if size <= 0 {
		p.Failed = true
		return time.Time{}
	}
	p.Rest = p.Rest[size:]
	return time.Unix(sec, int64(p.Next()))
}
