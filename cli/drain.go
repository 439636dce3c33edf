// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
)

// drainPoll is how often a drain looks at what is left.
const drainPoll = 500 * time.Millisecond

// drain begins or ends a drain, and may wait until it is over.
func drain(a *asking) func([]string) error {
	var wait, end bool
	var timeout time.Duration
	a.Flags().BoolVar(&wait, "wait", false, "wait until no agent works on a task any more")
	a.Flags().DurationVar(&timeout, "timeout", 0, "how long --wait waits; default: without limit")
	a.Flags().BoolVar(&end, "end", false, "accept new tasks again")
	a.jsonFlag("")
	return func([]string) error {
		if wait && end {
			return errors.New("use --wait or --end, not both")
		}
		method := http.MethodPost
		if end {
			method = http.MethodDelete
		}
		until := time.Now().Add(timeout)
		shown := -1
		for {
			var state adminapi.DrainState
			raw, err := a.admin.ask(method, a.route.Path, nil, nil, &state)
			if err != nil {
				return err
			}
			if !end && !state.Draining {
				return errors.New("the drain was ended meanwhile: new tasks are accepted")
			}
			done := !wait || state.Running == 0
			late := timeout > 0 && time.Now().After(until)
			if a.asJSON && (done || late) || !a.asJSON && (state.Running != shown || done) {
				err = a.print(raw, drainLine(&state))
			}
			switch shown = state.Running; {
			case err != nil || done:
				return err
			case late:
				return fmt.Errorf("agents still work on %d tasks after %s", state.Running, timeout)
			}
			method = http.MethodGet
			time.Sleep(drainPoll)
		}
	}
}

func drainLine(s *adminapi.DrainState) string {
	how := "new tasks are accepted"
	switch {
	case s.HandsOver && s.Since.IsZero():
		how = "the other gateways get its shards, and take new tasks"
	case s.Draining:
		how = "new tasks are refused"
	}
	return fmt.Sprintf("%s; agents work on %d tasks, and %d wait for their Leaders", how, s.Running,
		max(s.Unfinished-int64(s.Running), 0))
}
