// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// An entry has all records of one append: their number, then each with its length before it. Lengths and number are
// varints. The number of the last record is the entry's key, so that a seek for any of its records finds it. The
// records of a log with one append of them are short as a rule; their entry lies in the log's head. An entry written
// without a head (log.follows) begins with entryFollows.

// maxInline is the greatest size of an entry inline in its log's head.
const maxInline = 4 << 10

// entryFollows is the first byte of an entry written without a head. In any other one, it would be a number of no
// records.
const entryFollows = 0

// isFollowing reports whether an entry was written without a head.
func isFollowing(entry []byte) bool { return len(entry) > 0 && entry[0] == entryFollows }

// entryLen returns the size of the entry of records, following those of old, an entry or nil.
func entryLen(old []byte, records [][]byte) int {
	count, rest := splitEntry(old)
	n := uvarintLen(count+uint64(len(records))) + len(rest)
	for _, r := range records {
		n += uvarintLen(uint64(len(r))) + len(r)
	}
	return n
}

// appendEntry appends the entry to b.
func appendEntry(b, old []byte, records [][]byte) []byte {
	count, rest := splitEntry(old)
	b = binary.AppendUvarint(b, count+uint64(len(records)))
	b = append(b, rest...)
	for _, r := range records {
		b = binary.AppendUvarint(b, uint64(len(r)))
		b = append(b, r...)
	}
	return b
}

// splitEntry returns the number of records in an entry, and the records. A nil or damaged entry has none.
func splitEntry(entry []byte) (count uint64, rest []byte) {
	if isFollowing(entry) {
		entry = entry[1:]
	}
	count, n := binary.Uvarint(entry)
	if n <= 0 || count > uint64(len(entry)-n) { // each has a length, of a byte at least
		return 0, nil
	}
	return count, entry[n:]
}

func uvarintLen(n uint64) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// records reads the records of a log from one number on. Each call of next sets seq and data to the next one; data is
// valid until the next call, and for longer if the records are inline in the head. Each records without an error is
// closed.
type records struct {
	seq  uint64
	data []byte

	it    *pebble.Iterator // over the entries; nil if the records are inline in the head
	begun bool
	from  uint64 // the first record to be read
	last  uint64 // the last record to be read
	left  uint64 // records left in the current entry
	rest  []byte // those records
	size  int    // of the entry, in bytes
	err   error
}

// read returns a reader of a log's records from a number on, as in h, the log's head now or before. The reader has none
// if the log has been dropped since.
func (g *generation) read(log string, h *head, from uint64) (*records, error) {
	if !h.inline {
		return g.readEntries(log, h, from)
	}
	stored, closer, err := storedHead(g.committedOf(log), log, 0)
	if errors.Is(err, replay.ErrNotFound) {
		return &records{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close() // always nil
	if !stored.inline {
		return g.readEntries(log, h, from) // there the records are now
	}
	return readEntry(bytes.Clone(stored.entry), stored.Last, from, h.Last), nil
}

// readEntries is read for records in entries by themselves.
func (g *generation) readEntries(log string, h *head, from uint64) (*records, error) {
	n := entryKeyLen(log)
	bounds := appendEntryKey(make([]byte, 0, 2*n), log, from)
	bounds = appendEntryKey(bounds, log, h.Last+1)
	it, err := g.committedOf(log).NewIter(&pebble.IterOptions{LowerBound: bounds[:n], UpperBound: bounds[n:]})
	if err != nil {
		return nil, err
	}
	return &records{it: it, from: from, last: h.Last}, nil
}

// readEntry returns a reader of the records in an entry with the numbers from to last. The number of the last one in
// the entry is the entry's.
func readEntry(entry []byte, number, from, last uint64) *records {
	r := &records{from: from, last: last}
	r.open(number, entry)
	return r
}

// open begins to read an entry; its last record has the entry's number.
func (r *records) open(number uint64, entry []byte) {
	r.size = len(entry)
	count, rest := splitEntry(entry)
	if count == 0 || count > number {
		r.err = errDamaged
		return
	}
	r.seq, r.left, r.rest = number-count, count, rest
}

// next goes to the next record, and returns whether there is one.
func (r *records) next() bool {
	for r.err == nil && r.seq < r.last {
		if r.left == 0 {
			if r.it == nil || !r.nextEntry() {
				return false
			}
			continue // an error ends the loop
		}
		r.left--
		r.seq++
		size, n := binary.Uvarint(r.rest)
		if n <= 0 || size > uint64(len(r.rest)-n) || r.left == 0 && size != uint64(len(r.rest)-n) {
			r.err = errDamaged
			return false
		}
		end := n + int(size)
		r.data, r.rest = r.rest[n:end:end], r.rest[end:]
		if r.seq >= r.from {
			return true
		}
	}
	return false
}

// nextEntry goes to the next entry, and returns whether there is one.
func (r *records) nextEntry() bool {
	ok := false
	if r.begun {
		ok = r.it.Next()
	} else {
		ok = r.it.First()
		r.begun = true
	}
	if !ok {
		return false
	}
	value, err := r.it.ValueAndErr()
	if err != nil {
		r.err = err
		return false
	}
	r.open(seqOf(r.it.Key()), value)
	return true
}

// close releases the reader, and returns the error that ended it, if any.
func (r *records) close() error {
	if r.it == nil {
		return r.err
	}
	return errors.Join(r.err, r.it.Close())
}
