// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The keys and values are written straight into the batch.

// batchSize is about what a takes as a batch: the records, and five small entries.
func batchSize(a *replay.Append) int {
	entry := recordKeyLen(a.Log) + 16
	n := 64 + maxHeadLen + len(a.Metadata) + len(a.Snapshot) + (5+len(a.Records))*entry
	for _, r := range a.Records {
		n += len(r)
	}
	return n
}

func setHead(b *pebble.Batch, log string, h *head) {
	var buf [maxHeadLen]byte
	fixed := *h
	fixed.Metadata = nil
	numbers := fixed.append(buf[:0])
	op := b.SetDeferred(nameKeyLen(log), len(numbers)+len(h.Metadata))
	appendNameKey(op.Key[:0], spaceHead, log)
	copy(op.Value[copy(op.Value, numbers):], h.Metadata)
	_ = op.Finish() // fails only for an indexed batch
}

func setSnapshot(b *pebble.Batch, log string, snapshot []byte) {
	op := b.SetDeferred(nameKeyLen(log), len(snapshot))
	appendNameKey(op.Key[:0], spaceSnapshot, log)
	copy(op.Value, snapshot)
	_ = op.Finish()
}

func setRecord(b *pebble.Batch, log string, seq uint64, data []byte) {
	op := b.SetDeferred(recordKeyLen(log), len(data))
	appendRecordKey(op.Key[:0], log, seq)
	copy(op.Value, data)
	_ = op.Finish()
}

// moveTime changes an entry of the index by DueAt or by expiry. Such a key is never set twice without having
// been deleted in between, which is what SingleDelete asks for: unlike Delete, it leaves nothing behind once it
// has met the key, mostly while both are still in memory.
func moveTime(b *pebble.Batch, key timeKey, from, to stamp, log string, value []byte) {
	if from == to {
		return
	}
	if from != 0 {
		op := b.SingleDeleteDeferred(timeKeyLen(log))
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

// fewRecords is the number up to which records are deleted one by one. Every range that is deleted makes all
// reads slower until it is compacted away, which many short tasks would make felt.
const fewRecords = 16

// deleteRecords deletes the records [first, end).
func deleteRecords(b *pebble.Batch, log string, first, end uint64) {
	if end-first > fewRecords {
		n := recordKeyLen(log)
		op := b.DeleteRangeDeferred(n, n)
		appendRecordKey(op.Key[:0], log, first)
		appendRecordKey(op.Value[:0], log, end)
		_ = op.Finish()
		return
	}
	for seq := first; seq < end; seq++ {
		op := b.DeleteDeferred(recordKeyLen(log))
		appendRecordKey(op.Key[:0], log, seq)
		_ = op.Finish()
	}
}

// deleteLog deletes all of a log.
func deleteLog(b *pebble.Batch, log string, h *head) {
	deleteRecords(b, log, h.First, h.Last+1)
	for _, space := range []byte{spaceHead, spaceSnapshot} {
		if space == spaceSnapshot && h.First == 1 {
			continue // nothing was trimmed
		}
		op := b.DeleteDeferred(nameKeyLen(log))
		appendNameKey(op.Key[:0], space, log)
		_ = op.Finish()
	}
	moveTime(b, appendDueKey, stampOf(h.DueAt), 0, log, nil)
	moveTime(b, appendExpiryKey, h.expires, 0, log, nil)
}
