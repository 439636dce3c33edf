// SPDX-License-Identifier: Apache-2.0

package task

import "strings"

// Pieces adds pieces to products. It holds the texts that grow, so that a long stream of pieces costs no copy of all
// that came before. The zero value is ready for use, by one goroutine.
type Pieces struct {
	texts map[string]*strings.Builder // by the id of the product. A Builder never rewrites what it has given out.
}

// Add adds a piece to p: its data items go behind those of p, with plain texts that meet joined to one, and the name,
// the description and the extensions of the piece take the place of p's, unless they are empty. It changes p.DataItems
// in place. Between two pieces, the last text of p is only changed by Add, or after Forget.
func (t *Pieces) Add(p, piece *Product) {
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
			p.DataItems[last].Text = t.grow(p.ID, p.DataItems[last].Text, it.Text)
			continue
		}
		t.Forget(p.ID)
		p.DataItems = append(p.DataItems, it)
	}
}

// Forget drops the text of a product that was replaced or withdrawn.
func (t *Pieces) Forget(product string) { delete(t.texts, product) }

// grow returns head+tail, where head is what the last call for the same product returned.
func (t *Pieces) grow(product, head, tail string) string {
	b := t.texts[product]
	if b == nil {
		if t.texts == nil {
			t.texts = make(map[string]*strings.Builder)
		}
		b = new(strings.Builder)
		b.WriteString(head)
		t.texts[product] = b
	}
	b.WriteString(tail)
	return b.String()
}

// PlainText reports whether an item is text and nothing else, so that it can be joined with its neighbour.
func (it *DataItem) PlainText() bool { return it.Kind == TextItem && len(it.Metadata) == 0 }
