// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/notify/delivery"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
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

// parcel is one attempt, ready to be sent.
type parcel struct {
	delivery.Attempt
	box      *box
	attempts int // that a notification has at most
	target   target
	rev      uint64 // of the webhook
	since    time.Time
	hook     task.Webhook
	wire     translate.Notifier // its dialect
	record   []byte             // of the outbox
}

// Log implements delivery.Message.
func (p *parcel) Log() *slog.Logger {
	return p.box.logger().With("webhook", p.hook.ID, "host", hostOf(p.URL), "webhook-id", p.ID)
}

// Encode implements delivery.Message.
func (p *parcel) Encode(header http.Header) (body []byte, traceparent string, err error) {
	h, t, err := decodeRecord(p.record)
	if err != nil {
		return nil, "", err
	}
	body = p.wire.AppendNotification(nil, &t)
	for _, f := range p.wire.NotificationHeader(&p.hook) {
		if f.Value != "" {
			header.Set(f.Name, f.Value)
		}
	}
	return body, h.Trace, nil
}

// run carries out one delivery whose turn it is.
func (e *Engine) run(f *flight) {
	b := e.acquire(f.outbox)
	defer b.release()
	defer e.sched.land(f)
	p, ready := b.prepare(f.job)
	if !ready {
		return
	}
	out := e.sender.Send(&p.Attempt)
	drained := e.judge(f, &out)
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
	setup := e.setup.Load()
	partner, _, _ := logname.Split(b.name)
	wire := setup.Dialects(&c.Webhook, partner)
	if wire == nil {
		e.warnStrange(c.Webhook.Dialect)
		return nil, errStrange
	}
	p := &parcel{
		Attempt: delivery.Attempt{
			ID: webhookID(b.name, c.Webhook.ID, en), URL: c.Webhook.URL, Began: now,
		},
		box: b, attempts: setup.Attempts, target: t, rev: c.Rev, since: time.UnixMilli(en.At),
		hook: c.Webhook, wire: wire, record: data,
	}
	p.Message = p
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
	key := logname.TaskOf(outbox) + logname.Separator + webhook + logname.Separator + strconv.FormatUint(en.Event, 10)
	if en.Life > 0 {
		key += logname.Separator + strconv.FormatUint(en.Life, 10)
	}
	sum := sha256.Sum256([]byte(key))
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// judge tells the endpoint's breaker of an attempt. It returns the deliveries that must not be made now.
func (e *Engine) judge(f *flight, o *delivery.Outcome) (drained []job) {
	switch o.Result {
	case delivery.Canceled, delivery.Undeliverable, delivery.Internal:
		return nil
	}
	now := time.Now()
	s := &e.sched
	s.mu.Lock()
	ep := f.to
	ep.used = now
	var opened, closed bool
	was := !ep.breaker.until.IsZero()
	if o.Result == delivery.Unavailable {
		if opened = ep.breaker.fail(now); o.RetryAfter > 0 {
			opened = ep.breaker.hold(now, o.RetryAfter) || opened
		}
		if opened {
			drained = s.drain(ep)
		}
	} else {
		closed = ep.breaker.succeed()
		if o.Result == delivery.Delivered {
			ep.okAt = now
		}
	}
	failures, until := ep.breaker.failures, ep.breaker.until
	s.mu.Unlock()
	switch {
	case opened && !was:
		e.logger().Warn("a webhook endpoint does not work; its deliveries wait", "endpoint", ep.name, "failures", failures, "until", until, "error", o.Error)
	case closed:
		e.logger().Warn("a webhook endpoint works again", "endpoint", ep.name)
	}
	return drained
}

// finish stores what came of an attempt, and lets the next delivery of the webhook have its turn.
func (b *box) finish(j job, p *parcel, o *delivery.Outcome) {
	e := b.engine
	ctx := context.WithoutCancel(e.base) // what was delivered is accounted for, even while the engine closes
	b.mu.Lock()
	defer b.mu.Unlock()
	e.sched.forget(j)
	if o.Result == delivery.Canceled {
		return
	}
	if o.Result == delivery.Delivered {
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
func (b *box) apply(n *note, c *config, p *parcel, o *delivery.Outcome, now time.Time) (tell func()) {
	e := b.engine
	c.LastStatus, c.LastError = o.Status, o.Error
	log := p.Log().With("status", o.Status)
	if o.Result == delivery.Delivered {
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
		l.Status, l.Error = o.Status, o.Error
		attempts, first, next = &l.Attempts, new(time.Time), &l.Next
	}
	*attempts++
	if first.IsZero() {
		*first = p.Began
	}
	if o.Result == delivery.Gone {
		c.Disabled, c.DisabledAt = "the receiver answered 410 Gone", now
		*next = now
		return func() { log.Warn("a webhook is disabled: its receiver wants nothing more") }
	}
	n1 := *attempts
	// What queued up behind a dead head has had its time while that was tried: one attempt each, or a receiver
	// that is down for good would take a day for every one of them.
	behind := !p.target.letter && p.since.Before(c.GaveUp)
	if o.Result == delivery.Undeliverable || behind || n1 >= p.attempts {
		n.bury(c, p.target, letter{Attempts: n1, At: now, Status: o.Status, Error: o.Error})
		c.GaveUp = now
		return func() {
			e.counts.dead.Add(1)
			log.Warn("a notification is given up; it is a dead letter now", "attempts", n1, "error", o.Error)
		}
	}
	*next = now.Add(max(jitter(step(n1), 0.2), o.RetryAfter))
	return func() { log.Debug("a notification was not delivered", "attempts", n1, "error", o.Error) }
}

// hostOf returns what may be logged of a URL.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
