// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"
)

// A Memory finds logs by the beginning of their names and in lists, which it keeps in order, and by time, for which it
// goes through all logs that have a DueAt and sorts the ones it has found.

// listPage is the number of logs that List and Listed take at a time.
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
		slices.SortFunc(due, DueLog.Compare)
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

// List implements Store. It does not count as a use of a log: a list of all logs must not decide which ones are dropped
// first.
func (m *Memory) List(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		from := prefix
		if after != "" {
			from = max(prefix, after+"\x00") // the least name that is greater
		}
		memoryPages(ctx, m, yield, func(page []Entry) []Entry {
			for name := range m.names.from(from) {
				if !strings.HasPrefix(name, prefix) || len(page) == listPage {
					break
				}
				page, from = append(page, Entry{Log: name, Head: m.logs[name].head}), name+"\x00"
			}
			return page
		})
	}
}

// Listed implements Store.
func (m *Memory) Listed(ctx context.Context, list string, after ListedLog) iter.Seq2[ListedLog, error] {
	return func(yield func(ListedLog, error) bool) {
		after := after
		memoryPages(ctx, m, yield, func(page []ListedLog) []ListedLog {
			in := m.lists[list]
			if in == nil {
				return page
			}
			rest := in.all
			if after.Log != "" {
				rest = in.from(after)
			}
			for l := range rest {
				if len(page) == listPage {
					break
				}
				if after.Log == "" || after.Compare(l) < 0 {
					page, after = append(page, l), l
				}
			}
			return page
		})
	}
}

// memoryPages yields what read returns, a page at a time, until it returns less than a whole one. It is called while m
// is locked, with an empty page.
func memoryPages[T any](ctx context.Context, m *Memory, yield func(T, error) bool, read func(page []T) []T) {
	var none T
	var page []T
	for more := true; more; more = len(page) == listPage {
		if err := m.enter(ctx); err != nil {
			yield(none, err)
			return
		}
		page = read(page[:0])
		m.mu.Unlock()
		for _, v := range page {
			if err := ctx.Err(); err != nil {
				yield(none, err)
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}
