// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/aip-gateway/aip-gateway/replay"
)

// mostRests is the greatest number of rests kept, of at most pageBytes each.
const mostRests = 16

// rests are the parts of pages that their readers have given back by Rewind, those of the last few readers. Most of
// them are read again at once: a caller gives memory back before it waits for its own, and as a rule that does not take
// long. Without its rest, a reader reads from the stream again.
type rests struct {
	mu  sync.Mutex
	all *simplelru.LRU[*reader, rest] // guarded by mu
}

// rest is what is left of a page.
type rest struct {
	page []replay.Record
	at   cursor // after the page
}

func newRests() (*rests, error) {
	all, err := simplelru.NewLRU[*reader, rest](mostRests, nil)
	return &rests{all: all}, err
}

// keep keeps the rest of the page of a reader.
func (k *rests) keep(r *reader, of rest) {
	if size(of.page) > pageBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.Add(r, of)
}

// take returns the rest of a reader, if it has the next record after a number; nil for none. It is not kept any more.
func (k *rests) take(r *reader, h *head, after uint64) ([]replay.Record, cursor) {
	k.mu.Lock()
	of, _ := k.all.Get(r)
	k.all.Remove(r)
	k.mu.Unlock()
	n := len(of.page)
	if n == 0 || of.page[0].Seq != max(h.After(after), h.First) || of.page[n-1].Seq > h.Last {
		return nil, cursor{}
	}
	return of.page, of.at
}

// drop removes the rest of a reader.
func (k *rests) drop(r *reader) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.all.Remove(r)
}
