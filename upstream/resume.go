// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// resume continues a turn by polling: no stream reports missed events. A new stream, if the agent gives one, is only a
// sign of when to ask: some lose the last event of it. acknowledged reports whether the agent has answered the message
// already, and so may be about to act on it.
//
// If polling is not possible, the agent is asked for a new stream, then the only source. Of an agent with neither,
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

// resubscribe continues a turn by a new stream, again and again if it is cut, for as long as the agent reports
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
