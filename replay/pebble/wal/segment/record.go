// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// A record has a length, a checksum and a kind before its payload, HeaderLen bytes. The checksum is one of the payload,
// the number of the segment, and the kind: leftovers from the file's life as another segment are never taken for
// records of this one.
const HeaderLen = 4 + 4 + 1

// Kinds of records.
const (
	KindStart   = 1 // the first record of each segment, a Header
	KindBatch   = 2 // a committed batch
	KindTrailer = 3 // the last record of each write, a Trailer
	KindPart    = 4 // a Part of a batch to be continued
	KindLast    = 5 // the last Part of a batch
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the checksum of a payload alone.
func Sum(payload []byte) uint32 { return crc32.Checksum(payload, castagnoli) }

// seal makes the checksum of a record out of its payload's. It writes to the bytes behind b.
func seal(b []byte, sum uint32, number uint64, kind byte) uint32 {
	s := append(binary.LittleEndian.AppendUint64(b, number), kind)
	return crc32.Update(sum, castagnoli, s[len(b):])
}

// Append appends a record of the segment with a number to b; sum is Sum of the payload.
func Append(b []byte, number uint64, kind byte, payload []byte, sum uint32) []byte {
	b = slices.Grow(b, HeaderLen+len(payload))
	sum = seal(b, sum, number, kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.LittleEndian.AppendUint32(b, sum)
	b = append(b, kind)
	return append(b, payload...)
}

// Scan calls do for the records in the first size bytes of a segment, in order, until there is no whole one of this
// segment. It returns the number of their bytes, and the error of r or of do. The payloads belong to do.
func Scan(r io.Reader, size int64, number uint64, do func(kind byte, payload []byte) error) (
	end int64, err error,
) {
	in := bufio.NewReaderSize(r, 256<<10)
	var head [HeaderLen]byte
	buf := make([]byte, 0, HeaderLen)
	for size-end >= HeaderLen {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return end, notEOF(err)
		}
		n, sum, kind := binary.LittleEndian.Uint32(head[:]), binary.LittleEndian.Uint32(head[4:]), head[8]
		if kind == 0 || int64(n) > size-end-HeaderLen {
			return end, nil
		}
		payload := make([]byte, n)
		if _, err := io.ReadFull(in, payload); err != nil {
			return end, notEOF(err)
		}
		if seal(buf, Sum(payload), number, kind) != sum {
			return end, nil
		}
		if err := do(kind, payload); err != nil {
			return end, err
		}
		end += HeaderLen + int64(n)
	}
	return end, nil
}

// notEOF returns nil for an end coming too early: the record there is not whole.
func notEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
