// SPDX-License-Identifier: Apache-2.0

// Package disk is the file system as a store on it sees it: a file system that may be full, read-only, broken or gone.
//
// Pebble is not made for a failing disk: it panics, ends the process, or tries again without end. So Fenced stands
// between the two. The first failed write raises a fence. From then on Pebble writes to memory: for the files this is
// the death of the process at that moment, and Pebble and the journal recover from it. The next step is the store's: it
// closes the database behind the fence and opens another one.
//
// Before the fence is raised, Reserve gives back what the store has set aside for that moment, descriptors and a file
// taking up space, and the failed change is tried again. Space refuses new logs before the disk is full. Orphans are
// the tables left by a failed database. CheckedTables keeps Pebble from tables that would make it panic. Mapping is a
// file written through memory; the process lives on if the system cannot provide a page of it.
package disk
