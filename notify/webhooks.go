// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Limits of what a webhook may hold, in bytes.
const (
	maxURL    = 2048
	maxSecret = 4096
)

// At says how far a task is when a webhook is set. The zero At is a task that has not been started yet.
type At struct {
	Seq   uint64 // number of the last event in the task's log; a webhook is told of what comes after it
	Ended bool
	// Named says that an ID which is not known names a new webhook: in some dialects the caller does so.
	Named bool
}

// Set creates a webhook, or replaces the one of its ID, and returns it as it is kept. log is the name of the
// task's log. The caller holds off the task's writer, so that no event comes between at and the webhook; once
// Set has returned, Tell must be called. A webhook that is replaced is enabled again, and goes on where it was.
func (e *Engine) Set(ctx context.Context, log string, w task.Webhook, at At) (task.Webhook, error) {
	s := e.setup.Load()
	if s == nil {
		return w, task.Errorf(task.NotificationNotSupported, "webhooks are not configured")
	}
	if err := check(s.Egress, &w); err != nil {
		return w, err
	}
	b := e.acquire(logname.OutboxOf(log))
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _, w.TaskID = logname.Split(b.name)
	if w.ID == "" {
		w.ID = "notification-" + rand.Text()
		return w, b.create(ctx, w, at)
	}
	if err := b.load(ctx); err != nil {
		return w, err
	}
	if at.Named && (!b.exists || b.note.config(w.ID) == nil) {
		return w, b.create(ctx, w, at)
	}
	if !b.exists {
		return w, noSuchWebhook(task.InvalidParams)
	}
	return w, b.update(ctx, true, func(n *note, now time.Time) (bool, error) {
		c := n.config(w.ID)
		if c == nil {
			return false, noSuchWebhook(task.InvalidParams)
		}
		n.forget(c)
		c.Webhook = w
		c.Rev++
		c.Disabled, c.DisabledAt = "", time.Time{}
		if n.pending(c) {
			c.Next = now // its receiver may be another one
		}
		return true, nil
	})
}

// noSuchWebhook is what is wrong with an id: of kind InvalidParams where one was to be replaced.
func noSuchWebhook(k task.Kind) error {
	if k == task.InvalidParams {
		return task.Errorf(k, "this task has no webhook of this id; leave the id out to create one").WithField("params.id")
	}
	return task.Errorf(k, "this task has no webhook of this id")
}

// check refuses what can never be delivered to. The errors hold nothing of the URL's path and query.
func check(g *egress.Policy, w *task.Webhook) error {
	if w.URL == "" || len(w.URL) > maxURL {
		return task.Errorf(task.InvalidParams, "url must be a string of 1 to %d bytes", maxURL).WithField("params.url").WithData("max", maxURL)
	}
	if _, err := g.CheckURL(w.URL); err != nil {
		var refused *egress.RefusedError
		if errors.As(err, &refused) {
			return task.Errorf(task.InvalidParams, "%s", refused.Reason).WithField("params.url").WithCause(err)
		}
		return task.Errorf(task.InvalidParams, "this url cannot be used for a webhook").WithField("params.url")
	}
	if _, err := url.Parse(w.URL); err != nil {
		return task.Errorf(task.InvalidParams, "url cannot be read").WithField("params.url")
	}
	for _, f := range []struct{ field, value string }{
		{"params.token", w.Token}, {"params.scheme", w.Scheme}, {"params.credentials", w.Credentials},
	} {
		if len(f.value) > maxSecret {
			return task.Errorf(task.InvalidParams, "at most %d bytes are allowed here", maxSecret).WithField(f.field).WithData("max", maxSecret)
		}
		if holdsControl(f.value) {
			return task.Errorf(task.InvalidParams, "control characters are not allowed here").WithField(f.field)
		}
	}
	for _, st := range w.States {
		if !st.Valid() {
			return task.Errorf(task.InvalidParams, "a state must be one of %v", task.States()).WithField("params.states")
		}
	}
	return nil
}

// create adds a webhook, and makes the outbox if there is none. b.mu is held.
func (b *box) create(ctx context.Context, w task.Webhook, at At) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	if b.over {
		return task.Errorf(task.UnsupportedOperation, "this task ended so long ago that nothing more is kept of it")
	}
	made := !b.exists
	if made && !b.engine.outboxes.add(b.name) {
		return task.Errorf(task.LimitExceeded, "there are webhooks for %d of your tasks; wait until some have ended", maxOutboxes).
			WithData("limit", "webhooks").WithData("max", maxOutboxes)
	}
	err := b.update(ctx, true, func(n *note, now time.Time) (bool, error) {
		if len(n.Configs) >= maxHooks {
			return false, task.Errorf(task.LimitExceeded, "a task may have at most %d webhooks; delete one", maxHooks).
				WithData("limit", "webhooks").WithData("max", maxHooks)
		}
		switch {
		case len(n.Configs) == 0 && n.Seen == 0 && n.Ended.IsZero():
			n.Made = now
			if at.Seq > 0 {
				n.Seen, n.Told = at.Seq, now
			}
			n.Epoch = *b.engine.epoch.Load()
		case !n.Ended.IsZero() && at.Seq < n.Seen:
			n.renew()
			n.Seen, n.Told = at.Seq, now
			if at.Seq == 0 {
				n.Made, n.Told = now, time.Time{}
			}
		}
		if at.Ended && n.Ended.IsZero() {
			n.Ended = now
		}
		c := config{Webhook: w, From: at.Seq, Cursor: n.last()}
		for c.Cursor >= n.First {
			if en := n.entry(c.Cursor); en.State != task.None && (en.Life < n.Life || en.Event <= at.Seq) {
				break
			}
			c.Cursor--
		}
		n.Configs = append(n.Configs, c)
		return true, nil
	})
	if err != nil && made {
		b.engine.outboxes.done(b.name)
	}
	return err
}

// Get returns the webhook of an id, or all of a task's where it is empty. That there is none is an error only
// where one was named: of kind TaskNotFound, as AIP has it (v01.00 §6.3.3).
func (e *Engine) Get(ctx context.Context, log, id string) ([]task.Webhook, error) {
	b := e.acquire(logname.OutboxOf(log))
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	hooks := b.hooks()
	if id == "" {
		return hooks, nil
	}
	i := slices.IndexFunc(hooks, func(w task.Webhook) bool { return w.ID == id })
	if i < 0 {
		return nil, noSuchWebhook(task.TaskNotFound)
	}
	return hooks[i : i+1], nil
}

// Delete deletes the webhook of an id, or all of a task's where it is empty, and with them what they are still
// owed. That there is none is an error only where one was named, as with Get.
func (e *Engine) Delete(ctx context.Context, log, id string) error {
	return e.change(ctx, log, func(n *note, _ time.Time) (bool, error) {
		if id == "" {
			had := len(n.Configs) > 0
			for i := range n.Configs {
				n.forget(&n.Configs[i])
			}
			n.Configs = nil
			return had, nil
		}
		i := slices.IndexFunc(n.Configs, func(c config) bool { return c.Webhook.ID == id })
		if i < 0 {
			return false, noSuchWebhook(task.TaskNotFound)
		}
		n.forget(&n.Configs[i])
		n.Configs = slices.Delete(n.Configs, i, i+1)
		return true, nil
	})
}

// change changes the note of an outbox; of one that does not exist, an empty one that cannot have changed.
func (e *Engine) change(ctx context.Context, log string, change func(n *note, now time.Time) (bool, error)) error {
	b := e.acquire(logname.OutboxOf(log))
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.update(ctx, true, change)
}

// holdsControl reports whether s holds a character that could end a header field.
func holdsControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
