// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Streaming is the configuration of streams.
type Streaming struct {
	Patience     time.Duration // how long a stream waits for memory
	Max          int           // open streams of all Leaders
	MaxPerLeader int           // open streams of one Leader

	// Drain is done when another configuration has replaced this one. Then each stream ends at a random time within
	// DrainFor, and its caller is asked to wait for a random time, so that callers do not reconnect all at once.
	Drain    context.Context
	DrainFor time.Duration
}

// countStream counts one more stream of a Leader. It fails if a limit is reached.
func (g *Gateway) countStream(leader string) error {
	o := &g.config.Streaming
	err := g.config.Process.Streams.Take(leader, 1, quota.Limits{Total: int64(o.Max), PerLeader: int64(o.MaxPerLeader)})
	exceeded, ok := errors.AsType[*quota.ExceededError](err)
	switch {
	case !ok:
		return err
	case exceeded.PerLeader:
		return task.Errorf(task.LimitExceeded, "you have %d streams open here; close some, or use get", exceeded.Max).
			WithData("limit", "streams_per_leader").WithData("max", exceeded.Max)
	}
	return task.Errorf(task.LimitExceeded, "this gateway serves no more than %d streams; try again later, or use get",
		exceeded.Max).WithData("limit", "streams").WithData("max", exceeded.Max)
}

// A Sink is a front's connection to the caller of a stream. Its methods are called by the goroutine that runs the
// stream. All but Flush may buffer what they are given.
type Sink interface {
	// Event adds a frame of the event with the number seq. build appends the frame's data, one line, and returns it
	// with the frame's name, and whether more frames of the event follow: only the last frame carries the number. If
	// data is nil, there is no frame. Event calls build once, before it returns.
	Event(seq uint64, build func(dst []byte) (data []byte, name string, more bool))
	// Data adds a frame without a number. build appends its data.
	Data(build func(dst []byte) []byte)
	// Comment adds a line for people. A front that has no comments drops it.
	Comment(text string)
	// Retry adds how long the caller should wait before it reconnects. A front that has no such hint drops it.
	Retry(after time.Duration)
	// Flush sends what is buffered. An error ends the stream.
	Flush() error
}

// Stream is the events that answer a request. It ends when the task has ended, when the caller leaves, when the
// caller's proof of identity expires, and when the gateway is drained. It counts as open until it is closed.
type Stream struct {
	g       *Gateway
	ctx     context.Context
	cut     context.CancelCauseFunc
	span    trace.Span
	dialect translate.Server
	id      jsonrpc.ID
	leader  string
	events  *partner.Stream
	frames  framer
	memory  quota.Lease // for the frames that are buffered
	last    uint64      // the number of the last event that was sent

	snapshot bool // the stream begins with the task as it is
	ended    bool // the dialect's stream has ended, though the task has not

	undrain func() bool
	expires time.Time   // of the caller's proof of identity; zero for never
	expiry  *time.Timer // nil if expires is zero
	out     Sink        // set by Run
}

// Why a stream ends although its task continues.
var (
	errDrained = errors.New("gateway: the stream was drained")
	errExpired = errors.New("gateway: the caller's identity has expired")
	errClosed  = errors.New("gateway: the stream was closed")
)

// stream answers with events, and, if the call says so, with the task as it is before them.
func (x *exchange) stream(p *partner.Partner, r *partner.Request) (a Answer, err error) {
	if err := x.g.countStream(x.leader); err != nil {
		return a, err
	}
	defer func() { // after a panic, too
		if a.Stream == nil {
			x.g.config.Process.Streams.Give(x.leader, 1)
		}
	}()
	r.Snapshot = r.Snapshot || x.call.Reply
	events, err := p.Stream(x.ctx, x.leader, r)
	if err != nil {
		return a, err
	}
	if x.call.Reply {
		a = x.reply(x.dialect.AppendTask(x.grow(events.Task.Size()), x.req.ID, &x.call, &events.Task))
	}
	a.Dialect, a.Stream = x.dialect, x.newStream(&events)
	return a, nil
}

// newStream returns the stream of events. It keeps nothing of the request's body.
func (x *exchange) newStream(events *partner.Stream) *Stream {
	s := &Stream{g: x.g, span: x.span, dialect: x.dialect, id: bytes.Clone(x.req.ID), leader: x.leader, events: events,
		last: events.After, expires: x.peer.Expires}
	call := x.call
	encoder := s.dialect.NewStream(s.id, &call, &events.Task)
	s.frames.init(encoder)
	s.snapshot = call.Snapshot && !(call.Message.Command == task.Start && events.After == 0)
	if t := &events.Task; !call.Snapshot {
		// A caller that resumes behind the end of a dialect's stream gets an empty stream.
		s.ended = x.resumes() && events.After == events.Last && !t.Status.State.Terminal() &&
			encoder.Snapshot(nil, t).End
		s.forgetTask()
	}
	x.hold()
	s.memory, x.in.memory = x.in.memory, quota.Lease{}
	if !call.Snapshot && !call.Reply {
		s.memory.Release()
	}
	s.ctx, s.cut = context.WithCancelCause(x.ctx)
	o := &s.g.config.Streaming
	s.undrain = context.AfterFunc(o.Drain, func() {
		wait := time.AfterFunc(rand.N(o.DrainFor+1), func() { s.cut(errDrained) })
		context.AfterFunc(s.ctx, func() { wait.Stop() })
	})
	if !s.expires.IsZero() {
		s.expiry = time.AfterFunc(expiryCheck, s.checkExpiry)
		s.expiry.Reset(s.untilExpiry())
	}
	return s
}

// expiryCheck is the longest time between two checks for expiry: the wall clock may be set meanwhile.
const expiryCheck = time.Minute

// untilExpiry returns the time until the next check.
func (s *Stream) untilExpiry() time.Duration { return min(expiryCheck, time.Until(s.expires)) }

func (s *Stream) checkExpiry() {
	if time.Now().Before(s.expires) {
		s.expiry.Reset(s.untilExpiry())
		return
	}
	s.cut(errExpired)
}

// forgetTask keeps only the ids of the task, which every frame repeats: a stream may be open for days.
func (s *Stream) forgetTask() {
	t := &s.events.Task
	*t = task.Task{ID: t.ID, SessionID: t.SessionID, GroupID: t.GroupID}
}

// Cut ends a stream that its front cannot send. It may be called by any goroutine.
func (s *Stream) Cut(cause error) { s.cut(cause) }

// Close gives back what the stream holds. It is called once, after Run or instead of it.
func (s *Stream) Close() {
	s.undrain()
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.cut(errClosed)
	s.span.End()
	s.g.config.Process.Streams.Give(s.leader, 1)
	s.memory.Release()
}

// Run sends the stream to a sink, and returns when the stream has ended. It is called at most once.
func (s *Stream) Run(out Sink) {
	s.out = out
	s.finish(s.send())
}

// send sends the events. It returns nil when all events of the task, or of the dialect's stream, are sent.
func (s *Stream) send() error {
	if s.ended {
		return nil
	}
	if s.snapshot {
		s.memory.Take(2 * s.events.Task.Size()) // the task and its frame, for which the call has waited
		end := s.frames.snapshot(s.out, s.last, &s.events.Task)
		if err := s.out.Flush(); err != nil || end {
			return err
		}
	}
	s.forgetTask()
	s.memory.Release()
	for rec, err := range s.events.Follow(s.ctx, s.reserve) {
		if err != nil {
			return err
		}
		// For a page that was read from the store, the memory was taken before.
		if err := s.reserve(s.ctx, int64(len(rec.Data))); err != nil {
			return err
		}
		end, err := s.frames.add(s.out, &rec)
		if err != nil {
			return err
		}
		s.last = rec.Seq
		if rec.More && !end {
			continue // more events are there already: they are sent together
		}
		if err := s.out.Flush(); err != nil || end {
			return err
		}
		s.memory.Release()
	}
	return nil
}

// reserve implements replay.Reserve. It holds memory for n bytes of records and for their frames.
func (s *Stream) reserve(ctx context.Context, n int64) error {
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
	err := partner.WaitForMemory(ctx, &s.memory, 2*n, s.g.config.Streaming.Patience)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// finish sends the reason why the stream has ended.
func (s *Stream) finish(err error) {
	switch cause := context.Cause(s.ctx); {
	case err == nil:
		if !s.frames.sent {
			comment := "the task has ended, and there are no more events"
			if s.ended {
				comment = "there are no more events before the task continues"
			}
			s.out.Comment(comment)
		}
		err = s.out.Flush()
	case cause == errDrained:
		s.out.Retry(rand.N(time.Second))
		s.out.Comment("the configuration was replaced; re-stream from the last event")
		err = s.out.Flush()
		s.span.AddEvent("aip.stream.drained")
	case cause == errExpired:
		err = s.fail(identity.Expired())
		s.span.AddEvent("aip.stream.cut")
	case cause == nil:
		if task.KindOf(err) == task.TaskNotFound {
			s.span.AddEvent("aip.stream.expired")
		}
		err = s.fail(err)
	default:
		err = cause
		s.span.AddEvent("aip.stream.cut")
	}
	if s.span.IsRecording() {
		s.span.SetAttributes(attribute.Int64("aip.event.last", int64(s.last)))
	}
	if err != nil {
		s.g.config.Log.Debug("a stream was cut", "task", s.events.Task.ID, "leader", s.leader, "last", s.last,
			"error", err)
	}
}

// fail sends an error as the last frame. It returns the error, joined with that of sending it.
func (s *Stream) fail(err error) error {
	s.out.Data(func(dst []byte) []byte { return s.dialect.AppendError(dst, s.id, err) })
	return errors.Join(err, s.out.Flush())
}
