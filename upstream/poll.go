// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// How a task is polled: soon after a change, then ever more slowly.
const (
	pollFirst = 100 * time.Millisecond
	pollMost  = 2 * time.Second
)

// polling says how a task is polled.
type polling struct {
	revision     string          // of the last report
	news         <-chan struct{} // when to ask sooner; nil for never
	pushed       <-chan []byte   // what the agent sends unasked; nil for nothing
	working      func()          // called once, when the agent reports that it still works; nil for nothing
	atOnce       bool            // ask before the first pause
	acknowledged bool            // the agent has answered the message before it acted on it
	patience     time.Duration   // how long the task may stay unchanged
	stalled      string          // the error text after that time
}

// follow reports the first answer to a message, and polls the task where that does not end the turn. pushed is what the
// agent sends unasked meanwhile, or nil.
func (r *run) follow(rep agent.Report, pushed <-chan []byte) error {
	p := polling{
		revision: rep.Revision, pushed: pushed,
		patience: r.config.IdleTimeout, stalled: "the agent has changed nothing",
	}
	if r.endsWith(&rep) {
		r.report(rep)
		return nil
	}
	first := rep
	if p.acknowledged = early(r.turn, &rep); p.acknowledged {
		first = agent.Report{Delivery: agent.DeliveryAcknowledged}
	}
	if !r.report(first) {
		return nil
	}
	r.turn = named(r.turn, &rep)
	return r.poll(p)
}

// endsWith reports whether the turn ends with the first answer to its message.
func (r *run) endsWith(rep *agent.Report) bool { return rep.EndsTurn() && !early(r.turn, rep) }

// poll asks for the task's state and reports each change until the turn ends. An agent that does not answer may be
// restarting, so the turn fails only after IdleTimeout. Where the task is settled just as it was before the turn, the
// agent has never received the message; unless it has acknowledged the message or may act late (translate.LateActor):
// then it may be about to act, and if it does not within IdleTimeout, its report ends the turn.
func (r *run) poll(p polling) error {
	if _, ok := r.codec.(translate.Getter); !ok && p.pushed == nil {
		return task.Errorf(task.InvalidAgentResponse,
			"the agent answered before the turn ended, and %s cannot ask how a task stands", r.codec.Name())
	}
	wait, begun := pollFirst, time.Now()
	answered, changed := begun, begun
	for first := true; ; first = false {
		var body []byte
		if !first || !p.atOnce {
			var ok bool
			if body, ok = p.pause(r.ctx, r.jitter(wait)); !ok {
				return Ended(r.ctx)
			}
		}
		wait = min(2*wait, pollMost)
		rep, err := r.news(body, p.revision)
		now := time.Now()
		switch kind := task.KindOf(err); {
		case err == nil && (p.acknowledged || r.actsLate) && untouched(r.turn, &rep):
			if answered = now; now.Sub(changed) >= r.config.IdleTimeout {
				r.logger().LogAttrs(r.ctx, slog.LevelWarn, "the agent has not acted on a message",
					slog.Duration("for", r.config.IdleTimeout))
				r.report(rep)
				return nil
			}
			continue
		case err == nil && untouched(r.turn, &rep):
			return task.Errorf(task.AgentUnavailable, "the agent has not received the message")
		case err == nil:
			answered = now
		case r.ctx.Err() != nil:
			return Ended(r.ctx)
		case kind == task.TaskNotFound || kind == task.MethodNotFound:
			return r.unknownMethod(err)
		case !transient(err):
			return err
		case now.Sub(answered) >= r.config.IdleTimeout:
			return r.timedOut(err)
		default:
			continue
		}
		if p.working != nil && !rep.EndsTurn() {
			p.working()
			p.working = nil
		}
		if rep.Revision != p.revision || rep.EndsTurn() {
			p.revision, changed, wait = rep.Revision, now, pollFirst
			if !r.report(rep) || rep.EndsTurn() {
				return nil
			}
			continue
		}
		if now.Sub(changed) >= p.patience && !rep.SelfResuming {
			return task.Errorf(task.AgentTimeout, "%s for %v", p.stalled, p.patience)
		}
	}
}

// errNoNews says that an agent which cannot be asked has sent nothing new.
var errNoNews = errors.New("it sends nothing")

// news returns the task's present state: from what the agent has sent unasked, where that says it, or by asking. An
// agent that does not answer must not keep the slot from others.
func (r *run) news(pushed []byte, revision string) (agent.Report, error) {
	if rep, ok := r.readPush(pushed, revision); ok {
		return rep, nil
	}
	if _, ok := r.codec.(translate.Getter); !ok {
		return agent.Report{}, errNoNews
	}
	ctx, cancel := context.WithTimeout(r.ctx, min(pollTimeout, r.config.IdleTimeout))
	defer cancel()
	return r.get(ctx)
}

// timedOut is the error of a task of which the agent has reported nothing for too long. It has no reason: the message
// may have been received.
func (r *run) timedOut(err error) error {
	detail := "it does not answer"
	if e, ok := errors.AsType[*task.Error](err); ok {
		detail = e.Detail
	}
	return Failed(task.AgentTimeout, NoReason, err, "the agent has not reported on the task for %v: %s",
		r.config.IdleTimeout, detail)
}

// untouched reports whether an agent's task is settled exactly as it was at the end of the turn before.
func untouched(t *agent.Turn, rep *agent.Report) bool {
	known := slices.Concat(t.Withdrawn, t.Known)
	return t.Revision != "" && rep.EndsTurn() && rep.Revision == t.Revision && len(task.Diff(known, rep.Products)) == 0
}

// pause waits for a time, or for news, but at least for pollFirst, so that an agent is not flooded with requests. A
// pushed message ends the pause at once, and is returned. ok is false when ctx is done.
func (p *polling) pause(ctx context.Context, wait time.Duration) (pushed []byte, ok bool) {
	least := time.NewTimer(min(wait, pollFirst))
	defer least.Stop()
	select {
	case <-least.C:
	case pushed = <-p.pushed:
		return pushed, true
	case <-ctx.Done():
		return nil, false
	}
	if wait <= pollFirst {
		return nil, true
	}
	rest := time.NewTimer(wait - pollFirst)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-p.news:
	case pushed = <-p.pushed:
	case <-ctx.Done():
		return nil, false
	}
	return pushed, true
}
