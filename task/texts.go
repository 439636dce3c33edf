// SPDX-License-Identifier: Apache-2.0

package task

import "strings"

// Texts adds pieces to products. It holds the growing texts, so a long stream of pieces costs no copy of all earlier
// ones. The zero value is ready for use, by one goroutine.
type Texts struct {
	growing map[string]*growing // by the id of the product
}

// growing is the last data item of a product, if it is a plain text with pieces being added.
type growing struct {
	text    strings.Builder // never rewrites text given out
	product string
	name    string // of the product
	late    bool   // text has pieces not in the data item yet
}

// takes reports whether a plain text with these names of its product is a piece of this text, and nothing more.
func (g *growing) takes(product, name string) bool {
	return g.product == product && (name == "" || name == g.name)
}

// Add adds a piece to p: its data items go behind those of p, with adjacent plain texts joined to one, and the name,
// the description and the extensions of the piece take the place of p's, unless they are empty. It changes p.DataItems
// in place. Between two pieces, the last text of p is only changed by Add, or after Forget.
func (t *Texts) Add(p, piece *Product) {
	if piece.Name != "" {
		p.Name = piece.Name
	}
	if piece.Description != "" {
		p.Description = piece.Description
	}
	if len(piece.Extensions) > 0 {
		p.Extensions = piece.Extensions
	}
	for _, it := range piece.DataItems {
		last := len(p.DataItems) - 1
		if last >= 0 && it.PlainText() && p.DataItems[last].PlainText() {
			g := t.grow(p.ID, p.DataItems[last].Text, len(it.Text))
			g.text.WriteString(it.Text)
			p.DataItems[last].Text = g.text.String()
			continue
		}
		t.Forget(p.ID)
		p.DataItems = append(p.DataItems, it)
	}
	if g := t.growing[p.ID]; g != nil {
		g.name = p.Name
	}
}

// Forget drops the text of a replaced or withdrawn product.
func (t *Texts) Forget(product string) { delete(t.growing, product) }

// grow returns the text of a product with space for so many bytes more. head is its present text.
func (t *Texts) grow(product, head string, more int) *growing {
	g := t.growing[product]
	if g == nil {
		if t.growing == nil {
			t.growing = make(map[string]*growing)
		}
		g = &growing{product: product}
		t.growing[product] = g
		g.text.Grow(len(head) + more)
		g.text.WriteString(head)
	}
	return g
}

// add adds a text in the form of JSON, without its quotes.
func (g *growing) add(text []byte, escaped bool) {
	if free := g.text.Cap() - g.text.Len(); free < len(text) {
		g.text.Grow(len(text)) // at least to twice its size
	}
	if !escaped {
		g.text.Write(text)
		return
	}
	var buf [512]byte
	g.text.Write(appendUnescaped(buf[:0], text))
}

// PlainText reports whether an item is text and nothing else, fit to be joined with its neighbour.
func (it *DataItem) PlainText() bool { return it.Kind == TextItem && len(it.Metadata) == 0 }
