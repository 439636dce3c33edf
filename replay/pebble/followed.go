// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// A head is longer than a piece of a stream, and all pieces of a running log would write nearly the same one. So the
// first of them writes a head with a mark (head.followed), and those after it write only their entries, as long as they
// change nothing but Revision, Last, Bytes and entries: these follow from the entries. Any other append writes the
// whole head again. A head with the mark costs a look for entries behind it, where the log is not in memory, so there
// are only so many. Behind a head without the mark, or written with a head themselves (entryFollows), they are those of
// a log with a lost head (Store.whole).

// followedEntries bounds the number of entries that follow a head, and followedBytes the bytes of their records.
const (
	followedEntries = 256
	followedBytes   = pageBytes
)

// follows reports whether an append needs no head. next is the head after it, before setRecords. The caller holds
// l.write.
func (l *log) follows(a *replay.Append, next *head) bool {
	old := &l.head
	return old.followed && isPiece(a, next) &&
		(old.entries+1)%followedEntries != 0 && next.Bytes/followedBytes == old.Bytes/followedBytes &&
		next.First == old.First && len(next.Gaps) == len(old.Gaps) &&
		next.losses == old.losses && next.Cut == old.Cut && stampOf(next.DueAt) == stampOf(old.DueAt) &&
		slices.EqualFunc(next.Lists, old.Lists, sameListing) && bytes.Equal(a.Metadata, l.storedMetadata)
}

// mayFollow reports whether appends after a may need no head.
func mayFollow(a *replay.Append, next *head) bool {
	return isPiece(a, next) && next.entries > 0 && len(a.Metadata) <= restingMost
}

func isPiece(a *replay.Append, next *head) bool {
	return !a.Durable && !a.End && len(a.Records) > 0 && !next.inline
}

// headSource is a state of a database.
type headSource interface {
	NewIter(*pebble.IterOptions) (*pebble.Iterator, error)
}

// follow makes a head as stored the one after the entries that follow it.
func (h *head) follow(db headSource, log string) error {
	if !h.followed {
		return nil
	}
	return h.passEntries(db, log)
}

// passEntries makes a head the one after all entries behind it. A damaged or missing entry is left to the reader of the
// records.
func (h *head) passEntries(db headSource, log string) (err error) {
	n := entryKeyLen(log)
	bounds := appendEntryKey(appendEntryKey(make([]byte, 0, 2*n), log, h.Last+1), log, math.MaxUint64)
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: bounds[:n], UpperBound: bounds[n:]})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		h.Revision, h.entries, h.Last = h.Revision+1, h.entries+1, seqOf(it.Key())
		for r := readEntry(value, h.Last, 0, h.Last); r.next(); {
			h.Bytes += int64(len(r.data))
		}
	}
	return it.Error()
}
