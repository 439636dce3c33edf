// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// packer packs heads. Those of a class are much alike, and repeat parts of the names of their logs, and their times in
// their metadata: so a head is packed as its difference from those, and from some heads packed before. It learns them
// by itself. They are kept as long as the packer.
type packer struct {
	texts   []learned // what heads are packed with; the first byte of a packed head is the place in here
	classes map[byte]*packing
	buffer  []byte
	moments []time.Time
}

// learned is what heads are packed with.
type learned struct {
	text string
	head int   // the place of a head in it, if there is one
	sec  int64 // the seconds of a time of this head
}

// line returns the line of a head at a place with the one in the text.
func (l *learned) line(begin int) line { return line{len(l.text), begin - l.head} }

// packing is how the heads of a class are packed now.
type packing struct {
	text  int // in packer.texts
	known matches
	count uint // of packed heads
}

const (
	// packText is the greatest length of a text.
	packText = 4096
	// packTexts is the greatest number of texts. Each class has a new one when the number of its packed heads doubles.
	packTexts = 256
)

// pack appends a head, packed, to b. Behind the number of its text are its times, and then the rest of it, shortened.
func (p *packer) pack(b []byte, log string, h *Head) []byte {
	c := p.classes[log[0]]
	if c == nil {
		if p.classes == nil {
			p.classes = make(map[byte]*packing)
			p.texts = append(p.texts, learned{})
		}
		c = &packing{}
		p.classes[log[0]] = c
	}
	of := p.texts[c.text]
	listed := p.collect(h)
	b = appendMoments(append(b, byte(c.text)), p.moments, !h.DueAt.IsZero(), listed, of.sec)
	p.begin(of.text, log, !h.DueAt.IsZero(), listed)
	begin := len(p.buffer)
	p.buffer = appendHead(p.buffer, h, p.moments)
	b = shorten(b, p.buffer, begin, of.line(begin), &c.known)
	if c.count++; c.count&(c.count-1) == 0 && len(p.texts) < packTexts {
		cut := max(0, len(p.buffer)-packText)
		next := learned{text: string(p.buffer[cut:]), head: max(0, begin-cut)}
		if len(p.moments) > 0 {
			next.sec = p.moments[0].Unix()
		}
		c.text = len(p.texts)
		p.texts = append(p.texts, next)
		c.known = matches{}
		c.known.add([]byte(next.text), 0, len(next.text))
	}
	return b
}

// collect sets p.moments to the times of a head: first when it is due, then those of its lists, whose number it
// returns, and then that of its end. Zero ones, and the same again, are left out.
func (p *packer) collect(h *Head) (listed int) {
	p.moments = p.moments[:0]
	if !h.DueAt.IsZero() {
		p.moments = append(p.moments, wall(h.DueAt))
	}
	due := len(p.moments)
	for i := range h.Lists {
		if t := h.Lists[i].At; !t.IsZero() && momentOf(p.moments[due:], t) == 0 {
			p.moments = append(p.moments, wall(t))
		}
	}
	listed = len(p.moments) - due
	if !h.Ended.IsZero() && momentOf(p.moments, h.Ended) == 0 {
		p.moments = append(p.moments, wall(h.Ended))
	}
	return listed
}

// begin sets p.buffer to what a head is packed with.
func (p *packer) begin(text, log string, due bool, listed int) {
	p.buffer = append(append(p.buffer[:0], text...), log...)
	if listed > 0 {
		at := 0
		if due {
			at = 1
		}
		p.buffer = p.moments[at].UTC().AppendFormat(p.buffer, time.RFC3339Nano)
	}
}

// unpack returns the head of a log packed by pack. Nothing in it is shared.
func (p *packer) unpack(log string, packed []byte) Head {
	of, from := p.texts[packed[0]], Numbers{Rest: packed[1:]}
	due, listed := p.parse(&from, of.sec, math.MaxInt)
	p.begin(of.text, log, due, listed)
	begin := len(p.buffer)
	p.buffer = lengthen(p.buffer, from.Rest, of.line(begin))
	return parseHead(p.buffer[begin:], p.moments)
}

// times returns when a packed head is due, the first time in its lists, and the number of times in its lists but the
// zero one. It costs less than unpack.
func (p *packer) times(packed Numbers) (due, listed time.Time, n int) {
	of := p.texts[packed.Rest[0]]
	packed.Rest = packed.Rest[1:]
	isDue, n := p.parse(&packed, of.sec, 2)
	at := 0
	if isDue {
		due, at = p.moments[0], 1
	}
	if n > 0 {
		listed = p.moments[at]
	}
	return due, listed, n
}

// appendMoments appends the times of a head to b, as packer.parse reads them.
func appendMoments(b []byte, all []time.Time, due bool, listed int, sec int64) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	first := uint64(listed) << 1
	if due {
		first |= 1
	}
	b = binary.AppendUvarint(b, first)
	nsec := -1
	for _, t := range all {
		b = binary.AppendVarint(b, t.Unix()-sec)
		b = binary.AppendVarint(b, int64(t.Nanosecond()-nsec))
		sec, nsec = t.Unix(), t.Nanosecond()
	}
	return b
}

// parse sets p.moments to the times of a head, at most so many of them, and reports whether the first one is when it is
// due, and how many are those of lists.
func (p *packer) parse(from *Numbers, sec int64, most int) (due bool, listed int) {
	n := int(from.Next())
	first := from.Next()
	nsec := int64(-1)
	p.moments = p.moments[:0]
	for range min(n, most) {
		sec, nsec = sec+from.signed(), nsec+from.signed()
		p.moments = append(p.moments, time.Unix(sec, nsec))
	}
	return first&1 != 0, int(first >> 1)
}

// momentOf returns one more than the place of a time; 0 for none.
func momentOf(all []time.Time, t time.Time) int { return slices.IndexFunc(all, t.Equal) + 1 }

// appendHead appends a head to b, as parseHead reads it.
func appendHead(b []byte, h *Head, moments []time.Time) []byte {
	cut := byte(0)
	if h.Cut {
		cut = 1
	}
	b = append(b, cut)
	for _, n := range []uint64{h.Revision, h.First, h.Last, uint64(h.Bytes), h.Lost} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, uint64(momentOf(moments, h.DueAt)))
	b = binary.AppendUvarint(b, uint64(momentOf(moments, h.Ended)))
	b = AppendGaps(b, h.Gaps)
	b = binary.AppendUvarint(b, uint64(len(h.Lists)))
	for i := range h.Lists {
		l := &h.Lists[i]
		b = AppendText(b, l.List)
		b = AppendText(b, l.Label)
		b = binary.AppendUvarint(b, uint64(momentOf(moments, l.At)))
	}
	return append(b, h.Metadata...)
}

// parseHead reads the output of appendHead.
func parseHead(b []byte, moments []time.Time) (h Head) {
	p := Numbers{Rest: b[1:]}
	moment := func() time.Time {
		if at := p.Next(); at > 0 {
			return moments[at-1]
		}
		return time.Time{}
	}
	h.Cut = b[0] != 0
	h.Revision, h.First, h.Last, h.Bytes, h.Lost = p.Next(), p.Next(), p.Next(), int64(p.Next()), p.Next()
	h.DueAt, h.Ended = moment(), moment()
	h.Gaps = p.Gaps()
	if n := p.Next(); n > 0 {
		h.Lists = make([]Listing, n)
		end, from := p, p.Rest
		for range n {
			end.Bytes()
			end.Bytes()
			end.Next()
		}
		all := string(from[:len(from)-len(end.Rest)]) // with all names and labels
		text := func() string {
			size := len(p.Bytes())
			at := len(from) - len(p.Rest)
			return all[at-size : at]
		}
		for i := range h.Lists {
			h.Lists[i].List, h.Lists[i].Label, h.Lists[i].At = text(), text(), moment()
		}
	}
	h.Metadata = append([]byte(nil), p.Rest...)
	return h
}

// signed reads a number written by binary.AppendVarint.
func (p *Numbers) signed() int64 {
	n, size := binary.Varint(p.Rest)
	p.Rest = p.Rest[max(size, 0):]
	return n
}
