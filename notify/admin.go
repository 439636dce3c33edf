// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// Status is how a delivery is doing.
type Status string

// The statuses.
const (
	Pending  Status = "pending"  // not tried yet
	Failing  Status = "failing"  // tried without success, and to be tried again
	Dead     Status = "dead"     // given up
	Disabled Status = "disabled" // held, because its webhook or its endpoint is disabled
)

// Delivery is a notification that was not delivered, as an operator sees it.
type Delivery struct {
	ID                             string // its webhook-id
	Partner, Leader, Task, Webhook string
	Endpoint                       string // scheme://host:port
	Event                          uint64 // number of the event in the task's log
	State                          task.State
	Status                         Status
	Attempts                       int
	Next                           time.Time // of the next attempt; zero where none is planned
	At                             time.Time // when the event happened, or the delivery was given up
	LastStatus                     int       // of HTTP, of the last attempt; 0 where there was no answer
	LastError                      string
}

// Filter says which deliveries are meant; what is not set does not count.
type Filter struct {
	Status                         Status
	Partner, Leader, Task, Webhook string
	Host                           string   // of the endpoint, with or without its port
	IDs                            []string // webhook-ids
	After                          string   // where the page before ended
	Limit                          int      // deliveries on a page; default 100, at most 1000
}

const (
	defaultPage = 100
	maxPage     = 1000
)

// matches reports whether an outbox, by its name, may have deliveries that are meant.
func (f *Filter) matches(outbox string) bool {
	partner, leader, id := logname.Split(outbox)
	return (f.Partner == "" || f.Partner == partner) && (f.Leader == "" || f.Leader == leader) && (f.Task == "" || f.Task == id)
}

func (f *Filter) wants(d *Delivery) bool {
	if f.Host != "" {
		u, err := url.Parse(d.Endpoint)
		if err != nil || !strings.EqualFold(f.Host, u.Host) && !strings.EqualFold(f.Host, u.Hostname()) {
			return false
		}
	}
	return (f.Status == "" || f.Status == d.Status) && (f.Webhook == "" || f.Webhook == d.Webhook) &&
		(len(f.IDs) == 0 || slices.Contains(f.IDs, d.ID))
}

// page is where a page of Deliveries ends: in an outbox, behind a number of its deliveries.
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
		return page{at: afterRestart}, true
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

// Deliveries returns notifications that were not delivered, those first whose outboxes are due first, and what
// to give as Filter.After for more, empty where there are none. It reads the store as it is: what is delivered
// between two pages may be missing, and what is tried between them may come twice.
func (e *Engine) Deliveries(ctx context.Context, f Filter) ([]Delivery, string, error) {
	from, ok := parsePage(f.After)
	if !ok {
		return nil, "", task.Errorf(task.InvalidParams, "after must be what the page before returned").WithField("after")
	}
	limit := min(cmp.Or(max(f.Limit, 0), defaultPage), maxPage)
	var out []Delivery
	for w, err := range e.store.Due(ctx, logname.Outbox, from.at, replay.EndOfTime) {
		if err != nil {
			return nil, "", partner.StoreError(err, "the store cannot be read")
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
		all, err := e.deliveriesOf(ctx, w.Log)
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

// deliveriesOf returns what an outbox still has to tell, or has given up, by webhook and event.
func (e *Engine) deliveriesOf(ctx context.Context, name string) (out []Delivery, _ error) {
	b := e.acquire(name)
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.load(ctx); err != nil || !b.exists {
		return nil, err
	}
	n := &b.note
	for i := range n.Configs {
		c := &n.Configs[i]
		base := Delivery{Webhook: c.Webhook.ID, Endpoint: endpointOf(c.Webhook.URL)}
		base.Partner, base.Leader, base.Task = logname.Split(name)
		held := c.Disabled != "" || e.sched.isDisabled(base.Endpoint)
		fill := func(d Delivery, record uint64) {
			en := n.entry(record)
			d.ID, d.Event, d.State = webhookID(name, c.Webhook.ID, en), en.Event, en.State
			if d.At.IsZero() {
				d.At = time.UnixMilli(en.At)
			}
			switch {
			case d.Status == Dead:
			case held:
				d.Status, d.Next = Disabled, time.Time{}
			case d.Attempts > 0:
				d.Status = Failing
			default:
				d.Status = Pending
			}
			out = append(out, d)
		}
		for _, l := range c.Dead {
			d := base
			d.Attempts, d.Next, d.At, d.LastStatus, d.LastError = l.Attempts, l.Next, l.At, l.Status, l.Error
			if l.Next.IsZero() {
				d.Status = Dead
			}
			fill(d, l.Record)
		}
		for record := c.Cursor + 1; record <= n.last(); record++ {
			if s := n.entry(record).State; s == task.None || !c.Webhook.Wants(s) {
				continue
			}
			d := base
			if record == c.Cursor+1 {
				d.Attempts, d.Next = c.Attempts, c.Next
				if c.Attempts > 0 {
					d.LastStatus, d.LastError = c.LastStatus, c.LastError
				}
			}
			fill(d, record)
		}
	}
	return out, nil
}

// Replay makes the dead letters that are meant due again, under their old webhook-ids and with all attempts
// before them, and returns how many. Each is then delivered on its own, those of earlier events first; what is
// pending is not held up. Those of disabled webhooks stay dead. After and Limit do not count.
func (e *Engine) Replay(ctx context.Context, f Filter) (int, error) {
	total := 0
	for w, err := range e.store.Due(ctx, logname.Outbox, afterRestart, replay.EndOfTime) {
		if err != nil {
			return total, partner.StoreError(err, "the store cannot be read")
		}
		if !f.matches(w.Log) {
			continue
		}
		n, err := e.revive(ctx, w.Log, &f)
		if total += n; err != nil {
			return total, err
		}
	}
	return total, nil
}

// revive is Replay for one outbox.
func (e *Engine) revive(ctx context.Context, name string, f *Filter) (count int, _ error) {
	b := e.acquire(name)
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.update(ctx, true, func(n *note, now time.Time) (bool, error) {
		count = 0
		for i := range n.Configs {
			c := &n.Configs[i]
			for j := range c.Dead {
				l := &c.Dead[j]
				d := Delivery{ID: webhookID(name, c.Webhook.ID, n.entry(l.Record)), Webhook: c.Webhook.ID, Endpoint: endpointOf(c.Webhook.URL), Status: Dead}
				if c.Disabled == "" && l.Next.IsZero() && f.wants(&d) {
					l.Next, l.Attempts = now, 0
					count++
				}
			}
		}
		return count > 0, nil
	})
	if err != nil {
		return 0, err
	}
	return count, nil
}

func (s *schedule) isDisabled(endpoint string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, off := s.disabled[endpoint]
	return off
}

// Endpoint is one scheme, host and port that webhooks are delivered to.
type Endpoint struct {
	URL      string
	State    string // closed (it works), open (it does not), half-open (it is being tried), disabled
	InFlight int
	Queued   int       // deliveries that wait, in memory or in the store
	Failures int       // in a row
	Until    time.Time // when an open one is tried again
}

// Endpoints returns those that something waits for or was lately sent to, and those that are disabled, by URL.
// It reads every outbox that has anything to deliver.
func (e *Engine) Endpoints(ctx context.Context) ([]Endpoint, error) {
	all := make(map[string]*Endpoint)
	get := func(name string) *Endpoint {
		if all[name] == nil {
			all[name] = &Endpoint{URL: name, State: "closed"}
		}
		return all[name]
	}
	for w, err := range e.store.Due(ctx, logname.Outbox, afterRestart, replay.EndOfTime) {
		if err != nil {
			return nil, partner.StoreError(err, "the store cannot be read")
		}
		list, err := e.deliveriesOf(ctx, w.Log)
		if err != nil {
			return nil, err
		}
		for i := range list {
			// What a disabled webhook is owed waits for its owner, and not for the endpoint.
			if d := &list[i]; d.Status != Dead && (d.Status != Disabled || e.sched.isDisabled(d.Endpoint)) {
				get(d.Endpoint).Queued++
			}
		}
	}
	now := time.Now()
	s := &e.sched
	s.mu.Lock()
	for _, l := range s.leaders {
		for name, p := range l.endpoints {
			get(name).merge(p, now)
		}
	}
	for name := range s.disabled {
		o := get(name)
		o.State, o.Until = "disabled", time.Time{}
	}
	s.mu.Unlock()
	out := make([]Endpoint, 0, len(all))
	for _, o := range all {
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b Endpoint) int { return cmp.Compare(a.URL, b.URL) })
	return out, nil
}

// merge adds what is known of an endpoint by the webhooks of one Leader. The worst of all Leaders' states is shown.
func (o *Endpoint) merge(p *endpoint, now time.Time) {
	o.InFlight += p.flying
	o.Failures = max(o.Failures, p.breaker.failures)
	switch {
	case p.breaker.open(now):
		o.State, o.Until = "open", later(o.Until, p.breaker.until)
	case p.breaker.halfOpen(now) && o.State == "closed":
		o.State = "half-open"
	}
}
