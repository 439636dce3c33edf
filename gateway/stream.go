// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Streaming is how streams are served.
type Streaming struct {
	Heartbeat    time.Duration // how long a stream may be silent before a comment is sent
	WriteTimeout time.Duration // how long a caller may take nothing in of what it is sent
	Patience     time.Duration // how long a stream waits for memory
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
type OpenStreams struct{ counter quota.Counter }

// add counts one more, unless a limit is reached. Whoever added one takes it away again.
func (o *OpenStreams) add(leader string, s *Streaming) error {
	err := o.counter.Take(leader, 1, quota.Limits{Total: int64(s.Max), PerLeader: int64(s.MaxPerLeader)})
	exceeded, ok := errors.AsType[*quota.ExceededError](err)
	switch {
	case !ok:
		return err
	case exceeded.PerLeader:
		return task.Errorf(task.LimitExceeded, "you have %d streams open here; close some, or use get", exceeded.Max).
			WithData("limit", "streams_per_leader").WithData("max", exceeded.Max)
	}
	return task.Errorf(task.LimitExceeded, "this gateway serves no more than %d streams; try again later, or use get", exceeded.Max).
		WithData("limit", "streams").WithData("max", exceeded.Max)
}

// Count returns how many streams are open.
func (o *OpenStreams) Count() int { return int(o.counter.Total()) }

func (o *OpenStreams) remove(leader string) { o.counter.Give(leader, 1) }

// errDrained is why a stream ends that was asked to come back.
var errDrained = errors.New("gateway: drained")

// stream answers a call with its events, until the task has ended, the caller leaves, or it is drained. It has
// been counted as open.
type stream struct {
	h       *Handler
	w       http.ResponseWriter
	ctx     context.Context
	span    trace.Span
	caller  translate.Server
	id      jsonrpc.ID
	leader  string
	events  *partner.Stream
	memory  quota.Lease // for the frame that is being written
	expires time.Time   // when the certificate of the caller does; zero without one
	frames  translate.Encoder
	last    uint64 // the number of the last event that was told

	snapshot bool // the stream begins with the task as it is
	over     bool // nothing is told before the task goes on
	told     bool // anything at all

	cut context.CancelCauseFunc
	out *sseproxy.Writer
}

func (s *stream) run() {
	if stop := s.begin(); stop != nil {
		defer stop()
		s.finish(s.tell())
	}
}

// forgetTask keeps no more of the task than every frame repeats: the stream may be open for days.
func (s *stream) forgetTask() {
	t := &s.events.Task
	*t = task.Task{ID: t.ID, SessionID: t.SessionID, GroupID: t.GroupID}
}

// begin opens the stream. It returns what ends it, or nil if it could not be opened.
func (s *stream) begin() (stop func()) {
	o := &s.h.Streaming
	s.ctx, s.cut = context.WithCancelCause(s.ctx)
	undrain := context.AfterFunc(o.Drain, func() {
		wait := time.AfterFunc(rand.N(o.DrainFor+1), func() { s.cut(errDrained) })
		context.AfterFunc(s.ctx, func() { wait.Stop() })
	})
	unguard := guardConnection(s.ctx, o.WriteTimeout)
	stop = func() {
		undrain()
		unguard()
		if s.out != nil {
			s.out.Close()
		}
		s.cut(nil)
		s.span.End()
		o.Open.remove(s.leader)
		s.memory.Release()
	}
	var err error
	s.out, err = sseproxy.NewWriter(s.w, sseproxy.Options{
		Heartbeat: o.Heartbeat, Timeout: o.WriteTimeout, Until: s.expires, Cut: s.cut,
	})
	if err != nil {
		s.h.Log.Debug("a stream was not begun", "error", err)
		stop()
		return nil
	}
	return stop
}

// tell sends the events as they come. It returns nil once the task has ended, or the dialect's stream has, and all
// of them are sent.
func (s *stream) tell() error {
	if s.over {
		return nil
	}
	if s.snapshot {
		s.memory.Take(2 * s.events.Task.Size()) // the task, and its frame: the call has waited for them
		frame := s.write(s.last, func(dst []byte) translate.Frame { return s.frames.Snapshot(dst, &s.events.Task) })
		if err := s.out.Flush(); err != nil || frame.End {
			return err
		}
		s.forgetTask()
		s.memory.Release()
	}
	for rec, err := range s.events.Follow(s.ctx, s.room) {
		if err != nil {
			return err
		}
		frame, err := s.append(&rec)
		if err != nil {
			return err
		}
		s.last = rec.Seq
		if rec.More && !frame.End {
			continue // more can be had at once: they are sent together
		}
		if err := s.out.Flush(); err != nil || frame.End {
			return err
		}
		s.memory.Release()
	}
	return nil
}

// room implements replay.Room for the stream: it takes the memory for n bytes of records, and for their frames.
func (s *stream) room(ctx context.Context, n int) error {
	switch {
	case n == 0:
		s.memory.Release()
		return nil
	case 2*n <= quota.Free:
		return nil
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	err := partner.WaitForMemory(ctx, &s.memory, 2*int64(n), s.h.Streaming.Patience)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// append adds the frames of an event to what is to be sent, and returns the last one.
func (s *stream) append(rec *replay.Record) (last translate.Frame, err error) {
	// A page that was read from the store has taken it already.
	if err := s.room(s.ctx, len(rec.Data)); err != nil {
		return last, err
	}
	if direct, ok := s.frames.(translate.RecordEncoder); ok {
		return s.write(rec.Seq, func(dst []byte) translate.Frame { return direct.Record(dst, rec.Seq, rec.Data) }), nil
	}
	ev, err := task.DecodeEvent(rec.Data)
	if err != nil {
		return last, task.Errorf(task.Internal, "the task's log is damaged").WithCause(err)
	}
	ev.Seq = rec.Seq
	return s.write(rec.Seq, func(dst []byte) translate.Frame { return s.frames.Event(dst, &ev) }), nil
}

// write adds the frames of the event with the number id to what is to be sent, and returns the last one, which is the
// only one with the number. next appends the first.
func (s *stream) write(id uint64, next func(dst []byte) translate.Frame) (last translate.Frame) {
	for next != nil {
		s.out.Event(id, func(dst []byte) ([]byte, string, bool) {
			last = next(dst)
			return last.Data, last.Name, last.Next != nil
		})
		s.told = s.told || last.Data != nil
		next = last.Next
	}
	return last
}

// finish ends a stream with what its caller must be told.
func (s *stream) finish(err error) {
	switch {
	case err == nil:
		if !s.told {
			comment := "the task has ended, and there are no more events"
			if s.over {
				comment = "there are no more events before the task goes on"
			}
			s.out.Comment(comment)
		}
		err = s.out.Flush()
	case context.Cause(s.ctx) == errDrained:
		s.out.Retry(rand.N(time.Second))
		s.out.Comment("the gateway is being reconfigured; re-stream from the last event")
		err = s.out.Flush()
		s.span.AddEvent("aip.stream.drained")
	case context.Cause(s.ctx) == sseproxy.ErrExpired:
		err = identity.Expired()
		s.out.Data(func(dst []byte) []byte { return s.caller.AppendError(dst, s.id, err) })
		err = errors.Join(err, s.out.Flush())
		s.span.AddEvent("aip.stream.cut")
	case s.ctx.Err() == nil:
		if task.KindOf(err) == task.TaskNotFound {
			s.span.AddEvent("aip.stream.expired")
		}
		s.out.Data(func(dst []byte) []byte { return s.caller.AppendError(dst, s.id, err) })
		err = errors.Join(err, s.out.Flush())
	default:
		err = context.Cause(s.ctx)
		s.span.AddEvent("aip.stream.cut")
	}
	if s.span.IsRecording() {
		s.span.SetAttributes(attribute.Int64("aip.event.last", int64(s.last)))
	}
	if err != nil {
		s.h.Log.Debug("a stream was cut", "task", s.events.Task.ID, "leader", s.leader, "last", s.last, "error", err)
	}
}
