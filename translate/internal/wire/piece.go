// SPDX-License-Identifier: Apache-2.0

package wire

import (
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
	return p.HasText
}

// Short reads a scalar that is no string of more than so many bytes.
func (p *Piece) Short(most int) bool {
	if raw, _, ok := p.String(); ok {
		return len(raw) <= most
	}
	return p.Scalar()
}

// PieceNames keeps the strings of the product that the last piece was of, so that the next one needs no copy of them.
type PieceNames struct{ product, name string }

// Add adds a piece to pieces.
func (n *PieceNames) Add(pieces *task.Pieces, p *Piece) {
	if string(p.Product) != n.product {
		n.product = string(p.Product)
	}
	if string(p.Name) != n.name {
		n.name = string(p.Name)
	}
	pieces.AddText(n.product, n.name, p.Text, p.Append, p.Last)
}
