// SPDX-License-Identifier: Apache-2.0

// Package replay keeps logs: numbered records that are appended atomically, read again from any number, and
// followed live. It knows nothing of tasks; what the records mean is their writer's business. One driver a
// file or folder, one suite (replaytest) for all of them.
package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// A Store holds logs, each named by a string of 1 to MaxName bytes. The first byte of the name is the log's
// class: writers who share a store and know nothing of each other each take one, and are told by Due of the logs
// of theirs alone. Its methods may be called by any number of goroutines at once.
type Store interface {
	// Load returns a log's head, its snapshot (nil where nothing was trimmed) and all records kept, oldest
	// first. The error is ErrNotFound where there is no such log. What is returned is the caller's to keep,
	// not to change.
	Load(ctx context.Context, log string) (Head, []byte, []Record, error)

	// Head returns a log's head alone, at the cost of one look-up. The error is ErrNotFound where there is no
	// such log. The note is the caller's to keep, not to change.
	Head(ctx context.Context, log string) (Head, error)

	// List yields the heads of the logs whose names begin with prefix and come after a name, in the order of
	// the names' bytes; an empty after comes before all names. It sees the store as it changes: a head is one
	// that its log had since List began, and a log that is made or dropped meanwhile may be yielded or not;
	// every other one is yielded once. The caller may take its time: List holds nothing that others wait for.
	// The notes are the caller's to keep, not to change.
	List(ctx context.Context, prefix, after string) iter.Seq2[Entry, error]

	// Append carries a out as one atomic write. It fails with ErrConflict, changing nothing, when the log's
	// last record is not a.Expect, or the log has ended: another writer was faster. When it returns nil, what
	// was written survives the death of the process; see Append.Durable for the loss of power.
	Append(ctx context.Context, a Append) error

	// Follow yields the records of a log that come after a number, oldest first, then waits for new ones
	// until the log has ended or ctx is done. Zero means from the very first record.
	//
	// Follow never skips a record. If a record that it owes is no longer kept, or after is a number that
	// Append.Skip left out, it yields a *CompactedError and stops; if after is beyond the last record, a
	// *FutureError. Where there is no such log, ErrNotFound. A ctx that
	// ends is yielded as its error; the end of the log is not an error. Any number of followers may follow
	// one log, and none of them slows the writer: one that falls behind reads the store again. One that has
	// begun waits while the store is unavailable, and then goes on.
	//
	// A driver that copies large records calls reserve, which may be nil, before it does.
	Follow(ctx context.Context, log string, after uint64, reserve Reserve) iter.Seq2[Record, error]

	// Due yields the logs of a class whose Wake lies in [from, until], earliest first; those of Recover come
	// before all others. It sees the store as it is at the call.
	Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[DueLog, error]

	// Reopened returns a channel that is closed the next time that what failed with ErrUnavailable is worth another try,
	// as a rule because the store can be written again; nil for a driver to which that never happens. Each ErrUnavailable
	// is followed by such a time. Take the next channel before acting on a closed one, so that none is missed. It says
	// nothing of why or for how long, and Close does not close it.
	Reopened() <-chan struct{}

	// Configure changes the settings that may change while the store is open; it applies to all later writes.
	Configure(Settings)

	// Close ends every follower with ErrClosed, waits for background work, and releases the store.
	Close() error
}

// Reserve is called before about n bytes are held in memory. It may wait, and is called while nothing is locked. An error
// refuses what needs the memory. With n 0 the caller holds nothing any more.
type Reserve func(ctx context.Context, n int64) error

// MaxName is the greatest length of a log's name, in bytes.
const MaxName = 1024

// Recover is the Wake of a log that somebody is at work on right now: it is due as soon as the store is
// opened by a process that knows nothing of that work.
var Recover = time.Unix(0, 0)

// Record is one entry of a log. Records are numbered from 1, without gaps but those of Append.Skip.
type Record struct {
	Seq  uint64
	Data []byte
	More bool // Follow: the next record can be had without waiting, so it may be sent along with this one
}

// Head is what a log knows of itself beside its records.
type Head struct {
	First    uint64    // number of the oldest record kept; Last+1 when none is
	Last     uint64    // number of the newest record ever written; 0 when there is none yet
	Bytes    int64     // size of the records kept
	Metadata []byte    // the writer's own, as last appended
	DueAt    time.Time // as last appended; zero for none
	Ended    time.Time // when it ended; zero while it has not
	Gaps     []Gap     // the numbers above First that Append.Skip left out, in order
	// Lost is how many records after Last may have been read and then lost with the power. A writer that gives
	// the numbers of its records to others leaves out as many with its next Append, so that none is used again.
	Lost uint64
}

// Gap is a range of numbers that no record has, both ends included.
type Gap struct{ From, To uint64 }

// Entry is a log as List tells of it.
type Entry struct {
	Log  string
	Head Head
}

// Append is one atomic write.
type Append struct {
	Log      string
	Expect   uint64    // number of the last record that the writer knows; 0 for none, which also makes a new log
	Records  [][]byte  // may be empty: a write of the note alone. The store keeps no reference to them
	Metadata []byte    // replaces the note
	DueAt    time.Time // replaces the time at which Due yields the log; zero for none
	End      bool      // nothing more follows; the log is kept for Settings.Retention and then dropped
	Skip     uint64    // how many numbers to leave out before the first of Records; not looked at when there is none
	Trim     uint64    // drop the records up to this number, which Snapshot stands for; 0 drops none
	// Snapshot stands for every record up to Trim. It is not looked at when Trim drops nothing.
	Snapshot []byte

	// Tell says that somebody will be told of this write: with SyncState it survives a loss of power before
	// Append returns. Without Tell it does so only with SyncAlways.
	Durable bool
}

// Wakeup says that a log's time has come.
type DueLog struct {
	Log string
	At  time.Time
}

// SyncMode says when a write must survive a loss of power. Every mode survives the death of the process.
type SyncMode uint8

// The modes, and their names in a configuration.
const (
	SyncState  SyncMode = iota // "state": before a change that is told
	SyncAlways                 // "always": before every Append returns
	SyncNever                  // "never": whenever the system writes it
)

// String returns the mode's name in a configuration.
func (m SyncMode) String() string {
	switch m {
	case SyncAlways:
		return "always"
	case SyncNever:
		return "never"
	}
	return "state"
}

// ParseSyncMode reads a mode's name; the empty one is SyncState.
func ParseSyncMode(s string) (SyncMode, error) {
	switch s {
	case "", "state":
		return SyncState, nil
	case "always":
		return SyncAlways, nil
	case "never":
		return SyncNever, nil
	}
	return 0, fmt.Errorf("sync is %q, but must be state, always or never", s)
}

// Settings are what may change while a store is open.
type Settings struct {
	Sync      SyncMode
	Retention time.Duration // how long an ended log is kept; 0 is DefaultRetention
	MaxSize   int64         // bytes of ended logs together; beyond it they are dropped before Retention; 0 for no bound
	Capacity  int64         // memory driver: bytes of all logs together; 0 is DefaultCapacity
}

// Defaults of Settings.
const (
	DefaultRetention = 24 * time.Hour
	DefaultCapacity  = 512 << 20
)

// The errors of a Store.
var (
	ErrNotFound = errors.New("replay: no such log")
	ErrConflict = errors.New("replay: another writer was faster")
	ErrClosed   = errors.New("replay: the store is closed")
	ErrFull     = errors.New("replay: the store is full of logs that have not ended") // memory driver

	// ErrUnavailable says that the store cannot be used now, such as on a disk that is full or read-only. An Append
	// that returned it may be found to have been written once the store is available again. The store tries again by
	// itself; see Store.Reopened.
	ErrUnavailable = errors.New("replay: the store is unavailable")
)

// CompactedError says that a follower cannot go on after a record: those that come next are no longer kept, or its number
// is one that was left out. It can go on after First-1.
type CompactedError struct{ After, First, Last uint64 }

func (e *CompactedError) Error() string {
	return fmt.Sprintf("replay: records after %d were asked for, but only %d to %d are kept", e.After, e.First, e.Last)
}

// FutureError says that a follower asked for what comes after a record that has not been written yet.
type FutureError struct{ After, Last uint64 }

func (e *FutureError) Error() string {
	return fmt.Sprintf("replay: records after %d were asked for, but the last one is %d", e.After, e.Last)
}
