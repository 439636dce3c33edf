// SPDX-License-Identifier: Apache-2.0

// Package wal is the write-ahead log of a store, its journal; Pebble's own is off.
//
// Each commit of Pebble's own goes through a goroutine that writes the log, and back. Here, a goroutine that appends
// writes by itself, for all that wait at that moment. Durable appends take part in rounds: the first that comes leads
// one, and writes and syncs what all have appended that came while the round before was synced. So each of them is
// woken once, and 32 callers need about a tenth as many writes as appends. A record that is not durable waits for no
// sync. In return, the journal proves by itself what Pebble's log would give it: segments are numbered, each is synced
// before the next one begins, a record's checksum includes its segment's number, so that a file is used again without
// being cleared, and each segment says where the one before it ends. Close begins one more segment, which says that of
// the last. A segment has at most 24 MiB, so that it fits into one memtable, and is used again when its batches are in
// tables (Tables). To write over a file makes its syncs faster, so a new one is filled with zeros first. A full segment
// is replayed in about 0.15 s. Where the disk can only be read, the journal is replayed into a database that writes to
// memory.
//
// # Large batches
//
// All who commit wait for one file. So that they do not wait for megabytes that one caller sends, a durable batch that
// is large is written in parts, each in a round with what others commit meanwhile. One batch at a time is written so.
// Its parts lie in one segment, and only the last one makes it a batch: others, of a batch that a crash or the end of
// the segment has cut off, are ignored.
//
// # Damage
//
// Recovery distinguishes damaged bytes from bytes that may be torn. Each write to the journal ends with a trailer: its
// place, how much of the segment had been synced by then, and the machine's boot id. After a sync, a trailer follows
// without one of its own. The death of a process leaves what it wrote to the system, so only its last write can be
// torn, and no trailer lies behind that: bytes that are no record, with a trailer of this boot behind them, are
// damage. After a loss of power, pages that were not synced are there or not in any order. So what counts then is what
// a later trailer calls synced: such bytes are damage, and others are cut off, with the numbers of events left out. In
// one case Recovery cannot distinguish the two: the last sync before a loss of power, of which no later write reached
// the disk, counts as not synced. The same mistake lies in a manifest, whose damaged end Pebble takes for a torn one:
// so each flush writes the number of the last segment that the tables have then (Tables.Flush), and segments that
// begin later know it.
//
// # Writes through memory
//
// What is not synced is mostly pieces of products, one after the other in many tasks at once, and each is sent when it
// is stored. To make such an append cheap, the file of the segment is mapped into memory (disk.Mapping), and the
// record is copied there. The operating system keeps it from then on, as it does after a system call; but the system
// call takes more time than all else in an append of a single slow stream. Records that are synced are written by
// system calls: the first write to a page after each sync is a page fault, which costs more. If the system cannot
// provide a page, because the disk has failed or is full, the process does not end: the record is written by a system
// call, whose error raises the fence. System calls alone are also used on other systems than Linux, on other file
// systems than ext4, XFS, Btrfs and tmpfs, in the first segment after a restart (which is not filled with zeros), and
// for a batch of more than 1 KiB, since the first write to each page is a fault.
package wal
