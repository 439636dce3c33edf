// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The keys. Heads lie by themselves, in the order of the names, so one point look-up finds out whether there is a log,
// and a scan of names reads nothing else:
//
//	'f'                             the format
//	'j'                             the last segment of the journal held in full by the tables
//	'l' <len:2> <list> <fall:8> <log>  the logs in lists, with their labels; fall is the complement of the stamp
//	'm'                             the mark of the store's last opening
//	'h' <log>                       the heads of the logs
//	'r' <len:2> <log> <seq:8>       their records, an entry for each append, by the number of its last record
//	's' <log>                       their snapshots
//	'w' <class:1> <stamp:8> <rest>  the logs with a DueAt, by class and DueAt; the rest is the name without the class
//	'x' <stamp:8> <log>             the ended logs, by the time of their drop, with their sizes
//
// Numbers are big-endian, so they sort as bytes do. The values of 'w' are empty.
const (
	spaceFormat   = 'f'
	spaceFlushed  = 'j'
	spaceHead     = 'h'
	spaceList     = 'l'
	spaceMark     = 'm'
	spaceRecord   = 'r'
	spaceSnapshot = 's'
	spaceDue      = 'w'
	spaceExpiry   = 'x'
)

// nameKeyLen is the length of a head's or a snapshot's key, entryKeyLen the length of an entry's, timeKeyLen the length
// of an entry of either index.
func nameKeyLen(log string) int  { return 1 + len(log) }
func entryKeyLen(log string) int { return 1 + 2 + len(log) + 8 }
func timeKeyLen(log string) int  { return 1 + 8 + len(log) }

// listKeyLen is the length of the key of a log in a list.
func listKeyLen(list, log string) int { return 1 + 2 + len(list) + 8 + len(log) }

func appendNameKey(b []byte, space byte, log string) []byte {
	return append(append(b, space), log...)
}

func appendEntryKey(b []byte, log string, seq uint64) []byte {
	b = append(b, spaceRecord)
	b = binary.BigEndian.AppendUint16(b, uint16(len(log)))
	b = append(b, log...)
	return binary.BigEndian.AppendUint64(b, seq)
}

// seqOf returns the number in the key of an entry.
func seqOf(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// A timeKey appends the key of a log in an index by time.
type timeKey func(b []byte, at stamp, log string) []byte

// appendDueKey is the timeKey of the index by DueAt. The name may be a class alone: no key of the class and the
// time is less.
func appendDueKey(b []byte, at stamp, log string) []byte {
	b = append(b, spaceDue, log[0])
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return append(b, log[1:]...)
}

func splitDueKey(key []byte) (stamp, string) {
	var log strings.Builder // one allocation: there may be millions of keys
	log.Grow(len(key) - 1 - 8)
	log.WriteByte(key[1])
	log.Write(key[2+8:])
	return stamp(binary.BigEndian.Uint64(key[2:])), log.String()
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

// appendListKey appends the key of a log in a list.
func appendListKey(b []byte, list string, at stamp, log string) []byte {
	b = appendList(b, list)
	b = binary.BigEndian.AppendUint64(b, ^uint64(at))
	return append(b, log...)
}

// appendList appends the common prefix of the keys of all logs in a list.
func appendList(b []byte, list string) []byte {
	b = append(b, spaceList)
	b = binary.BigEndian.AppendUint16(b, uint16(len(list)))
	return append(b, list...)
}

// splitListKey takes apart the key of a log in a list with a name of so many bytes.
func splitListKey(key []byte, list int) (stamp, string) {
	key = key[1+2+list:]
	return stamp(^binary.BigEndian.Uint64(key)), string(key[8:])
}

// listBounds returns the bounds of the keys of the logs in a list after a given one, or of all if there is none.
func listBounds(list string, after replay.ListedLog) (lower, upper []byte) {
	lower = appendList(nil, list)
	upper = next(lower)
	if after.Log != "" {
		lower = append(appendListKey(nil, list, stampOf(after.At), after.Log), 0) // the least greater key
	}
	return lower, upper
}

// next returns the least key greater than all keys beginning with prefix. The first byte of prefix is a space.
func next(prefix []byte) []byte {
	b := slices.Clone(prefix)
	for b[len(b)-1] == 0xff { // the space is less, so this ends
		b = b[:len(b)-1]
	}
	b[len(b)-1]++
	return b
}

// headBounds returns the bounds of the keys of the heads of logs with a name that begins with prefix and comes after a
// given one.
func headBounds(prefix, after string) (lower, upper []byte) {
	lower = appendNameKey(nil, spaceHead, prefix)
	upper = next(lower)
	if after >= prefix && after != "" {
		lower = append(appendNameKey(nil, spaceHead, after), 0) // the least greater key
	}
	if bytes.Compare(lower, upper) > 0 {
		lower = upper // all of them come before
	}
	return lower, upper
}

// stamp is a time as it is stored: 0 for none, else 1 + the nanoseconds since 1970. Recover is the earliest; a time
// outside of the years 1970 to 2262 is taken for the nearest time within.
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
