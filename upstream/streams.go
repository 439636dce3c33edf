// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// streams is what is known of the streams of an agent that may have none (translate.Unstreamer).
type streams struct {
	seen    atomic.Bool               // there was an event of one
	refused atomic.Pointer[time.Time] // since when the card was as it is, when the agent had refused one; nil for never
}

// hasNoStreams reports whether the agent of an Unstreamer has no streams: its card says so, or it has refused one since
// the card is as it is.
func (r *run) hasNoStreams() bool {
	if r.facets.Unstreamer == nil {
		return false
	}
	none, since := r.card()
	refused := r.Endpoint.streams.refused.Load()
	return none || refused != nil && refused.Equal(since)
}

// noteNoStreams notes that the agent has refused a stream, and has taken the message without one.
func (r *run) noteNoStreams() {
	_, since := r.card()
	r.Endpoint.streams.refused.Store(&since)
}

// card returns what the agent's card says of streams, and since when.
func (r *run) card() (none bool, since time.Time) {
	if r.config.Streams == nil {
		return false, time.Time{}
	}
	return r.config.Streams(r.ctx)
}

// refusesStream reports whether an error that answers a message before any event may mean that the agent, of which no
// stream was seen yet, has none. It may say so by any error; an answer that is none is no such error.
func (r *run) refusesStream(err error) bool {
	if r.facets.Unstreamer == nil || r.Endpoint.streams.seen.Load() || r.ctx.Err() != nil {
		return false
	}
	switch ReasonOf(err) {
	case Rejected, ServerFailed, NoAgent:
		return true
	case NoReason:
		kind := task.KindOf(err)
		return kind != task.InvalidAgentResponse && kind != task.AgentTimeout && kind != task.AgentUnavailable
	}
	return false
}
