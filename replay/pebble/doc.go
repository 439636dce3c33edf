// SPDX-License-Identifier: Apache-2.0

// Package pebble is the replay.Store that keeps its logs on the disk, in a Pebble database.
//
// # Appends
//
// All records of an append are one entry of the database. The records of the first append lie in the same entry as the
// log's head if they are short, so a task that ends in one call is one entry, and one that is dropped is one deletion.
// The next append moves them to an entry of their own.
//
// A start that no caller has seen (replay.Append.Intent) costs no commit. It is written to a slot of the file INTENTS,
// which is mapped into memory, without a sync, and is kept until the next append of its log, which is the first that
// the database gets; then its slot is free. The death of the process loses nothing that was written, so the next
// process finds it there. After a loss of power the slots are void, and no caller was answered about what is lost. A
// slot can never bring back a log that has been dropped, since it is cleared before. Where no slot is free, the message
// is long, sync always is set, or the system has no boot id, such a start is an ordinary append. intents.go says why
// this is sound, and TestIntentsCrash has a process die at random changes of the disk.
//
// The names of logs come in no order, so every flush overlaps all tables, and to compact them is the greater part of
// what the database costs. So compactions wait for 10 flushes, and blocks have 16 KiB: together that takes 4 to 7 µs
// less of CPU for each task, and writes half as much to the disk. A look-up asks a few filters more.
//
// Most logs that are looked up do not exist yet, since each start looks its own up first. A filter in memory
// (replay/pebble/namefilter.go) has the names of all logs, so that the database is not asked for these. It is made in
// the background when the store is opened, 1024 heads at a time with a pause between them, and takes up to 9 MiB. Until
// it is complete, and in a store of more than 3.5 million logs, the database is asked. A log is added after its commit
// and before it is unlocked, so the filter never misses one: TestNamesOfAll.
//
// # Commits
//
// The write-ahead log is the journal (package wal). Two rules make it sound to replay it over tables that have some of
// it already. A manifest is written only when the journal is synced, so that tables never have what the journal has
// lost. And batches only set and delete keys, so that the last batch of a key decides. TestFlips and
// TestFlipsAfterPowerLoss flip one bit at each place of the files. A store with damage is not opened. Repair skips it
// up to the next trailer, as a rule one append to one log, and replays the rest: logs that then miss records have ended
// and cannot be read, all others that have not ended may have lost the last append (Head.Cut), for which the life-cycle
// resumes a turn but never sends it again, and no intent is taken up, since the journal may have had what followed.
//
// The batch of an append, if it is small, waits for others in the backlog (backlog.go) before it is applied to Pebble's
// memtable, up to 1024 of them or 512 KiB: sorted by their keys they take Pebble a fraction of the time, and of the
// heads of one log only the last is written. TestBacklogIsTheSame compares the result with batches that are applied one
// by one. A goroutine that reads the database applies the backlog first (generation.drainBacklog), unless it needs one
// log that is not there (TestBacklogOfOthers): so every call finds all that was committed (TestBacklog). A segment that
// has ended is flushed after that, too. A replay of the journal sets the same keys again. The next command of a task
// needs its head, and the records that lie in it: these are kept in memory after a durable append (log.resting), so
// that it does not apply the backlog for one log (TestRestingIsTheSame).
//
// # After a loss of power
//
// A loss of power may take what was not synced, such as pieces of a product that a Leader has read. Their numbers are
// never used for other events: a store that was not closed before the machine went down says of each log how many
// records it may have lost (Head.Lost), and the life-cycle leaves out as many numbers (Append.Skip). That is 2^20 for
// each loss since the log's last record, more than the last segment of the journal takes, and only that segment is not
// synced. So a cursor that points to a lost event lies beyond the end of the log (an error) or in the gap (an error),
// and never in the middle of other events. The store knows the machine's restart by the boot id of Linux. Where there
// is none, every start without a close before it counts. A system that could not sync a file may drop what was written
// to it, even while the machine runs. So a journal that could not be synced counts as a loss, too; the file UNSYNCED
// says so to the next process, as far as the disk lets it be made.
//
// # A disk that fails
//
// A disk that fails raises a fence (package disk): for the files this is the death of the process at that moment. The
// database behind the fence is closed and replaced by one that only reads the files, and that one, when the disk can be
// written again, by one that writes. Each is a generation; a call uses one from its beginning to its end, and followers
// go from one to the next. What is in Pebble's memory but perhaps not in its files is shown to no reader: a call on a
// generation whose fence was raised meanwhile fails. Where the directory has no store any more, as without its volume,
// nothing is written there (Store.gone, TestUnmounted).
//
// # Readers
//
// A reader (replay.Reader) that has caught up holds nothing but its place in the log. What is appended while readers
// are behind is kept in the log's tail in memory, which they share, and is dropped when all have read it: so a live
// follower reads the database only when it begins, or falls behind. A tail takes at most 128 KiB, and all of them 64
// MiB and 4 KiB for each log with readers; beyond that, readers read the database, a page at a time. The goroutine that
// appends wakes the readers, after it has released all locks (replay.Waiters). TestTailModel holds the tail to the
// database.
//
// # Backups
//
// A backup (Store.Backup) is a checkpoint of Pebble's after a flush: then the tables have all that the journal had, in
// the order of the commits, and so the copy is a store as it was at one moment. The intents of the beginning, which are
// in no table, are added to it. It is written beside the fence, so a disk that is full of backups is no failure of the
// store. The copy is marked as closed, after one more loss: events that came after it may have been read. An archive
// (replay.Export) is made of what every driver has, heads and records, and so it does not depend on a format on disk.
package pebble
