// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// leaveOpen notes the products of a whole report while the agent works on: more of them may follow.
func (b *batch) leaveOpen(chunks []task.Chunk) {
	var known []string
	if b.tk.meta.Open != nil {
		known = *b.tk.meta.Open
	}
	open := slices.Clip(known)
	for i := range chunks {
		if id := chunks[i].Product.ID; !slices.Contains(open, id) {
			open = append(open, id)
		}
	}
	if len(open) > len(known) { // else the metadata are the same, and need not be encoded again
		b.tk.meta.Open = new(open)
	}
}

// leaveToAgent notes a piece of the agent's own: from then on, its mark at a piece tells the last one of the product.
func (b *batch) leaveToAgent(id string) {
	known := b.tk.meta.Open
	if known == nil || !slices.Contains(*known, id) {
		return
	}
	open := slices.DeleteFunc(slices.Clone(*known), func(one string) bool { return one == id })
	if b.tk.meta.Open = &open; len(open) == 0 {
		b.tk.meta.Open = nil
	}
}

// endProducts gives each open product its last piece, because the task settles: the one in this batch, or one that adds
// nothing.
func (b *batch) endProducts() {
	if b.tk.meta.Open == nil {
		return
	}
	open, products := *b.tk.meta.Open, b.tk.fold.Task().Products
	b.tk.meta.Open = nil
	for _, id := range open {
		of := func(ev task.Event) bool { return ev.Chunk != nil && ev.Chunk.Product.ID == id }
		if i := slices.IndexFunc(b.events, of); i >= 0 {
			b.events[i].Chunk.Last = true
		} else if i := slices.IndexFunc(products, func(p task.Product) bool { return p.ID == id }); i >= 0 { // not withdrawn
			end := task.End(&products[i])
			b.add(task.Event{Chunk: &end})
		}
	}
}
