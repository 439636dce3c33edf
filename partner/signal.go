// SPDX-License-Identifier: Apache-2.0

package partner

// signal is a single event, to be waited for. The mutex of the task guards it. The zero signal has not happened.
type signal struct {
	happened bool
	waited   chan struct{} // nil until it is waited for
}

func (s *signal) set() {
	if !s.happened && s.waited != nil {
		close(s.waited)
	}
	s.happened = true
}

// wait returns a channel, closed when the signal has happened.
func (s *signal) wait() <-chan struct{} {
	if s.waited == nil {
		s.waited = make(chan struct{})
		if s.happened {
			close(s.waited)
		}
	}
	return s.waited
}
