// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// An agent that takes no requests now (HTTP 429 and 503) has done nothing, so a turn may be made again.
const (
	busyTries = 4                // of a turn in all
	busyFirst = time.Second / 2  // before the second try, and then twice as long each time
	busyMost  = 30 * time.Second // the longest that an agent may ask for
)

// busyError says that an agent takes no requests now, and when it may.
type busyError struct{ after time.Duration }

// Error implements error.
func (e *busyError) Error() string { return fmt.Sprintf("upstream: try again after %v", e.after) }

// busy reads a Retry-After field in seconds. A date, which needs clocks that agree, is not looked at.
func busy(retryAfter string) error {
	n, err := strconv.ParseUint(retryAfter, 10, 31)
	if err != nil {
		return &busyError{}
	}
	return &busyError{time.Duration(n) * time.Second}
}

// patiently makes a turn, and makes it again where the agent takes no requests now and does not ask for too long a
// time.
func (h *HTTP) patiently(ctx context.Context, yield yield, turn func(yield)) {
	for try := 1; ; try++ {
		var again *busyError
		turn(func(rep agent.Report, err error) bool {
			if try < busyTries && errors.As(err, &again) {
				return false
			}
			return yield(rep, err)
		})
		if again == nil {
			return
		}
		wait := max(again.after, busyFirst<<(try-1))
		if wait > busyMost {
			yield(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent takes no requests for %v", again.after))
			return
		}
		h.log.InfoContext(ctx, "the agent takes no requests now; trying again", "after", wait)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			yield(agent.Report{}, ended(ctx))
			return
		}
	}
}
