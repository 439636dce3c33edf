// SPDX-License-Identifier: Apache-2.0

package group

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// countedTasks are tasks with a given traffic.
type countedTasks struct {
	tasks
	Traffic
}

func (t countedTasks) traffic() Traffic { return t.Traffic }

// TestCountsContinue: an ending membership takes away its present tasks, but not its past work.
func TestCountsContinue(t *testing.T) {
	e := &Engine{
		partners: map[string][]*Partner{"registered": nil}, memberships: make(map[key]*membership),
		past: make(map[string]Traffic),
	}
	member := func(group string, state State, done Traffic) *membership {
		m := &membership{key: key{"p", "l", group}, engine: e, state: state, tasks: countedTasks{Traffic: done}}
		e.memberships[m.key] = m
		return m
	}
	first := member("1", Joined, Traffic{Received: 5, Published: 3, Confirmed: 2, Unconfirmed: 1, Lag: 1, Tasks: 1})
	member("2", Waiting, Traffic{Received: 10, Executed: 4, Ignored: 2, Poison: 1, Published: 30, Tasks: 7})
	check := func(want Counts) {
		t.Helper()
		all := map[string]*Counts{"registered": {ByState: map[State]int{}}, "p": &want}
		if diff := cmp.Diff(all, e.Counts()); diff != "" {
			t.Errorf("counted (-want +got):\n%s", diff)
		}
	}
	done := Traffic{Received: 15, Executed: 4, Ignored: 2, Poison: 1, Published: 33, Confirmed: 2}
	now := done
	now.Unconfirmed, now.Lag, now.Tasks = 1, 1, 8
	check(Counts{ByState: map[State]int{Joined: 1, Waiting: 1}, Traffic: now})
	e.forget(first)
	now = done
	now.Tasks = 7
	check(Counts{ByState: map[State]int{Waiting: 1}, Traffic: now})
}
