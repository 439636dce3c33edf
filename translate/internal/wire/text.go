// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// ReadText sets the text of an item to a string, a view of the body.
func ReadText(it *task.DataItem, v gjson.Result) {
	if it.Text = v.Str; jsonrpc.Usual(v) {
		it.Spell(v.Raw)
	}
}

// OwnText sets the text of an item to a copy of a string.
func OwnText(it *task.DataItem, v gjson.Result) {
	if !jsonrpc.Usual(v) {
		it.Text = Owned(v, v.Str)
		return
	}
	it.Text = v.Str
	it.Spell(v.Raw)
	it.OwnText()
}

// JoinTexts appends items to dst, with adjacent plain texts joined to one. An agent streaming a text in pieces may list
// the pieces when it is asked for the task, and the two must not differ. dst may be items[:0]: it never gets ahead of
// them.
func JoinTexts(dst, items []task.DataItem) []task.DataItem {
	for i := 0; i < len(items); {
		it, end := items[i], i+1
		if it.PlainText() {
			for end < len(items) && items[end].PlainText() {
				end++
			}
		}
		if end > i+1 {
			var b strings.Builder
			for _, piece := range items[i:end] {
				b.WriteString(piece.Text)
			}
			it.Text = b.String()
		}
		dst = append(dst, it)
		i = end
	}
	return dst
}

// PutProduct returns products with p in the place of the one with its id, or behind them. It changes products.
func PutProduct(products []task.Product, p task.Product) []task.Product {
	if i := slices.IndexFunc(products, func(q task.Product) bool { return q.ID == p.ID }); i >= 0 {
		products[i] = p
		return products
	}
	return append(products, p)
}
