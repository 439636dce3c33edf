// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// Trailer is the last record of each write to a segment. Behind bytes that are no record, it proves a later write to
// the segment: the write under way at the death of a process is the last one, and has none.
type Trailer struct {
	At     int64  // its place in the segment, in bytes
	Synced int64  // bytes of the segment already synced when the trailer was written
	Boot   uint32 // of the machine's boot id; 0 if the system has none
}

// TrailerLen is the length of a trailer's payload.
const TrailerLen = 8 + 8 + 4

// BootSum returns the sum of a boot id in trailers.
func BootSum(boot string) uint32 {
	if boot == "" {
		return 0
	}
	return max(Sum([]byte(boot)), 1)
}

// Append appends the payload to b.
func (t *Trailer) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(t.At))
	b = binary.LittleEndian.AppendUint64(b, uint64(t.Synced))
	return binary.LittleEndian.AppendUint32(b, t.Boot)
}

// Trailers yields the trailers of a segment behind its first so many bytes, in order, wherever they lie.
func Trailers(data []byte, after int64, number uint64) iter.Seq[Trailer] {
	length := binary.LittleEndian.AppendUint32(nil, TrailerLen)
	return func(yield func(Trailer) bool) {
		for at := int(after); ; at++ {
			i := bytes.Index(data[at:], length)
			if i < 0 || len(data)-at-i < HeaderLen+TrailerLen {
				return
			}
			at += i
			if t, ok := parseTrailer(data[at:at+HeaderLen+TrailerLen], number); ok && t.At == int64(at) && !yield(t) {
				return
			}
		}
	}
}

// parseTrailer reads a possible trailer.
func parseTrailer(record []byte, number uint64) (t Trailer, ok bool) {
	payload := record[HeaderLen:]
	var buf [HeaderLen]byte
	sum := seal(buf[:0], Sum(payload), number, KindTrailer)
	if record[8] != KindTrailer || binary.LittleEndian.Uint32(record[4:]) != sum {
		return Trailer{}, false
	}
	return Trailer{
		At:     int64(binary.LittleEndian.Uint64(payload)),
		Synced: int64(binary.LittleEndian.Uint64(payload[8:])),
		Boot:   binary.LittleEndian.Uint32(payload[16:]),
	}, true
}
