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
	"sync"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/tracing"
	"github.com/aip-gateway/aip-gateway/notify/delivery"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// steps are the times between the attempts of a delivery, each up to a fifth longer or shorter. If there are more
// attempts than steps, the last step is repeated.
var steps = [...]time.Duration{
	time.Second, 2 * time.Second, 4 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 30 * time.Minute,
	3 * time.Hour, 20 * time.Hour,
}

// step is the time to wait after a number of attempts.
func step(attempts int) time.Duration { return steps[min(max(attempts, 1), len(steps))-1] }

// waits is the wait of a notification, each time, if it must not be sent now, or is in an unknown dialect. With its
// jitter it is less than the minute for a Leader's webhooks to go on after its certificates count again.
const waits = 45 * time.Second

// deliverer makes the attempts at the scheduler's request: it takes the notification from the outbox, sends it, and
// stores the outcome.
type deliverer struct {
	outboxes *outboxes
	queue    *schedule.Queue
	sender   *delivery.Sender
	results  *results
	config   func() *Config
	ctx      context.Context             // ends when the engine closes
	mayAct   func(context.Context) error // see replay.WhenHeld

	delivered, failed, dead atomic.Uint64

	mu      sync.Mutex
	unknown map[string]bool // dialects logged as unknown
}

// run makes the next attempt of a webhook.
func (d *deliverer) run(a *schedule.Attempt) {
	n, ready := d.prepare(a.Job)
	if !ready {
		return
	}
	if d.mayAct != nil && d.mayAct(d.ctx) != nil {
		d.queue.Remove(a.Job)
		return
	}
	outcome := d.sender.Send(&n.Attempt)
	n.duration = time.Since(n.Began)
	d.results.add(n, &outcome)
	waiting := d.queue.Report(a, &outcome)
	d.finish(n, &outcome)
	d.outboxes.reviewAll(d.ctx, waiting)
}

// notification is an attempt to deliver a notification.
type notification struct {
	delivery.Attempt
	job      schedule.Job
	target   target
	revision uint64        // of the webhook
	since    time.Time     // when the notification was appended to the outbox
	duration time.Duration // of the attempt, when it has ended
	webhook  task.Webhook
	dialect  translate.Notifier
	record   []byte // of the outbox

	leader, task, path string // path: see hook.path
	event              uint64 // number of it in the task's log
	state              task.State

	maxAttempts int
	log         func() *slog.Logger // names the task
}

// Encode implements delivery.Message.
func (n *notification) Encode(h http.Header) (body []byte, traceparent string, err error) {
	head, t, err := decodeRecord(n.record)
	if err != nil {
		return nil, "", err
	}
	body = n.dialect.AppendNotification(nil, &t)
	for _, f := range n.dialect.NotificationHeader(&n.webhook) {
		if f.Value != "" {
			h.Set(f.Name, f.Value)
		}
	}
	return body, head.Trace, nil
}

// Log implements delivery.Message.
func (n *notification) Log() *slog.Logger {
	log := n.log().With("webhook", n.webhook.ID, "host", hostOf(n.URL), "webhook-id", n.ID)
	if head, _, err := decodeRecord(n.record); err == nil && head.Trace != "" {
		log = log.With(tracing.IDKey, tracing.IDOf(head.Trace))
	}
	return log
}

var errWaits = errors.New("notify: the notification waits")

// prepare returns the next notification of a webhook. If none is due, it reports false, and the delivery is no longer
// in memory.
func (d *deliverer) prepare(j schedule.Job) (*notification, bool) {
	b := d.outboxes.lock(j.Outbox)
	defer b.unlock()
	n, err := d.next(b, j)
	if n != nil && err == nil {
		return n, true
	}
	d.queue.Remove(j)
	switch {
	case errors.Is(err, errWaits):
		err = b.update(d.ctx, false, func(m *metadata, now time.Time) (bool, error) {
			h := m.hook(j.Webhook)
			if h != nil {
				m.postpone(h, now, now.Add(schedule.Jitter(waits)))
			}
			return h != nil, nil
		})
	case err == nil && b.loaded != "" && b.exists:
		b.offer(time.Now()) // the changed notification may be due at another endpoint
	}
	if err != nil && d.ctx.Err() == nil {
		b.logger().Error("a notification cannot be read from its outbox; trying again", "error", err)
		d.queue.Quarantine(b.name, time.Now())
	}
	return nil, false
}

// next returns the next notification of a webhook; nil if none is due. The lock of the outbox is held.
func (d *deliverer) next(b *outbox, j schedule.Job) (*notification, error) {
	if err := b.load(d.ctx); err != nil || !b.exists {
		return nil, err
	}
	m := &b.metadata
	h := m.hook(j.Webhook)
	if h == nil || h.endpoint() != j.Endpoint {
		return nil, nil
	}
	now := time.Now()
	t, due := m.due(h, now)
	if !due {
		return nil, nil
	}
	en := m.entry(t.record)
	data, err := replay.ReadOne(d.ctx, b.of.store, b.name, t.record)
	if err != nil {
		return nil, err
	}
	config := d.config()
	if config.Stopped(b.partner, b.leader) {
		return nil, errWaits
	}
	dialect := config.Dialects(&h.Webhook, b.partner)
	if dialect == nil {
		d.warnUnknown(h.Webhook.Dialect)
		return nil, errWaits
	}
	n := &notification{
		Attempt: delivery.Attempt{ID: webhookID(b.name, h.Webhook.ID, en), URL: h.Webhook.URL, Partner: b.partner,
			Began: now},
		job: j, target: t, revision: h.Revision, since: time.UnixMilli(en.At),
		webhook: h.Webhook, dialect: dialect, record: data, maxAttempts: config.Attempts, log: b.logger,
		leader: b.leader, task: b.task, path: h.path(), event: en.Event, state: en.State,
	}
	n.Message = n
	return n, nil
}

// configured is called after a configuration has taken effect.
func (d *deliverer) configured() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.unknown)
}

func (d *deliverer) warnUnknown(dialect string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.unknown[dialect] && len(d.unknown) < maxHooks {
		d.unknown[dialect] = true
		d.config().Log.Warn("webhooks were set in a dialect that is unknown now; their notifications wait",
			"dialect", dialect)
	}
}

// webhookID returns the id of a notification: the same at every attempt, and after any crash.
func webhookID(outbox, webhook string, en *entry) string {
	key := logname.TaskOf(outbox) + logname.Separator + webhook + logname.Separator + strconv.FormatUint(en.Event, 10)
	if en.Generation > 0 {
		key += logname.Separator + strconv.FormatUint(en.Generation, 10)
	}
	sum := sha256.Sum256([]byte(key))
	return "msg_" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

// finish stores the outcome of an attempt, and offers the next delivery of the webhook.
func (d *deliverer) finish(n *notification, o *delivery.Outcome) {
	ctx := context.WithoutCancel(d.ctx) // the outcome counts, even while the engine closes
	b := d.outboxes.lock(n.job.Outbox)
	defer b.unlock()
	d.queue.Remove(n.job)
	switch o.Result {
	case delivery.Canceled:
		return
	case delivery.Delivered:
		d.delivered.Add(1)
	default:
		d.failed.Add(1)
	}
	var log func()
	changed := false
	reopened := d.outboxes.store.Reopened() // before the write, so no reopening is missed
	err := b.update(ctx, false, func(m *metadata, now time.Time) (bool, error) {
		log = nil
		h := m.hook(n.job.Webhook)
		// A webhook replaced meanwhile gets the same notification at its new URL.
		changed = h != nil && h.Revision == n.revision && m.awaits(h, n.target)
		if changed {
			log = d.apply(m, h, n, o, now)
		}
		return changed, nil
	})
	switch {
	case err != nil:
		n.Log().Error("the outcome of an attempt cannot be stored; the notification is sent again", "error", err)
		d.queue.Quarantine(b.name, time.Now())
		if errors.Is(err, replay.ErrUnavailable) {
			d.queue.Pause(reopened)
		}
		return
	case !changed && b.exists:
		b.offer(time.Now())
	}
	if log != nil {
		log()
	}
}

// apply changes the metadata by the outcome of an attempt. It returns the function to log the change when it is stored.
func (d *deliverer) apply(m *metadata, h *hook, n *notification, o *delivery.Outcome, now time.Time) (log func()) {
	h.LastStatus, h.LastError = o.Status, o.Error
	if o.Result == delivery.Delivered {
		h.LastDead = time.Time{}
		if n.target.dead {
			i := h.dead(n.target.record)
			h.Dead = append(h.Dead[:i:i], h.Dead[i+1:]...)
		} else {
			h.Cursor++
			h.reset()
		}
		return func() { d.debug(n, "a notification was delivered", "status", o.Status) }
	}

	attempts, recent, first, next := &h.Attempts, &h.Recent, &h.First, &h.Next
	if n.target.dead {
		l := &h.Dead[h.dead(n.target.record)]
		l.Status, l.Error = o.Status, o.Error
		attempts, recent, first, next = &l.Attempts, &l.Recent, new(time.Time), &l.Next
	}
	*attempts++
	*recent = addAttempt(*recent, attemptOf(n, o))
	if first.IsZero() {
		*first = n.Began
	}
	if o.Result == delivery.Gone {
		h.Disabled, h.DisabledAt = "the receiver answered 410 Gone", now
		*next = now
		return func() {
			n.Log().Warn("a webhook is disabled: its receiver wants no more notifications", "status", o.Status)
		}
	}
	made := *attempts
	// A notification that has waited behind a dead letter gets one attempt: a receiver that is down for good would
	// otherwise take a day for each.
	waited := !n.target.dead && n.since.Before(h.LastDead)
	if o.Result == delivery.Undeliverable || waited || made >= n.maxAttempts {
		m.die(h, n.target, deadLetter{
			Attempts: made, Recent: *recent, At: now, Status: o.Status, Error: o.Error,
		})
		h.LastDead = now
		return func() {
			d.dead.Add(1)
			// What to do: replay it when its receiver works.
			n.Log().Warn("a notification is a dead letter now", "attempts", made, "status", o.Status, "error", o.Error)
		}
	}
	*next = now.Add(max(schedule.Jitter(step(made)), o.RetryAfter))
	return func() {
		d.debug(n, "a notification was not delivered", "attempts", made, "status", o.Status, "error", o.Error)
	}
}

// debug logs a line at level debug. It costs nothing if the level is off.
func (d *deliverer) debug(n *notification, line string, args ...any) {
	if d.config().Log.Enabled(d.ctx, slog.LevelDebug) {
		n.Log().Debug(line, args...)
	}
}

// hostOf returns the part of a URL fit for logs.
func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Host
}
