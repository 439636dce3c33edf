// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Orphans are the tables on the disk not named by a manifest for sure: tables being written, and when the disk fails,
// their remains. Pebble removes these with its next opening, but if there is no space for an opening, each try would
// leave more.
type Orphans struct {
	mu     sync.Mutex
	tables map[string]bool // by path: whether it is finished
}

// NewOrphans returns none.
func NewOrphans() *Orphans { return &Orphans{tables: make(map[string]bool)} }

// begin records the beginning of a write of a table.
func (d *Orphans) begin(table string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tables[table] = false
}

// finish records a table as written. A manifest may name it from now on.
func (d *Orphans) finish(table string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tables[table] = true
}

// named records a sync of a manifest. It may name any finished table.
func (d *Orphans) named() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for table, finished := range d.tables {
		if finished {
			delete(d.tables, table)
		}
	}
}

// Len returns the number of orphans.
func (d *Orphans) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tables)
}

// Remove removes all orphans not part of a database. None is being written.
func (d *Orphans) Remove(system vfs.FS, part func(table string) bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for table := range d.tables {
		if !part(table) {
			_ = system.Remove(table) // the disk may let nothing be changed
		}
	}
	clear(d.tables)
}
