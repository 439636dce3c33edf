// SPDX-License-Identifier: Apache-2.0

package task

// Diff returns the chunks to turn the known products into the present ones. A product whose text has only grown gives
// the added piece; Offer covers products gone or in another order. Lost extensions stay, and if only extensions have
// changed, the piece has no data items. None is marked as the last piece of its product.
func Diff(known, now []Product) []Chunk {
	var out []Chunk
	for i := range now {
		p := &now[i]
		old := findProduct(known, p.ID)
		switch {
		case old == nil:
			out = append(out, Chunk{Product: *p})
		case Unchanged(old, p):
		default:
			if tail, ok := grown(old, p); ok {
				out = append(out, Chunk{Product: tail, Append: true})
			} else {
				out = append(out, Chunk{Product: *p})
			}
		}
	}
	return out
}

// End returns the last piece of a product. It adds nothing: it has an empty text behind a text, since not every caller
// takes a piece without any data items.
func End(p *Product) Chunk {
	return Chunk{Product: Product{ID: p.ID, Name: p.Name, DataItems: Nothing(p)}, Append: true, Last: true}
}

// Nothing returns the data items of a piece that adds nothing to a product.
func Nothing(p *Product) []DataItem {
	if n := len(p.DataItems); n > 0 && p.DataItems[n-1].PlainText() {
		return []DataItem{Text("")}
	}
	return nil
}

// Offer returns the ids of the present products, in their order, if Diff alone would leave the task with other products
// or in another order; nil if not. An agent listing no products at all may never list them, so an empty list withdraws
// nothing.
func Offer(known, now []Product) []string {
	if len(now) == 0 {
		return nil
	}
	same := len(known) <= len(now)
	for i := 0; same && i < len(known); i++ {
		same = known[i].ID == now[i].ID
	}
	if same {
		return nil
	}
	ids := make([]string, len(now))
	for i := range now {
		ids[i] = now[i].ID
	}
	return ids
}

func findProduct(list []Product, id string) *Product {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// Unchanged reports whether Diff has nothing for a product, old before and p now. It does not look at their ids.
func Unchanged(old, p *Product) bool {
	if old.Name != p.Name || old.Description != p.Description || len(old.DataItems) != len(p.DataItems) ||
		!sameExtensions(old, p) {
		return false
	}
	for i := range old.DataItems {
		if !sameItem(&old.DataItems[i], &p.DataItems[i]) {
			return false
		}
	}
	return true
}

// sameExtensions reports whether the extensions of b are those of a, or none.
func sameExtensions(a, b *Product) bool {
	return len(b.Extensions) == 0 || string(a.Extensions) == string(b.Extensions)
}

func sameItem(a, b *DataItem) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.Name == b.Name && a.MIMEType == b.MIMEType &&
		a.URI == b.URI && a.Bytes == b.Bytes && string(a.Data) == string(b.Data) &&
		string(a.Metadata) == string(b.Metadata)
}

// grown returns the addition to old to make p, if p is old with something added at its end.
func grown(old, p *Product) (Product, bool) {
	n := len(old.DataItems)
	if p.Name != old.Name || p.Description != old.Description ||
		n == 0 && len(p.DataItems) > 0 || len(p.DataItems) < n {
		return Product{}, false
	}
	tail := Product{ID: p.ID}
	if !sameExtensions(old, p) {
		tail.Extensions = p.Extensions
	}
	if n == 0 {
		return tail, true
	}
	for i := range n - 1 {
		if !sameItem(&old.DataItems[i], &p.DataItems[i]) {
			return Product{}, false
		}
	}
	for i := n; i < len(p.DataItems); i++ {
		if p.DataItems[i-1].PlainText() && p.DataItems[i].PlainText() {
			return Product{}, false // appending would join the two texts
		}
	}
	last, was := p.DataItems[n-1], &old.DataItems[n-1]
	switch {
	case sameItem(was, &last):
	case was.PlainText() && last.PlainText() && len(last.Text) > len(was.Text) && last.Text[:len(was.Text)] == was.Text:
		tail.DataItems = append(tail.DataItems, Text(last.Text[len(was.Text):]))
	default:
		return Product{}, false
	}
	tail.DataItems = append(tail.DataItems, p.DataItems[n:]...)
	return tail, true
}
