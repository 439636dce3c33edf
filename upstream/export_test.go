// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"time"

	"github.com/aip-gateway/aip-gateway/task/agent"
)

// SteadyJitter makes the agent wait exactly as long as it would on average.
func (a *Agent) SteadyJitter() { a.jitter = func(d time.Duration) time.Duration { return d } }

// Taken returns the number of slots taken, and of turns waiting for one.
func (s *Slots) Taken() (used, waiting int) {
	_, waiting = s.turns.queued("")
	return s.turns.used + s.questions.used, waiting
}

// NumberAll gives all requests the same id, so the answers of an agent can be constants.
func (a *Agent) NumberAll(id string) { a.nextID = func() string { return id } }

// NumberEach takes NumberAll back.
func (a *Agent) NumberEach() { a.nextID = requestIDs() }

// HideInEnd hides the secrets in the report of an end.
func (s *Secrets) HideInEnd(rep *agent.Report) { s.hideInEnd(rep) }
