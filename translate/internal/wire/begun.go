// SPDX-License-Identifier: Apache-2.0

package wire

import "github.com/aip-gateway/aip-gateway/task"

// Begun are the existing products while a stream is read. Agents may send the first piece of a product as one that is
// added to it; such a piece begins the product.
type Begun struct{ ids map[string]bool }

// maxBegun is the most products recorded as existing. Pieces of others stay as the agent sends them.
const maxBegun = 10_000

// NewBegun returns the existing products before a stream.
func NewBegun(known []task.Product) Begun {
	b := Begun{make(map[string]bool, len(known))}
	for i := range known {
		b.begin(known[i].ID)
	}
	return b
}

// begin records a product as existing, and reports whether it was known before.
func (b *Begun) begin(id string) (before bool) {
	if before = b.ids[id]; !before && len(b.ids) < maxBegun {
		b.ids[id] = true
	}
	return before
}

// Has reports whether a product is known to exist.
func (b *Begun) Has(id []byte) bool { return b.ids[string(id)] }

// Read makes pieces for missing products begin them. products exist now.
func (b *Begun) Read(products []task.Product, chunks []task.Chunk) {
	for i := range products {
		b.begin(products[i].ID)
	}
	for i := range chunks {
		c := &chunks[i]
		had, full := b.begin(c.Product.ID), len(b.ids) >= maxBegun
		c.Append = c.Append && (had || full)
	}
}
