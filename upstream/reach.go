// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aip-gateway/aip-gateway/task"
)

// reachTries is how often a turn is made whose connection breaks before the agent has it.
const reachTries = 3

// surely makes a turn, and makes it again where the connection broke before the agent had said anything, and the agent,
// which knows the task by the gateway's name for it, says that it has not got the turn.
func (h *HTTP) surely(ctx context.Context, t *task.Turn, yield yield, turn func(yield)) {
	for try := 1; ; try++ {
		var broken error
		spoken := false
		turn(func(rep task.Report, err error) bool {
			if err != nil && !spoken && try < reachTries && errors.Is(err, errPassing) && ctx.Err() == nil {
				broken = err
				return false
			}
			spoken = true
			return yield(rep, err)
		})
		if broken == nil {
			return
		}
		switch {
		case h.missed(ctx, t):
		case errors.Is(broken, errCut):
			h.log.LogAttrs(ctx, slog.LevelWarn, "the agent's stream was cut; going on by asking", slog.String("task", t.Ref.Task))
			h.resume(ctx, t, false, yield)
			return
		default:
			yield(task.Report{}, broken)
			return
		}
		h.log.LogAttrs(ctx, slog.LevelInfo, "the agent has not got the message; sending it again", slog.String("task", t.Ref.Task))
	}
}

// missed reports whether a turn is to be sent again: the agent does not know the task, or the task is as the turn before
// has left it. A start of which the agent takes a second one for the first is sent again without a question.
func (h *HTTP) missed(ctx context.Context, t *task.Turn) bool {
	if h.repeats && t.From == task.None && t.Message.Command != task.Continue {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	rep, err := h.get(ctx, t)
	if err != nil {
		return task.KindOf(err) == task.TaskNotFound && t.From == task.None
	}
	return untouched(t, &rep)
}
