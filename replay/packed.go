// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"time"
)

// packer packs heads. Those of a class are much alike, and repeat parts of the names of their logs: so a head is packed
// as its difference from the name, and from some heads packed before. It learns them by itself. They are kept as long
// as the packer.
type packer struct {
	texts   []string // what heads are packed with; the first byte of a packed head is the place in here
	classes map[byte]*packing
	buffer  []byte
}

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

// pack returns a head packed.
func (p *packer) pack(log string, h *Head) string {
	c := p.classes[log[0]]
	if c == nil {
		if p.classes == nil {
			p.classes = make(map[byte]*packing)
			p.texts = append(p.texts, "")
		}
		c = &packing{}
		p.classes[log[0]] = c
	}
	text := p.texts[c.text]
	p.buffer = append(append(p.buffer[:0], text...), log...)
	begin := len(p.buffer)
	p.buffer = appendHead(p.buffer, h)
	var packed [512]byte
	short := string(shorten(append(packed[:0], byte(c.text)), p.buffer, len(text), begin, &c.known))
	if c.count++; c.count&(c.count-1) == 0 && len(p.texts) < packTexts {
		learned := p.buffer[max(0, len(p.buffer)-packText):]
		c.text = len(p.texts)
		p.texts = append(p.texts, string(learned))
		c.known = matches{}
		c.known.add(learned, 0, len(learned))
	}
	return short
}

// unpack returns the head of a log packed by pack; the zero one for none. Nothing in it is shared.
func (p *packer) unpack(log, packed string) (h Head) {
	if packed == "" {
		return h
	}
	p.buffer = append(append(p.buffer[:0], p.texts[packed[0]]...), log...)
	begin := len(p.buffer)
	p.buffer = lengthen(p.buffer, packed[1:])
	return parseHead(p.buffer[begin:])
}

const (
	headCut = 1 << iota
	headDue
	headEnded
)

// appendHead appends a head to b, as parseHead reads it.
func appendHead(b []byte, h *Head) []byte {
	flags := byte(0)
	if h.Cut {
		flags |= headCut
	}
	if !h.DueAt.IsZero() {
		flags |= headDue
	}
	if !h.Ended.IsZero() {
		flags |= headEnded
	}
	b = append(b, flags)
	for _, n := range []uint64{h.Revision, h.First, h.Last, uint64(h.Bytes), h.Lost} {
		b = binary.AppendUvarint(b, n)
	}
	if flags&headDue != 0 {
		b = appendTime(b, h.DueAt)
	}
	if flags&headEnded != 0 {
		b = appendTime(b, h.Ended)
	}
	b = AppendGaps(b, h.Gaps)
	b = binary.AppendUvarint(b, uint64(len(h.Lists)))
	for _, l := range h.Lists {
		b = AppendText(b, l.List)
		b = AppendText(b, l.Label)
		b = appendTime(b, l.At)
	}
	return append(b, h.Metadata...)
}

// parseHead reads the output of appendHead.
func parseHead(b []byte) (h Head) {
	flags := b[0]
	p := Numbers{Rest: b[1:]}
	h.Cut = flags&headCut != 0
	h.Revision, h.First, h.Last, h.Bytes, h.Lost = p.Next(), p.Next(), p.Next(), int64(p.Next()), p.Next()
	if flags&headDue != 0 {
		h.DueAt = p.time()
	}
	if flags&headEnded != 0 {
		h.Ended = p.time()
	}
	h.Gaps = p.Gaps()
	if n := p.Next(); n > 0 {
		h.Lists = make([]Listing, n)
		end, from := p, p.Rest
		for range n {
			end.Bytes()
			end.Bytes()
			end.time()
		}
		all := string(from[:len(from)-len(end.Rest)]) // with all names and labels
		text := func() string {
			size := len(p.Bytes())
			at := len(from) - len(p.Rest)
			return all[at-size : at]
		}
		for i := range h.Lists {
			h.Lists[i].List, h.Lists[i].Label, h.Lists[i].At = text(), text(), p.time()
		}
	}
	h.Metadata = append([]byte(nil), p.Rest...)
	return h
}

// appendTime appends a time to b, as Numbers.time reads it: the seconds and the nanoseconds.
func appendTime(b []byte, t time.Time) []byte {
	return binary.AppendUvarint(binary.AppendVarint(b, t.Unix()), uint64(t.Nanosecond()))
}

func (p *Numbers) time() time.Time {
	sec, size := binary.Varint(p.Rest)
	p.Rest = p.Rest[max(size, 0):]
	return time.Unix(sec, int64(p.Next()))
}
