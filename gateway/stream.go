// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
)

// Streaming is how streams are served.
type Streaming struct {
	Heartbeat    time.Duration // how long a stream may be silent before a comment is sent
	WriteTimeout time.Duration // how long a caller may take to take in one write
	Max          int           // open streams of all Leaders
	MaxPerLeader int

	// Open counts the open streams. Handlers that share it share their limits.
	Open *OpenStreams
	// Drain ends when streams should end, so that their callers come back to the configuration that took over.
	// Each ends at a moment of its own within DrainFor, and is told to wait a moment of its own, so that they
	// do not come back all at once.
	Drain    context.Context
	DrainFor time.Duration
}

// OpenStreams counts open streams. The zero value is ready for use.
type OpenStreams struct {
	mu     sync.Mutex
	total  int
	leader map[string]int
}

// add counts one more, unless a limit is reached. Whoever added one takes it away again.
func (o *OpenStreams) add(leader string, s *Streaming) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.total >= s.Max:
		return task.Errorf(task.LimitExceeded, "this gateway serves no more than %d streams; try again later, or use get", s.Max).
			With("limit", "streams").With("max", s.Max)
	case o.leader[leader] >= s.MaxPerLeader:
		return task.Errorf(task.LimitExceeded, "you have %d streams open here; close some, or use get", s.MaxPerLeader).
			With("limit", "streams_per_leader").With("max", s.MaxPerLeader)
	}
	if o.leader == nil {
		o.leader = make(map[string]int)
	}
	o.total++
	o.leader[leader]++
	return nil
}

// Count returns how many streams are open.
func (o *OpenStreams) Count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

func (o *OpenStreams) remove(leader string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total--
	if o.leader[leader]--; o.leader[leader] == 0 {
		delete(o.leader, leader)
	}
}

// errDrained is why a stream ends that was asked to come back.
var errDrained = errors.New("gateway: drained")

// stream answers a call with its events, until the task has ended, the caller leaves, or the stream is
// drained. The call has been counted as an open stream.
func (h *Handler) stream(ctx context.Context, w http.ResponseWriter, id jsonrpc.ID, s *partner.Stream) {
	span := trace.SpanFromContext(ctx)
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	undrain := context.AfterFunc(h.Streaming.Drain, func() {
		wait := time.AfterFunc(time.Duration(rand.Int64N(int64(h.Streaming.DrainFor)+1)), func() { cut(errDrained) })
		context.AfterFunc(ctx, func() { wait.Stop() })
	})
	defer undrain()

	out, err := sseproxy.NewWriter(w, sseproxy.Options{Heartbeat: h.Streaming.Heartbeat, Timeout: h.Streaming.WriteTimeout,
		Cut: func() { cut(errors.New("gateway: the caller takes nothing in")) }})
	if err != nil {
		h.Log.Debug("a stream was not begun", "error", err)
		return
	}
	defer out.Close()
	last := s.After
	for rec, failed := range s.Follow(ctx) {
		if failed != nil {
			err = failed
			break
		}
		out.Event(rec.Seq, func(dst []byte) []byte { return h.appendRecord(dst, id, rec.Seq, rec.Data, &s.Task) })
		last = rec.Seq
		if rec.More {
			continue // more can be had at once: send them together
		}
		if err = out.Flush(); err != nil {
			break
		}
	}
	switch {
	case err == nil:
		if last == s.After {
			out.Comment("the task has ended, and there are no more events")
		}
		err = out.Flush()
	case context.Cause(ctx) == errDrained:
		out.Retry(time.Duration(rand.Int64N(int64(time.Second))))
		out.Comment("the gateway is being reconfigured; re-stream from the last event")
		err = out.Flush()
		span.AddEvent("aip.stream.drained")
	case ctx.Err() == nil:
		if task.KindOf(err) == task.TaskNotFound {
			span.AddEvent("aip.stream.expired")
		}
		why := err
		out.Data(func(dst []byte) []byte { return h.Caller.AppendError(dst, id, why) })
		err = errors.Join(err, out.Flush())
	default:
		err = context.Cause(ctx)
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.Int64("aip.event.last", int64(last)))
	}
	if err != nil {
		h.Log.Debug("a stream was cut", "task", s.Task.ID, "last", last, "error", err)
	}
}

// A recordAppender is a dialect whose words are those of the log, so that an event need not be decoded to be
// told.
type recordAppender interface {
	// AppendRecord does what AppendEvent does, from the stored form of the event.
	AppendRecord(dst []byte, id jsonrpc.ID, seq uint64, record []byte, t *task.Task) []byte
}

// appendRecord appends the response that carries a stored event.
func (h *Handler) appendRecord(dst []byte, id jsonrpc.ID, seq uint64, record []byte, t *task.Task) []byte {
	if direct, ok := h.Caller.(recordAppender); ok {
		return direct.AppendRecord(dst, id, seq, record, t)
	}
	ev, err := task.DecodeEvent(record)
	if err != nil {
		return h.Caller.AppendError(dst, id, task.Errorf(task.Internal, "the task's log is damaged").Because(err))
	}
	ev.Seq = seq
	return h.Caller.AppendEvent(dst, id, &ev, t)
}

// keepID returns an id that outlives the buffer that it was read into.
func keepID(id jsonrpc.ID) jsonrpc.ID { return bytes.Clone(id) }
