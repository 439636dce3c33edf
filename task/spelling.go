// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"strings"
	"unsafe"
)

// spelling is a text with the JSON string that AppendString writes for it. A text is written to the agent, to the log
// twice, and in the answer; most large ones arrive as they are written, and are copied then.
//
// It is that of this very string, compared by its place in memory: a Text set since is written anew.
type spelling struct{ text, json string }

// Spell sets the JSON string that AppendString writes for Text, so that it is not made again.
func (it *DataItem) Spell(json string) { it.spelling = &spelling{it.Text, json} }

// OwnText replaces Text, and its spelling, by copies. A Text other than its spelling is memory of its own already.
func (it *DataItem) OwnText() {
	if !it.isSpelled() {
		it.Text, it.spelling = strings.Clone(it.Text), nil
		return
	}
	s := spelling{it.Text, strings.Clone(it.spelling.json)}
	if plain := s.json[1 : len(s.json)-1]; len(plain) == len(s.text) {
		s.text = plain
	}
	it.Text, it.spelling = s.text, &s
}

// AppendText appends Text as a JSON string.
func (it *DataItem) AppendText(dst []byte) []byte {
	if it.isSpelled() {
		return append(dst, it.spelling.json...)
	}
	return AppendString(dst, it.Text)
}

// isSpelled reports whether the spelling is that of Text.
func (it *DataItem) isSpelled() bool {
	s := it.spelling
	return s != nil && len(s.text) == len(it.Text) && unsafe.StringData(s.text) == unsafe.StringData(it.Text)
}

// SpellingSize returns the memory of the spellings in a message beyond its Size, in bytes.
func (m *Message) SpellingSize() (n int64) {
	for i := range m.DataItems {
		if s := m.DataItems[i].spelling; s != nil && len(s.json) > len(s.text)+len(`""`) {
			n += int64(len(s.json))
		}
	}
	return n
}

// Rest drops what only makes the next forms of the task faster, so that it takes the memory of Size alone. Readers may
// hold the slices: they are not changed.
func (f *Fold) Rest() {
	t := &f.task
	t.Status.DataItems, f.said.last.DataItems = unspelled(t.Status.DataItems), unspelled(f.said.last.DataItems)
	ofProduct := func(p *Product) *[]DataItem { return &p.DataItems }
	t.Products, f.Withdrawn = allUnspelled(t.Products, ofProduct), allUnspelled(f.Withdrawn, ofProduct)
	t.MessageHistory = allUnspelled(t.MessageHistory, func(m *Message) *[]DataItem { return &m.DataItems })
	t.StatusHistory = allUnspelled(t.StatusHistory, func(s *Status) *[]DataItem { return &s.DataItems })
}

// allUnspelled returns a list without spellings; itemsOf returns the items of an entry.
func allUnspelled[T any](list []T, itemsOf func(*T) *[]DataItem) []T {
	copied := false
	for i := range list {
		if !slices.ContainsFunc(*itemsOf(&list[i]), hasSpelling) {
			continue
		}
		if !copied {
			list, copied = slices.Clone(list), true
		}
		items := itemsOf(&list[i])
		*items = unspelled(*items)
	}
	return list
}

// unspelled returns items without spellings.
func unspelled(items []DataItem) []DataItem {
	if !slices.ContainsFunc(items, hasSpelling) {
		return items
	}
	items = slices.Clone(items)
	for i := range items {
		items[i].spelling = nil
	}
	return items
}

func hasSpelling(it DataItem) bool { return it.spelling != nil }
