// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// endpoint is what is known of one scheme, host and port by the webhooks of one Leader. Endpoints take turns, however
// many deliveries each of them has, and one that does not answer holds up only itself. It is guarded by the schedule's
// lock.
type endpoint struct {
	of      *leader
	name    string // scheme://host:port
	ready   []job  // deliveries that wait for their turn, oldest first
	flying  int    // attempts under way
	breaker breaker
	okAt    time.Time // when it last answered with 2xx
	used    time.Time // when it last had anything to do
	inLine  bool      // waits in one of the schedule's lines
	skipped bool      // some of its deliveries were left in the store for want of room
}

// provenFor is how long an endpoint is trusted after it has answered with 2xx.
const provenFor = 10 * time.Minute

// proven reports whether an endpoint has answered well lately. One that has not gets one attempt at a time.
func (p *endpoint) proven(now time.Time) bool {
	return p.breaker.failures == 0 && !p.okAt.IsZero() && now.Sub(p.okAt) < provenFor
}

const (
	flyingProven = 16   // attempts under way at one endpoint
	readyProven  = 1024 // deliveries of one endpoint that wait in memory; the others stay due in the store
	readyOther   = 2    // likewise, where it is not known to answer
)

// width is how many attempts may be under way.
func (p *endpoint) width(now time.Time) int {
	if p.proven(now) {
		return flyingProven
	}
	return 1
}

// quota is how many deliveries may wait.
func (p *endpoint) quota(now time.Time) int {
	if p.proven(now) {
		return readyProven
	}
	return readyOther
}

// unused reports whether nothing waits or is under way.
func (p *endpoint) unused() bool { return p.flying == 0 && len(p.ready) == 0 && !p.skipped }

// idle reports whether nothing would be lost if the endpoint were forgotten.
func (p *endpoint) idle(now time.Time) bool {
	return p.unused() &&
		(p.breaker.failures == 0 && p.breaker.until.IsZero() || now.Sub(later(p.breaker.until, p.used)) > breakMost)
}

// endpointOf returns the endpoint of a URL that was checked when it was set.
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

// parseEndpoint reads an endpoint as an operator writes it: a URL, of which only scheme, host and port count.
func parseEndpoint(s string) (string, error) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || len(s) > maxURL {
		return "", task.Errorf(task.InvalidParams, "an endpoint is written as https://host or https://host:port").WithField("endpoint")
	}
	return endpointOf(s), nil
}

// disabledNote is the note of the log of an endpoint that was disabled at least once.
type disabledNote struct {
	Disabled bool      `json:"disabled"`
	At       time.Time `json:"at"`
}

// maxDisabled bounds the endpoints that are disabled by name at one time; they are kept in memory.
const maxDisabled = 10_000

// loadDisabled reads which endpoints are disabled.
func (s *schedule) loadDisabled(ctx context.Context, store replay.Store) error {
	for entry, err := range store.List(ctx, string(logname.Endpoint), "") {
		if err != nil {
			return err
		}
		var n disabledNote
		if err := json.Unmarshal(entry.Head.Metadata, &n); err != nil {
			return task.Errorf(task.Internal, "what is known of a webhook endpoint is damaged").WithCause(err)
		}
		if n.Disabled {
			s.disabled[entry.Log[1:]] = n.At
		}
	}
	return nil
}

// Disable stops all deliveries to an endpoint, given as a URL of which scheme, host and port count, until
// Enable. What is to be delivered waits, and spends no attempt. Attempts under way go on to their end.
func (e *Engine) Disable(ctx context.Context, endpoint string) error {
	name, err := parseEndpoint(endpoint)
	if err != nil {
		return err
	}
	s := &e.sched
	s.mu.Lock()
	full := len(s.disabled) >= maxDisabled
	s.mu.Unlock()
	if full {
		return task.Errorf(task.LimitExceeded, "%d endpoints are disabled; enable some", maxDisabled).WithData("limit", "endpoints").WithData("max", maxDisabled)
	}
	now := time.Now()
	if err := e.markDisabled(ctx, name, true, now); err != nil {
		return err
	}
	s.mu.Lock()
	s.disabled[name] = now
	var drained []job
	for _, l := range s.leaders {
		if p := l.endpoints[name]; p != nil {
			drained = append(drained, s.drain(p)...)
		}
	}
	s.mu.Unlock()
	e.readmit(drained)
	e.logger().Info("a webhook endpoint is disabled", "endpoint", name)
	return nil
}

// Enable undoes Disable. What waited is due at once.
func (e *Engine) Enable(ctx context.Context, endpoint string) error {
	name, err := parseEndpoint(endpoint)
	if err != nil {
		return err
	}
	if err := e.markDisabled(ctx, name, false, time.Now()); err != nil {
		return err
	}
	s := &e.sched
	s.mu.Lock()
	delete(s.disabled, name)
	for _, l := range s.leaders {
		if p := l.endpoints[name]; p != nil {
			p.breaker = breaker{}
		}
	}
	hash := s.asleepKey("", name).endpoint
	maps.DeleteFunc(s.asleep, func(key asleepKey, _ asleepBreaker) bool { return key.endpoint == hash })
	s.mu.Unlock()
	e.logger().Info("a webhook endpoint is enabled", "endpoint", name)
	for w, err := range e.store.Due(ctx, logname.Outbox, afterRestart, replay.EndOfTime) {
		if err != nil {
			return partner.StoreError(err, "the store cannot be read; enable the endpoint again")
		}
		if err := e.hasten(ctx, w.Log, name); err != nil {
			return err
		}
	}
	return nil
}

// hasten makes due now what an outbox has for an endpoint.
func (e *Engine) hasten(ctx context.Context, name, endpoint string) error {
	b := e.acquire(name)
	defer b.release()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.update(ctx, false, func(n *note, now time.Time) (changed bool, _ error) {
		for i := range n.Configs {
			c := &n.Configs[i]
			if endpointOf(c.Webhook.URL) != endpoint || c.Disabled != "" {
				continue
			}
			if n.pending(c) && c.Next.After(now) {
				c.Next, changed = now, true
			}
			for j := range c.Dead {
				if l := &c.Dead[j]; l.Next.After(now) {
					l.Next, changed = now, true
				}
			}
		}
		return changed, nil
	})
}

// markDisabled stores whether an endpoint is disabled. The log is never ended, because it may be needed again.
func (e *Engine) markDisabled(ctx context.Context, endpoint string, disabled bool, now time.Time) error {
	log := string(logname.Endpoint) + endpoint
	head, err := e.store.Head(ctx, log)
	if errors.Is(err, replay.ErrNotFound) {
		if !disabled {
			return nil
		}
		err = nil
	}
	if err == nil {
		var data []byte
		if data, err = json.Marshal(disabledNote{Disabled: disabled, At: now}); err == nil {
			err = e.store.Append(ctx, replay.Append{Log: log, Expect: head.Last, Metadata: data, Durable: true})
		}
	}
	if err != nil {
		return partner.StoreError(err, "the state of the endpoint cannot be stored")
	}
	return nil
}
