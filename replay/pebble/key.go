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

// The keys. Heads lie by themselves, in the order of the names, so that one point look-up tells whether there is a
// log, and a scan of names reads nothing else:
//
//	'f'                             the format
//	'h' <log>                       the heads of the logs
//	'r' <len:2> <log> <seq:8>       their records
//	's' <log>                       their snapshots
//	'w' <class:1> <stamp:8> <rest>  the logs that have a Wake, by class and it; the rest is the name without the class
//	'x' <stamp:8> <log>             the logs that have ended, by the time at which they are dropped
//
// Numbers are big-endian, so that they order as bytes do. The values of 'w' and 'x' are empty.
const (
	spaceFormat   = 'f'
	spaceHead     = 'h'
	spaceRecord   = 'r'
	spaceSnapshot = 's'
	spaceWake     = 'w'
	spaceExpiry   = 'x'
)

// format is the value of the format key. A store with another one is not opened.
const format = "aip-gateway replay 2"

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

// appendWakeKey is the timeKey of the index by Wake. The name may be a class alone: no key of the class and the
// time is less.
func appendWakeKey(b []byte, at stamp, log string) []byte {
	b = append(b, spaceWake, log[0])
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return append(b, log[1:]...)
}

func splitWakeKey(key []byte) (stamp, string) {
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

// stamp is a time as it is stored: 0 for none, else 1 + the nanoseconds since 1970. AtRestart is the earliest;
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
	expires stamp // when it is dropped; 0 while it has not ended
}

var errHead = errors.New("replay/pebble: the head of a log is damaged")

func (h *head) append(b []byte) []byte {
	b = binary.AppendUvarint(b, h.First)
	b = binary.AppendUvarint(b, h.Last)
	b = binary.AppendUvarint(b, uint64(h.Bytes))
	b = binary.AppendUvarint(b, uint64(stampOf(h.Wake)))
	b = binary.AppendUvarint(b, uint64(stampOf(h.Ended)))
	b = binary.AppendUvarint(b, uint64(h.expires))
	return append(b, h.Note...)
}

// maxHeadLen is the greatest length of a stored head without its note.
const maxHeadLen = 6 * binary.MaxVarintLen64

// parseHead reads a stored head. Its Note is a part of b.
func parseHead(b []byte) (head, error) {
	var n [6]uint64
	for i := range n {
		v, size := binary.Uvarint(b)
		if size <= 0 {
			return head{}, errHead
		}
		n[i], b = v, b[size:]
	}
	h := head{
		Head: replay.Head{
			First: n[0], Last: n[1], Bytes: int64(n[2]), Note: b,
			Wake: stamp(n[3]).time(), Ended: stamp(n[4]).time(),
		},
		expires: stamp(n[5]),
	}
	if h.First == 0 || h.First > h.Last+1 || h.Bytes < 0 || n[3] > math.MaxInt64 || n[4] > math.MaxInt64 {
		return head{}, errHead
	}
	return h, nil
}
