// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"math"
)

// A shortened text is a series of steps. Each appends some bytes to the text, and then a copy of some of the bytes
// before. The first byte of a step has both numbers of bytes, four bits each; numbers too large for that follow, the
// first one with its form. Then come the bytes, and the place of the copy. The text may have another one before it, to
// copy from.

const (
	// leastCopy is the least number of bytes of a copy. A copy takes two bytes or three, and in ids few bytes are the same
	// as some before by chance: they are shorter as they are.
	leastCopy = 6
	// largeStep is the least number that does not fit into the first byte of a step.
	largeStep = 15
)

// matches finds the places of bytes, by the hash of leastCopy of them: the place and one; 0 for none.
type matches [1 << 12]uint16

func hashOf(b []byte) uint32 {
	first, last := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[leastCopy-4:])
	return (first ^ last*31) * 2654435761 >> 20
}

// add adds all places of a part of a text.
func (m *matches) add(text []byte, from, to int) {
	for i := from; i < to && i+leastCopy <= len(text); i++ {
		m[hashOf(text[i:])] = uint16(i + 1)
	}
}

// shorten appends the text from begin on, shortened, to b. known has places of the text before first, and what is
// between is known, too.
func shorten(b, text []byte, first, begin int, known *matches) []byte {
	if len(text) >= math.MaxUint16 {
		return appendStep(b, text[begin:], 0, 0)
	}
	var own matches
	own.add(text, first, begin)
	done := begin
	for i := begin; i+leastCopy <= len(text); {
		h := hashOf(text[i:])
		from, n := longest(text, i, int(own[h])-1, int(known[h])-1)
		if n < leastCopy {
			own[h] = uint16(i + 1)
			i++
			continue
		}
		// The end of a UUID may be the same as that of another one by chance. As a whole it is shorter.
		if left := uuidLength - (i - done); left > 0 && n-left >= leastCopy && formOf(text[done:i+left]) == uuid {
			i, from, n = i+left, from+left, n-left
		}
		b = appendStep(b, text[done:i], from, n)
		own.add(text, i, i+n)
		i += n
		done = i
	}
	if done < len(text) {
		b = appendStep(b, text[done:], 0, 0)
	}
	return b
}

// longest returns which of two places has more bytes that are the same as those at i, and their number.
func longest(text []byte, i int, places ...int) (from, most int) {
	for _, at := range places {
		n := 0
		for at >= 0 && i+n < len(text) && text[at+n] == text[i+n] {
			n++
		}
		if n > most {
			from, most = at, n
		}
	}
	return from, most
}

// appendStep appends a step. n is 0 for no copy.
func appendStep(b, text []byte, from, n int) []byte {
	size := n
	if n > 0 {
		size = n - leastCopy + 1
	}
	b = append(b, byte(min(len(text), largeStep)<<4|min(size, largeStep)))
	as := asIs
	if len(text) >= largeStep {
		as = formOf(text)
		b = binary.AppendUvarint(b, uint64(len(text)-largeStep)<<formBits|uint64(as))
	}
	if size >= largeStep {
		b = binary.AppendUvarint(b, uint64(size-largeStep))
	}
	b = as.append(b, text)
	if n > 0 {
		b = binary.AppendUvarint(b, uint64(from))
	}
	return b
}

// lengthen appends a shortened text to b, the text before it.
func lengthen(b []byte, short string) []byte {
	for short != "" {
		first := short[0]
		short = short[1:]
		plain, size, as := int(first>>4), int(first&largeStep), asIs
		if plain == largeStep {
			n := next(&short)
			plain, as = plain+n>>formBits, form(n&(1<<formBits-1))
		}
		if size == largeStep {
			size += next(&short)
		}
		b, short = as.read(b, short, plain)
		if size == 0 {
			continue
		}
		from := next(&short)
		for n := size + leastCopy - 1; n > 0; n-- { // a copy may reach into itself
			b = append(b, b[from])
			from++
		}
	}
	return b
}

// next takes a number written by binary.AppendUvarint from a text.
func next(text *string) (n int) {
	for shift := 0; ; shift += 7 {
		c := (*text)[0]
		*text = (*text)[1:]
		if n |= int(c&0x7f) << shift; c < 0x80 {
			return n
		}
	}
}
