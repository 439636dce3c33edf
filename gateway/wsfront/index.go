// SPDX-License-Identifier: Apache-2.0

package wsfront

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
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

	// changing is held while an entry is changed, since a write without records cannot detect another one.
	changing sync.Mutex
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
	// Alias is set in the entry of the id that an agent which connects has for a task: the id of the task. Such an entry
	// has nothing else but the log.
	Alias string `json:"alias,omitempty"`
	// Creator is the device that has created it, which gets its events from the first one on.
	Creator string `json:"creator,omitempty"`
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

// recheck is how long after its last write the store is asked whether the task of an entry or a position has ended.
const recheck = 24 * time.Hour

// OpenIndex opens the index of a store, which the caller closes after it.
func OpenIndex(ctx context.Context, store replay.Store, log *slog.Logger) *Index {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	x := &Index{store: store, log: log, stop: stop, scanner: replay.NewDueScanner(store, logname.AUN, time.Now)}
	x.done.Go(func() {
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
	a := replay.Append{Log: log, Metadata: head.Metadata, DueAt: now.Add(recheck)}
	of, err := x.store.Head(ctx, p.Log)
	switch {
	case errors.Is(err, replay.ErrNotFound), err == nil && !of.Ended.IsZero():
		a.DueAt, a.End = time.Time{}, true
	case err != nil:
		return err
	}
	return x.store.Append(ctx, a)
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
	return e, nil
}

// put stores an entry.
func (x *Index) put(ctx context.Context, taskID string, e *entry, durable bool) error {
	err := x.store.Append(ctx, replay.Append{Log: logname.AUNTask(taskID), Metadata: mustJSON(e),
		DueAt: time.Now().Add(recheck), Durable: durable})
	if err != nil {
		return partner.StoreError(err, "the task cannot be stored")
	}
	return nil
}

// ofAgent returns the id of the task for which an agent that connects has an id; empty if it was not created by AUN.
func (x *Index) ofAgent(ctx context.Context, agentTask string) (taskID string, err error) {
	e, err := x.get(ctx, agentTask)
	if err != nil || e == nil {
		return "", err
	}
	return e.Alias, nil
}

// remove removes the entry of a task that was not started.
func (x *Index) remove(ctx context.Context, taskID string, e *entry) {
	_ = x.store.Append(ctx, replay.Append{Log: logname.AUNTask(taskID), Metadata: mustJSON(e), End: true})
}

// addChild adds a child to a task, and returns the depth of the child.
func (x *Index) addChild(ctx context.Context, parent, child string) (depth int, err error) {
	x.changing.Lock()
	defer x.changing.Unlock()
	e, err := x.get(ctx, parent)
	switch {
	case err != nil:
		return 0, err
	case e == nil:
		return 0, partner.NotFound(parent)
	case slices.Contains(e.Children, child):
		return e.Depth + 1, nil // the same delegation again
	case e.Depth+1 > maxDepth:
		return 0, codec.ChildLimitExceeded("depth", maxDepth)
	case len(e.Children) >= maxChildren:
		return 0, codec.ChildLimitExceeded("children", maxChildren)
	}
	e.Children = append(e.Children, child)
	return e.Depth + 1, x.put(ctx, parent, e, true)
}

// removeChild removes a child that was not started.
func (x *Index) removeChild(ctx context.Context, parent, child string) {
	x.changing.Lock()
	defer x.changing.Unlock()
	if e, err := x.get(ctx, parent); err == nil && e != nil {
		e.Children = slices.DeleteFunc(e.Children, func(id string) bool { return id == child })
		_ = x.put(ctx, parent, e, true)
	}
}

// follower names a device and a slot of an AID.
type follower struct{ aid, device, slot string }

// creator is a follower as an entry has it.
func (f follower) creator() string { return f.aid + " " + f.device + " " + f.slot }

// position returns how far a follower has received the events of a task. ok is false if it has never followed the task.
func (x *Index) position(ctx context.Context, taskID string, f follower) (after uint64, ok bool, err error) {
	head, err := x.store.Head(ctx, logname.AUNPosition(taskID, f.aid, f.device, f.slot))
	if errors.Is(err, replay.ErrNotFound) {
		return 0, false, nil
	}
	var p position
	if err == nil {
		err = json.Unmarshal(head.Metadata, &p)
	}
	if err != nil {
		return 0, false, partner.StoreError(err, "the store cannot be read")
	}
	return p.After, true, nil
}

// setPosition stores how far a follower has received the events of a task. With end, the task has no more of them.
func (x *Index) setPosition(ctx context.Context, taskID string, f follower, p position, end bool) error {
	a := replay.Append{Log: logname.AUNPosition(taskID, f.aid, f.device, f.slot), Metadata: mustJSON(&p), End: end}
	if !end {
		a.DueAt = time.Now().Add(recheck)
	}
	err := x.store.Append(ctx, a)
	if errors.Is(err, replay.ErrConflict) {
		return nil // it has ended: there is nothing after it
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
