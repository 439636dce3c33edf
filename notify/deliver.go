// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// steps are the times between the attempts of a delivery, each up to a fifth longer or shorter. Where there are
// more attempts than steps, the last one is repeated.
var steps = [...]time.Duration{
	time.Second, 2 * time.Second, 4 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
	3 * time.Hour, 20 * time.Hour,
}

// step is the time to wait after a number of attempts.
func step(attempts int) time.Duration { return steps[min(max(attempts, 1), len(steps))-1] }

// unknownDialect is how long what is to be told in a dialect that there is not waits at a time.
const unknownDialect = time.Minute

// run carries out one delivery whose turn it is.
func (e *Engine) run(f *flight) {
	b := e.acquire(f.outbox)
	defer b.release()
	defer e.sched.land(f)
	p, ready := b.prepare(f.job)
	if !ready {
		return
	}
	out := e.attempt(p, b.logger())
	drained := e.judge(f, p, &out)
	b.finish(f.job, p, &out)
	e.readmit(drained)
}

var errStrange = errors.New("notify: there is no such dialect")

// prepare makes the next attempt of a webhook ready. Where there is nothing to do, it says so, and the
// delivery is no longer in memory.
func (b *box) prepare(j job) (*parcel, bool) {
	e := b.engine
	b.mu.Lock()
	defer b.mu.Unlock()
	p, err := b.pack(j)
	if p != nil && err == nil {
		return p, true
	}
	e.sched.forget(j)
	switch {
	case errors.Is(err, errStrange):
		err = b.update(e.base, false, func(n *note, now time.Time) (bool, error) {
			c := n.config(j.webhook)
			if c != nil {
				n.postpone(c, now, now.Add(jitter(unknownDialect, 0.2)))
			}
			return c != nil, nil
		})
	case err == nil && b.loaded && b.exists:
		b.admit(time.Now()) // what has changed may be due elsewhere
	}
	if err != nil && e.base.Err() == nil {
		b.logger().Error("a notification cannot be made; trying again", "error", err)
		e.sched.suffer(b.name, time.Now())
	}
	return nil, false
}

// pack returns the next attempt of a webhook; nil where none is due. b.mu is held.
func (b *box) pack(j job) (*parcel, error) {
	e := b.engine
	if err := b.load(e.base); err != nil || !b.exists {
		return nil, err
	}
	n := &b.note
	c := n.config(j.webhook)
	if c == nil || endpointOf(c.Webhook.URL) != j.to.name {
		return nil, nil
	}
	now := time.Now()
	t, due := n.due(c, now)
	if !due {
		return nil, nil
	}
	en := n.entry(t.record)
	data, err := b.record(e.base, t.record)
	if err != nil {
		return nil, err
	}
	p := &parcel{setup: e.setup.Load(), target: t, rev: c.Rev, since: time.UnixMilli(en.At), began: now}
	p.id = webhookID(b.name, c.Webhook.ID, en)
	partner, _, _ := splitName(b.name)
	wire := p.setup.Dialects(&c.Webhook, partner)
	if wire == nil {
		e.warnStrange(c.Webhook.Dialect)
		return nil, errStrange
	}
	p.wire, p.hook, p.record = wire, c.Webhook, data
	return p, nil
}

func (e *Engine) warnStrange(dialect string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.strange[dialect] && len(e.strange) < maxHooks {
		e.strange[dialect] = true
		e.logger().Warn("webhooks were set in a dialect that there is not; they wait", "dialect", dialect)
	}
}

// webhookID returns the id of a notification: the same at every attempt, and after any crash.
func webhookID(outbox, webhook string, en *entry) string {
	key := taskOf(outbox) + separator + webhook + separator + strconv.FormatUint(en.Event, 10)
	if en.Life > 0 {
		key += separator + strconv.FormatUint(en.Life, 10)
	}
	sum := sha256.Sum256([]byte(key))
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// judge tells the endpoint's breaker of an attempt. It returns the deliveries that must not be made now.
func (e *Engine) judge(f *flight, p *parcel, o *outcome) (drained []job) {
	if o.canceled || o.hopeless || o.internal {
		return nil
	}
	now := time.Now()
	s := &e.sched
	s.mu.Lock()
	ep := f.to
	ep.used = now
	var opened, closed bool
	was := !ep.breaker.until.IsZero()
	if o.sick {
		if opened = ep.breaker.fail(now); o.retryAfter > 0 {
			opened = ep.breaker.hold(now, o.retryAfter) || opened
		}
		if opened {
			drained = s.drain(ep)
		}
	} else {
		closed = ep.breaker.succeed()
		if o.err == "" {
			ep.okAt = now
		}
	}
	failures, until := ep.breaker.failures, ep.breaker.until
	s.mu.Unlock()
	switch {
	case opened && !was:
		e.logger().Warn("a webhook endpoint does not work; its deliveries wait", "endpoint", ep.name, "failures", failures, "until", until, "error", o.err)
	case closed:
		e.logger().Warn("a webhook endpoint works again", "endpoint", ep.name)
	}
	return drained
}

// finish stores what came of an attempt, and lets the next delivery of the webhook have its turn.
func (b *box) finish(j job, p *parcel, o *outcome) {
	e := b.engine
	ctx := context.WithoutCancel(e.base) // what was delivered is accounted for, even while the engine closes
	b.mu.Lock()
	defer b.mu.Unlock()
	e.sched.forget(j)
	if o.canceled {
		return
	}
	if o.err == "" {
		e.counts.delivered.Add(1)
	} else {
		e.counts.failed.Add(1)
	}
	var tell func()
	changed := false
	reopened := e.store.Reopened() // of the time before the write
	err := b.update(ctx, false, func(n *note, now time.Time) (bool, error) {
		tell = nil
		c := n.config(j.webhook)
		// A webhook that was replaced meanwhile is owed the same notification at its new URL.
		changed = c != nil && c.Rev == p.rev && n.awaits(c, p.target)
		if changed {
			tell = b.apply(n, c, p, o, now)
		}
		return changed, nil
	})
	switch {
	case err != nil:
		b.logger().Error("the outcome of a notification cannot be stored; it is delivered again", "error", err)
		e.sched.suffer(b.name, time.Now())
		if errors.Is(err, replay.ErrUnavailable) {
			e.sched.pause(reopened)
		}
		return
	case !changed && b.exists:
		b.admit(time.Now())
	}
	if tell != nil {
		tell()
	}
}

// awaits reports whether a delivery is still to be made.
func (n *note) awaits(c *config, t target) bool {
	if t.letter {
		i := c.letter(t.record)
		return i >= 0 && !c.Dead[i].Next.IsZero()
	}
	return c.Cursor+1 == t.record && n.pending(c)
}

// apply changes the note by the outcome of an attempt. It returns what is to be logged once that is stored.
func (b *box) apply(n *note, c *config, p *parcel, o *outcome, now time.Time) (tell func()) {
	e, id := b.engine, c.Webhook.ID
	c.LastStatus, c.LastError = o.status, o.err
	log := b.logger().With("webhook", id, "host", hostOf(c.Webhook.URL), "webhook-id", p.id, "status", o.status)
	if o.err == "" {
		c.GaveUp = time.Time{}
		if p.target.letter {
			i := c.letter(p.target.record)
			c.Dead = append(c.Dead[:i:i], c.Dead[i+1:]...)
		} else {
			c.Cursor++
			c.reset()
		}
		return func() { log.Debug("a notification was delivered") }
	}

	attempts, first, next := &c.Attempts, &c.First, &c.Next
	if p.target.letter {
		l := &c.Dead[c.letter(p.target.record)]
		l.Status, l.Error = o.status, o.err
		attempts, first, next = &l.Attempts, new(time.Time), &l.Next
	}
	*attempts++
	if first.IsZero() {
		*first = p.began
	}
	if o.gone {
		c.Disabled, c.DisabledAt = "the receiver answered 410 Gone", now
		*next = now
		return func() { log.Warn("a webhook is disabled: its receiver wants nothing more") }
	}
	n1 := *attempts
	// What queued up behind a dead head has had its time while that was tried: one attempt each, or a receiver
	// that is down for good would take a day for every one of them.
	behind := !p.target.letter && p.since.Before(c.GaveUp)
	if o.hopeless || behind || n1 >= p.setup.Attempts {
		n.bury(c, p.target, letter{Attempts: n1, At: now, Status: o.status, Error: o.err})
		c.GaveUp = now
		return func() {
			e.counts.dead.Add(1)
			log.Warn("a notification is given up; it is a dead letter now", "attempts", n1, "error", o.err)
		}
	}
	*next = now.Add(max(jitter(step(n1), 0.2), o.retryAfter))
	return func() { log.Debug("a notification was not delivered", "attempts", n1, "error", o.err) }
}

// hostOf returns what may be logged of a URL.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
