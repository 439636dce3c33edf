// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"sync"

	"github.com/aip-gateway/aip-gateway/replay"
)

// A page has at most so many records, and ends early when it has so many bytes.
const (
	pageRecords = 1024
	pageBytes   = 64 << 10

	freeBytes = 16 << 10 // of a first page, soon there, and read without a call of reserve
)

// page is the memory of records read by a reader from the database.
type page struct {
	records []replay.Record
	data    []byte // of the records, one behind the other
}

// Pages not in use. First ones have a pool of their own, so that they do not hold the memory of others.
var (
	firstPages = sync.Pool{New: func() any { return &page{data: make([]byte, 0, freeBytes)} }}
	pages      = sync.Pool{New: func() any { return new(page) }}
)

// newPage returns a page with room for so many bytes.
func newPage(size int) *page {
	if size <= freeBytes {
		return firstPages.Get().(*page)
	}
	p := pages.Get().(*page)
	if cap(p.data) < size {
		p.data = make([]byte, 0, size)
	}
	return p
}

// reset drops the records.
func (p *page) reset() { p.records, p.data = p.records[:0], p.data[:0] }

// put gives back a used page. p may be nil.
func (p *page) put() {
	if p == nil {
		return
	}
	clear(p.records)
	p.reset()
	switch n := cap(p.data); {
	case n == freeBytes:
		firstPages.Put(p)
	case n <= pageBytes:
		pages.Put(p)
	}
}
