// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"iter"
)

// A trailer is the last record of each write to a segment. Behind bytes that are no record, it proves that more was
// written to the segment: the write that was under way when a process died is the last one, and has none.
type trailer struct {
	at     int64  // its place in the segment, in bytes
	synced int64  // bytes of the segment that had been synced when it was written
	boot   uint32 // of the machine's boot id; 0 where the system has none
}

// trailerLen is the length of a trailer's payload: at, synced and boot.
const trailerLen = 8 + 8 + 4

// bootSum returns what trailers have of a boot id.
func bootSum(boot string) uint32 {
	if boot == "" {
		return 0
	}
	return max(crc32.Checksum([]byte(boot), castagnoli), 1)
}

// addTrailer appends a trailer to the segment's records. The caller holds j.mu.
func (j *journal) addTrailer() {
	at := j.segment.length
	b := binary.LittleEndian.AppendUint64(j.trailer[:0], uint64(at))
	b = binary.LittleEndian.AppendUint64(b, uint64(max(at-(j.appended-j.synced), 0)))
	b = binary.LittleEndian.AppendUint32(b, j.boot)
	j.add(recordTrailer, b, crc32.Checksum(b, castagnoli))
}

// trailersIn yields the trailers of a segment that lie behind its first so many bytes, in order, wherever they lie.
func trailersIn(data []byte, after int64, segment uint64) iter.Seq[trailer] {
	length := binary.LittleEndian.AppendUint32(nil, trailerLen)
	return func(yield func(trailer) bool) {
		for at := int(after); ; at++ {
			i := bytes.Index(data[at:], length)
			if i < 0 || len(data)-at-i < recordHeader+trailerLen {
				return
			}
			at += i
			if t, ok := parseTrailer(data[at:at+recordHeader+trailerLen], segment); ok && t.at == int64(at) && !yield(t) {
				return
			}
		}
	}
}

// parseTrailer reads a record that may be a trailer.
func parseTrailer(record []byte, segment uint64) (t trailer, ok bool) {
	payload := record[recordHeader:]
	var seal [recordHeader]byte
	sum := sealSum(seal[:0], crc32.Checksum(payload, castagnoli), segment, recordTrailer)
	if record[8] != recordTrailer || binary.LittleEndian.Uint32(record[4:]) != sum {
		return trailer{}, false
	}
	return trailer{
		at:     int64(binary.LittleEndian.Uint64(payload)),
		synced: int64(binary.LittleEndian.Uint64(payload[8:])),
		boot:   binary.LittleEndian.Uint32(payload[16:]),
	}, true
}
