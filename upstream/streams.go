// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Streaming says whether turns ask for streams.
type Streaming uint8

// Whether turns ask for streams.
const (
	StreamsAuto Streaming = iota // as the agent's card says, and unless its streams fail
	StreamsOn                    // whatever the card says, and however they fail
	StreamsOff                   // never
)

// streams is the gateway's knowledge of an agent's streams.
type streams struct {
	seen    atomic.Bool               // there was an event of one
	refused atomic.Pointer[time.Time] // the date of the card when a stream was refused or failed, or nil
	doubted atomic.Bool               // it is not known whether a message without a stream fails as well
}

// hasNoStreams reports whether the agent is asked for no streams: its card denies them, or a stream was refused or has
// failed since the card's last change.
func (r *run) hasNoStreams() bool {
	switch r.config.Streaming {
	case StreamsOn:
		return false
	case StreamsOff:
		return true
	}
	none, since := r.card()
	refused := r.Endpoint.streams.refused.Load()
	return none || refused != nil && refused.Equal(since)
}

// noteNoStreams notes a refused stream of the agent, or a failed one.
func (r *run) noteNoStreams() {
	_, since := r.card()
	r.Endpoint.streams.refused.Store(&since)
}

// card returns whether the agent's card denies streams, and the time of its last change.
func (r *run) card() (none bool, since time.Time) {
	if r.config.Streams == nil {
		return false, time.Time{}
	}
	return r.config.Streams(r.ctx)
}

// refusesStream reports whether an error in answer to a message, before any event, may mean: the agent, of which no
// stream was seen yet, has none. It may say so by any error. An answer not of the dialect is no such error.
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

// failsAsStream reports whether an agent, of which no stream was seen yet, has answered a message by an error that the
// way of sending may have caused. The agent may have acted on the message, so it is not sent again.
func (r *run) failsAsStream(err error) bool {
	if err == nil || r.heard || r.Endpoint.streams.seen.Load() || r.ctx.Err() != nil {
		return false
	}
	switch ReasonOf(err) {
	case Rejected, ServerFailed, StreamCut:
		return true
	case NoReason:
		kind := task.KindOf(err)
		return kind == task.Internal || kind == task.InvalidAgentResponse
	}
	return false
}

// noteStream notes the answer to a message asking for a stream. If it failed, the next messages ask for none, unless
// they fail as well.
func (r *run) noteStream(err error) {
	if r.config.Streaming != StreamsAuto || r.facets.Streamer != nil || !r.failsAsStream(err) {
		return
	}
	r.noteNoStreams()
	r.Endpoint.streams.doubted.Store(true)
	r.log.LogAttrs(r.ctx, slog.LevelWarn, "a stream of the agent has failed; the next message is sent without one",
		slog.Any("error", err))
}

// noteSend notes the answer to a message asking for no stream: if it fails as well, the stream was not the reason.
func (r *run) noteSend(err error) {
	of := &r.Endpoint.streams
	switch {
	case !of.doubted.Load():
	case r.failsAsStream(err):
		of.refused.Store(nil)
		of.doubted.Store(false)
	case err == nil || r.heard:
		of.doubted.Store(false)
	}
}

// The ways of sending, as Way names them.
const streamed, sent = "messages ask for a stream", "messages ask for no stream"

// Way returns whether turns ask the agent for streams, and the reason. Both are empty if only the agent's dialect
// decides it.
func (a *Agent) Way(ctx context.Context) (way, why string) {
	switch {
	case a.config.Streaming == StreamsOn:
		return streamed, "streams is on"
	case a.config.Streaming == StreamsOff:
		return sent, "streams is off"
	case a.config.Streams == nil:
		return "", ""
	}
	none, since := a.config.Streams(ctx)
	switch {
	case since.IsZero():
		return streamed, "it shows no card that says whether it has them"
	case none:
		return sent, "its card has no capabilities.streaming; if it has streams all the same, set streams on"
	}
	return streamed, "its card has capabilities.streaming"
}
