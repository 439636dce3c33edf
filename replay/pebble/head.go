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
	expires stamp  // when it is dropped; 0 while it has not ended
	losses  uint64 // mark.losses when the log last got a record
	entries uint64 // number of entries with the log's records; 0 if they lie beside the head
	single  uint64 // up to this number, each entry is the data of one record, as format 3 has it
	beside  bool   // all records lie beside the head, as one entry
	entry   []byte // that entry, where the head has been read with it
	pending bool   // the log is an intent, which the database does not have

	// The process that may append to the log, and a number that rises with each change of owner. Neither is used yet.
	owner string
	epoch uint64
}

var errHead = errors.New("replay/pebble: the head of a log is damaged")

// headBegin is what a stored head begins with. A head of format 3 never does: it would be a 0 in two bytes.
const headBegin = "\x80\x00"

// What a stored head has beside what all have, as bits of its third byte.
const (
	headLosses   = 1 << iota // losses and gaps
	headSingle               // single
	headBeside               // an entry
	headOwner                // owner and epoch
	headLists                // lists
	headCut                  // nothing: Cut is set
	headRevision             // Revision, where it is greater than 1
	headBits     = 1<<iota - 1
)

// appendNumbers writes the head of a log up to the entry, which has so many bytes: its beginning, its bits, what they
// say that it has, First, Last, Bytes, DueAt, Ended, expires, entries, and the length of the entry of the records that
// lie beside it. Then come the entry and the metadata.
func (h *head) appendNumbers(b []byte, log string, entryLen int) []byte {
	b = append(b, headBegin...)
	bits := len(b)
	b = append(b, 0)
	if h.losses > 0 || len(h.Gaps) > 0 {
		b[bits] |= headLosses
		b = binary.AppendUvarint(b, h.losses)
		b = binary.AppendUvarint(b, uint64(len(h.Gaps)))
		for _, g := range h.Gaps {
			b = binary.AppendUvarint(b, g.From)
			b = binary.AppendUvarint(b, g.To)
		}
	}
	if h.single > 0 {
		b[bits] |= headSingle
		b = binary.AppendUvarint(b, h.single)
	}
	if h.owner != "" || h.epoch > 0 {
		b[bits] |= headOwner
		b = binary.AppendUvarint(b, uint64(len(h.owner)))
		b = append(b, h.owner...)
		b = binary.AppendUvarint(b, h.epoch)
	}
	if h.Cut {
		b[bits] |= headCut
	}
	if len(h.Lists) > 0 {
		b[bits] |= headLists
		b = appendLists(b, log, h.Lists)
	}
	if h.Revision > 1 {
		b[bits] |= headRevision
		b = binary.AppendUvarint(b, h.Revision)
	}
	b = binary.AppendUvarint(b, h.First)
	b = binary.AppendUvarint(b, h.Last)
	b = binary.AppendUvarint(b, uint64(h.Bytes))
	b = binary.AppendUvarint(b, uint64(stampOf(h.DueAt)))
	b = binary.AppendUvarint(b, uint64(stampOf(h.Ended)))
	b = binary.AppendUvarint(b, uint64(h.expires))
	b = binary.AppendUvarint(b, h.entries)
	if h.beside {
		b[bits] |= headBeside
		b = binary.AppendUvarint(b, uint64(entryLen))
	}
	return b
}

// maxHeadLen is the greatest length of a stored head without its metadata, gaps, owner, lists and entry.
const maxHeadLen = len(headBegin) + 1 + 14*binary.MaxVarintLen64

// parseHead reads a stored head of a log, in a store that has had so many losses. Its Metadata and entry are parts of
// b.
func parseHead(b []byte, log string, losses uint64) (head, error) {
	if len(b) <= len(headBegin) || string(b[:len(headBegin)]) != headBegin {
		return parseHeadBefore(b, losses)
	}
	var h head
	bits := b[len(headBegin)]
	p := numbers{rest: b[len(headBegin)+1:], failed: bits&^byte(headBits) != 0}
	if bits&headLosses != 0 {
		p.losses(&h)
	}
	if bits&headSingle != 0 {
		h.single = p.next()
		p.failed = p.failed || h.single == 0
	}
	if bits&headOwner != 0 {
		h.owner = string(p.bytes())
		h.epoch = p.next()
	}
	h.Cut = bits&headCut != 0
	if bits&headLists != 0 {
		h.Lists = p.lists(log)
	}
	// A head that was written before there were revisions has none, and counts as the first: no writer knows it yet,
	// since each reads the head first, and those that it knows from then on are all greater.
	h.Revision = 1
	if bits&headRevision != 0 {
		h.Revision = p.next()
		p.failed = p.failed || h.Revision < 2
	}
	p.common(&h)
	h.entries = p.next()
	if bits&headBeside != 0 {
		h.beside = true
		h.entry = p.bytes()
	}
	h.Metadata = p.rest
	wrong := h.single > h.Last || h.beside && (h.Last == 0 || h.entries > 0 || h.single > 0) || h.entries > h.Last
	if p.failed || wrong {
		return head{}, errHead
	}
	return h.check(losses)
}

// parseHeadBefore is parseHead for format 3. What few heads have comes before the rest, behind a 0, which First cannot
// be. There are no bits, entries, and nothing beside a head.
func parseHeadBefore(b []byte, losses uint64) (head, error) {
	p := numbers{rest: b}
	var h head
	if len(b) > 0 && b[0] == 0 {
		p.rest = b[1:]
		p.losses(&h)
	}
	p.common(&h)
	h.Revision = 1
	h.Metadata = p.rest
	if p.failed {
		return head{}, errHead
	}
	h, err := h.check(losses)
	if err == nil && h.First <= h.Last {
		h.single, h.entries = h.Last, h.Kept()
	}
	return h, err
}

// check returns h, as it is in a store that has had so many losses, or an error if it cannot be a head.
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
		// What was appended after one loss may have been taken by the next one, and so have its numbers.
		h.Lost = maxLost * (losses - h.losses)
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

// bytes reads a number, and as many bytes.
func (p *numbers) bytes() []byte {
	n := p.next()
	if n > uint64(len(p.rest)) {
		p.failed = true
		return nil
	}
	b := p.rest[:n:n]
	p.rest = p.rest[n:]
	return b
}

// losses reads the losses and gaps of a head.
func (p *numbers) losses(h *head) {
	h.losses = p.next()
	for n := p.next(); n > 0 && !p.failed; n-- {
		h.Gaps = append(h.Gaps, replay.Gap{From: p.next(), To: p.next()})
	}
}

// common reads what heads of all formats have.
func (p *numbers) common(h *head) {
	h.First = p.next()
	h.Last = p.next()
	h.Bytes = int64(p.next())
	due, ended := p.next(), p.next()
	h.DueAt, h.Ended = stamp(due).time(), stamp(ended).time()
	h.expires = stamp(p.next())
	p.failed = p.failed || due > math.MaxInt64 || ended > math.MaxInt64
}
