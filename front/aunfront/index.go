// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/keylock"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// Index keeps the additions of AUN to the logs of tasks, in logs of a class of their own, with metadata and no records:
// an entry for each task, by which a task is found by its id alone; and for each device following a task its position
// in the events. They end with their task. Its methods may be called by any number of goroutines at once.
type Index struct {
	set   *shard.Set
	homes *shard.Each[home]
	// owners writes if another process owns the shard.
	owners *ask.Service[writing, struct{}]

	// changing has a mutex for each entry under change, so its writers wait for each other.
	changing *keylock.Map[entryLock]
}

type entryLock = lockorder.Mutex[lockorder.Entry]

// home is the index in one shard: AUN's additions to the tasks there.
type home struct {
	store   replay.Store
	log     *slog.Logger
	scanner *replay.DueScanner
	stop    context.CancelFunc
	done    sync.WaitGroup

	// positions counts the positions of each AID. Those of an earlier process are counted in the background; until then
	// none is written or dropped.
	positions limit.Counter
	counted   chan struct{} // closed then
}

// recheck is the time after the last write of an entry or a position at which the store is asked for its task.
const recheck = 24 * time.Hour

// OpenIndex opens the index over the shards owned by this process now and later.
func OpenIndex(set *shard.Set, log *slog.Logger) *Index {
	x := &Index{set: set, changing: keylock.New(func(*keylock.Entry[entryLock]) *entryLock { return new(entryLock) })}
	x.homes, _ = shard.Open(set, func(ctx context.Context, _ int, store replay.Store) (*home, error) {
		return openHome(ctx, store, log), nil // never fails
	}, (*home).close)
	x.owners = ask.New(set, "aun.index", x.writeFor)
	return x
}

// Close ends the use of the shards.
func (x *Index) Close() { x.homes.Close() }

// shardOf returns the shard with the log of a task.
func (x *Index) shardOf(log string) int { return logname.ShardOf(x.set.Count(), log) }

func openHome(ctx context.Context, store replay.Store, log *slog.Logger) *home {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	h := &home{store: store, log: log, stop: stop, counted: make(chan struct{}),
		scanner: replay.NewDueScanner(store, logname.AUN, time.Now)}
	h.done.Go(func() {
		h.countPositions(ctx)
		for h.scanner.Wait(ctx) {
			_, err := h.scanner.Scan(ctx, 1, func(due replay.DueLog, now time.Time) error {
				return h.visit(ctx, due.Log, now)
			})
			if err != nil && ctx.Err() == nil {
				h.log.WarnContext(ctx, "the index of AUN could not be read", "error", err)
			}
		}
	})
	return h
}

func (h *home) close() {
	h.stop()
	h.done.Wait()
}

// visit drops a log of the index if its task was dropped, and a position if all of its task was received.
func (h *home) visit(ctx context.Context, log string, now time.Time) error {
	head, err := h.store.Head(ctx, log)
	if errors.Is(err, replay.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if logname.FollowerOf(log) != "" {
		return h.visitPosition(ctx, replay.Entry{Log: log, Head: head})
	}
	var e entry
	if err := json.Unmarshal(head.Metadata, &e); err != nil {
		return err
	}
	a := replay.Append{Log: log, Expect: head.Revision, Metadata: head.Metadata, DueAt: now.Add(recheck)}
	_, err = h.store.Head(ctx, e.Log)
	if a.Drop = errors.Is(err, replay.ErrNotFound); err != nil && !a.Drop {
		return err
	}
	if err = h.store.Append(ctx, a); errors.Is(err, replay.ErrConflict) {
		return nil // the faster writer has set when it is due
	}
	return err
}

// visitPosition is visit for a position.
func (h *home) visitPosition(ctx context.Context, of replay.Entry) error {
	c, err := follow.Parse(of, nil)
	if err != nil {
		return err
	}
	head, err := h.store.Head(ctx, c.Log)
	switch {
	case errors.Is(err, replay.ErrNotFound), err == nil && !head.Ended.IsZero() && c.Seq >= head.Last:
		return h.dropCursor(ctx, &c)
	case err != nil:
		return err
	}
	return h.write(ctx, &c)
}

// get returns the entry of a task; nil if it has none. Its id does not name the owner of the task, so it is looked for
// in all shards, also those of other processes.
func (x *Index) get(ctx context.Context, taskID string) (*entry, error) {
	n := x.set.Count()
	var elsewhere []int
	for i := range n {
		if !x.set.Owns(i) {
			elsewhere = append(elsewhere, i)
		} else if e, err := x.getIn(ctx, i, taskID); e != nil || err != nil {
			return e, err
		}
	}
	return shard.First(elsewhere, nil, func(i int) (*entry, error) { return x.getIn(ctx, i, taskID) })
}

// getIn is get in one shard.
func (x *Index) getIn(ctx context.Context, shard int, taskID string) (*entry, error) {
	head, err := x.set.Logs(shard).Head(ctx, logname.AUNTask(taskID))
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

// put stores an entry. After an error, the entry must be read again.
func (x *Index) put(ctx context.Context, taskID string, e *entry, durable bool) error {
	w := writing{Kind: putEntry, Task: taskID, Log: e.Log, Entry: e, Revision: e.revision, Durable: durable}
	if _, err := x.owners.Try(ctx, x.shardOf(e.Log), w); err != nil {
		return err
	}
	e.revision++
	return nil
}

// Accept implements partner.Acceptor: the entry of a task is stored right before its start is. So no task is without an
// entry, and a refused start leaves nothing.
func (x *Index) Accept(
	ctx context.Context, log string, at task.Position, c *partner.Request,
) (done partner.Accepted, err error) {
	if c.Entry == nil || at.Exists {
		return done, nil
	}
	e := new(entry)
	if err := json.Unmarshal(c.Entry, e); err != nil {
		return done, err
	}
	_, _, id := logname.Split(log)
	done.Undo, err = x.begin(ctx, id, e)
	return done, err
}

// begin stores the entry of a task about to be started, also with its parent. undo removes all of it, if the task was
// not stored.
func (x *Index) begin(ctx context.Context, id string, e *entry) (undo func(context.Context) error, err error) {
	undo = func(ctx context.Context) error {
		// A failed start may turn out to be stored when the store can be used again.
		if _, err := x.head(ctx, e.Log); !errors.Is(err, replay.ErrNotFound) {
			return err
		}
		err := x.drop(ctx, id, e)
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
		_ = undo(context.WithoutCancel(ctx)) // the first error counts
		return nil, err
	}
	return undo, nil
}

// drop drops the entry of a task.
func (x *Index) drop(ctx context.Context, taskID string, e *entry) error {
	w := writing{Kind: dropEntry, Task: taskID, Log: e.Log, Revision: e.revision}
	_, err := x.owners.Try(ctx, x.shardOf(e.Log), w)
	return err
}

// change changes the entry of a task, if it has one, while no other call of this process does. change is called again
// if another writer was faster, and reports whether it has changed the entry, which is nil if there is none.
func (x *Index) change(
	ctx context.Context, taskID string, durable bool, change func(*entry) (changed bool, err error),
) error {
	changing := x.changing.Acquire(taskID)
	defer changing.Release()
	changing.Value.Lock()
	defer changing.Value.Unlock()
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

// ended reports whether the task of an entry has ended.
func (x *Index) ended(ctx context.Context, e *entry) bool {
	head, err := x.head(ctx, e.Log)
	return errors.Is(err, replay.ErrNotFound) || err == nil && !head.Ended.IsZero()
}

// head returns the head of the log of a task, in whichever shard.
func (x *Index) head(ctx context.Context, log string) (replay.Head, error) {
	return x.set.Logs(x.shardOf(log)).Head(ctx, log)
}

// errGone is the error of a missing task, or of one not visible to the client.
func errGone(taskID string) error { return partner.NotFound(taskID) }
