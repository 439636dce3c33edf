// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"encoding/binary"
	"errors"
	"math"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The keys. All of a log lies together, so that one seek finds it and one range holds it:
//
//	'f'                             the format
//	'l' <len:2> <log> 0             the head of a log
//	'l' <len:2> <log> 1             its snapshot
//	'l' <len:2> <log> 2 <seq:8>     its records
//	'w' <stamp:8> <log>             the logs that have a Wake, by it
//	'x' <stamp:8> <log>             the logs that have ended, by the time at which they are dropped
//
// Numbers are big-endian, so that they order as bytes do. The values of 'w' and 'x' are empty.
const (
	spaceFormat = 'f'
	spaceLog    = 'l'
	spaceWake   = 'w'
	spaceExpiry = 'x'

	partHead     = 0
	partSnapshot = 1
	partRecord   = 2
	partEnd      = 3 // no key; the upper bound of all of a log
)

// format is the value of the format key. A store with another one is not opened.
const format = "aip-gateway replay 1"

var formatKey = []byte{spaceFormat}

// partKeyLen is the length of a head's or a snapshot's key, recordKeyLen that of a record's.
func partKeyLen(log string) int   { return 1 + 2 + len(log) + 1 }
func recordKeyLen(log string) int { return partKeyLen(log) + 8 }
func timeKeyLen(log string) int   { return 1 + 8 + len(log) }

func appendPartKey(b []byte, log string, part byte) []byte {
	b = append(b, spaceLog)
	b = binary.BigEndian.AppendUint16(b, uint16(len(log)))
	b = append(b, log...)
	return append(b, part)
}

func appendRecordKey(b []byte, log string, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPartKey(b, log, partRecord), seq)
}

func appendTimeKey(b []byte, space byte, at stamp, log string) []byte {
	b = append(b, space)
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return append(b, log...)
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
