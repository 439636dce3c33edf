// SPDX-License-Identifier: Apache-2.0

// Package wal is the write-ahead log of a store, its journal; Pebble's own is off.
//
// Each commit of Pebble's own goes through a goroutine writing the log, and back. Here, an appending goroutine writes
// by itself, for all waiting at that moment. Durable appends take part in rounds: the first one coming leads the round,
// and writes and syncs all batches appended while the round before was synced. So each append is woken once, and 32
// callers need about a tenth as many writes as appends. A record that is not durable waits for no sync. In return, the
// journal proves by itself what Pebble's log would give it: segments are numbered, each is synced before the next one
// begins, a record's checksum includes its segment's number, so that a file is used again without being cleared, and
// each segment has the end of the one before it. Close begins one more segment, with the end of the last. A segment has
// at most 24 MiB, so it fits into one memtable, and is used again when its batches are in tables (Tables). Writing over
// a file makes its syncs faster, so a new one is filled with zeros first. A full segment is replayed in about 0.15 s.
// If the disk can only be read, the journal is replayed into a database writing to memory.
//
// # Large batches
//
// All commits wait for one file. They must not wait for megabytes of one caller. So a large durable batch is written in
// parts, each in a round with the commits of others meanwhile. One batch at a time is written so. Its parts lie in one
// segment, and only the last one makes it a batch: parts of a batch cut off by a crash or by the end of the segment are
// ignored.
//
// # Damage
//
// Recovery distinguishes damaged bytes from possibly torn bytes. Each write to the journal ends with a trailer: its
// place, the length of the segment synced by then, and the machine's boot id. After a sync, a trailer follows without
// one of its own. The death of a process leaves its writes to the system, so only its last write can be torn, and no
// trailer lies behind that one: bytes that are no record, with a trailer of this boot behind them, are damage. After a
// loss of power, unsynced pages are there or not in any order. So then the bytes called synced by a later trailer
// count: such bytes are damage, and others are cut off, with the numbers of events left out. In one case Recovery
// cannot distinguish the two: the last sync before a loss of power, without a later write reaching the disk, counts as
// not synced. The same mistake lies in a manifest: Pebble takes its damaged end for a torn one. So each flush writes
// the number of the last segment the tables then have (Tables.Flush), and segments begun later know it.
//
// # Writes through memory
//
// Unsynced records are mostly pieces of products, one after the other in many tasks at once, and each is sent when it
// is stored. To make such an append cheap, the file of the segment is mapped into memory (disk.Mapping), and the record
// is copied there. The operating system keeps it from then on, as it does after a system call; but the system call
// takes more time than all else in an append of a single slow stream. Synced records are written by system calls: the
// first write to a page after each sync is a page fault, and costs more. If the system cannot provide a page, because
// the disk has failed or is full, the process does not end: the record is written by a system call, and its error
// raises the fence. System calls alone are also used on other systems than Linux, on other file systems than ext4, XFS,
// Btrfs and tmpfs, in the first segment after a restart (not filled with zeros), and for a batch of more than 1 KiB,
// since the first write to each page is a fault.
package wal
