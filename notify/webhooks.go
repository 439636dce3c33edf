// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Limits of a webhook's parts, in bytes.
const (
	maxURL    = 2048
	maxSecret = 4096
)

// At is the state of a task when a webhook is set. The zero At is a task not started yet.
type At struct {
	Seq   uint64 // number of the last event in the task's log; a webhook is notified of the events after it
	Ended bool
	// Named reports whether an unknown ID is the name of a new webhook: in some dialects the caller chooses the ID.
	Named bool
}

// NewID returns an id for a webhook.
func NewID() string { return "notification-" + rand.Text() }

// Set creates a webhook, or replaces the one of its ID, and returns it as it is stored. log is the name of the task's
// log. The caller holds the lock of the task, so no event comes between at and the webhook. After Set, the caller must
// call Notify with each change of the task. A replaced webhook is enabled again, and continues from its place.
func (e *Engine) Set(ctx context.Context, log string, w task.Webhook, at At) (task.Webhook, error) {
	c := e.config.Load()
	if c == nil {
		return w, task.Errorf(task.NotificationNotSupported, "webhooks are not configured")
	}
	if err := check(c.Egress, &w); err != nil {
		return w, err
	}
	b := e.outboxes.lock(logname.OutboxOf(log))
	defer b.unlock()
	w.TaskID = b.task
	if w.ID == "" {
		w.ID = NewID()
		return w, b.create(ctx, w, at)
	}
	if err := b.load(ctx); err != nil {
		return w, err
	}
	if at.Named && (!b.exists || b.metadata.hook(w.ID) == nil) {
		return w, b.create(ctx, w, at)
	}
	if !b.exists {
		return w, noSuchWebhook(task.InvalidParams)
	}
	return w, b.update(ctx, true, func(m *metadata, now time.Time) (bool, error) {
		h := m.hook(w.ID)
		if h == nil {
			return false, noSuchWebhook(task.InvalidParams)
		}
		m.forget(h)
		if !sameReceiver(&h.Webhook, &w) {
			h.Revision++
		}
		h.replace(w)
		h.Disabled, h.DisabledAt = "", time.Time{}
		if m.pending(h) {
			h.Next = now // its receiver may be another one
		}
		return true, nil
	})
}

// sameReceiver reports whether two webhooks are received by the same one. Then an attempt under way counts for both.
func sameReceiver(a, b *task.Webhook) bool {
	return a.URL == b.URL && a.Token == b.Token && a.Scheme == b.Scheme && a.Credentials == b.Credentials
}

// noSuchWebhook is the error of an unknown id. Its kind is InvalidParams if a webhook was to be replaced.
func noSuchWebhook(k task.Kind) error {
	if k == task.InvalidParams {
		return task.Errorf(k, "this task has no webhook of this id; leave the id out to create one").
			WithField("params.id")
	}
	return task.Errorf(k, "this task has no webhook of this id")
}

// check refuses a webhook that could never be notified. The errors hold nothing of the URL's path and query.
func check(p *egress.Policy, w *task.Webhook) error {
	if w.URL == "" || len(w.URL) > maxURL {
		return task.Errorf(task.InvalidParams, "the URL must be a string of 1 to %d bytes", maxURL).
			WithField("params.url").WithData("max", maxURL)
	}
	if _, err := p.CheckURL(w.URL); err != nil {
		var refused *egress.RefusedError
		if errors.As(err, &refused) {
			return task.Errorf(task.InvalidParams, "%s", refused.Reason).WithField("params.url").WithCause(err)
		}
		return task.Errorf(task.InvalidParams, "the URL cannot be used for a webhook").WithField("params.url")
	}
	if _, err := url.Parse(w.URL); err != nil {
		return task.Errorf(task.InvalidParams, "the URL cannot be read").WithField("params.url")
	}
	for _, f := range []struct{ field, value string }{
		{"params.token", w.Token}, {"params.scheme", w.Scheme}, {"params.credentials", w.Credentials},
	} {
		if len(f.value) > maxSecret {
			return task.Errorf(task.InvalidParams, "at most %d bytes are allowed here", maxSecret).
				WithField(f.field).WithData("max", maxSecret)
		}
		if holdsControl(f.value) {
			return task.Errorf(task.InvalidParams, "control characters are not allowed here").WithField(f.field)
		}
	}
	for _, st := range w.States {
		if !st.Valid() {
			return task.Errorf(task.InvalidParams, "a state must be one of %v", task.States()).
				WithField("params.states")
		}
	}
	return nil
}

// create adds a webhook, and creates the outbox if there is none. The lock of the outbox is held.
func (b *outbox) create(ctx context.Context, w task.Webhook, at At) error {
	if err := b.load(ctx); err != nil {
		return err
	}
	if b.ended {
		return task.Errorf(task.UnsupportedOperation, "this task ended long ago, and its webhooks were dropped")
	}
	created, owner := !b.exists, logname.Owner(b.name)
	if created {
		if err := b.of.owners.Take(owner, 1, limit.Limits{Total: math.MaxInt64, PerLeader: maxOutboxes}); err != nil {
			return task.Errorf(task.LimitExceeded,
				"there are webhooks for %d of your tasks; wait until some have ended", maxOutboxes).
				WithData("limit", "webhooks").WithData("max", maxOutboxes)
		}
		b.of.any.Store(true)
	}
	err := b.update(ctx, true, func(m *metadata, now time.Time) (bool, error) {
		if len(m.Hooks) >= maxHooks {
			return false, task.Errorf(task.LimitExceeded, "a task may have at most %d webhooks; delete one", maxHooks).
				WithData("limit", "webhooks").WithData("max", maxHooks)
		}
		b.startAt(m, at, now)
		m.add(w, at.Seq)
		return true, nil
	})
	if err != nil && created {
		b.of.owners.Give(owner, 1)
	}
	return err
}

// startAt accounts for the events up to at, if the outbox is new or the task is a new one of the same id.
func (b *outbox) startAt(m *metadata, at At, now time.Time) {
	switch {
	case len(m.Hooks) == 0 && m.Seen == 0 && m.Ended.IsZero():
		m.Created = now
		if at.Seq > 0 {
			m.Seen, m.SeenAt = at.Seq, now
		}
		m.Epoch = b.of.present()
	case !m.Ended.IsZero() && at.Seq < m.Seen:
		m.beginGeneration()
		m.Seen, m.SeenAt = at.Seq, now
		if at.Seq == 0 {
			m.Created, m.SeenAt = now, time.Time{}
		}
	}
	if at.Ended && m.Ended.IsZero() {
		m.Ended = now
	}
}

// Get returns the webhook of an id, or all webhooks of a task if the id is empty. An unknown id is an error of kind
// TaskNotFound, as in AIP (v01.00 §6.3.3).
func (e *Engine) Get(ctx context.Context, log, id string) ([]task.Webhook, error) {
	b := e.outboxes.lock(logname.OutboxOf(log))
	defer b.unlock()
	if err := b.load(ctx); err != nil {
		return nil, err
	}
	hooks := b.webhooks()
	if id == "" {
		return hooks, nil
	}
	i := slices.IndexFunc(hooks, func(w task.Webhook) bool { return w.ID == id })
	if i < 0 {
		return nil, noSuchWebhook(task.TaskNotFound)
	}
	return hooks[i : i+1], nil
}

// Delete deletes the webhook of an id, or all webhooks of a task if the id is empty, with the notifications not
// delivered yet. An unknown id is an error, as with Get.
func (e *Engine) Delete(ctx context.Context, log, id string) error {
	return e.outboxes.update(ctx, log, func(m *metadata, _ time.Time) (bool, error) {
		if id == "" {
			had := len(m.Hooks) > 0
			for i := range m.Hooks {
				m.forget(&m.Hooks[i])
			}
			m.Hooks = nil
			return had, nil
		}
		i := slices.IndexFunc(m.Hooks, func(h hook) bool { return h.Webhook.ID == id })
		if i < 0 {
			return false, noSuchWebhook(task.TaskNotFound)
		}
		m.forget(&m.Hooks[i])
		m.Hooks = slices.Delete(m.Hooks, i, i+1)
		return true, nil
	})
}

// holdsControl reports whether s holds a character that could end a header field.
func holdsControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
