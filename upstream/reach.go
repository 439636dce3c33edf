// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// reachTries is how often a turn is sent at least whose connection breaks before the agent has it.
const reachTries = 3

// reach makes a turn, and makes it again where the agent has not got it: nothing was sent, or the connection broke before
// the agent had said anything, and the agent, which knows the task by the gateway's name for it, says that it does not
// have the turn. It is given up after RetryFor, or after starvedMost where the gateway has no file descriptors
// left. A turn that may have been sent, and of which the agent cannot say whether it has it, is not made again.
func (h *HTTP) reach(ctx context.Context, t *agent.Turn, yield yield, turn func(yield)) {
	again := newRetry(h.config.RetryFor)
	for try := 1; ; try++ {
		var broken error
		spoken := false
		turn(func(rep agent.Report, err error) bool {
			if err != nil && !spoken && ctx.Err() == nil && (unsent(err) || errors.Is(err, errPassing)) {
				broken = err
				return false
			}
			spoken = spoken || rep.Delivery == agent.DeliveryUnknown || rep.Delivery == agent.DeliveryAcknowledged
			return yield(rep, err)
		})
		switch {
		case broken == nil:
			return
		case unsent(broken):
			if again.over(broken) {
				yield(agent.Report{}, broken)
				return
			}
			switch {
			case isStarved(broken):
				if h.config.Slots.starved.due() {
					h.log.LogAttrs(ctx, slog.LevelWarn, "no file descriptors are left to reach the agent; its tasks wait", slog.Any("error", broken))
				}
			case try == 1:
				h.log.LogAttrs(ctx, slog.LevelWarn, "the agent cannot be reached; trying again", slog.String("task", t.Ref.Task),
					slog.Duration("for", h.config.RetryFor), slog.Any("error", broken))
			}
			if !yield(agent.Report{Delivery: agent.DeliveryQueued}, nil) {
				return
			}
			if !again.pause(ctx, h.jitter) {
				yield(agent.Report{}, ended(ctx))
				return
			}
			if !yield(agent.Report{Delivery: agent.DeliverySending}, nil) {
				return
			}
		case h.unnamed(t) || h.actsLate && t.From != task.None || try >= reachTries && again.over(broken) || !h.lacks(ctx, t, again):
			if errors.Is(broken, errCut) && !h.unnamed(t) {
				h.log.LogAttrs(ctx, slog.LevelWarn, "the agent's stream was cut; going on by asking", slog.String("task", t.Ref.Task))
				h.resume(ctx, t, false, yield)
				return
			}
			yield(agent.Report{}, broken)
			return
		default:
			h.log.LogAttrs(ctx, slog.LevelInfo, "the agent has not got the message; sending it again", slog.String("task", t.Ref.Task))
			if try > 1 && !again.over(broken) && !again.pause(ctx, h.jitter) {
				yield(agent.Report{}, ended(ctx))
				return
			}
		}
	}
}

// unsent reports whether an error says that no connection came about, so that nothing was sent, and that one may come
// about later: a certificate that is not trusted, and a server without TLS, stay so.
func unsent(err error) bool {
	var dial dialError
	return errors.As(err, &dial) && !misconfigured(err)
}

func misconfigured(err error) bool {
	var untrusted *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	return errors.As(err, &untrusted) || errors.As(err, &plain)
}

// lacks reports whether the agent says that it does not have a turn. An agent that does not answer is asked again.
func (h *HTTP) lacks(ctx context.Context, t *agent.Turn, again *retry) bool {
	for {
		lacks, err := h.missed(ctx, t)
		if err == nil || !passes(err) || again.over(err) || !again.pause(ctx, h.jitter) {
			return lacks
		}
	}
}

// missed asks the agent whether it has a turn, and reports whether it has not: it does not know the task, or the task is
// as the turn before has left it. A start of which the agent takes a second one for the first need not be asked for.
func (h *HTTP) missed(ctx context.Context, t *agent.Turn) (bool, error) {
	first := t.From == task.None && t.Message.Command != task.Continue
	if h.repeats && first {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	rep, err := h.get(ctx, t)
	if err != nil {
		return first && task.KindOf(err) == task.TaskNotFound, err
	}
	return untouched(t, &rep), nil
}
