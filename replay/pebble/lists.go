// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/aip-gateway/aip-gateway/replay"
)

// The lists of a log are in its head, so the log can be taken out of them, and each has a key of the log.

// A stored list is its first byte, the number of further bytes common to it and to the name of the log behind the first
// byte, and the rest with its length. So the names of lists that begin like those of their logs, as most do, take few
// bytes. Then come the stamp, and the label with its length.

// appendLists appends the number of the lists of a log, and the lists.
func appendLists(b []byte, log string, lists []replay.Listing) []byte {
	b = binary.AppendUvarint(b, uint64(len(lists)))
	for i := range lists {
		l := &lists[i]
		same := 1
		for same < len(l.List) && same < len(log) && l.List[same] == log[same] {
			same++
		}
		b = append(b, l.List[0])
		b = binary.AppendUvarint(b, uint64(same-1))
		b = replay.AppendText(b, l.List[same:])
		b = binary.AppendUvarint(b, uint64(stampOf(l.At)))
		b = replay.AppendText(b, l.Label)
	}
	return b
}

// lists reads the output of appendLists.
func (p *numbers) lists(log string) (lists []replay.Listing) {
	n := p.Next()
	if n == 0 || n > replay.MaxLists {
		p.Failed = true
		return nil
	}
	lists = make([]replay.Listing, 0, n)
	for range n {
		if len(p.Rest) == 0 {
			p.Failed = true
			return nil
		}
		name := p.Rest[:1:1]
		p.Rest = p.Rest[1:]
		same := p.Next()
		if same >= uint64(len(log)) {
			p.Failed = true
			return nil
		}
		name = append(append(name, log[1:1+same]...), p.Bytes()...)
		at := p.Next()
		label := p.Bytes()
		if p.Failed || len(name) > replay.MaxName || len(label) > replay.MaxLabel || at > uint64(never) {
			p.Failed = true
			return nil
		}
		lists = append(lists, replay.Listing{List: string(name), At: stamp(at).time(), Label: string(label)})
	}
	return lists
}

// moveLists changes the keys of a log in lists.
func moveLists(b *pebble.Batch, log string, from, to []replay.Listing) {
	for _, was := range from {
		if !slices.ContainsFunc(to, func(now replay.Listing) bool {
			return now.List == was.List && stampOf(now.At) == stampOf(was.At)
		}) {
			op := b.DeleteDeferred(listKeyLen(was.List, log))
			appendListKey(op.Key[:0], was.List, stampOf(was.At), log)
			_ = op.Finish()
		}
	}
	for _, now := range to {
		if !slices.ContainsFunc(from, func(was replay.Listing) bool { return sameListing(was, now) }) {
			op := b.SetDeferred(listKeyLen(now.List, log), len(now.Label))
			appendListKey(op.Key[:0], now.List, stampOf(now.At), log)
			copy(op.Value, now.Label)
			_ = op.Finish()
		}
	}
}

// sameListing compares listings as they are stored.
func sameListing(a, b replay.Listing) bool {
	return a.List == b.List && a.Label == b.Label && stampOf(a.At) == stampOf(b.At)
}

// listsLen is about the length of the keys of a log in lists in a batch, and of the lists in its head.
func listsLen(log string, lists []replay.Listing) (n int) {
	for i := range lists {
		n += 2*listKeyLen(lists[i].List, log) + len(lists[i].List) + 2*len(lists[i].Label) + 32
	}
	return n
}

// listedPage is the number of logs Listed reads at a time: the size of a page of tasks, and some more.
const listedPage = 128

// Listed implements replay.Store. It reads pages of the state committed at that moment, and holds nothing of the store
// between them.
func (s *Store) Listed(ctx context.Context, list string, after replay.ListedLog) iter.Seq2[replay.ListedLog, error] {
	return func(yield func(replay.ListedLog, error) bool) {
		after := after
		replay.InPages(ctx, yield, func(page []replay.ListedLog) (_ []replay.ListedLog, more bool, err error) {
			if page, err = s.listedPage(ctx, list, after, page); len(page) > 0 {
				after = page[len(page)-1]
			}
			return page, len(page) == listedPage, err
		})
	}
}

// listedPage appends to page the logs of a list after a given one, until there are enough.
func (s *Store) listedPage(ctx context.Context, list string, after replay.ListedLog, page []replay.ListedLog) (
	_ []replay.ListedLog, err error,
) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.exit(&err)
	if list == "" || len(list) > replay.MaxName {
		return page, nil
	}
	lower, upper := listBounds(list, after)
	pending := s.intents.listed(list, lower) // an intent becoming a log from here on is in the database
	it, err := s.committed().NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	for ok := it.First(); (ok || len(pending) > 0) && len(page) < listedPage; {
		order := -1 // of the first intent and the first key
		if len(pending) == 0 {
			order = 1
		} else if ok {
			order = bytes.Compare(pending[0].key, it.Key())
		}
		var l replay.ListedLog
		if order < 0 {
			at, log := splitListKey(pending[0].key, len(list))
			l = replay.ListedLog{Log: log, At: at.time(), Label: pending[0].label}
		} else {
			at, log := splitListKey(it.Key(), len(list))
			l = replay.ListedLog{Log: log, At: at.time(), Label: string(it.Value())}
			ok = it.Next()
		}
		if order <= 0 {
			pending = pending[1:]
		}
		page = append(page, l)
	}
	return page, errors.Join(it.Error(), it.Close())
}

// listedIntent is an intent in a list.
type listedIntent struct {
	key   []byte // its would-be key
	label string
}

// listed returns the intents in a list with keys at lower or behind it, in order.
func (in *intents) listed(list string, lower []byte) (found []listedIntent) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for s := range in.all {
		for i := range s.head.Lists {
			l := &s.head.Lists[i]
			if l.List != list {
				continue
			}
			if key := appendListKey(nil, list, stampOf(l.At), s.log); bytes.Compare(lower, key) <= 0 {
				found = append(found, listedIntent{key, l.Label})
			}
		}
	}
	slices.SortFunc(found, func(a, b listedIntent) int { return bytes.Compare(a.key, b.key) })
	return found
}
