// SPDX-License-Identifier: Apache-2.0

// Package replay stores logs: numbered records, appended atomically, read from any number on, and followed live. It
// knows nothing of tasks. The package writing a record defines its meaning. Each driver has a file or a folder of its
// own, and all of them pass one test suite, replaytest.
package replay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// A Store holds logs. A log has a name of 1 to MaxName bytes, and the first byte of the name is its class: packages
// sharing a store write logs of different classes, and Due yields the logs of one class. The methods of a Store may be
// called by any number of goroutines at once. The caller may keep what they return, but must not change it.
type Store interface {
	// Load returns a log's head, its snapshot (nil if nothing was trimmed) and all records kept, oldest first. The
	// error is ErrNotFound if the log does not exist.
	Load(ctx context.Context, log string) (Head, []byte, []Record, error)

	// Head returns a log's head alone, by one look-up. The error is ErrNotFound if the log does not exist.
	Head(ctx context.Context, log string) (Head, error)

	// List yields the heads of the logs whose names begin with prefix and come after a name, in the order of the names'
	// bytes. An empty after comes before all names. List sees changes made meanwhile: it yields a head the log had at some
	// time since List began, and may or may not yield a log created or dropped meanwhile. It yields every other log once.
	// The caller may take its time, because List holds no locks while it yields. Its cost grows with the number of logs
	// yielded, and not with the number of other logs.
	List(ctx context.Context, prefix, after string) iter.Seq2[Entry, error]

	// Listed yields the logs of a list (see Append.Lists) that come after one, in the order of ListedLog.Compare. The zero
	// after comes before all of them. Listed reads no heads, and its cost grows with the number of logs yielded. It sees
	// changes made meanwhile: a log moving in the list may be yielded at its old place, at its new one, at both or at
	// neither. It yields every other log once, and holds no locks while it yields.
	Listed(ctx context.Context, list string, after ListedLog) iter.Seq2[ListedLog, error]

	// Append executes a as one atomic write, and raises the log's revision by one. The error is ErrConflict, and nothing
	// is changed, if the log's revision is not a.Expect or the log has ended: another writer was faster. So of all appends
	// expecting one revision, at most one succeeds, whatever they write. After a nil error the write survives the death of
	// the process. Append.Durable says whether it also survives a loss of power.
	Append(ctx context.Context, a Append) error

	// Read returns a Reader of the records of a log after a number; after 0 comes the first record. It reads nothing yet:
	// the first call of Reader.Next finds out whether there is such a log. Once begun, a reader waits while the store is
	// unavailable, and then continues.
	Read(log string, after uint64) Reader

	// Unread reports whether some reader of a log has not read the record with the number seq yet, and still can because
	// the record is kept. A writer about to drop records may wait a moment for such readers.
	Unread(log string, seq uint64) bool

	// Due yields the logs of a class whose DueAt lies in [from, until], earliest first. Logs with Recover come before
	// all others. Due sees the store as it is at the call.
	Due(ctx context.Context, class byte, from, until time.Time) iter.Seq2[DueLog, error]

	// Reopened returns a channel that is closed the next time calls that failed with ErrUnavailable may succeed, as a rule
	// because the store can be written again. It is nil for a driver that is always available. Each ErrUnavailable is
	// followed by such a time. To miss none, a caller gets the next channel before it acts on a closed one. Close does not
	// close the channel.
	Reopened() <-chan struct{}

	// Writable returns nil if a small log can be begun now, as far as is known without a write, and otherwise the error of
	// an Append beginning one. It is cheap.
	Writable() error

	// Configure changes the settings allowed to change while the store is open. They apply to all later writes.
	Configure(Settings)

	// Close ends every reader with ErrClosed, waits for background work, and releases the store.
	Close() error
}

// Reserve is called before about n bytes are held in memory. It may wait, and is called while nothing is locked. An
// error refuses the use of the memory. With n 0 the caller holds nothing any more.
type Reserve func(ctx context.Context, n int64) error

// MaxName is the greatest length of a log's name, in bytes.
const MaxName = 1024

// Recover is the DueAt of a log a process is working on now. After a crash it is due as soon as the store is opened
// again.
var Recover = time.Unix(0, 0)

// Record is one entry of a log. Records are numbered from 1, without gaps but those of Append.Skip.
type Record struct {
	Seq  uint64
	Data []byte
	More bool // set by Follow: the next record comes without waiting, so both may be sent together
}

// Head is the state of a log without its records.
type Head struct {
	Revision uint64    // the number of appends to the log, at least 1; see Append.Expect
	First    uint64    // number of the oldest record kept; Last+1 if none is
	Last     uint64    // number of the newest record; 0 if there is none yet
	Bytes    int64     // size of the records kept
	Metadata []byte    // as last appended; its meaning is the writer's
	DueAt    time.Time // as last appended; zero for never
	Ended    time.Time // when the log ended; zero if it has not
	Gaps     []Gap     // the numbers above First left out by Append.Skip, in order
	Lists    []Listing // as last appended
	// Lost is the greatest number of records after Last possibly read before a loss of power took them. If readers
	// remember the numbers of records, the writer skips as many with its next Append, so no number is used twice.
	Lost uint64
	// Cut marks a log with more possibly missing after Last than a loss of power takes: acknowledged records, too. The
	// store was damaged, and repaired without them. The next Append with records clears Cut.
	Cut bool
}

// Gap is a range of numbers without records, both ends included.
type Gap struct{ From, To uint64 }

// Listing puts a log into a list.
type Listing struct {
	List  string    // the name of the list, 1 to MaxName bytes
	At    time.Time // logs with a later time come first; the zero time comes last
	Label string    // at most MaxLabel bytes, for searches for some of the logs in the list
}

// ListedLog is a log, and its place in a list.
type ListedLog struct {
	Log   string
	At    time.Time
	Label string
}

// Bounds of the lists of a log.
const (
	MaxLists = 256
	MaxLabel = 256
)

// Entry is a log as List yields it.
type Entry struct {
	Log  string
	Head Head
}

// Append is one atomic write.
type Append struct {
	Log      string
	Expect   uint64    // the revision of the log known to the writer; 0 for no log, which also creates it
	Records  [][]byte  // may be empty, to write the rest alone; the store keeps no reference to them
	Metadata []byte    // replaces the log's metadata; the store keeps no reference to it
	DueAt    time.Time // replaces the time for Due to yield the log; zero for never
	Lists    []Listing // replaces the lists that have the log, at most one place in each; kept, so it must not be changed
	End      bool      // ends the log: it takes no more appends, and is dropped after Settings.Retention, but see Pin
	Drop     bool      // drops the log now, if there is one: nothing else is written, and the name is free again
	Skip     uint64    // the number of numbers to leave out before the first of Records; without Records it has no effect
	Trim     uint64    // drop the records up to this number, replaced by Snapshot; 0 drops none
	Snapshot []byte    // stands for all records up to Trim; has no effect if Trim drops none

	// Durable makes the write survive a loss of power with SyncState: it is then synced to the disk before Append
	// returns. SyncAlways does this for every write, and SyncNever for none.
	Durable bool

	// Intent marks an append as the beginning of a log not yet reported to any caller, so a loss of power may take it. It
	// survives the death of the process, and every method sees it. The next append of the log makes it an ordinary log. A
	// driver may write it as an ordinary append, as all drivers do if it has records or does not begin a log.
	Intent bool
}

// DueLog is a log, and its due time.
type DueLog struct {
	Log string
	At  time.Time
}

// SyncMode says when a write must survive a loss of power. In every mode a write survives the death of the process.
type SyncMode uint8

// The modes, and their names in a configuration.
const (
	SyncState  SyncMode = iota // "state": before a Durable Append returns
	SyncAlways                 // "always": before every Append returns
	SyncNever                  // "never": whenever the operating system writes it to the disk
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

// Settings are the settings of a store that may change while it is open.
type Settings struct {
	Sync      SyncMode
	Retention time.Duration // time to keep a log after its end; 0 is DefaultRetention
	PinFor    time.Duration // the same for a log pinned by others (see Pin); 0 is DefaultPinFor
	MaxSize   int64         // bytes of all ended logs; beyond it the store drops some before Retention; 0 for no bound
	Capacity  int64         // memory driver: bytes of all logs; 0 is DefaultCapacity
}

// Defaults of Settings.
const (
	DefaultRetention = 24 * time.Hour
	DefaultPinFor    = 7 * 24 * time.Hour
	DefaultCapacity  = 512 << 20
)

// The errors of a Store.
var (
	ErrNotFound = errors.New("replay: no such log")
	ErrConflict = errors.New("replay: another writer was faster")
	ErrClosed   = errors.New("replay: the store is closed")
	ErrFull     = errors.New("replay: the store is full of logs that have not ended") // memory driver

	// ErrUnavailable is the error of a store that cannot be used now, for example because the disk is full or read-only.
	// An Append with this error may turn out to be written once the store is available again. The store retries by itself;
	// see Store.Reopened.
	ErrUnavailable = errors.New("replay: the store is unavailable")
)

// CompactedError is the error for a follower unable to continue after a record: the next records are no longer kept, or
// After is a left-out number. It can continue after First-1.
type CompactedError struct{ After, First, Last uint64 }

func (e *CompactedError) Error() string {
	return fmt.Sprintf("replay: records after %d were requested, but only %d to %d are kept", e.After, e.First, e.Last)
}

// FutureError is the error for a follower asking for the records after one not written yet.
type FutureError struct{ After, Last uint64 }

func (e *FutureError) Error() string {
	return fmt.Sprintf("replay: records after %d were requested, but the last one is %d", e.After, e.Last)
}
