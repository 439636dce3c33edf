// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
)

// The most tasks of an agent to look at for the one begun by a turn.
const (
	maxListed  = 10  // pages
	maxCompare = 200 // tasks
)

// canLocate reports whether the task of the turn, named by the agent, can be found.
func (r *run) canLocate() bool {
	return r.facets.Locator != nil && r.unnamed(r.turn)
}

// locate looks for the task begun by the turn, among the tasks listed by the agent, and reports its name. It looks for
// as long as ResendAfter: the agent may have read the message and not have made a task of it yet. A silent agent may be
// restarting: it has the time of one IdleTimeout to come back.
func (r *run) locate() (found bool, err error) {
	p := newPace(r.config.IdleTimeout)
	doubted := r.config.ResendAfter
	if r.turn.Answered {
		doubted = 0
	}
	for {
		ref, err := r.locateOnce()
		switch {
		case r.ctx.Err() != nil:
			return false, Ended(r.ctx)
		case err == nil && ref == nil && time.Since(p.begun) >= doubted:
			return false, nil
		case err == nil && ref == nil:
		case err == nil:
			r.logger().LogAttrs(r.ctx, slog.LevelInfo, "the agent has the task whose answer was lost",
				slog.String("name", ref.Task))
			rep := agent.Report{Ref: ref, State: task.Accepted}
			r.turn = named(r.turn, &rep)
			r.report(rep)
			return true, nil
		case !transient(err):
			return false, r.unknownMethod(err)
		case p.over(err):
			return false, r.timedOut(err)
		}
		if !p.pause(r.ctx, r.jitter) {
			return false, Ended(r.ctx)
		}
	}
}

// resumeLocated resumes a turn by the agent's name for its task, after the agent did not know the task by its name so
// far. err is the error of the turn. If the agent lists no such task, and has not named it before, it has not received
// the message.
func (r *run) resumeLocated(err error) error {
	found, failed := r.locate()
	switch {
	case found:
		return r.resume(false)
	case failed != nil:
		return failed
	case r.turn.Answered || task.KindOf(err) == task.TaskNotFound && (r.turn.Named || !r.starts()):
		return err
	}
	return cmp.Or[error](r.mayResend(nil), notReceived())
}

// locateOnce is locate without another attempt. It returns nil if the agent has no such task.
func (r *run) locateOnce() (*agent.Ref, error) {
	compared, cursor := 0, ""
	for range maxListed {
		q := r.query(translate.List)
		codec := q.codec.(translate.Locator)
		q.Body = codec.AppendList(nil, cursor)
		var tasks []agent.Ref
		err := r.ask(q, func(body []byte) (err error) {
			tasks, cursor, err = codec.Listed(body, r.turn)
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, ref := range tasks {
			if compared++; compared > maxCompare {
				return nil, nil
			}
			if carries, err := r.carries(ref); err != nil {
				return nil, err
			} else if carries && r.taken.claim(ref.Task, holderOf(r.turn.Leader, false)) {
				return &ref, nil
			}
		}
		if cursor == "" {
			break
		}
	}
	return nil, nil
}

// carries asks whether a task of the agent is the one begun by the turn. An unreadable one is not.
func (r *run) carries(ref agent.Ref) (carries bool, _ error) {
	q := r.queryOf(translate.Get, named(r.turn, &agent.Report{Ref: &ref}))
	q.Body = q.codec.(translate.Getter).AppendGet(nil, ref)
	err := r.ask(q, func(body []byte) error {
		var unreadable error
		if carries, unreadable = q.codec.(translate.Locator).Carries(body, r.turn); unreadable != nil {
			carries = false
		}
		return nil
	})
	return carries, err
}

// ask sends a request with one answer, in a slot for requests with an answer due soon, and reads the answer.
func (r *run) ask(q *query, read func(body []byte) error) (err error) {
	ctx, cancel := context.WithTimeout(r.ctx, min(askTimeout, r.config.IdleTimeout))
	defer cancel()
	if !r.config.Slots.questions.acquire(ctx, r.turn.Leader) {
		return Ended(ctx)
	}
	defer r.config.Slots.questions.release(r.turn.Leader)
	x, err := begin(ctx, r.transport.Routes(q.Operation)[0], q)
	if err != nil {
		return err
	}
	defer func() { x.Close(err) }()
	m, err := x.Next()
	if err != nil {
		return err
	}
	return r.paired(read(m.Data))
}
