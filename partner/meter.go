// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"slices"
	"sync/atomic"

	"github.com/aip-gateway/aip-gateway/internal/measure"
	"github.com/aip-gateway/aip-gateway/task"
)

var (
	allStates = task.States()
	allKinds  = task.Kinds()
)

// Meter counts the outcomes of tasks. Several Partners may share one, for example the Partners of successive
// configurations. The zero value is ready for use, by any number of goroutines at once. It must not be copied.
type Meter struct {
	// FirstReport is the time from the beginning of a turn to the first stored report of the agent, and Settled the time
	// to the end of the turn.
	FirstReport, Settled measure.Durations

	entered [8]atomic.Uint64  // by the place of the state in allStates
	failed  [32]atomic.Uint64 // by kind
	resumed atomic.Uint64
}

// Entered returns the number of times tasks have entered a state.
func (m *Meter) Entered(s task.State) uint64 { return m.entered[slices.Index(allStates, s)].Load() }

// Failed returns the number of turns failed by an error of a kind, or because the agent's answers make no sense.
func (m *Meter) Failed(k task.Kind) uint64 { return m.failed[k].Load() }

// Resumed returns the number of turns resumed after a lost connection or a restart.
func (m *Meter) Resumed() uint64 { return m.resumed.Load() }

// Unfinished returns the number of unfinished tasks in the store, of all Partners; 0 until they are counted.
func (e *Engine) Unfinished() int64 { return e.open.total() }

// enter counts a task's entry into a state.
func (m *Meter) enter(s task.State) {
	if i := slices.Index(allStates, s); i >= 0 {
		m.entered[i].Add(1)
	}
}

// fail counts a failed turn.
func (m *Meter) fail(k task.Kind) {
	if int(k) < len(allKinds) {
		m.failed[k].Add(1)
	}
}
