// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// The pauses between retries: short at first, then longer and longer.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 2 * time.Second
	// starvedMost is the longest time not counted because the gateway itself lacks file descriptors.
	starvedMost = 5 * time.Minute

	// undeliveredTries is the least number of tries of a turn if its connection breaks before the agent has received it.
	undeliveredTries = 3
)

// An overloaded agent has done nothing, so a turn may be sent again.
const (
	busyTries = 4                // of a turn in all
	busyFirst = time.Second / 2  // before the second try, and then twice as long each time
	busyMost  = 30 * time.Second // the longest pause an agent may ask for
)

// unsent reports whether nothing of a request was sent.
func (r Reason) unsent() bool { return r == Unreachable || r == OutOfFiles }

// transient reports whether a request may succeed when it is repeated, though the agent may have received it.
func (r Reason) transient() bool {
	return r == Disconnected || r == StreamCut || r == OtherAnswer || r == ProxyFailed
}

// transient reports whether it is worth asking again after an error: the agent may be restarting.
func transient(err error) bool {
	switch task.KindOf(err) {
	case task.AgentUnavailable, task.AgentTimeout, task.Internal:
		return true
	}
	return ReasonOf(err).transient()
}

// mayPass reports whether it is worth asking again for some time after an error: the agent's server may have failed for
// a moment.
func mayPass(err error) bool { return transient(err) || ReasonOf(err) == ServerFailed }

// retry is the policy for sending a turn again if the agent has not received it. Its methods wait first, and report
// whether to send the turn again; if not, the run ends with err.
type retry struct {
	run       *run
	tries     int  // since the agent was overloaded last
	overloads int  // the number of times the agent was overloaded
	pace      pace // of RetryFor
	session   pace // of a busy session's time; zero until it is busy
}

func (r *run) newRetry() retry {
	return retry{run: r, pace: newPace(r.config.RetryFor)}
}

// busy retries a turn if the agent takes no requests now, unless it asks for too long a pause.
func (p *retry) busy(err error) (again bool, _ error) {
	r := p.run
	var overloaded *Error
	if p.overloads++; p.overloads >= busyTries || !errors.As(err, &overloaded) {
		return false, err
	}
	wait := max(overloaded.RetryAfter, busyFirst<<(p.overloads-1))
	if wait > busyMost {
		return false, task.Errorf(task.AgentUnavailable, "the agent takes no requests for %v", overloaded.RetryAfter)
	}
	r.logger().LogAttrs(r.ctx, slog.LevelInfo, "the agent takes no requests now; trying again",
		slog.Duration("after", wait))
	if !sleep(r.ctx, wait) {
		return false, Ended(r.ctx)
	}
	p.tries, p.pace = 0, newPace(r.config.RetryFor)
	return true, nil
}

// undelivered retries a turn not received by the agent: nothing was sent, or the connection broke before the agent had
// reported anything, and the agent, knowing the task by the gateway's name for it, denies having the turn for as long
// as ResendAfter. The turn is given up after RetryFor, or after starvedMost if the gateway has no file descriptors
// left. A turn that may have been sent is not sent again if the agent cannot say whether it has it.
func (p *retry) undelivered(err error) (again bool, _ error) {
	r := p.run
	p.tries++
	if ReasonOf(err).unsent() {
		return p.unsent(err)
	}
	t := r.turn
	if r.canLocate() && p.tries < undeliveredTries {
		if found, err := r.locate(); found {
			return false, r.resume(false)
		} else if err != nil {
			return false, err
		}
		failed := r.mayResend(err)
		return failed == nil, failed
	}
	missed := false
	if !r.unnamed(t) && (p.tries < undeliveredTries || !p.pace.over(err)) {
		var failed error
		if missed, failed = p.missed(err); failed != nil {
			return false, failed
		}
	}
	if !missed {
		if reason := ReasonOf(err); (reason == StreamCut || reason == OtherAnswer && !r.unknowable()) && !r.unnamed(t) {
			r.logCut()
			return false, r.resume(false)
		}
		return false, err
	}
	r.logger().LogAttrs(r.ctx, slog.LevelInfo, "the agent has not received the message; sending it again")
	if p.tries > 1 && !p.pace.over(err) && !p.pace.pause(r.ctx, r.jitter) {
		return false, Ended(r.ctx)
	}
	return true, nil
}

// unsent retries a turn after nothing of it was sent.
func (p *retry) unsent(err error) (again bool, _ error) {
	r := p.run
	switch {
	case p.pace.over(err):
		return false, err
	case isStarved(err):
		if r.config.Slots.starved.due() {
			// What to do: see docs/production.md#connections-of-unauthenticated-clients.
			r.logger().LogAttrs(r.ctx, slog.LevelWarn, "no file descriptors are left to reach the agent; its tasks wait",
				slog.Any("error", err))
		}
	case p.tries == 1:
		r.logger().LogAttrs(r.ctx, slog.LevelWarn, "the agent cannot be reached; trying again",
			slog.Duration("for", r.config.RetryFor), slog.Any("error", err))
	}
	return p.queue(&p.pace, err)
}

// busySession retries a turn if its session has a run already (translate.ErrBusy), for as long as that run may take.
func (p *retry) busySession(err error) (again bool, _ error) {
	r := p.run
	if p.session.most == 0 {
		p.session = newPace(r.config.IdleTimeout)
		r.logger().LogAttrs(r.ctx, slog.LevelInfo,
			"the agent still works on an earlier message of the session; trying again")
	}
	if p.session.over(err) {
		return false, task.Errorf(task.AgentTimeout,
			"the agent has worked on an earlier message of the session for %v", r.config.IdleTimeout).WithCause(err)
	}
	p.tries, p.pace = 0, newPace(r.config.RetryFor)
	return p.queue(&p.session, err)
}

// queue waits before an unreceived turn is sent again. Meanwhile the caller sees the turn waiting.
func (p *retry) queue(pace *pace, err error) (again bool, _ error) {
	r := p.run
	if !r.report(agent.Report{Delivery: agent.DeliveryQueued}) {
		return false, err
	}
	if !pace.pause(r.ctx, r.jitter) {
		return false, Ended(r.ctx)
	}
	return r.report(agent.Report{Delivery: agent.DeliverySending}), err
}

// pace is the pauses between attempts within a limited time.
type pace struct {
	begun, until time.Time
	most, wait   time.Duration
}

func newPace(most time.Duration) pace {
	now := time.Now()
	return pace{begun: now, until: now.Add(most), most: most, wait: retryFirst}
}

// over reports whether there is no time left for another try after err. A failure for lack of the gateway's file
// descriptors says nothing about the agent, so the time begins again after it.
func (p *pace) over(err error) bool {
	now := time.Now()
	if isStarved(err) && now.Sub(p.begun) < starvedMost {
		p.until = now.Add(p.most)
		return false
	}
	return !now.Add(p.wait).Before(p.until)
}

// pause waits before the next try. It reports false when ctx is done.
func (p *pace) pause(ctx context.Context, jitter func(time.Duration) time.Duration) bool {
	wait := p.wait
	p.wait = min(2*p.wait, retryMost)
	return sleep(ctx, jitter(wait))
}

// sleep waits for d. It reports false when ctx is done before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// isStarved reports whether the process, or the system, has no file descriptors left.
func isStarved(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
