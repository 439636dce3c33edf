// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Piece is an event of an agent's stream with nothing but a piece of a product with a plain text, read in one strict
// pass. Its fields are views of the event, empty for missing members. An unusual event, such as one with an escape in a
// name or any metadata, is not read: then it is for the codec of all events.
type Piece struct {
	cursor jsonrpc.Cursor

	Task          []byte // the name of the task
	Product, Name []byte // the product's id and name
	Index         int64  // of the artifact, 0 if it has none
	Indexed       bool   // it has one
	Append, Last  bool
	Text          []byte // the JSON of the text, without its quotes
	textEnd       int    // the end of Text in the event
}

// ReadPiece reads an event: an object of a form. ok is false if it is none, or has no text, or would take one away.
func ReadPiece(event []byte, f *Form) (p Piece, ok bool) {
	p.cursor = jsonrpc.NewCursor(event)
	ok = p.object(f) && p.cursor.End() && p.textEnd > 0 && (p.Append || len(p.Text) > 0)
	return p, ok
}

// InResponse returns the form of a JSON-RPC response with a result of a form.
func InResponse(result *Form) *Form {
	return NewForm(Constant("jsonrpc", "2.0"), FormMember{name: "id", kind: requestID}, Inner("result", result),
		Null("error"))
}

// LastPiece is the last piece read of a stream. Most events of a stream are like the one before but for the text. The
// zero LastPiece is none.
type LastPiece struct {
	before, after []byte // the event before the text, with its first quote, and after its last one
	product, name string
	append, last  bool
}

// maxAlike is the most of an event without its text, in bytes, kept for comparison.
const maxAlike = 1 << 10

// Read reads an event like the last piece but for the text, and adds it to pieces. Otherwise it returns false.
func (l *LastPiece) Read(event []byte, pieces *task.Pieces) bool {
	if len(l.before) == 0 || !bytes.HasPrefix(event, l.before) {
		return false
	}
	c := jsonrpc.CursorAt(event, len(l.before)-1)
	text, _, ok := c.String()
	if !ok || !bytes.Equal(event[c.Offset():], l.after) || len(text) == 0 && !l.append {
		return false
	}
	pieces.AddText(l.product, l.name, text, l.append, l.last)
	return true
}

// Product returns the id of the product, empty if there is no last piece.
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
