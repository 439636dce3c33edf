// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// Index keeps, in logs of a class of their own that have metadata and no records, what AUN needs beside the logs of
// tasks: an entry for each task, by which a task is found by its id alone; and for each device that follows a task how
// far it has received the events. They end with their task. Its methods may be called by any number of goroutines at
// once.
type Index struct {
	store   replay.Store
	log     *slog.Logger
	scanner *replay.DueScanner
	stop    context.CancelFunc
	done    sync.WaitGroup

	// positions counts the positions of each AID. Those of an earlier process are counted in the background.
	positions quota.Counter

	// changing has a mutex for each entry that is being changed, so that those who change it wait for each other.
	changing *keylock.Map[sync.Mutex]
}

// entry is what is kept of a task. The names of the members are stored.
type entry struct {
	Log          string   `json:"log"`                // of the task
	Assignee     string   `json:"assignee,omitempty"` // AID
	Owner        string   `json:"owner,omitempty"`    // AID
	Participants []string `json:"participants,omitempty"`
	Visibility   string   `json:"visibility,omitempty"`
	Parent       string   `json:"parent,omitempty"`
	Depth        int      `json:"depth,omitempty"` // how many tasks there are above
	Children     []string `json:"children,omitempty"`
	// Creator is the device that has created it, which gets its events from the first one on.
	Creator string `json:"creator,omitempty"`

	revision uint64 // of its log; 0 while there is none
}

// position is how far a device has received the events of a task.
type position struct {
	Log   string `json:"log"` // of the task
	After uint64 `json:"after"`
}

// Limits of delegation.
const (
	maxDepth    = 8
	maxChildren = 32
)

// maxPositions is how many positions are kept for an AID. Beyond it, a device is sent events again after a cut, or
// begins now.
const maxPositions = 4096

var positionLimits = quota.Limits{Total: math.MaxInt64, PerLeader: maxPositions}

// recheck is how long after its last write the store is asked whether the task of an entry or a position has ended.
const recheck = 24 * time.Hour

// OpenIndex opens the index of a store, which the caller closes after it.
func OpenIndex(ctx context.Context, store replay.Store, log *slog.Logger) *Index {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	x := &Index{store: store, log: log, stop: stop, scanner: replay.NewDueScanner(store, logname.AUN, time.Now),
		changing: keylock.New(func(string) *sync.Mutex { return new(sync.Mutex) })}
	x.done.Go(func() {
		x.countPositions(ctx)
		for x.scanner.Wait(ctx) {
			_, err := x.scanner.Scan(ctx, 1, func(due replay.DueLog, now time.Time) error {
				return x.visit(ctx, due.Log, now)
			})
			if err != nil && ctx.Err() == nil {
				x.log.Warn("the index of AUN could not be read", "error", err)
			}
		}
	})
	return x
}

// Close ends the use of the store.
func (x *Index) Close() {
	x.stop()
	x.done.Wait()
}

// visit ends a log of the index whose task has ended.
func (x *Index) visit(ctx context.Context, log string, now time.Time) error {
	head, err := x.store.Head(ctx, log)
	if errors.Is(err, replay.ErrNotFound) || err == nil && !head.Ended.IsZero() {
		return nil
	}
	var p position
	if err != nil || json.Unmarshal(head.Metadata, &p) != nil {
		return err
	}
	a := replay.Append{Log: log, Expect: head.Revision, Metadata: head.Metadata, DueAt: now.Add(recheck)}
	of, err := x.store.Head(ctx, p.Log)
	switch {
	case errors.Is(err, replay.ErrNotFound), err == nil && !of.Ended.IsZero():
		if aid := logname.FollowerOf(log); aid != "" {
			return x.dropPosition(ctx, log, aid, head.Revision)
		}
		a.DueAt, a.End = time.Time{}, true
	case err != nil:
		return err
	}
	if err = x.store.Append(ctx, a); errors.Is(err, replay.ErrConflict) {
		return nil // the faster writer has set when it is due
	}
	return err
}

// get returns the entry of a task; nil if it has none.
func (x *Index) get(ctx context.Context, taskID string) (*entry, error) {
	head, err := x.store.Head(ctx, logname.AUNTask(taskID))
	if errors.Is(err, replay.ErrNotFound) {
		return nil, nil
	}
	e := new(entry)
	if err == nil {
		err = json.Unmarshal(head.Metadata, e)
	}
	if err != nil {
		return nil, partner.StoreError(err, "the store cannot be read")
	}
	e.revision = head.Revision
	return e, nil
}

// put stores an entry, which must be read again after an error.
func (x *Index) put(ctx context.Context, taskID string, e *entry, durable bool) error {
	err := x.store.Append(ctx, replay.Append{Log: logname.AUNTask(taskID), Expect: e.revision, Metadata: mustJSON(e),
		DueAt: time.Now().Add(recheck), Durable: durable})
	if err != nil {
		return partner.StoreError(err, "the task cannot be stored")
	}
	e.revision++
	return nil
}

// begin stores the entry of a task that is about to be started, also with its parent. undo removes all of it, if the
// task was not stored.
func (x *Index) begin(ctx context.Context, id string, e *entry) (undo func(context.Context) error, err error) {
	undo = func(ctx context.Context) error {
		// A start that could not be stored may turn out to be stored when the store can be used again.
		if _, err := x.store.Head(ctx, e.Log); !errors.Is(err, replay.ErrNotFound) {
			return err
		}
		_, err := x.drop(ctx, logname.AUNTask(id), e.revision)
		if e.Parent != "" {
			err = errors.Join(err, x.removeChild(ctx, e.Parent, id))
		}
		return err
	}
	if e.Parent != "" {
		if e.Depth, err = x.addChild(ctx, e.Parent, id); err != nil {
			return nil, err
		}
	}
	err = replay.RetryConflict(func() error {
		err := x.put(ctx, id, e, true)
		if !errors.Is(err, replay.ErrConflict) {
			return err
		}
		// The same message has come twice at a time, and the entry of the other one may have got children meanwhile.
		switch had, bad := x.get(ctx, id); {
		case bad != nil:
			return bad
		case had != nil:
			*e = *had
		default:
			e.revision = 0
		}
		return err
	})
	if err != nil {
		_ = undo(context.WithoutCancel(ctx)) // the error that counts is the first one
		return nil, err
	}
	return undo, nil
}

// drop removes the log of an entry or a position that has a revision, as far as the caller knows. It reports whether it
// was still there.
func (x *Index) drop(ctx context.Context, log string, revision uint64) (dropped bool, err error) {
	err = replay.RetryConflict(func() error {
		err := x.store.Append(ctx, replay.Append{Log: log, Expect: revision, Drop: true})
		if !errors.Is(err, replay.ErrConflict) {
			dropped = err == nil && revision > 0
			return err
		}
		head, bad := x.store.Head(ctx, log)
		switch {
		case errors.Is(bad, replay.ErrNotFound), bad == nil && !head.Ended.IsZero():
			return nil
		case bad != nil:
			return bad
		}
		revision = head.Revision
		return err
	})
	return dropped, err
}

// change changes the entry of a task, if it has one, while no other call of this process does. change is called again
// if another writer was faster, and reports whether it has changed the entry, which is nil if there is none.
func (x *Index) change(
	ctx context.Context, taskID string, durable bool, change func(*entry) (changed bool, err error),
) error {
	mu := x.changing.Acquire(taskID)
	defer x.changing.Release(taskID)
	mu.Lock()
	defer mu.Unlock()
	return replay.RetryConflict(func() error {
		e, err := x.get(ctx, taskID)
		if err != nil {
			return err
		}
		if changed, err := change(e); err != nil || !changed {
			return err
		}
		return x.put(ctx, taskID, e, durable)
	})
}

// addChild adds a child to a task, and returns the depth of the child.
func (x *Index) addChild(ctx context.Context, parent, child string) (depth int, err error) {
	err = x.change(ctx, parent, true, func(e *entry) (bool, error) {
		switch {
		case e == nil:
			return false, partner.NotFound(parent)
		case slices.Contains(e.Children, child): // the same delegation again
			depth = e.Depth + 1
			return false, nil
		case e.Depth+1 > maxDepth:
			return false, codec.ChildLimitExceeded("depth", maxDepth)
		case len(e.Children) >= maxChildren:
			return false, codec.ChildLimitExceeded("children", maxChildren)
		}
		e.Children, depth = append(e.Children, child), e.Depth+1
		return true, nil
	})
	return depth, err
}

// removeChild removes a child that was not started.
func (x *Index) removeChild(ctx context.Context, parent, child string) error {
	return x.change(ctx, parent, true, func(e *entry) (bool, error) {
		if e == nil {
			return false, nil
		}
		e.Children = slices.DeleteFunc(e.Children, func(id string) bool { return id == child })
		return true, nil
	})
}

// follower names a device and a slot of an AID.
type follower struct{ aid, device, slot string }

// creator is a follower as an entry has it.
func (f follower) creator() string { return f.aid + " " + f.device + " " + f.slot }

// position returns how far a follower has received the events of a task, and the revision of that position; 0 if it has
// never followed the task.
func (x *Index) position(ctx context.Context, taskID string, f follower) (after, revision uint64, err error) {
	head, err := x.store.Head(ctx, logname.AUNPosition(taskID, f.aid, f.device, f.slot))
	if errors.Is(err, replay.ErrNotFound) {
		return 0, 0, nil
	}
	var p position
	if err == nil {
		err = json.Unmarshal(head.Metadata, &p)
	}
	if err != nil {
		return 0, 0, partner.StoreError(err, "the store cannot be read")
	}
	return p.After, head.Revision, nil
}

// countPositions counts the positions that an earlier process has left.
func (x *Index) countPositions(ctx context.Context) {
	for e, err := range x.store.List(ctx, string(logname.AUN), "") {
		if err != nil {
			x.log.Warn("the positions of subscriptions could not be counted", "error", err)
			return
		}
		if aid := logname.FollowerOf(e.Log); aid != "" && e.Head.Ended.IsZero() {
			_ = x.positions.Take(aid, 1, quota.Limits{Total: math.MaxInt64, PerLeader: math.MaxInt64}) // never fails
		}
	}
}

// setPosition stores how far a follower has received the events of a task. revision is that of its position, as far as
// the caller knows, and 0 for none. It returns the revision afterwards: it stays 0 if its AID has too many positions.
func (x *Index) setPosition(
	ctx context.Context, taskID string, f follower, p position, revision uint64,
) (after uint64, _ error) {
	err := replay.RetryConflict(func() error {
		first := revision == 0
		if first && x.positions.Take(f.aid, 1, positionLimits) != nil {
			return nil
		}
		err := x.store.Append(ctx, replay.Append{Log: logname.AUNPosition(taskID, f.aid, f.device, f.slot),
			Expect: revision, Metadata: mustJSON(&p), DueAt: time.Now().Add(recheck)})
		if err == nil {
			revision++
			return nil
		}
		if first {
			x.positions.Give(f.aid, 1)
		}
		if errors.Is(err, replay.ErrConflict) {
			had, now, bad := x.position(ctx, taskID, f)
			if bad != nil {
				return bad
			}
			revision, p.After = now, max(p.After, had) // the device may have two connections
		}
		return err
	})
	return revision, err
}

// endPosition says that a follower has received the last event of a task. revision is that of its position; 0 if it has
// none. The device that has created the task does not begin with the first event any more.
func (x *Index) endPosition(ctx context.Context, taskID string, f follower, revision uint64) error {
	if revision > 0 {
		log := logname.AUNPosition(taskID, f.aid, f.device, f.slot)
		if err := x.dropPosition(ctx, log, f.aid, revision); err != nil {
			return err
		}
	}
	err := x.change(ctx, taskID, false, func(e *entry) (bool, error) {
		if e == nil || e.Creator != f.creator() {
			return false, nil
		}
		e.Creator = ""
		return true, nil
	})
	if errors.Is(err, replay.ErrConflict) {
		return nil // the entry has ended
	}
	return err
}

// dropPosition drops a position of an AID.
func (x *Index) dropPosition(ctx context.Context, log, aid string, revision uint64) error {
	dropped, err := x.drop(ctx, log, revision)
	if dropped {
		x.positions.Give(aid, 1)
	}
	return err
}

// role is what a client may do with a task.
type role uint8

// The roles.
const (
	stranger    role = iota
	reader           // of a public task
	participant      // of a shared task
	assignee
	owner
)

// role returns the role of an AID.
func (e *entry) role(aid string) role {
	switch {
	case aid == e.Owner:
		return owner
	case aid == e.Assignee:
		return assignee
	case e.Visibility != codec.Private && slices.Contains(e.Participants, aid):
		return participant
	case e.Visibility == codec.Public:
		return reader
	}
	return stranger
}

// relation returns what the codec shows of an entry.
func (e *entry) relation() codec.Relation {
	return codec.Relation{Owner: e.Owner, Assignee: e.Assignee, Participants: e.Participants, Visibility: e.Visibility,
		Parent: e.Parent, Children: e.Children}
}

// ended reports whether the task of an entry has ended.
func (x *Index) ended(ctx context.Context, e *entry) bool {
	head, err := x.store.Head(ctx, e.Log)
	return errors.Is(err, replay.ErrNotFound) || err == nil && !head.Ended.IsZero()
}

// openChildren returns the children of a task that have not ended: its assignee cannot complete it before.
func (x *Index) openChildren(ctx context.Context, taskID string) (open []string, err error) {
	e, err := x.get(ctx, taskID)
	if err != nil || e == nil {
		return nil, err
	}
	for _, id := range e.Children {
		child, err := x.get(ctx, id)
		if err != nil {
			return nil, err
		}
		if child != nil && !x.ended(ctx, child) {
			open = append(open, id)
		}
	}
	return open, nil
}

// errGone is the error of a task that is not there, or that the client may not see.
func errGone(taskID string) error { return partner.NotFound(taskID) }
