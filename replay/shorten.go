// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A shortened text is a series of steps. Each appends some bytes to the text, and then a copy of some of the bytes
// before. The first byte of a step has both numbers of bytes, four bits each; numbers too large for that follow, the
// first one with its form. Then come the bytes, and the place of the copy. The text may have another one before it, the
// model: what is copied from there is mostly at the place in line with the last copy from there, and the difference to
// that place is written. Otherwise it is the distance back.

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

// shorten appends the text from begin on, shortened, to b. Known are places in the model before it, and what is between
// the two is known, too.
func shorten(b, text []byte, begin int, line line, known *matches) []byte {
	if len(text) >= math.MaxUint16 {
		return appendStep(b, text[begin:], 0, 0)
	}
	var own matches
	own.add(text, line.model, begin)
	done := begin
	for i := begin; i+leastCopy <= len(text); {
		h := hashOf(text[i:])
		from, n := longest(text, i, line.at(i), int(own[h])-1, int(known[h])-1)
		n = beforeUUID(text, i, n)
		if n < leastCopy {
			own[h] = uint16(i + 1)
			i++
			continue
		}
		// The end of a UUID may be the same as that of another one by chance. As a whole it is shorter.
		if left := uuidLength - (i - done); left > 0 && n-left >= leastCopy && isUUID(text[done:i+left]) {
			i, from, n = i+left, from+left, n-left
		}
		b = appendStep(b, text[done:i], line.encode(from, i), n)
		own.add(text, i, i+n)
		i += n
		done = i
	}
	if done < len(text) {
		b = appendStep(b, text[done:], 0, 0)
	}
	return b
}

// line is how a text is in line with its model: a place in the text with one so many bytes before it.
type line struct {
	model int // its length
	ahead int
}

// at returns the place in the model in line with one in the text; -1 for none.
func (l *line) at(i int) int {
	if at := i - l.ahead; at < l.model {
		return at
	}
	return -1
}

// encode returns the place of a copy for the place i as it is written.
func (l *line) encode(from, i int) uint64 {
	if from >= l.model {
		return uint64(i-from)<<1 | 1
	}
	by := from - (i - l.ahead)
	l.ahead = i - from
	return uint64(uint32(by<<1)^uint32(by>>31)) << 1
}

// decode returns the place that encode was given.
func (l *line) decode(n uint64, i int) (from int) {
	if n&1 != 0 {
		return i - int(n>>1)
	}
	n >>= 1
	from = i - l.ahead + int(int32(uint32(n)>>1)^-int32(n&1))
	l.ahead = i - from
	return from
}

// beforeUUID returns the number of the n bytes at i before a UUID. The first digits of a UUID may be the same as those
// of another one by chance, and as a whole it is shorter.
func beforeUUID(text []byte, i, n int) int {
	if n < leastCopy {
		return n
	}
	for k := 1; k < hyphens && k <= n && i+n-k+uuidLength <= len(text); k++ {
		if isUUID(text[i+n-k : i+n-k+uuidLength]) {
			return n - k
		}
	}
	return n
}

// longest returns which of some places before i has most bytes that are the same as those at i, and their number.
func longest(text []byte, i int, places ...int) (from, most int) {
	for _, at := range places {
		if at < 0 || at >= i || i+most >= len(text) || text[at+most] != text[i+most] {
			continue // it has no more than the one before
		}
		n := 0
		for i+n+8 <= len(text) {
			differ := binary.LittleEndian.Uint64(text[at+n:]) ^ binary.LittleEndian.Uint64(text[i+n:])
			if differ != 0 {
				n += bits.TrailingZeros64(differ) / 8
				break
			}
			n += 8
		}
		for i+n < len(text) && text[at+n] == text[i+n] {
			n++
		}
		if n > most {
			from, most = at, n
		}
	}
	return from, most
}

// appendStep appends a step. n is 0 for no copy, and place is that of line.encode.
func appendStep(b, text []byte, place uint64, n int) []byte {
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
		b = binary.AppendUvarint(b, place)
	}
	return b
}

// lengthen appends a shortened text to b, what was before it.
func lengthen(b, short []byte, line line) []byte {
	p := Numbers{Rest: short}
	for len(p.Rest) > 0 {
		first := p.Rest[0]
		p.Rest = p.Rest[1:]
		plain, size, as := int(first>>4), int(first&largeStep), asIs
		if plain == largeStep {
			n := int(p.Next())
			plain, as = plain+n>>formBits, form(n&(1<<formBits-1))
		}
		if size == largeStep {
			size += int(p.Next())
		}
		b, p.Rest = as.read(b, p.Rest, plain)
		if size == 0 {
			continue
		}
		from := line.decode(p.Next(), len(b))
		for n := size + leastCopy - 1; n > 0; n-- { // a copy may reach into itself
			b = append(b, b[from])
			from++
		}
	}
	return b
}
