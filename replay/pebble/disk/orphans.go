// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Orphans are the tables on the disk that no manifest names for sure: tables that are being written, and when the
// disk fails, what is left of them. Pebble removes that with its next opening, but where there is no space for one,
// each try would leave more.
type Orphans struct {
	mu     sync.Mutex
	tables map[string]bool // by path: whether it is finished
}

// NewOrphans returns none.
func NewOrphans() *Orphans { return &Orphans{tables: make(map[string]bool)} }

// begin says that a table is being written.
func (d *Orphans) begin(table string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tables[table] = false
}

// finish says that a table has been written. A manifest may name it from now on.
func (d *Orphans) finish(table string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tables[table] = true
}

// named says that a manifest has been synced. It may name any table that is finished.
func (d *Orphans) named() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for table, finished := range d.tables {
		if finished {
			delete(d.tables, table)
		}
	}
}

// Len returns how many there are.
func (d *Orphans) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tables)
}

// Remove removes all that is not part of a database. None is being written.
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
