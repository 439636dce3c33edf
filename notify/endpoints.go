// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// Endpoint is one scheme, host and port of webhooks.
type Endpoint struct {
	URL      string
	State    string
	InFlight int
	Queued   int       // waiting deliveries, in memory or in the store
	Failures int       // in a row
	Until    time.Time // when a paused one is attempted again
	Since    time.Time // when a disabled one was disabled

	URLs []EndpointURL // by Path
}

// The states of an endpoint.
const (
	Sending   = "sending"
	TryingOne = "trying one" // it has failed, and the next attempt decides
	Paused    = "paused"     // it fails
	// or Disabled
)

// EndpointURL is one of the URLs of an endpoint; or several with paths looking alike.
type EndpointURL struct {
	Path         string // see Delivery.Path
	Queued, Dead int    // deliveries
	Rate         Rate   // of the last attempts; the zero Rate if there was none lately
}

// Endpoints returns the endpoints with waiting or dead deliveries, the recently used ones, and the disabled ones, by
// URL. It reads every outbox.
func (e Engines) Endpoints(ctx context.Context) ([]Endpoint, error) {
	all, urls := make(map[string]*Endpoint), make(map[urlName]*EndpointURL)
	get := func(name string) *Endpoint {
		if all[name] == nil {
			all[name] = &Endpoint{URL: name, State: Sending}
		}
		return all[name]
	}
	url := func(name urlName) *EndpointURL {
		if urls[name] == nil {
			urls[name] = &EndpointURL{Path: name.path}
		}
		return urls[name]
	}
	for _, of := range e {
		for outbox, err := range of.outboxes.all(ctx) {
			if err != nil {
				return nil, unreadable(err)
			}
			list, err := of.deliveriesOf(ctx, outbox)
			if err != nil {
				return nil, err
			}
			for i := range list {
				// The deliveries of a disabled webhook wait for its Leader, and not for the endpoint.
				d := &list[i]
				u := url(urlName{d.Endpoint, d.Path})
				if d.Status == Dead {
					u.Dead++
				} else if _, disabled := of.queue.Disabled(d.Endpoint); d.Status != Disabled || disabled {
					get(d.Endpoint).Queued++
					u.Queued++
				}
			}
		}
	}
	if len(e) > 0 {
		for _, s := range e[0].process.scheduler.States() {
			get(s.Endpoint).merge(s)
		}
		for name, rate := range e[0].process.results.rates() {
			url(name).Rate = rate
		}
	}
	for name, u := range urls {
		o := get(name.endpoint)
		o.URLs = append(o.URLs, *u)
	}
	out := make([]Endpoint, 0, len(all))
	for _, o := range all {
		slices.SortFunc(o.URLs, func(a, b EndpointURL) int { return cmp.Compare(a.Path, b.Path) })
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b Endpoint) int { return cmp.Compare(a.URL, b.URL) })
	return out, nil
}

// merge adds the state of an endpoint for the webhooks of one Leader. The worst state of all Leaders is shown.
func (o *Endpoint) merge(s schedule.State) {
	o.InFlight += s.InFlight
	o.Failures = max(o.Failures, s.Failures)
	switch {
	case s.Breaker == schedule.Disabled:
		o.State, o.Until, o.Since = string(Disabled), time.Time{}, s.Since
	case s.Breaker == schedule.Open && o.State != string(Disabled):
		o.State, o.Until = Paused, later(o.Until, s.Until)
	case s.Breaker == schedule.HalfOpen && o.State == Sending:
		o.State = TryingOne
	}
}

// endpointOf returns the endpoint of a URL checked when it was set.
func endpointOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "invalid://"
	}
	port := u.Port()
	if port == "" {
		port = "443"
		if u.Scheme == "http" {
			port = "80"
		}
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return strings.ToLower(u.Scheme) + "://" + net.JoinHostPort(host, port)
}

// ParseEndpoint reads an endpoint as an operator writes it: a URL. Only scheme, host and port are used.
func ParseEndpoint(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || len(s) > maxURL {
		return "", task.Errorf(task.InvalidParams, "an endpoint is written as https://host or https://host:port").
			WithField("endpoint")
	}
	return endpointOf(s), nil
}

// disabledMetadata is the Metadata of the log of an endpoint disabled at least once. The log has no records.
type disabledMetadata struct {
	Disabled bool      `json:"disabled"`
	At       time.Time `json:"at"`
}

// loadDisabled gives the disabled endpoints to the scheduler.
func (e *Engine) loadDisabled(ctx context.Context) error {
	for entry, err := range e.store.List(ctx, string(logname.Endpoint), "") {
		if err != nil {
			return err
		}
		var m disabledMetadata
		if err := json.Unmarshal(entry.Head.Metadata, &m); err != nil {
			return task.Errorf(task.Internal, "the stored state of a webhook endpoint is damaged").WithCause(err)
		}
		if m.Disabled {
			e.queue.Disable(entry.Log[1:], m.At)
		}
	}
	return nil
}

// Disable stops all deliveries to an endpoint, the scheme, host and port of a URL, until Enable. Deliveries wait, and
// use up no attempt. Attempts in flight end as usual.
func (e Engines) Disable(ctx context.Context, endpoint string) error {
	return e.each(ctx, endpoint, (*Engine).disable)
}

// Enable undoes Disable. Waiting deliveries are due at once.
func (e Engines) Enable(ctx context.Context, endpoint string) error {
	return e.each(ctx, endpoint, (*Engine).enable)
}

// each calls f for each engine with an endpoint, given by an operator as a URL.
func (e Engines) each(ctx context.Context, endpoint string, f func(*Engine, context.Context, string) error) error {
	name, err := ParseEndpoint(endpoint)
	if err != nil {
		return err
	}
	for _, of := range e {
		if err := f(of, ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) disable(ctx context.Context, name string) error {
	if limit, ok := e.queue.MayDisable(); !ok {
		return task.Errorf(task.LimitExceeded, "%d endpoints are disabled; enable some", limit).
			WithData("limit", "endpoints").WithData("max", limit)
	}
	now := time.Now()
	if err := e.storeDisabled(ctx, name, true, now); err != nil {
		return err
	}
	e.outboxes.reviewAll(e.ctx, e.queue.Disable(name, now))
	e.logger().InfoContext(ctx, "a webhook endpoint is disabled", "endpoint", name)
	return nil
}

func (e *Engine) enable(ctx context.Context, name string) error {
	if err := e.storeDisabled(ctx, name, false, time.Now()); err != nil {
		return err
	}
	e.queue.Enable(name)
	e.logger().InfoContext(ctx, "a webhook endpoint is enabled", "endpoint", name)
	for outbox, err := range e.outboxes.all(ctx) {
		if err != nil {
			return partner.StoreError(err, "the store cannot be read; enable the endpoint again")
		}
		if err := e.retryNow(ctx, outbox, name); err != nil {
			return err
		}
	}
	return nil
}

// retryNow makes the deliveries of an outbox to an endpoint due now.
func (e *Engine) retryNow(ctx context.Context, name, endpoint string) error {
	b := e.outboxes.lock(name)
	defer b.unlock()
	return b.update(ctx, false, func(m *metadata, now time.Time) (changed bool, _ error) {
		for i := range m.Hooks {
			h := &m.Hooks[i]
			if h.endpoint() != endpoint || h.Disabled != "" {
				continue
			}
			if m.pending(h) && h.Next.After(now) {
				h.Next, changed = now, true
			}
			for j := range h.Dead {
				if l := &h.Dead[j]; l.Next.After(now) {
					l.Next, changed = now, true
				}
			}
		}
		return changed, nil
	})
}

// storeDisabled stores whether an endpoint is disabled. The log is never ended, because it may be needed again.
func (e *Engine) storeDisabled(ctx context.Context, endpoint string, disabled bool, now time.Time) error {
	log := string(logname.Endpoint) + endpoint
	data, err := json.Marshal(disabledMetadata{Disabled: disabled, At: now})
	if err != nil {
		return err
	}
	err = replay.RetryConflict(func() error {
		head, err := e.store.Head(ctx, log)
		if errors.Is(err, replay.ErrNotFound) {
			if !disabled {
				return nil
			}
			err = nil
		}
		if err != nil {
			return err
		}
		return e.store.Append(ctx, replay.Append{Log: log, Expect: head.Revision, Metadata: data, Durable: true})
	})
	if err != nil {
		return partner.StoreError(err, "the state of the endpoint cannot be stored")
	}
	return nil
}
