// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/aip-gateway/aip-gateway/replay"
)

// head is a log's head as it is stored. A log that does not exist has the zero one.
type head struct {
	replay.Head
	expires stamp  // time of its drop; 0 while it has not ended
	losses  uint64 // mark.losses when the log last got a record
	entries uint64 // number of entries with the log's records; 0 if they are inline in the head
	inline  bool   // all records are inline in the head, as one entry
	entry   []byte // the inline entry, if the head was read with it
	pending bool   // the log is an intent, not in the database

	// followed is set if entries behind Last may make it a later head, as it is stored: see log.follows. In log.head it is
	// that head.
	followed bool
}

var errHead = errors.New("replay/pebble: the head of a log is damaged")

// The optional parts of a stored head, as bits of its first byte.
const (
	headLosses   = 1 << iota // losses and gaps
	headLists                // lists
	headInline               // an entry
	headCut                  // nothing: Cut is set
	headFollowed             // nothing: entries may follow
	headBits     = 1<<iota - 1
)

// appendNumbers writes the head of a log up to the entry of entryLen bytes: its bits, losses, gaps and lists if the
// bits mark them, Revision, First, Last, Bytes, DueAt, Ended, expires, entries, and the length of the entry of the
// records inline in it. Then come the entry and the metadata.
func (h *head) appendNumbers(b []byte, log string, entryLen int) []byte {
	bits := len(b)
	b = append(b, 0)
	if h.losses > 0 || len(h.Gaps) > 0 {
		b[bits] |= headLosses
		b = binary.AppendUvarint(b, h.losses)
		b = replay.AppendGaps(b, h.Gaps)
	}
	if h.Cut {
		b[bits] |= headCut
	}
	if h.followed {
		b[bits] |= headFollowed
	}
	if len(h.Lists) > 0 {
		b[bits] |= headLists
		b = appendLists(b, log, h.Lists)
	}
	b = binary.AppendUvarint(b, h.Revision)
	b = binary.AppendUvarint(b, h.First)
	b = binary.AppendUvarint(b, h.Last)
	b = binary.AppendUvarint(b, uint64(h.Bytes))
	b = binary.AppendUvarint(b, uint64(stampOf(h.DueAt)))
	b = binary.AppendUvarint(b, uint64(stampOf(h.Ended)))
	b = binary.AppendUvarint(b, uint64(h.expires))
	b = binary.AppendUvarint(b, h.entries)
	if h.inline {
		b[bits] |= headInline
		b = binary.AppendUvarint(b, uint64(entryLen))
	}
	return b
}

// maxHeadLen is the greatest length of a stored head without its metadata, gaps, lists and entry.
const maxHeadLen = 1 + 11*binary.MaxVarintLen64

// parseHead reads a stored head of a log, in a store with so many losses. Its Metadata and entry are parts of b.
func parseHead(b []byte, log string, losses uint64) (head, error) {
	if len(b) == 0 {
		return head{}, errHead
	}
	var h head
	bits := b[0]
	p := numbers{replay.Numbers{Rest: b[1:], Failed: bits&^byte(headBits) != 0}}
	if bits&headLosses != 0 {
		h.losses = p.Next()
		h.Gaps = p.Gaps()
	}
	h.Cut, h.followed = bits&headCut != 0, bits&headFollowed != 0
	if bits&headLists != 0 {
		h.Lists = p.lists(log)
	}
	h.Revision = p.Next()
	h.First = p.Next()
	h.Last = p.Next()
	h.Bytes = int64(p.Next())
	due, ended := p.Next(), p.Next()
	h.DueAt, h.Ended = stamp(due).time(), stamp(ended).time()
	h.expires = stamp(p.Next())
	h.entries = p.Next()
	if bits&headInline != 0 {
		h.inline = true
		h.entry = p.Bytes()
	}
	h.Metadata = p.Rest
	if p.Failed || h.Revision == 0 || due > math.MaxInt64 || ended > math.MaxInt64 || h.entries > h.Last ||
		h.inline && (h.Last == 0 || h.entries > 0) || h.followed && (h.entries == 0 || !h.Ended.IsZero()) {
		return head{}, errHead
	}
	return h.check(losses)
}

// check returns h, as it is in a store with so many losses, or an error if it cannot be a head.
func (h head) check(losses uint64) (head, error) {
	if h.First == 0 || h.First > h.Last+1 || h.Bytes < 0 {
		return head{}, errHead
	}
	for i, g := range h.Gaps {
		if g.From == 0 || g.To < max(g.From, h.First) || g.To >= h.Last || i > 0 && g.From < h.Gaps[i-1].To+2 {
			return head{}, errHead
		}
	}
	if h.Ended.IsZero() && h.losses < losses && h.Last > 0 {
		// Records appended after one loss may have been taken by the next one, with their numbers.
		h.Lost = maxLost * (losses - h.losses)
	}
	return h, nil
}

// numbers reads the numbers of an entry of the database.
type numbers struct{ replay.Numbers }
