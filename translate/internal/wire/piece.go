// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Piece reads an event of an agent's stream that is nothing but a piece of a product which is a plain text, in one
// strict pass. Its fields are views of the event, empty where that does not have them. What is unusual, such as an
// escape in a name or any metadata, is not read: then the event is for the codec that reads all of them.
type Piece struct {
	jsonrpc.Cursor

	Product, Name []byte // the product's id and name
	Index         int64  // of the artifact
	Append, Last  bool
	Text          []byte // the JSON of the text, without its quotes
	HasText       bool
	textEnd       int // where Text ends in the event
}

// NewPiece returns a Piece that reads an event.
func NewPiece(event []byte) Piece { return Piece{Cursor: jsonrpc.NewCursor(event)} }

var responseNames = jsonrpc.Names{"jsonrpc", "id", "result", "error"}

// Response reads the whole event: a response whose result is an object that has members of these names.
func (p *Piece) Response(names jsonrpc.Names, member func(name string) bool) bool {
	return p.Object(responseNames, func(name string) bool {
		switch name {
		case "jsonrpc":
			return p.Is("2.0")
		case "id":
			_, boolean := p.Bool()
			return !boolean && p.Scalar()
		case "result":
			return p.Object(names, member)
		}
		return false
	}) && p.End()
}

// Is reads a string that must have this value.
func (p *Piece) Is(value string) bool {
	raw, _, ok := p.String()
	return ok && string(raw) == value
}

// Word reads a string without escapes.
func (p *Piece) Word(into *[]byte) bool {
	raw, escaped, ok := p.String()
	*into = raw
	return ok && !escaped
}

// Flag reads a boolean.
func (p *Piece) Flag(into *bool) (ok bool) {
	*into, ok = p.Bool()
	return ok
}

// Number reads an integer that is not negative.
func (p *Piece) Number(into *int64) (ok bool) {
	*into, ok = p.Int()
	return ok
}

// ReadText reads the text.
func (p *Piece) ReadText() bool {
	p.Text, _, p.HasText = p.String()
	p.textEnd = p.Offset() - 1
	return p.HasText
}

// Short reads a scalar that is no string of more than so many bytes.
func (p *Piece) Short(most int) bool {
	if raw, _, ok := p.String(); ok {
		return len(raw) <= most
	}
	return p.Scalar()
}

// LastPiece is the last piece that was read of a stream. Most events of a stream are like the one before but for the
// text. The zero LastPiece is none.
type LastPiece struct {
	before, after []byte // what stands before the text in the event, with its first quote, and what after its last one
	product, name string
	append, last  bool
}

// maxAlike is the most of an event without its text, in bytes, that is kept for comparison.
const maxAlike = 1 << 10

// Read reads an event that is like the last piece but for the text, and adds it to pieces. Otherwise it returns false.
func (l *LastPiece) Read(event []byte, pieces *task.Pieces) bool {
	if len(l.before) == 0 || !bytes.HasPrefix(event, l.before) {
		return false
	}
	c := jsonrpc.CursorAt(event, len(l.before)-1)
	text, _, ok := c.String()
	if !ok || !bytes.Equal(event[c.Offset():], l.after) {
		return false
	}
	pieces.AddText(l.product, l.name, text, l.append, l.last)
	return true
}

// Product returns the id of the product, empty where there is no last piece.
func (l *LastPiece) Product() string { return l.product }

// Add adds the piece of an event to pieces, and makes it the last. product is the id of its product.
func (l *LastPiece) Add(pieces *task.Pieces, event []byte, p *Piece, product []byte) {
	if string(product) != l.product {
		l.product = string(product)
	}
	if string(p.Name) != l.name {
		l.name = string(p.Name)
	}
	l.append, l.last = p.Append, p.Last
	pieces.AddText(l.product, l.name, p.Text, l.append, l.last)
	l.before, l.after = l.before[:0], l.after[:0]
	if len(event)-len(p.Text) <= maxAlike {
		l.before = append(l.before, event[:p.textEnd-len(p.Text)]...)
		l.after = append(l.after, event[p.textEnd+1:]...)
	}
}
