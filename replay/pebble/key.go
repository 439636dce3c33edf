// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The keys. Heads lie by themselves, in the order of the names, so that one point look-up finds out whether there is a
// log, and a scan of names reads nothing else:
//
//	'f'                             the format
//	'm'                             what the store remembers of its last opening
//	'h' <log>                       the heads of the logs
//	'r' <len:2> <log> <seq:8>       their records
//	's' <log>                       their snapshots
//	'w' <class:1> <stamp:8> <rest>  the logs with a DueAt, by class and DueAt; the rest is the name without the class
//	'x' <stamp:8> <log>             the logs that have ended, by the time at which they are dropped, with their sizes
//
// Numbers are big-endian, so that they order as bytes do. The values of 'w' are empty.
const (
	spaceFormat   = 'f'
	spaceHead     = 'h'
	spaceMark     = 'm'
	spaceRecord   = 'r'
	spaceSnapshot = 's'
	spaceWake     = 'w'
	spaceExpiry   = 'x'
)

// format is the value of the format key. A store with another one is not opened, but for the one before, which has no
// mark and no heads with losses or gaps: it becomes one of this format.
const (
	format       = "aip-gateway replay 3"
	formatBefore = "aip-gateway replay 2"
)

var formatKey = []byte{spaceFormat}

// nameKeyLen is the length of a head's or a snapshot's key, recordKeyLen that of a record's, timeKeyLen that of an
// entry of either index.
func nameKeyLen(log string) int   { return 1 + len(log) }
func recordKeyLen(log string) int { return 1 + 2 + len(log) + 8 }
func timeKeyLen(log string) int   { return 1 + 8 + len(log) }

func appendNameKey(b []byte, space byte, log string) []byte {
	return append(append(b, space), log...)
}

func appendRecordKey(b []byte, log string, seq uint64) []byte {
	b = append(b, spaceRecord)
	b = binary.BigEndian.AppendUint16(b, uint16(len(log)))
	b = append(b, log...)
	return binary.BigEndian.AppendUint64(b, seq)
}

// seqOf returns the number in a record's key.
func seqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// A timeKey appends the key of a log in an index by time.
type timeKey func(b []byte, at stamp, log string) []byte

// appendWakeKey is the timeKey of the index by DueAt. The name may be a class alone: no key of the class and the
// time is less.
func appendDueKey(b []byte, at stamp, log string) []byte {
	b = append(b, spaceWake, log[0])
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return append(b, log[1:]...)
}

func splitDueKey(key []byte) (stamp, string) {
	return stamp(binary.BigEndian.Uint64(key[2:])), string(key[1:2]) + string(key[2+8:])
}

// appendExpiryKey is the timeKey of the index by expiry. The name may be empty: no key of the time is less.
func appendExpiryKey(b []byte, at stamp, log string) []byte {
	b = append(b, spaceExpiry)
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return append(b, log...)
}

func splitExpiryKey(key []byte) (stamp, string) {
	return stamp(binary.BigEndian.Uint64(key[1:])), string(key[1+8:])
}

// headBounds returns the bounds of the keys of the heads whose logs' names begin with prefix and come after a name.
func headBounds(prefix, after string) (lower, upper []byte) {
	lower = appendNameKey(nil, spaceHead, prefix)
	upper = slices.Clone(lower)
	for upper[len(upper)-1] == 0xff { // the space is less, so this ends
		upper = upper[:len(upper)-1]
	}
	upper[len(upper)-1]++
	if after >= prefix && after != "" {
		lower = append(appendNameKey(nil, spaceHead, after), 0) // the least key that is greater
	}
	if bytes.Compare(lower, upper) > 0 {
		lower = upper // all of them come before
	}
	return lower, upper
}

// stamp is a time as it is stored: 0 for none, else 1 + the nanoseconds since 1970. Recover is the earliest;
// what lies outside of the years 1970 to 2262 is taken for the nearest time within.
type stamp uint64

func stampOf(t time.Time) stamp {
	if t.IsZero() {
		return 0
	}
	switch sec := t.Unix(); {
	case sec < 0:
		return 1
	case sec >= math.MaxInt64/int64(time.Second):
		return math.MaxInt64
	}
	return stamp(t.UnixNano()) + 1
}

func (s stamp) time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(s-1))
}

// head is a log's head as it is stored. A log that does not exist has the zero one.
type head struct {
	replay.Head
	expires stamp  // when it is dropped; 0 while it has not ended
	losses  uint64 // mark.losses when the log last got a record
}

var errHead = errors.New("replay/pebble: the head of a log is damaged")

// append writes First, Last, Bytes, DueAt, Ended, expires and the metadata. What few heads have comes before, behind a
// 0, which First cannot be: the losses, the number of gaps, and of each gap From and To.
func (h *head) append(b []byte) []byte {
	if h.losses > 0 || len(h.Gaps) > 0 {
		b = append(b, 0)
		b = binary.AppendUvarint(b, h.losses)
		b = binary.AppendUvarint(b, uint64(len(h.Gaps)))
		for _, g := range h.Gaps {
			b = binary.AppendUvarint(b, g.From)
			b = binary.AppendUvarint(b, g.To)
		}
	}
	b = binary.AppendUvarint(b, h.First)
	b = binary.AppendUvarint(b, h.Last)
	b = binary.AppendUvarint(b, uint64(h.Bytes))
	b = binary.AppendUvarint(b, uint64(stampOf(h.DueAt)))
	b = binary.AppendUvarint(b, uint64(stampOf(h.Ended)))
	b = binary.AppendUvarint(b, uint64(h.expires))
	return append(b, h.Metadata...)
}

// maxHeadLen is the greatest length of a stored head without its metadata and gaps.
const maxHeadLen = 9 * binary.MaxVarintLen64

// parseHead reads a stored head, in a store that has had so many losses. Its Metadata is a part of b.
func parseHead(b []byte, losses uint64) (head, error) {
	p := numbers{rest: b}
	var h head
	h.First = p.next()
	if h.First == 0 {
		h.losses = p.next()
		for n := p.next(); n > 0 && !p.failed; n-- {
			h.Gaps = append(h.Gaps, replay.Gap{From: p.next(), To: p.next()})
		}
		h.First = p.next()
	}
	h.Last = p.next()
	h.Bytes = int64(p.next())
	wake, ended := p.next(), p.next()
	h.DueAt, h.Ended = stamp(wake).time(), stamp(ended).time()
	h.expires = stamp(p.next())
	h.Metadata = p.rest
	if p.failed || h.First == 0 || h.First > h.Last+1 || h.Bytes < 0 || wake > math.MaxInt64 || ended > math.MaxInt64 {
		return head{}, errHead
	}
	for i, g := range h.Gaps {
		if g.From == 0 || g.To < max(g.From, h.First) || g.To >= h.Last || i > 0 && g.From < h.Gaps[i-1].To+2 {
			return head{}, errHead
		}
	}
	if h.Ended.IsZero() && h.losses < losses && h.Last > 0 {
		h.Lost = maxLost
	}
	return h, nil
}

// numbers reads numbers, until it has failed once.
type numbers struct {
	rest   []byte
	failed bool
}

func (p *numbers) next() uint64 {
	n, size := binary.Uvarint(p.rest)
	if size <= 0 {
		p.failed = true
		return 0
	}
	p.rest = p.rest[size:]
	return n
}
