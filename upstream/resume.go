// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// resume continues a turn by polling: no stream reports what was missed. A new stream, where the agent gives one, only
// says when to ask: some lose the last event of it. acknowledged says that the agent has answered the message already,
// so that it may be about to act on it.
//
// An agent that cannot be polled is asked for a new stream, which is then all that is known. Of one that has neither,
// nothing is known after the connection of its turn.
func (r *run) resume(acknowledged bool) error {
	if r.facets.Getter == nil {
		return r.resubscribe()
	}
	w := r.newWatch()
	defer w.close()
	return r.poll(polling{
		watch: w, atOnce: true, acknowledged: acknowledged,
		doubted: !acknowledged && !r.heard && !r.turn.Answered && !r.turn.Named,
	})
}

// resubscribe continues a turn by a new stream, again and again where that is cut, for as long as the agent reports
// something within IdleTimeout.
func (r *run) resubscribe() error {
	if r.facets.Resubscriber == nil {
		return task.Errorf(task.UnsupportedOperation,
			"the connection to the agent is gone, and %s cannot ask how a task stands; the message is not sent again, "+
				"since the agent may have acted on it", r.codec.Name())
	}
	p := newPace(r.config.IdleTimeout)
	for {
		seen, err := r.resubscribeOnce()
		switch {
		case err == nil:
			return nil
		case r.ctx.Err() != nil:
			return Ended(r.ctx)
		case seen:
			p = newPace(r.config.IdleTimeout)
		case !transient(err):
			return r.unknownMethod(err)
		case p.over(err):
			return r.timedOut(err)
		}
		if !p.pause(r.ctx, r.jitter) {
			return Ended(r.ctx)
		}
	}
}

// resubscribeOnce reports the events of one new stream. seen says whether there was any.
func (r *run) resubscribeOnce() (seen bool, _ error) {
	if err := r.acquire(); err != nil {
		return false, err
	}
	got, err := r.exchange(r.transport.Routes(translate.Resubscribe)[0], translate.Resubscribe)
	switch {
	case got.streamed || err != nil:
		return got.seen, err
	case !r.report(got.report) || got.report.EndsTurn():
		return true, nil
	}
	return true, Failed(task.InvalidAgentResponse, StreamCut, nil, "the agent has continued no stream")
}
