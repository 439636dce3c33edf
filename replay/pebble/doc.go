// SPDX-License-Identifier: Apache-2.0

// Package pebble is the replay.Store with its logs on the disk, in a Pebble database.
//
// # Appends
//
// All records of an append are one entry of the database. The records of the first append lie in the same entry as the
// log's head if they are short, so a task ended in one call is one entry, and its drop is one deletion. The next append
// moves them to an entry of their own.
//
// A piece of a stream writes its entry and no head, if it changes nothing else (followed.go): the stored head says that
// entries may follow, and is read with them. TestFollowed and TestCrashes have such logs. An entry without a head has a
// mark, too: so Repair finds logs with a lost head (TestRepairFollowed).
//
// A start not yet seen by any caller (replay.Append.Intent) costs no commit. It is written without a sync to a slot
// of the file INTENTS, mapped into memory, and kept until the next append of its log. The database gets this append
// as the first; then the slot is free. The death of the process loses nothing written, so the next process finds it
// there. After a loss of power the slots are void, and no caller was answered about the lost starts. A slot can never
// bring back a dropped log, since it is cleared before. Such a start is an ordinary append if no slot is free, the
// message is longer than 128 KiB (4 KiB on a disk below 2 GiB), sync always is set, or the system has no boot id.
// intents.go gives the proof, and TestIntentsCrash has a process die at random changes of the disk.
//
// The names of logs come in no order, so every flush overlaps all tables, and compacting them is the greater part of
// the cost of the database. So compactions wait for 10 flushes, and blocks have 16 KiB: together that takes 4 to 7 µs
// less of CPU for each task, and writes half as much to the disk. A look-up asks a few filters more.
//
// Large entries lie in files of their own, and tables have their places (separation): a compaction writes these, and
// not the texts. If a tenth of such files is of dropped logs, Pebble writes the rest of one to a new file. It looks at
// these files only when it reads one of their entries, and two of its errors there are panics. So the store looks at
// the end of each at its opening (disk.CheckValues), and Pebble learns neither of an end damaged later
// (disk.CheckedTables) nor of a file it could not end (disk.Fenced): the table with the places is ended after it. Older
// stores have no such files. Their first opening for writing gives the database another version (TestOldFormat).
//
// Where nothing more comes, Pebble does not compact, and dropped logs would keep their room: a store that rests has its
// tables compacted (rest.go).
//
// Most looked-up logs do not exist yet, since each start looks its own up first. A filter in memory
// (replay/pebble/namefilter.go) has the names of all logs, so the database is not asked for new ones. It is made in the
// background when the store is opened, 1024 heads at a time with a pause between them, and takes up to 9 MiB. Until it
// is complete, and in a store of more than 3.5 million logs, the database is asked. A log is added after its commit and
// before it is unlocked, so the filter never misses one: TestNamesOfAll.
//
// # Commits
//
// The write-ahead log is the journal (package wal). Two rules make it sound to replay it over tables with some of it
// already. A manifest is written only when the journal is synced, so tables never have records lost by the journal. And
// batches only set and delete keys, so the last batch of a key decides. TestFlips and TestFlipsAfterPowerLoss flip one
// bit at each place of the files. A store with damage is not opened. Repair skips it up to the next trailer, as a rule
// one append to one log, and replays the rest. Logs with missing records have then ended and cannot be read. All others
// that have not ended may have lost the last append (Head.Cut): the life-cycle then resumes a turn but never sends it
// again. No intent is taken up, since the journal may have had its next append.
//
// The batch of an append, if it is small, waits for others in the backlog (backlog.go) before it is applied to Pebble's
// memtable, up to 1024 of them or 512 KiB: sorted by their keys they take Pebble a fraction of the time, and of the
// heads of one log only the last is written. TestBacklogIsTheSame compares the result with batches applied one by one.
// Before it reads the database, a goroutine applies the backlog (generation.drainBacklog), unless it needs only one log
// and this log is not there (TestBacklogOfOthers): so every call finds all commits (TestBacklog). An ended segment is
// flushed after the backlog, too. A replay of the journal sets the same keys again. The next command of a task needs
// its head, and the records in it: these are kept in memory after a durable append (log.resting), so the command does
// not apply the backlog for one log (TestRestingIsTheSame).
//
// # After a loss of power
//
// A loss of power may take unsynced records, such as pieces of a product already read by a Leader. Their numbers are
// never used for other events: if a store was not closed before the machine went down, it gives for each log the number
// of records possibly lost (Head.Lost), and the life-cycle leaves out as many numbers (Append.Skip). That is 2^20 for
// each loss since the log's last record, more than the last segment of the journal takes, and only that segment is not
// synced. So a cursor pointing to a lost event lies beyond the end of the log (an error) or in the gap (an error), and
// never in the middle of other events. The store knows the machine's restart by the boot id of Linux. Without one,
// every start without a close before it counts. A system may drop the writes to a file it could not sync, even while
// the machine runs. So a failed sync of the journal counts as a loss, too; the file UNSYNCED records it for the next
// process, as far as the disk lets it be made.
//
// # A disk that fails
//
// A disk that fails raises a fence (package disk): for the files this is the death of the process at that moment. The
// database behind the fence is closed and replaced by a read-only one, and when the disk can be written again, by one
// for reading and writing. Each is a generation; a call uses one from its beginning to its end, and followers go from
// one to the next. Data in Pebble's memory but perhaps not in its files is shown to no reader: if the fence of a
// generation was raised during a call, the call fails. If the directory has no store any more, as without its volume,
// nothing is written there (Store.gone, TestUnmounted).
//
//	            a change of a file fails               replaced
//	writable  --------------------------->  fence up  ----------->  only readable, or none
//	    ^                                                                  |
//	    +--------- the disk takes a file again, the database opened -------+
//
// # Readers
//
// A caught-up reader (replay.Reader) holds nothing but its place in the log. Records appended while readers are behind
// are kept in the log's tail in memory. Readers share it, and it is dropped when all have read it: so a live follower
// reads the database only when it begins, or falls behind. A tail takes at most 128 KiB, and all of them 64 MiB and 4
// KiB for each log with readers; beyond that, readers read the database, a page at a time. The appending goroutine
// wakes the readers, after it has released all locks (replay.Waiters). TestTailModel holds the tail to the database.
//
// # Backups
//
// A backup (Store.Backup) is a checkpoint of Pebble's after a flush: then the tables have everything from the journal,
// in the order of the commits, and so the copy is a store as it was at one moment. The intents of the beginning, held
// in no table, are added to it. It is written beside the fence, so a disk filled by backups is no failure of the store.
// The copy is marked as closed, after one more loss: later events may have been read. An archive (replay.Export) is
// made of heads and records, common to all drivers, and so it does not depend on a format on disk.
package pebble
