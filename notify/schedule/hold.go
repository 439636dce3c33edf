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
func (s *Scheduler) Quarantine(outbox string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quarantined.Add(outbox, now.Add(quarantineFor))
	s.Rescan(now.Add(quarantineFor))
}

// inQuarantine reports whether an outbox is in quarantine, and until when.
func (s *Scheduler) inQuarantine(outbox string, now time.Time) (until time.Time, held bool) {
	until, held = s.quarantined.Peek(outbox)
	if held && !until.After(now) {
		s.quarantined.Remove(outbox)
		return until, false
	}
	return until, held
}

// Pause has no attempt begin before reopened is closed: the outcome of an attempt could not be stored, so the receiver
// would get the same notification again and again.
func (s *Scheduler) Pause(reopened <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = reopened
}

func (s *Scheduler) isPaused() bool {
	if s.paused == nil {
		return false
	}
	select {
	case <-s.paused:
		s.paused = nil
		return false
	default:
		return true
	}
}

// Resume continues after the store was reopened.
func (s *Scheduler) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quarantined.Purge()
	s.Rescan(time.Now())
	s.dispatch()
}

// Disable has no attempt begin at an endpoint, for any Leader, until Enable. Its deliveries leave memory, and Disable
// returns their outboxes.
func (s *Scheduler) Disable(endpoint string) (outboxes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disabled[endpoint] = true
	for _, l := range s.leaders {
		if p := l.endpoints[endpoint]; p != nil {
			outboxes = append(outboxes, s.drain(p)...)
		}
	}
	return outboxes
}

// Enable undoes Disable, and closes the breakers of the endpoint.
func (s *Scheduler) Enable(endpoint string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.disabled, endpoint)
	for _, l := range s.leaders {
		if p := l.endpoints[endpoint]; p != nil {
			p.breaker = breaker{}
		}
	}
	hash := s.dormantKey("", endpoint).endpoint
	for _, key := range s.dormant.Keys() {
		if key.endpoint == hash {
			s.dormant.Remove(key)
		}
	}
}

// Disabled reports whether an endpoint is disabled.
func (s *Scheduler) Disabled(endpoint string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disabled[endpoint]
}

// MayDisable reports whether another endpoint may be disabled; if not, max is the number that may.
func (s *Scheduler) MayDisable() (max int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maxDisabled, len(s.disabled) < maxDisabled
}
