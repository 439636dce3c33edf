// SPDX-License-Identifier: Apache-2.0

package task

import (
	"strconv"
	"unicode/utf8"
)

// Pieces are pieces of products, as an agent sends them while it works: chunks in their stored form, one behind the
// other. Most of them are one plain text, and cost no allocation. The nil Pieces are none. They are used by one
// goroutine.
type Pieces struct {
	stored []byte // the stored events, without anything between them
	list   []piece
	size   int64 // of all of them, as ProductsSize counts
}

// piece is one chunk of Pieces.
type piece struct {
	end  int   // of its stored event; it begins at the end of the one before
	size int64 // as ProductsSize counts

	chunk *Chunk // nil if the piece is a plain text: then the other fields are set

	product, name string
	append, last  bool
	from, to      int  // the place of the text's JSON in Pieces.stored, without its quotes
	escaped       bool // the text has escapes in JSON
}

// Len returns the number of pieces.
func (p *Pieces) Len() int {
	if p == nil {
		return 0
	}
	return len(p.list)
}

// Stored returns the size of the stored events in bytes.
func (p *Pieces) Stored() int { return len(p.stored) }

// Cap returns the memory kept by Reset, in bytes of stored events.
func (p *Pieces) Cap() int { return cap(p.stored) }

// Reset removes all pieces, and keeps the memory for the next ones.
func (p *Pieces) Reset() {
	clear(p.list)
	p.stored, p.list, p.size = p.stored[:0], p.list[:0], 0
}

// Record returns the stored event of a piece, as AppendEvent makes it of the chunk. It is valid until Reset.
func (p *Pieces) Record(i int) []byte {
	end := p.list[i].end
	return p.stored[p.start(i):end:end]
}

func (p *Pieces) start(i int) int {
	if i == 0 {
		return 0
	}
	return p.list[i-1].end
}

// AddText adds a piece of one plain text. text is the JSON of a string, with or without escapes, without its quotes:
// the caller has checked its validity. Nothing of text is kept.
func (p *Pieces) AddText(product, name string, text []byte, adds, last bool) {
	one := p.begin(product, name)
	one.append = adds
	p.stored, one.size, one.escaped = appendCanonical(p.stored, text)
	p.finish(one, last)
}

// AddChunk adds any chunk. The caller must not change it any more.
func (p *Pieces) AddChunk(c *Chunk) {
	if c.plainText() {
		one := p.begin(c.Product.ID, c.Product.Name)
		text := c.Product.DataItems[0].Text
		one.append, one.size = c.Append, int64(len(text))
		p.stored = appendEscaped(p.stored, text)
		one.escaped = len(p.stored)-one.from != len(text)
		p.finish(one, c.Last)
		return
	}
	p.stored = AppendEvent(p.stored, &Event{Chunk: c})
	one := piece{end: len(p.stored), size: c.Product.size(), chunk: c}
	p.list = append(p.list, one)
	p.size += one.size
}

// plainText reports whether a chunk is one plain text and nothing else.
func (c *Chunk) plainText() bool {
	p := &c.Product
	return len(p.DataItems) == 1 && p.DataItems[0].PlainText() && p.Description == "" && len(p.Extensions) == 0 &&
		len(c.Extensions) == 0
}

// The text between the values in the stored event of a plain text, the same as AppendEvent writes.
const (
	beforeID     = string(ChunkEvent) + `{"product":{"id":`
	beforeName   = `,"name":`
	beforeText   = `,"dataItems":[{"type":"text","text":"`
	beforeAppend = `"}]},"append":`
	beforeLast   = `,"lastChunk":`
)

// decodeText reads the stored event of a plain text. ok is false if data is another one, or has been damaged.
func decodeText(data []byte) (c Chunk, ok bool) {
	r := textReader{rest: data}
	if !r.skip(beforeID) {
		return c, false
	}
	c.Product.ID = r.quoted()
	if r.skip(beforeName) {
		c.Product.Name = r.quoted()
	}
	r.must(beforeText[:len(beforeText)-1])
	text := r.quoted()
	r.must(beforeAppend[1:])
	c.Append = r.flag()
	r.must(beforeLast)
	c.Last = r.flag()
	r.must("}")
	if r.bad || len(r.rest) > 0 || !utf8.Valid(data) {
		return Chunk{}, false
	}
	c.Product.DataItems = []DataItem{Text(text)}
	return c, true
}

// textReader reads the stored event of a plain text. It is bad after something unexpected.
type textReader struct {
	rest []byte
	bad  bool
}

func (r *textReader) skip(want string) bool {
	if len(r.rest) < len(want) || string(r.rest[:len(want)]) != want {
		return false
	}
	r.rest = r.rest[len(want):]
	return true
}

func (r *textReader) must(want string) { r.bad = r.bad || !r.skip(want) }

func (r *textReader) flag() bool {
	if r.skip("true") {
		return true
	}
	r.must("false")
	return false
}

// quoted reads a string. One with another escape than those of appendEscape is bad.
func (r *textReader) quoted() string {
	r.must(`"`)
	b, escaped := r.rest, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			r.rest = b[i+1:]
			if !escaped {
				return string(b[:i])
			}
			return string(appendUnescaped(make([]byte, 0, i), b[:i]))
		case c < 0x20:
			r.bad = true
			return ""
		case c == '\\':
			n := escapeLen(b[i:])
			if escaped = true; n == 0 {
				r.bad = true
				return ""
			}
			i += n - 1
		}
	}
	r.bad = true
	return ""
}

// begin appends a stored event up to its text.
func (p *Pieces) begin(product, name string) piece {
	n := len(p.list) - 1
	if n >= 0 && p.list[n].chunk == nil && p.list[n].product == product && p.list[n].name == name {
		p.stored = append(p.stored, p.stored[p.start(n):p.list[n].from]...) // the event before begins in the same way
	} else {
		p.stored = AppendString(append(p.stored, beforeID...), product)
		p.stored = appendOptional(p.stored, beforeName, name)
		p.stored = append(p.stored, beforeText...)
	}
	return piece{product: product, name: name, from: len(p.stored)}
}

// finish appends the rest of a stored event behind its text.
func (p *Pieces) finish(one piece, last bool) {
	one.to = len(p.stored)
	p.stored = strconv.AppendBool(append(p.stored, beforeAppend...), one.append)
	p.stored = strconv.AppendBool(append(p.stored, beforeLast...), last)
	p.stored = append(p.stored, '}')
	one.last, one.end = last, len(p.stored)
	p.list = append(p.list, one)
	p.size += one.size
}

// ProductID returns the id of the product of a piece.
func (p *Pieces) ProductID(i int) string {
	one := &p.list[i]
	if one.chunk != nil {
		return one.chunk.Product.ID
	}
	return one.product
}

// Chunk returns a piece as a chunk.
func (p *Pieces) Chunk(i int) Chunk {
	one := &p.list[i]
	if one.chunk != nil {
		return *one.chunk
	}
	text := string(p.stored[one.from:one.to])
	if one.escaped {
		text = string(appendUnescaped(make([]byte, 0, one.size), p.stored[one.from:one.to]))
	}
	return Chunk{
		Product: Product{ID: one.product, Name: one.name, DataItems: []DataItem{Text(text)}},
		Append:  one.append, Last: one.last,
	}
}

// Fitting returns the number of pieces to be added to the products of a fold without ProductsSize exceeding most, and
// the size with one piece more if they are not all.
func (p *Pieces) Fitting(f *Fold, most int64) (n int, size int64) {
	total := f.ProductsSize()
	if total+p.size <= most { // no less than it is if a piece replaces a product
		return len(p.list), 0
	}
	sizes := make(map[string]int64)
	for _, product := range f.Task().Products {
		sizes[product.ID] = product.size()
	}
	for i := range p.list {
		one := &p.list[i]
		id, adds := p.ProductID(i), one.append
		if one.chunk != nil {
			adds = one.chunk.Append
		}
		if !adds {
			total -= sizes[id]
			sizes[id] = 0
		}
		sizes[id] += one.size
		if total += one.size; total > most {
			return i, total
		}
	}
	return len(p.list), 0
}
