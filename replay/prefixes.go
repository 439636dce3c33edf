// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/binary"
	"hash/maphash"
	"strings"
)

// prefixes shortens names of logs. The parts of a name have zero bytes between them, and many names are alike in all
// but their last part. What comes before the last part, without the class, is kept once for all of them. What is
// in one name only, as far as is seen, stays there: kept apart it would take more.
type prefixes struct {
	numbers map[string]uint64
	all     []prefix // by number; the first one is not used
	free    []uint64
	seed    maphash.Seed
	seen    []uint32 // hashes of those met last
}

type prefix struct {
	text string
	used int // the names with it
}

const (
	prefixLeast = 8 // the least length of one that is kept
	prefixSeen  = 1 << 12
)

// append appends a name shortened to b.
func (p *prefixes) append(b []byte, name string) []byte {
	cut := max(strings.LastIndexByte(name, 0)+1, 1)
	number := p.take(name[1:cut])
	if number == 0 {
		cut = 1
	}
	b = binary.AppendUvarint(append(b, name[0]), number)
	rest := []byte(name[cut:])
	as := asIs
	if len(rest) > 0 {
		as = formOf(rest)
	}
	b = binary.AppendUvarint(b, uint64(len(rest))<<formBits|uint64(as))
	return as.append(b, rest)
}

// read reads what append has appended, and appends the name to b.
func (p *prefixes) read(b []byte, from *Numbers) []byte {
	b = append(b, from.Rest[0])
	from.Rest = from.Rest[1:]
	if number := from.Next(); number > 0 {
		b = append(b, p.all[number].text...)
	}
	n := from.Next()
	b, from.Rest = form(n&(1<<formBits-1)).read(b, from.Rest, int(n>>formBits))
	return b
}

// leave is called when a name, shortened by append, is gone.
func (p *prefixes) leave(short []byte) {
	number, _ := binary.Uvarint(short[1:])
	if number == 0 {
		return
	}
	of := &p.all[number]
	if of.used--; of.used == 0 {
		delete(p.numbers, of.text)
		of.text = ""
		p.free = append(p.free, number)
	}
}

// take returns the number of a text for one more name; 0 if it is not kept.
func (p *prefixes) take(text string) uint64 {
	if len(text) < prefixLeast {
		return 0
	}
	if number, ok := p.numbers[text]; ok {
		p.all[number].used++
		return number
	}
	if p.seen == nil {
		*p = prefixes{numbers: make(map[string]uint64), all: make([]prefix, 1), seed: maphash.MakeSeed(),
			seen: make([]uint32, prefixSeen)}
	}
	hash := uint32(maphash.String(p.seed, text))
	if seen := &p.seen[hash%prefixSeen]; *seen != hash {
		*seen = hash
		return 0
	}
	var number uint64
	if n := len(p.free); n > 0 {
		number, p.free = p.free[n-1], p.free[:n-1]
	} else {
		number = uint64(len(p.all))
		p.all = append(p.all, prefix{})
	}
	text = strings.Clone(text)
	p.all[number] = prefix{text, 1}
	p.numbers[text] = number
	return number
}
