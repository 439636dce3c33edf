// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"fmt"
	"math"
	"slices"

	"github.com/aip-gateway/aip-gateway/task"
)

// tooLarge returns a sentence for the Leader if the products would exceed its limit, or the gateway's, after chunks are
// added to the products named by offer; a nil offer names all. Otherwise it returns nothing.
func (tk *activeTask) tooLarge(chunks []task.Chunk, offer []string) string {
	max, whose := tk.maxProducts()
	if max == 0 {
		return ""
	}
	have := make(map[string]int64, len(tk.fold.Task().Products))
	var total int64
	for i := range tk.fold.Task().Products {
		if offer != nil && !slices.Contains(offer, tk.fold.Task().Products[i].ID) {
			continue
		}
		n := task.ProductsSize(tk.fold.Task().Products[i : i+1])
		have[tk.fold.Task().Products[i].ID] = n
		total += n
	}
	for i := range chunks {
		id, n := chunks[i].Product.ID, task.ProductsSize([]task.Product{chunks[i].Product})
		if !chunks[i].Append {
			total -= have[id]
			have[id] = 0
		}
		have[id] += n
		total += n
	}
	if total <= max {
		return ""
	}
	return productsTooLarge(total, whose, max)
}

// maxProducts returns the most bytes of the products, and the owner of this limit; 0 is for no limit.
func (tk *activeTask) maxProducts() (max int64, whose string) {
	max, whose = tk.meta.Terms.MaxProductsBytes, "the Leader"
	if p := tk.partner(); p != nil && (max == 0 || p.MaxBytes < max) {
		max, whose = p.MaxBytes, "this gateway"
	}
	return max, whose
}

func productsTooLarge(size int64, whose string, max int64) string {
	return fmt.Sprintf("the products have %d bytes, but %s allows no more than %d (maxProductsBytes)", size, whose, max)
}

// fitting returns the number of pieces fitting in before the products exceed their limit, and, if not all pieces do, a
// sentence for the Leader.
func (tk *activeTask) fitting(p *task.Pieces) (n int, over string) {
	max, whose := tk.maxProducts()
	if max == 0 {
		return p.Len(), ""
	}
	n, size := p.Fitting(&tk.fold, max)
	if n < p.Len() {
		over = productsTooLarge(size, whose, max)
	}
	return n, over
}

// maxPieces returns the most pieces to write together, so that a log trimmed before does not exceed its limit by them.
func (tk *activeTask) maxPieces() int {
	if p := tk.partner(); p != nil {
		return max(1, p.MaxEvents/2)
	}
	return math.MaxInt
}

// maxSaid returns task.Fold.MaxSaid: a part of Partner.MaxBytes. The rest of the histories need not leave this part
// free.
func (p *Partner) maxSaid() int64 {
	const share = 4
	if p == nil {
		return 0
	}
	return p.MaxBytes / share
}

// tooLong returns a sentence for the Leader if the histories would exceed the bytes kept of a task after a status with
// these items is added. Otherwise it returns nothing.
func (tk *activeTask) tooLong(items []task.DataItem) string {
	p := tk.partner()
	if p == nil || p.MaxBytes == 0 {
		return ""
	}
	t := *tk.fold.Task()
	t.Products, t.MessageHistory, t.Status = nil, tk.commands(), task.Status{DataItems: items}
	if t.Size() <= p.MaxBytes {
		return ""
	}
	return fmt.Sprintf("the task's histories would exceed the %d bytes that this gateway keeps of a task", p.MaxBytes)
}
