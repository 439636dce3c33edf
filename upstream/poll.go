// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
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

// resume goes on with a turn by polling: no stream tells what was missed. A new stream, where the agent gives
// one, only tells when to ask: some lose the last event of it.
// Where the agent has answered the turn already, it may be about to act on it.
func (h *HTTP) resume(ctx context.Context, t *agent.Turn, answered bool, yield yield) {
	watching, stop := context.WithCancel(ctx)
	news := make(chan struct{}, 1)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer stop()
	// One connection of a run is enough until its agent says that it still works, and a new turn needs it more.
	works := func() {
		if turns := &h.config.Slots.turns; !h.streamless.Load() && turns.try(2) {
			watch.Go(func() {
				defer turns.release()
				h.watch(watching, t, news)
			})
		}
	}
	h.poll(ctx, t, follow{
		news: news, works: works, at: true, early: answered,
		patience: h.config.StallTimeout, still: "the agent has lost the task: it says that it works, but changes nothing",
	}, yield)
}

// watch tells news of every event of a resubscribed stream. A bug in it costs the stream only: the task is asked for as
// well.
func (h *HTTP) watch(ctx context.Context, t *agent.Turn, news chan<- struct{}) {
	defer func() {
		if p := recover(); p != nil {
			h.log.LogAttrs(ctx, slog.LevelError, "the gateway failed while it read a stream of the agent; this is a bug of the gateway", slog.String("task", t.Ref.Task),
				slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(debug.Stack())))
		}
	}()
	resubscriber, ok := h.config.Codec.(translate.Resubscriber)
	if !ok {
		return
	}
	e := errand{what: translate.Resubscribe, ref: t.Ref, body: resubscriber.AppendResubscribe(nil, t.Ref)}
	x, err := h.open(ctx, e, h.events.url(), h.event)
	if err != nil {
		return
	}
	defer x.close(nil)
	if !x.streams() {
		return
	}
	for events := x.events(); ; {
		if _, err := events.Next(); err != nil {
			return
		}
		select {
		case news <- struct{}{}:
		default:
		}
	}
}

// follow says how a task is polled.
type follow struct {
	stamp    string          // of the last report
	news     <-chan struct{} // when to ask sooner; nil for never
	pushed   <-chan []byte   // what the agent pushes; nil for nothing
	works    func()          // called once, when the agent says that it still works; nil for nothing
	at       bool            // ask at once
	early    bool            // the agent has answered the turn before it acted on it
	patience time.Duration   // for how long the task may stand still
	still    string          // what that means
}

// poll yields what a task has changed to, until it rests. An agent that does not answer may be restarting: it has
// the time of one silence to come back. One that rests just as it did before the turn has never taken it, unless it has
// answered the turn, or is of those that act late: then it may be about to act, and where it never does, its task is as
// it says.
func (h *HTTP) poll(ctx context.Context, t *agent.Turn, f follow, yield yield) {
	wait, begun := pollFirst, time.Now()
	answered, changed := begun, begun
	for first := true; ; first = false {
		var body []byte
		if !(first && f.at) {
			var ok bool
			if body, ok = pause(ctx, h.jitter(wait), &f); !ok {
				yield(agent.Report{}, ended(ctx))
				return
			}
		}
		wait = min(2*wait, pollMost)
		var rep agent.Report
		var err error
		pushed := false
		if body != nil {
			rep, pushed = h.push(ctx, t, body, f.stamp)
		}
		if !pushed {
			rep, err = h.ask(ctx, t)
		}
		now := time.Now()
		switch k := task.KindOf(err); {
		case err == nil && (f.early || h.actsLate) && untouched(t, &rep):
			if answered = now; now.Sub(changed) >= h.config.IdleTimeout {
				h.log.LogAttrs(ctx, slog.LevelWarn, "the agent has not acted on a message", slog.String("task", t.Ref.Task), slog.Duration("for", h.config.IdleTimeout))
				yield(rep, nil)
				return
			}
			continue
		case err == nil && untouched(t, &rep):
			yield(agent.Report{}, task.Errorf(task.AgentUnavailable, "the agent has not taken the message"))
			return
		case err == nil:
			answered = now
		case ctx.Err() != nil:
			yield(agent.Report{}, ended(ctx))
			return
		case k == task.TaskNotFound || k == task.MethodNotFound:
			yield(agent.Report{}, h.unknownMethod(err))
			return
		case !passes(err):
			yield(agent.Report{}, err)
			return
		case now.Sub(answered) >= h.config.IdleTimeout:
			var e *task.Error
			detail := "it gives no answer"
			if errors.As(err, &e) {
				detail = e.Detail
			}
			yield(agent.Report{}, task.Errorf(task.AgentTimeout, "the agent has not told of the task for %v: %s", h.config.IdleTimeout, detail).WithCause(err))
			return
		default:
			continue
		}
		if f.works != nil && !rep.EndsTurn() {
			f.works()
			f.works = nil
		}
		if rep.Revision != f.stamp || rep.EndsTurn() {
			f.stamp, changed, wait = rep.Revision, now, pollFirst
			if !yield(rep, nil) || rep.EndsTurn() {
				return
			}
			continue
		}
		if now.Sub(changed) >= f.patience && !rep.SelfResuming {
			yield(agent.Report{}, task.Errorf(task.AgentTimeout, "%s for %v", f.still, f.patience))
			return
		}
	}
}

// ask is get for a task that is polled: an agent that does not answer must not keep the slot from others.
func (h *HTTP) ask(ctx context.Context, t *agent.Turn) (agent.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, min(pollTimeout, h.config.IdleTimeout))
	defer cancel()
	return h.get(ctx, t)
}

// untouched reports whether an agent's task rests just as it did when the turn before had ended.
func untouched(t *agent.Turn, rep *agent.Report) bool {
	known := slices.Concat(t.Withdrawn, t.Known)
	return t.Revision != "" && rep.EndsTurn() && rep.Revision == t.Revision && len(task.Diff(known, rep.Products)) == 0
}

// pause waits for a time, or for news, but never so short that an agent is flooded with questions. What is pushed
// ends it at once, and is returned. ok is false when ctx is done.
func pause(ctx context.Context, wait time.Duration, f *follow) (pushed []byte, ok bool) {
	least := time.NewTimer(min(wait, pollFirst))
	defer least.Stop()
	select {
	case <-least.C:
	case pushed = <-f.pushed:
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
	case <-f.news:
	case pushed = <-f.pushed:
	case <-ctx.Done():
		return nil, false
	}
	return pushed, true
}
