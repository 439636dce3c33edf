// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// saveDelay is the time from a confirm until the cursor is stored. Messages published again after a crash have the same
// ids.
const saveDelay = 200 * time.Millisecond

// changedCursor has the cursor of a follower stored soon. mu is held.
func (t *groupTasks) changedCursor(f *follower) {
	if !f.dirty {
		f.dirty = true
		t.dirty = append(t.dirty, f)
	}
	t.saveAfter(saveDelay)
}

// saveAfter has the cursors stored after a time. mu is held.
func (t *groupTasks) saveAfter(d time.Duration) {
	if !t.saving && !t.closed {
		t.saving = true
		t.after(d, func() { t.save(t.base) })
	}
}

// save stores the changed cursors, and drops those of followers with everything published.
func (t *groupTasks) save(ctx context.Context) {
	t.saver.Lock()
	defer t.saver.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	list := t.dirty
	t.dirty = nil
	for i, f := range list {
		err := t.saveCursor(ctx, f)
		if err != nil && !errors.Is(err, replay.ErrConflict) { // at a conflict the log has ended
			f.dirty = true
			t.dirty = append(append(t.dirty, f), list[i+1:]...)
			break
		}
	}
	t.saving = false
	if len(t.dirty) > 0 {
		t.saveAfter(retryFirst)
	}
}

// saveCursor stores the cursor of a follower, and drops it if it has published everything. mu is held, but not while
// the store is used.
func (t *groupTasks) saveCursor(ctx context.Context, f *follower) error {
	f.dirty = false
	if !f.over && f.finished && !f.queued && len(f.flight)+len(f.gets) == 0 {
		t.remove(f)
	}
	c, begun, over := f.cursor, f.begun, f.over
	c.Position = f.confirmed
	t.mu.Unlock()
	started, err := false, error(nil)
	if !begun {
		started, err = t.wasStarted(ctx, f)
	}
	switch {
	case err != nil || started:
	case over:
		_, err = c.Drop(ctx, t.store)
	default:
		_, err = c.Write(ctx, t.store)
	}
	t.mu.Lock()
	f.cursor = c
	if started {
		t.restore(f)
		t.changedCursor(f)
	}
	return err
}

// wasStarted reports whether the start of a task was stored: after a failed write, it may be stored all the same, when
// the store can be used again.
func (t *groupTasks) wasStarted(ctx context.Context, f *follower) (bool, error) {
	_, err := t.store.Head(ctx, f.log)
	if errors.Is(err, replay.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// remove removes a follower with nothing more to publish. mu is held.
func (t *groupTasks) remove(f *follower) {
	f.over = true
	if t.current != f {
		f.end()
	}
	if t.followers[f.task] == f {
		delete(t.followers, f.task)
	}
	t.changed.Broadcast()
}

// restore takes a follower back, as its start was stored after all. mu is held.
func (t *groupTasks) restore(f *follower) {
	f.begun = true
	if t.followers[f.task] == nil { // otherwise there is another one since
		f.over = false
		t.followers[f.task] = f
		t.begin(f)
	}
}

// Accept implements partner.Acceptor: it has a task started in a group published there. An existing task stays as it
// is.
func (e *Engine) Accept(
	ctx context.Context, log string, at task.Position, c *partner.Request,
) (partner.Accepted, error) {
	if c.Group == "" || at.Exists {
		return partner.Accepted{}, nil
	}
	name, leader, _ := logname.Split(log)
	m := e.membership(key{name, leader, c.Group})
	if m == nil {
		return partner.Accepted{}, errLeaves
	}
	return m.tasks.follow(ctx, log, c.Dialect, c.Commit)
}

var (
	errLeaves = task.Errorf(task.UnsupportedOperation, "this Partner leaves the group")
	errStops  = task.Errorf(task.Internal, "the gateway is stopping")
)

// follow implements tasks.
func (t *groupTasks) follow(
	ctx context.Context, log, dialect string, commit time.Duration,
) (partner.Accepted, error) {
	select {
	case <-t.recovered:
	case <-ctx.Done():
		return partner.Accepted{}, ctx.Err()
	case <-t.base.Done():
		return partner.Accepted{}, errStops
	}
	_, _, id := logname.Split(log)
	// A start by rpc has no Accept: its answer accepts it.
	a := about{Dialect: dialect, Created: time.Now(), Accept: commit}
	name := logname.GroupTasksOf(t.partner, t.leader, t.group) + id + logname.Separator + rand.Text()[:13]
	f := t.newFollower(id, log, a, follow.Cursor{Name: name, Log: log})
	f.trace = traceHeaders(ctx)
	t.mu.Lock()
	switch {
	case t.closed:
		t.mu.Unlock()
		return partner.Accepted{}, errStops
	case t.ending:
		t.mu.Unlock()
		return partner.Accepted{}, errLeaves
	}
	if had := t.followers[id]; had != nil { // of a task no longer stored
		t.remove(had)
		t.changedCursor(had)
	}
	t.followers[id] = f
	t.mu.Unlock()
	c := f.cursor
	c.Durable = true
	if _, err := c.Write(ctx, t.store); err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.remove(f)
		return partner.Accepted{}, partner.StoreError(err, "the task cannot be stored")
	}
	c.Durable = false // messages published again after a crash have the same ids
	t.mu.Lock()
	f.cursor = c
	t.mu.Unlock()
	return partner.Accepted{
		Stored: func() { t.started(f) },
		Undo:   func(context.Context) error { t.undo(f); return nil },
	}, nil
}

// newFollower returns the follower of a task. It continues at its cursor.
func (t *groupTasks) newFollower(id, log string, a about, c follow.Cursor) *follower {
	f := &follower{tasks: t, task: id, log: log, about: a, cursor: c, confirmed: c.Position, at: c.Position,
		tail: follow.New(t.store, log, c.Position, true)}
	f.cursor.Data = &f.about
	return f
}

// started begins to publish a task.
func (t *groupTasks) started(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begin(f)
}

// begin is started while mu is held.
func (t *groupTasks) begin(f *follower) {
	f.begun = true
	t.acceptLater(f)
	t.enqueue(f)
	t.changed.Broadcast()
}

// undo ends the follower of a task not started.
func (t *groupTasks) undo(f *follower) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(f)
	t.changedCursor(f)
}

// acceptLater has the start of a task accepted after the time of its agent to answer a start. Until then the agent may
// reject it. mu is held.
func (t *groupTasks) acceptLater(f *follower) {
	if f.confirmed.Seq > 0 || t.closed {
		return
	}
	f.pending = t.after(retryFirst, func() { t.accept(f) })
}

// accept accepts the start of a task, if it is pending for long enough.
func (t *groupTasks) accept(f *follower) {
	gw := t.member.gateway()
	wait := retryFirst
	if gw != nil {
		if wait = time.Until(f.about.Created.Add(cmp.Or(f.about.Accept, gw.ResponseTimeout()))); wait <= 0 {
			// The answer to a get shows the task, so the agent cannot reject it any more.
			err := t.own(t.base, gw, f.log, task.Message{Command: task.Get})
			if task.KindOf(err) != task.StoreUnavailable {
				return
			}
			wait = retryFirst
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.pending != nil && !f.over && !t.closed {
		f.pending = t.after(wait, func() { t.accept(f) })
	}
}

// recover finds the followers left by an earlier process.
func (t *groupTasks) recover() {
	defer close(t.recovered)
	for {
		reopened := t.store.Reopened()
		all, err := t.load()
		t.mu.Lock()
		if err == nil {
			for _, f := range all {
				t.followers[f.task] = f
				t.begin(f)
			}
		}
		t.mu.Unlock()
		if err == nil || t.base.Err() != nil {
			return
		}
		t.logger().Error("the tasks of a group cannot be read; trying again", "error", err)
		select {
		case <-reopened:
		case <-time.After(retryFirst):
		case <-t.base.Done():
			return
		}
	}
}

// load reads the followers of the group.
func (t *groupTasks) load() (all []*follower, err error) {
	prefix := logname.GroupTasksOf(t.partner, t.leader, t.group)
	for entry, err := range t.store.List(t.base, prefix, "") {
		if err != nil {
			return nil, err
		}
		var a about
		c, err := follow.Parse(entry, &a)
		if err != nil || !entry.Head.Ended.IsZero() {
			continue
		}
		id := logname.TaskOfGroup(entry.Log)
		f := t.newFollower(id, logname.New(t.partner, t.leader, id), a, c)
		all = append(all, f)
	}
	return all, nil
}
