// SPDX-License-Identifier: Apache-2.0

package schedule

import "time"

const (
	quarantineFor  = 10 * time.Second
	maxQuarantined = 1024      // outboxes; beyond it, the oldest is attempted again too early
	disabledFor    = time.Hour // for which the deliveries to a disabled endpoint are postponed at a time
	maxDisabled    = 10_000    // endpoints, because all of them are kept in memory
)

// Quarantine keeps an outbox from being attempted for a while: the store could not write the outcome of an attempt, and
// the receiver must not get the same notification again at once.
func (q *Queue) Quarantine(outbox string, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.quarantined.Add(outbox, now.Add(quarantineFor))
	q.Rescan(now.Add(quarantineFor))
}

// inQuarantine reports whether an outbox is in quarantine, and until when.
func (q *Queue) inQuarantine(outbox string, now time.Time) (until time.Time, held bool) {
	until, held = q.quarantined.Peek(outbox)
	if held && !until.After(now) {
		q.quarantined.Remove(outbox)
		return until, false
	}
	return until, held
}

// Pause has no attempt begin before reopened is closed: the outcome of an attempt could not be stored, so the receiver
// would get the same notification again and again.
func (q *Queue) Pause(reopened <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = reopened
}

func (q *Queue) isPaused() bool {
	if q.paused == nil {
		return false
	}
	select {
	case <-q.paused:
		q.paused = nil
		return false
	default:
		return true
	}
}

// Resume continues after the store was reopened.
func (q *Queue) Resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.quarantined.Purge()
	now := time.Now()
	q.Rescan(now)
	for _, l := range q.leaders {
		for _, p := range l.endpoints {
			q.enqueue(p, now)
		}
	}
	q.dispatch()
}

// Disable has no attempt begin at an endpoint, for any Leader, until Enable. Its deliveries leave memory, and Disable
// returns their outboxes. since is when it was disabled.
func (q *Queue) Disable(endpoint string, since time.Time) (outboxes []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.disabled[endpoint] = since
	for _, l := range q.leaders {
		if p := l.endpoints[endpoint]; p != nil {
			outboxes = append(outboxes, q.drain(p)...)
		}
	}
	return outboxes
}

// Enable undoes Disable, and closes the breakers of the endpoint.
func (q *Queue) Enable(endpoint string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.disabled, endpoint)
	for _, l := range q.leaders {
		if p := l.endpoints[endpoint]; p != nil {
			p.breaker = breaker{}
		}
	}
	hash := q.dormantKey("", endpoint).endpoint
	for _, key := range q.dormant.Keys() {
		if key.endpoint == hash {
			q.dormant.Remove(key)
		}
	}
}

// Disabled reports whether an endpoint is disabled, and since when.
func (q *Queue) Disabled(endpoint string) (since time.Time, is bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	since, is = q.disabled[endpoint]
	return since, is
}

func (q *Queue) isDisabled(endpoint string) bool { _, is := q.disabled[endpoint]; return is }

// MayDisable reports whether another endpoint may be disabled; if not, max is the number that may.
func (q *Queue) MayDisable() (max int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return maxDisabled, len(q.disabled) < maxDisabled
}
