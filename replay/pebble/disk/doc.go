// SPDX-License-Identifier: Apache-2.0

// Package disk is the file system as a store on it sees it: one that may be full, read-only, broken or gone.
//
// Pebble is not made for a disk that fails: it panics, ends the process, or tries again without end. So Fenced stands
// between the two. The first write that fails raises a fence, and whatever Pebble writes from then on, it writes to
// memory: for the files this is the death of the process at that moment, which Pebble and the journal recover from.
// What comes next is the store's: it closes the database behind the fence and opens another one.
//
// Before the fence is raised, Reserve gives back what the store has set aside for that moment, descriptors and a file
// that takes up space, and what failed is tried again. Space refuses new logs before the disk is full. Orphans are the
// tables that a failed database has left. CheckedTables keeps Pebble from tables that it would panic about. Mapping is
// a file that is written through memory; the process lives where the system cannot provide a page of it.
package disk
