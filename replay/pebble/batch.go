// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The keys and values are written straight into the batch.

// batchSize is about the size of a as a batch: the records, and five small entries.
func batchSize(a *replay.Append) int {
	return 64 + maxHeadLen + len(a.Metadata) + len(a.Snapshot) + entryLen(nil, a.Records) + 5*(entryKeyLen(a.Log)+16) +
		listsLen(a.Log, a.Lists)
}

// setHead sets a head. If it has them inline, the records in an entry lie beside it, and more of them. The entry may be
// nil.
func setHead(b *pebble.Batch, log string, h *head, entry []byte, records [][]byte) {
	size := 0
	if h.inline {
		size = entryLen(entry, records)
	}
	var buf [maxHeadLen]byte
	numbers := h.appendNumbers(buf[:0], log, size)
	op := b.SetDeferred(nameKeyLen(log), len(numbers)+size+len(h.Metadata))
	appendNameKey(op.Key[:0], spaceHead, log)
	value := append(op.Value[:0], numbers...)
	if h.inline {
		value = appendEntry(value, entry, records)
	}
	_ = append(value, h.Metadata...)
	_ = op.Finish() // fails only for an indexed batch
}

// setIntent sets the data of an intent in the database once it is a log.
func setIntent(b *pebble.Batch, log string, h *head) {
	moveTime(b, appendDueKey, 0, stampOf(h.DueAt), log, nil)
	moveLists(b, log, nil, h.Lists)
	setHead(b, log, h, nil, nil)
}

func setSnapshot(b *pebble.Batch, log string, snapshot []byte) {
	op := b.SetDeferred(nameKeyLen(log), len(snapshot))
	appendNameKey(op.Key[:0], spaceSnapshot, log)
	copy(op.Value, snapshot)
	_ = op.Finish()
}

// deleteName deletes a head or a snapshot.
func deleteName(b *pebble.Batch, space byte, log string) {
	op := b.DeleteDeferred(nameKeyLen(log))
	appendNameKey(op.Key[:0], space, log)
	_ = op.Finish()
}

// setEntry sets an entry, under the number of its last record: the records in another entry, and more. The other may be
// nil. follows is whether b has no head of the log.
func setEntry(b *pebble.Batch, log string, number uint64, entry []byte, records [][]byte, follows bool) {
	size := entryLen(entry, records)
	if follows {
		size++
	}
	op := b.SetDeferred(entryKeyLen(log), size)
	appendEntryKey(op.Key[:0], log, number)
	value := op.Value[:0]
	if follows {
		value = append(value, entryFollows)
	}
	appendEntry(value, entry, records)
	_ = op.Finish()
}

// moveTime changes an entry of the index by DueAt or by expiry.
func moveTime(b *pebble.Batch, key timeKey, from, to stamp, log string, value []byte) {
	if from == to {
		return
	}
	if from != 0 {
		op := b.DeleteDeferred(timeKeyLen(log))
		key(op.Key[:0], from, log)
		_ = op.Finish()
	}
	if to != 0 {
		op := b.SetDeferred(timeKeyLen(log), len(value))
		key(op.Key[:0], to, log)
		copy(op.Value, value)
		_ = op.Finish()
	}
}

// fewEntries is the number up to which entries are deleted one by one. Every deleted range makes all reads slower until
// it is compacted away. Many short tasks would make this felt.
const fewEntries = 16

// storedEntry is an entry in the database.
type storedEntry struct {
	number uint64
	size   int
}

// deleteEntries deletes some entries of a log: all there are from the first to the last of them. Pebble is given their
// sizes, so it first compacts the ones that give room.
func deleteEntries(b *pebble.Batch, log string, entries []storedEntry) {
	if n := len(entries); n > fewEntries {
		deleteRange(b, log, entries[0].number, entries[n-1].number)
		return
	}
	for _, e := range entries {
		op := b.DeleteSizedDeferred(entryKeyLen(log), uint32(e.size))
		appendEntryKey(op.Key[:0], log, e.number)
		_ = op.Finish()
	}
}

// deleteRange deletes the entries with the numbers [first, last].
func deleteRange(b *pebble.Batch, log string, first, last uint64) {
	n := entryKeyLen(log)
	op := b.DeleteRangeDeferred(n, n)
	appendEntryKey(op.Key[:0], log, first)
	appendEntryKey(op.Value[:0], log, last+1)
	_ = op.Finish()
}

// deleteLog deletes all of a log.
func (g *generation) deleteLog(b *pebble.Batch, log string, h *head) error {
	switch {
	case h.entries > fewEntries:
		deleteRange(b, log, h.First, h.Last)
	case h.entries > 0:
		r, err := g.readEntries(log, h, h.First)
		if err != nil {
			return err
		}
		var entries []storedEntry
		for ok := r.it.First(); ok; ok = r.it.Next() {
			value := r.it.LazyValue()
			entries = append(entries, storedEntry{seqOf(r.it.Key()), value.Len()})
		}
		if err := r.it.Close(); err != nil {
			return err
		}
		deleteEntries(b, log, entries)
	}
	deleteName(b, spaceHead, log)
	if h.First > 1 { // something was trimmed
		deleteName(b, spaceSnapshot, log)
	}
	moveTime(b, appendDueKey, stampOf(h.DueAt), 0, log, nil)
	moveTime(b, appendExpiryKey, h.expires, 0, log, nil)
	moveLists(b, log, h.Lists, nil)
	return nil
}
