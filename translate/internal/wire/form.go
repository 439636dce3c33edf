// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/aip-gateway/aip-gateway/internal/jsonrpc"

// Form is the form of one object in a dialect's event for a piece of a text: the possible members of the object, and
// the kind of each. An object with any other member is not read. Any member may be null.
type Form struct {
	names    jsonrpc.Names
	members  []FormMember
	required uint64 // the members required for reading an object, a bit for each
}

// NewForm returns a Form with these members, in the expected order, 64 at most.
func NewForm(members ...FormMember) *Form {
	f := &Form{members: members}
	for i, m := range members {
		f.names = append(f.names, m.name)
		if m.required {
			f.required |= 1 << i
		}
	}
	return f
}

// FormMember is a member of a Form.
type FormMember struct {
	name     string
	kind     memberKind
	form     *Form  // of the value, or of its only entry
	value    string // of a constant
	most     int    // bytes of a short string
	required bool
}

type memberKind uint8

const (
	null memberKind = iota
	scalar
	short
	requestID
	constant
	object
	single
	taskName
	productID
	productName
	index
	appends
	last
	text
)

// Null is a null member.
func Null(name string) FormMember { return FormMember{name: name, kind: null} }

// Scalar is a string, a number or a boolean. It is ignored.
func Scalar(name string) FormMember { return FormMember{name: name, kind: scalar} }

// Short is an ignored scalar, and no string of more than so many bytes.
func Short(name string, most int) FormMember { return FormMember{name: name, kind: short, most: most} }

// Constant is a string with this value.
func Constant(name, value string) FormMember {
	return FormMember{name: name, kind: constant, value: value}
}

// Required is a string with this value. Without it the object is not read.
func Required(name, value string) FormMember {
	return FormMember{name: name, kind: constant, value: value, required: true}
}

// Inner is an object of this form.
func Inner(name string, f *Form) FormMember { return FormMember{name: name, kind: object, form: f} }

// Single is an array with one entry, an object of this form.
func Single(name string, f *Form) FormMember { return FormMember{name: name, kind: single, form: f} }

// PieceTask is the name of the task, a string without escapes.
func PieceTask(name string) FormMember { return FormMember{name: name, kind: taskName} }

// PieceProduct is the id of the product, a string without escapes.
func PieceProduct(name string) FormMember { return FormMember{name: name, kind: productID} }

// PieceName is the name of the product, a string without escapes.
func PieceName(name string) FormMember { return FormMember{name: name, kind: productName} }

// PieceIndex is the index of the artifact, a non-negative integer.
func PieceIndex(name string) FormMember { return FormMember{name: name, kind: index} }

// PieceAppend is a boolean: whether the text is appended to the product's.
func PieceAppend(name string) FormMember { return FormMember{name: name, kind: appends} }

// PieceLast is a boolean: whether this is the last piece of the product.
func PieceLast(name string) FormMember { return FormMember{name: name, kind: last} }

// PieceText is the text.
func PieceText(name string) FormMember { return FormMember{name: name, kind: text} }

// object reads an object of a form.
func (p *Piece) object(f *Form) bool {
	var seen uint64
	ok := p.cursor.Object(f.names, func(i int) bool {
		seen |= 1 << i
		return p.member(&f.members[i])
	})
	return ok && seen&f.required == f.required
}

// member reads the value of a member. It is not null.
func (p *Piece) member(m *FormMember) (ok bool) {
	switch m.kind {
	case scalar:
		return p.cursor.Scalar()
	case short:
		if raw, _, ok := p.cursor.String(); ok {
			return len(raw) <= m.most
		}
		return p.cursor.Scalar()
	case requestID:
		_, boolean := p.cursor.Bool()
		return !boolean && p.cursor.Scalar()
	case constant:
		raw, _, ok := p.cursor.String()
		return ok && string(raw) == m.value
	case object:
		return p.object(m.form)
	case single:
		return p.cursor.Only(func() bool { return p.object(m.form) })
	case taskName:
		return p.word(&p.Task)
	case productID:
		return p.word(&p.Product)
	case productName:
		return p.word(&p.Name)
	case index:
		p.Index, ok = p.cursor.Int()
		p.Indexed = true
	case appends:
		p.Append, ok = p.cursor.Bool()
	case last:
		p.Last, ok = p.cursor.Bool()
	case text:
		p.Text, _, ok = p.cursor.String()
		p.textEnd = p.cursor.Offset() - 1
	}
	return ok
}

// word reads a string without escapes.
func (p *Piece) word(into *[]byte) bool {
	raw, escaped, ok := p.cursor.String()
	*into = raw
	return ok && !escaped
}
