// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// pageMessages and pageBytes bound the messages read at a time. Each time costs the server a look at all the remaining
	// ones.
	pageMessages = 1000
	pageBytes    = 1 << 20
	// leastBytes is the least number of bytes read at a time for a reader that takes a page in parts.
	leastBytes = 64 << 10
	// nearRecords is the greatest number of records that a reader reads and skips before the first one of its page.
	nearRecords = 512
)

// errHole is the error for missing records of a head: the head is not the present one.
var errHole = errors.New("records are missing")

// cursor is a place among the messages with the records of a log.
type cursor struct {
	seq    uint64 // of the message read last; 0 for none
	first  uint64 // of the first message, maybe a part, of the value with the first record of the page
	places []place
	bytes  int // about as many are read at a time; 0 for pageBytes
}

// place is where a message of the last page is.
type place struct {
	first  uint64 // number of its first record
	before uint64 // sequence before it and its parts
}

// reset forgets the place.
func (c *cursor) reset() { *c = cursor{bytes: c.bytes} }

// rewind has the next page begin after a number. Records that the page before has are read from their messages on.
func (c *cursor) rewind(after uint64) {
	c.seq = 0
	for _, p := range slices.Backward(c.places) {
		if p.first <= after+1 {
			c.seq = p.before
			break
		}
	}
	c.places = nil
}

// page returns records of a log after a number, at least one, as in h; the log must have one. It takes no longer than
// an append: then the error is an ErrUnavailable. It is a largeError if the next value is larger than a page, and has
// more than most bytes.
func (st *stream) page(
	ctx context.Context, log string, h *head, after uint64, at *cursor, most int64,
) ([]replay.Record, error) {
	limited, cancel := context.WithTimeout(ctx, st.config.GiveUp)
	defer cancel()
	page, err := st.readPage(limited, log, h, after, at, max(most, pageBytes))
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = st.unavailable()
	}
	return page, err
}

func (st *stream) readPage(
	ctx context.Context, log string, h *head, after uint64, at *cursor, most int64,
) ([]replay.Record, error) {
	subject := st.prefix + token(log) + ".r."
	want := max(h.After(after), h.First) // the number of the next record
	at.first, at.places = 0, at.places[:0]
	end := h.Last // of the records with messages of their own
	if h.inline.first > 0 {
		if want >= h.inline.first {
			return st.inlinePage(ctx, log, h, after, at, most)
		}
		end = min(end, h.inline.first-1)
	}
	if at.seq == 0 {
		var err error
		if at.seq, err = st.seek(ctx, subject, h, want); err != nil {
			return nil, err
		}
	}
	var page []replay.Record
	add := func(m message) error {
		if m.seq > h.seq {
			return errHole // of a later head, perhaps of another log with the name
		}
		n, err := numberOf(m.subject)
		if err != nil {
			return err
		}
		further, _ := binary.Uvarint(m.data)
		if size := (int64(further) + 1) * int64(len(m.data)); n <= want && size > most {
			return &largeError{size}
		}
		at.seq = m.seq
		if n > want {
			return nil // of an append that was not completed
		}
		data, err := st.whole(ctx, m)
		if err != nil {
			return err
		}
		records, err := decodeRecords(nil, data, n)
		if err != nil {
			return err
		}
		at.places = append(at.places, place{n, m.seq - further - 1})
		for _, r := range records {
			if r.Seq == want && want <= end {
				if len(page) == 0 {
					at.first = m.seq - further
				}
				page = append(page, r)
				want = h.After(want)
			}
		}
		return nil
	}
	for {
		before := at.seq
		messages, err := st.direct(ctx, at.seq+1, subject+"*", pageMessages, cmp.Or(at.bytes, pageBytes))
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for _, m := range messages {
			err := add(m)
			if _, large := err.(*largeError); large && len(page) > 0 {
				return page, nil
			} else if err != nil {
				return nil, holeOr(err)
			}
			if want > end {
				break
			}
		}
		if len(page) > 0 {
			return page, nil
		}
		if at.seq > before {
			continue
		}
		// The answering replica may lag.
		m, err := st.get(ctx, getRequest{Seq: at.seq + 1, Next: subject + "*"})
		if err == nil {
			err = add(m)
		}
		if err != nil {
			return nil, holeOr(err)
		}
		if len(page) > 0 {
			return page, nil
		}
	}
}

// inlinePage is readPage for records in the head.
func (st *stream) inlinePage(
	ctx context.Context, log string, h *head, after uint64, at *cursor, most int64,
) ([]replay.Record, error) {
	inline, want := h.inline, max(h.After(after), h.First)
	if inline.data == nil {
		present, err := st.readHead(ctx, log)
		if errors.Is(err, replay.ErrNotFound) {
			return nil, errHole
		}
		if err != nil {
			return nil, err
		}
		if present.seq < h.seq { // a deposed leader has answered
			return nil, st.unavailable()
		}
		if present.begun != h.begun || present.First > want { // dropped or trimmed meanwhile
			return nil, errHole
		}
		if inline = present.inline; inline.first == 0 || inline.first > want {
			present.Last = h.Last // they have messages of their own by now
			return st.readPage(ctx, log, &present, after, at, most)
		}
	}
	all, err := inline.records()
	if err != nil {
		return nil, err
	}
	for len(all) > 0 && all[0].Seq < want {
		all = all[1:]
	}
	for n := len(all); n > 0 && all[n-1].Seq > h.Last; n-- {
		all = all[:n-1]
	}
	if len(all) == 0 || all[0].Seq != want {
		return nil, errHole
	}
	return all, nil
}

// seek returns a sequence after which, and soon, the messages at a subject and below have the record with a number. The
// numbers grow with the sequences.
func (st *stream) seek(ctx context.Context, subject string, h *head, want uint64) (uint64, error) {
	before, number := h.begun, h.First // the record comes after this message, and no later one is known to be before it
	m, err := st.get(ctx, getRequest{Last: subject + strconv.FormatUint(want, 10)})
	if err == nil && m.seq > h.begun { // it begins a message
		return m.seq - 1, nil
	} else if err != nil && !errors.Is(err, errNoMessage) {
		return 0, err
	}
	for from, to := h.begun+1, h.seq; from < to && want-number > nearRecords; {
		middle := from + (to-from)/2
		m, err := st.get(ctx, getRequest{Seq: middle, Next: subject + "*"})
		if err != nil && !errors.Is(err, errNoMessage) {
			return 0, err
		}
		if err != nil || m.seq >= to {
			to = middle
			continue
		}
		n, err := numberOf(m.subject)
		if err != nil {
			return 0, err
		}
		if n > want {
			to = middle
			continue
		}
		before, number, from = m.seq-1, n, m.seq+1
	}
	return before, nil
}

// largeError asks for memory for a value before it is read, and has the value's size, about, in bytes.
type largeError struct{ size int64 }

func (e *largeError) Error() string {
	return fmt.Sprintf("a value of about %d bytes is not read", e.size)
}

// holeOr returns errHole for a missing message, and otherwise the error itself.
func holeOr(err error) error {
	if errors.Is(err, errNoMessage) {
		return errHole
	}
	return err
}
