// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"encoding/base64"
	"iter"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Status is the status of a delivery.
type Status string

// The statuses.
const (
	Pending  Status = "pending"  // not attempted yet
	Failing  Status = "failing"  // attempted without success, and retried later
	Dead     Status = "dead"     // a dead letter: not retried
	Disabled Status = "disabled" // held, because its webhook or its endpoint is disabled
)

// Delivery is an undelivered notification, as an operator sees it.
type Delivery struct {
	ID                             string // its webhook-id
	Partner, Leader, Task, Webhook string
	Endpoint                       string // scheme://host:port
	Path                           string // of its URL: of each segment the first and the last letter
	Event                          uint64 // number of the event in the task's log
	State                          task.State
	Status                         Status
	Reason                         string // the reason if it is Disabled
	Attempts                       int
	Next                           time.Time // of the next attempt; zero if none is planned
	At                             time.Time // when the event happened, or the notification became a dead letter
	LastStatus                     int       // of HTTP, of the last attempt; 0 if there was no answer
	LastError                      string
	// Recent are the last failed attempts, at most 10, oldest first. Those before a replay are among them, and do not
	// count as Attempts.
	Recent []Attempt
}

// Filter selects deliveries. A field not set selects all.
type Filter struct {
	Status                         Status
	Partner, Leader, Task, Webhook string
	Host                           string    // of the endpoint, with or without its port
	URL                            string    // an endpoint; with a path, as it is or as Delivery.Path has it, only that
	IDs                            []string  // webhook-ids
	Since, Until                   time.Time // bound Delivery.At; Until is excluded
	After                          string    // the second result of Deliveries for the page before
	Limit                          int       // deliveries on a page; default 100, at most 1000
}

const (
	defaultPage = 100
	maxPage     = 1000
	maxReplayed = 1000 // dead letters, by one call
)

// Check refuses a filter if it can select nothing.
func (f *Filter) Check() error {
	if f.URL == "" {
		return nil
	}
	_, _, err := splitURL(f.URL)
	return err
}

// matches reports whether an outbox, by its name, may have selected deliveries.
func (f *Filter) matches(outbox string) bool {
	return f.ofTask(logname.Split(outbox))
}

func (f *Filter) ofTask(partner, leader, id string) bool {
	return (f.Partner == "" || f.Partner == partner) && (f.Leader == "" || f.Leader == leader) &&
		(f.Task == "" || f.Task == id)
}

func (f *Filter) wants(d *Delivery) bool {
	if f.Host != "" {
		u, err := url.Parse(d.Endpoint)
		if err != nil || !strings.EqualFold(f.Host, u.Host) && !strings.EqualFold(f.Host, u.Hostname()) {
			return false
		}
	}
	if f.URL != "" {
		endpoint, paths, err := splitURL(f.URL)
		if err != nil || endpoint != d.Endpoint || paths != nil && !slices.Contains(paths, d.Path) {
			return false
		}
	}
	if d.At.Before(f.Since) || !f.Until.IsZero() && !d.At.Before(f.Until) {
		return false
	}
	return (f.Status == "" || f.Status == d.Status) && (f.Webhook == "" || f.Webhook == d.Webhook) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, d.ID))
}

// page is the end of a page of Deliveries: in an outbox, behind a number of its deliveries.
type page struct {
	at   time.Time
	log  string
	skip int
}

func (p page) String() string {
	at := strconv.FormatInt(p.at.Unix(), 10) + "." + strconv.Itoa(p.at.Nanosecond())
	return base64.RawURLEncoding.EncodeToString([]byte(at + " " + strconv.Itoa(p.skip) + " " + p.log))
}

func parsePage(s string) (p page, ok bool) {
	if s == "" {
		return page{at: replay.StartOfTime}, true
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	parts := strings.SplitN(string(data), " ", 3)
	if err != nil || len(parts) != 3 {
		return p, false
	}
	sec, nano, _ := strings.Cut(parts[0], ".")
	seconds, err1 := strconv.ParseInt(sec, 10, 64)
	nanos, err2 := strconv.ParseInt(nano, 10, 64)
	skip, err3 := strconv.Atoi(parts[1])
	if err1 != nil || err2 != nil || err3 != nil || skip < 0 || nanos < 0 || nanos >= int64(time.Second) {
		return p, false
	}
	return page{at: time.Unix(seconds, nanos), log: parts[2], skip: skip}, true
}

// Deliveries returns undelivered notifications, in the order of their outboxes' times, and the Filter.After of the next
// page, empty if there is none. It reads the store as it is: a delivery ending between two pages may be left out, and
// one attempted meanwhile may be listed twice.
func (e Engines) Deliveries(ctx context.Context, f Filter) ([]Delivery, string, error) {
	from, ok := parsePage(f.After)
	if !ok {
		return nil, "", task.Errorf(task.InvalidParams, "after must be the value that the page before returned").
			WithField("after")
	}
	limit := min(cmp.Or(max(f.Limit, 0), defaultPage), maxPage)
	var out []Delivery
	due := make([]iter.Seq2[dueOutbox, error], len(e))
	for i, of := range e {
		due[i] = of.due(ctx, from.at)
	}
	for w, err := range replay.Merge(dueOutbox.compare, due...) {
		if err != nil {
			return nil, "", unreadable(err)
		}
		skip := 0
		if w.At.Equal(from.at) && from.log != "" {
			if w.Log < from.log {
				continue
			}
			if w.Log == from.log {
				skip = from.skip
			}
		}
		if !f.matches(w.Log) {
			continue
		}
		all, err := w.engine.deliveriesOf(ctx, w.Log)
		if err != nil {
			return nil, "", err
		}
		for i := skip; i < len(all); i++ {
			if !f.wants(&all[i]) {
				continue
			}
			if len(out) == limit {
				return out, page{at: w.At, log: w.Log, skip: i}.String(), nil
			}
			out = append(out, all[i])
		}
	}
	return out, "", nil
}

// dueOutbox is an outbox due at a time.
type dueOutbox struct {
	replay.DueLog
	engine *Engine
}

func (d dueOutbox) compare(other dueOutbox) int { return d.Compare(other.DueLog) }

// due yields the outboxes due at a time or later.
func (e *Engine) due(ctx context.Context, from time.Time) iter.Seq2[dueOutbox, error] {
	return func(yield func(dueOutbox, error) bool) {
		for w, err := range e.store.Due(ctx, logname.Outbox, from, replay.EndOfTime) {
			if !yield(dueOutbox{w, e}, err) {
				return
			}
		}
	}
}

// deliveriesOf returns the deliveries of an outbox, by webhook and event.
func (e *Engine) deliveriesOf(ctx context.Context, name string) (out []Delivery, _ error) {
	b := e.outboxes.lock(name)
	defer b.unlock()
	if err := b.load(ctx); err != nil || !b.exists {
		return nil, err
	}
	m := &b.metadata
	for i := range m.Hooks {
		h := &m.Hooks[i]
		base := Delivery{
			Partner: b.partner, Leader: b.leader, Task: b.task, Webhook: h.Webhook.ID, Endpoint: h.endpoint(),
			Path: h.path(),
		}
		held := e.held(h, b.partner, b.leader)
		fill := func(d Delivery, record uint64) {
			en := m.entry(record)
			d.ID, d.Event, d.State = webhookID(name, h.Webhook.ID, en), en.Event, en.State
			if d.At.IsZero() {
				d.At = time.UnixMilli(en.At)
			}
			switch {
			case d.Status == Dead:
			case held != "":
				d.Status, d.Reason, d.Next = Disabled, held, time.Time{}
			case d.Attempts > 0:
				d.Status = Failing
			default:
				d.Status = Pending
			}
			out = append(out, d)
		}
		for _, l := range h.Dead {
			d := base
			d.Attempts, d.Next, d.At, d.LastStatus, d.LastError = l.Attempts, l.Next, l.At, l.Status, l.Error
			d.Recent = attemptsShown(l.Recent)
			if l.Next.IsZero() {
				d.Status = Dead
			}
			fill(d, l.Record)
		}
		for record := h.Cursor + 1; record <= m.last(); record++ {
			if s := m.entry(record).State; s == task.None || !h.Webhook.Wants(s) {
				continue
			}
			d := base
			if record == h.Cursor+1 {
				d.Attempts, d.Next, d.Recent = h.Attempts, h.Next, attemptsShown(h.Recent)
				if h.Attempts > 0 {
					d.LastStatus, d.LastError = h.LastStatus, h.LastError
				}
			}
			fill(d, record)
		}
	}
	return out, nil
}

// held returns the reason if nothing is sent to a webhook; empty otherwise.
func (e *Engine) held(h *hook, partner, leader string) string {
	since, disabled := e.queue.Disabled(h.endpoint())
	switch {
	case h.Disabled != "":
		return "disabled by its receiver: " + h.Disabled
	case disabled:
		return "disabled by the operator since " + since.UTC().Format(time.RFC3339)
	case e.stopped(partner, leader):
		return "disabled by the gateway: its Leader may not call now, or no certificate of it counts"
	}
	return ""
}

// Replay makes selected dead letters due again, at most 1000, under their webhook-ids and with all attempts, and
// returns their number. Each is then delivered on its own, in the order of the events; pending deliveries are not held
// up. Dead letters of disabled webhooks stay dead. After and Limit are ignored.
func (e Engines) Replay(ctx context.Context, f Filter) (total int, err error) {
	return e.eachDead(ctx, f, maxReplayed, false)
}

// Replayable returns the number of dead letters for Replay to make due, if it had no bound.
func (e Engines) Replayable(ctx context.Context, f Filter) (total int, err error) {
	return e.eachDead(ctx, f, math.MaxInt, true)
}

// eachDead counts the dead letters selected by a filter, up to a number, and makes them due unless it only counts.
func (e Engines) eachDead(ctx context.Context, f Filter, most int, count bool) (total int, err error) {
	for _, of := range e {
		n, err := of.eachDead(ctx, f, most-total, count)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// eachDead is Engines.eachDead for one engine.
func (e *Engine) eachDead(ctx context.Context, f Filter, most int, count bool) (total int, _ error) {
	for outbox, err := range e.outboxes.all(ctx) {
		if err != nil {
			return total, unreadable(err)
		}
		if total == most {
			break
		}
		if !f.matches(outbox) {
			continue
		}
		n, err := e.replay(ctx, outbox, &f, most-total, count)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// replay is eachDead for one outbox.
func (e *Engine) replay(ctx context.Context, name string, f *Filter, most int, only bool) (count int, _ error) {
	b := e.outboxes.lock(name)
	defer b.unlock()
	err := b.update(ctx, true, func(m *metadata, now time.Time) (bool, error) {
		count = 0
		for i := range m.Hooks {
			h := &m.Hooks[i]
			for j := range h.Dead {
				l := &h.Dead[j]
				d := Delivery{
					ID:      webhookID(name, h.Webhook.ID, m.entry(l.Record)),
					Webhook: h.Webhook.ID, Endpoint: h.endpoint(), Path: h.path(), Status: Dead, At: l.At,
				}
				if count == most || h.Disabled != "" || !l.Next.IsZero() || !f.wants(&d) {
					continue
				}
				if count++; !only {
					l.Next, l.Attempts = now, 0
				}
			}
		}
		return count > 0 && !only, nil
	})
	if err != nil {
		return 0, err
	}
	return count, nil
}
