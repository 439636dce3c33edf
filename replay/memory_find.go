// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"time"
)

// A Memory finds logs by time, and by the beginning of their names. It keeps no order of either, but goes through all
// logs and sorts the ones it has found.

// listPage is the number of heads that List takes at a time.
const listPage = 256

// Due implements Store. It goes through all logs that have a DueAt.
func (m *Memory) Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[DueLog, error] {
	return func(yield func(DueLog, error) bool) {
		if err := m.enter(ctx); err != nil {
			yield(DueLog{}, err)
			return
		}
		var due []DueLog
		for l := range m.dueLogs {
			if at := l.head.DueAt; l.name[0] == class && !at.Before(from) && !at.After(until) {
				due = append(due, DueLog{Log: l.name, At: at})
			}
		}
		m.mu.Unlock()
		slices.SortFunc(due, func(a, b DueLog) int {
			return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Log, b.Log))
		})
		for _, w := range due {
			if err := ctx.Err(); err != nil {
				yield(DueLog{}, err)
				return
			}
			if !yield(w, nil) {
				return
			}
		}
	}
}

// List implements Store. It reads the names at the beginning, and the heads in pages. It does not count as a use of a
// log: a list of all logs must not decide which ones are dropped first.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if err := m.enter(ctx); err != nil {
			yield(Entry{}, err)
			return
		}
		var names []string
		for name := range m.logs {
			if name > after && strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
		m.mu.Unlock()
		slices.Sort(names)
		page := make([]Entry, 0, min(len(names), listPage))
		for chunk := range slices.Chunk(names, listPage) {
			if err := m.enter(ctx); err != nil {
				yield(Entry{}, err)
				return
			}
			page = page[:0]
			for _, name := range chunk {
				if l := m.logs[name]; l != nil {
					page = append(page, Entry{Log: name, Head: l.head})
				}
			}
			m.mu.Unlock()
			for _, e := range page {
				if err := ctx.Err(); err != nil {
					yield(Entry{}, err)
					return
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}
