// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/trust/aac"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Streaming is the configuration of streams.
type Streaming struct {
	Patience     time.Duration // of a stream waiting for memory
	Max          int           // open streams of all Leaders
	MaxPerLeader int           // open streams of one Leader

	// Drain is done when another configuration has replaced this one. Then each stream ends at a random time within
	// DrainFor, and its caller is asked to wait for a random time, so callers do not reconnect all at once.
	Drain    context.Context
	DrainFor time.Duration
	// Exit is done when the process is about to end. Then streams end that callers do not resume (translate.Unresumer).
	// Drain does not end these.
	Exit context.Context
}

// countStream counts one more stream of a Leader. It fails if a limit is reached.
func (g *Gateway) countStream(leader string) error {
	o := &g.config.Streaming
	err := g.config.Process.Streams.Take(leader, 1, limit.Limits{Total: int64(o.Max), PerLeader: int64(o.MaxPerLeader)})
	exceeded, ok := errors.AsType[*limit.ExceededError](err)
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

// Stream is the events of the answer to a request. It ends when the task has ended, when the caller leaves, when the
// caller's proof of identity expires or is revoked, and when the gateway is drained. It counts as open until it is
// closed.
//
// Its owner runs it: by Run in a goroutine, or by RunFor, which returns when the stream rests, and then Park, for the
// process to run it.
type Stream struct {
	g       *Gateway
	span    trace.Span
	dialect translate.Server
	id      jsonrpc.ID
	task    task.Task   // of the Result
	log     string      // with the events
	logs    replay.Logs // of the shard of the task, in whichever process owns it
	leader  string      // of the task
	counts  string      // the Leader charged for the stream
	command string      // of Summary, as user
	user    string
	reached task.State // the state of the task, by the last event sent
	reader  replay.Reader
	frames  framer
	memory  limit.Lease // for the buffered frames
	keeper  translate.Keeper
	kept    limit.Lease    // for the keeper
	reserve replay.Reserve // s.hold
	use     *policy.Use    // of quotas; nil for nothing
	last    atomic.Uint64  // the number of the last event sent
	expires time.Time      // of the first of the caller's proofs and tokens; zero for never
	expired error          // the error at the end then
	peer    identity.Peer  // without the Claims if the stream does not outlive its configuration
	address string         // of the caller
	since   time.Time      // when the stream was opened
	number  uint64         // of openStreams, as index
	index   int            // under the mutex of openStreams
	sending                // set by Run and Park

	snapshot  bool                // the stream begins with the task as it is
	ended     bool                // the dialect's stream has ended, though the task has not
	unresumed translate.Unresumer // the dialect; nil for one with resuming callers
	sent      atomic.Uint64       // events

	why      error // see Outcome; set by finish
	complete bool

	mu        sync.Mutex // guards the fields below; the goroutine stepping the stream reads ctx without it
	ctx       context.Context
	cancel    context.CancelCauseFunc
	undrain   func() bool
	drained   *time.Timer // ends a drained stream; nil before
	expiry    *time.Timer // nil if expires is zero
	transport string      // see SetTransport
}

// Reasons for the end of a stream although its task continues.
var (
	errDrained = errors.New("gateway: the stream was drained")
	errClosed  = errors.New("gateway: the stream was closed")
)

// stream answers with events, and, if the call says so, with the task as it is before them.
func (x *exchange) stream() (a Answer, err error) {
	if err := x.g.countStream(x.reader()); err != nil {
		return a, err
	}
	defer func() { // after a panic, too
		if a.Stream == nil {
			x.g.config.Process.Streams.Give(x.reader(), 1)
		}
	}()
	if err := x.use.OpenStream(); err != nil {
		return a, err
	}
	if err := x.execute(); err != nil {
		return a, err
	}
	if t := &x.result.Task; x.call.Reply {
		a = x.reply(x.dialect.AppendTask(x.grow(t.Size()), x.req.ID, &x.call.Call, t))
		_ = x.use.Send(int64(len(a.Reply))) // the call is carried out already
	}
	a.Dialect, a.Stream = x.dialect, x.newStream()
	return a, nil
}

// expiry returns the first expiry among the caller's proofs, and the error then; the zero time for never.
func (x *exchange) expiry() (at time.Time, why error) {
	at, why = x.peer.Expires, identity.Expired(x.peer.Proof)
	if c := x.peer.Claims; c != nil && !c.Expires.IsZero() && (at.IsZero() || c.Expires.Before(at)) {
		if at, why = c.Expires, identity.Expired(identity.ByToken); x.token != nil {
			why = aac.Expired()
		}
	}
	return at, why
}

// newStream returns the stream of the events of a call's result. It keeps nothing of the request's body.
func (x *exchange) newStream() *Stream {
	r := &x.result
	s := &Stream{g: x.g, span: x.span, dialect: x.dialect, id: bytes.Clone(x.req.ID), leader: x.call.Leader,
		counts: x.reader(), command: methodNames[methodOf(&x.call.Call)], user: x.peer.ID,
		reached: r.Task.Status.State, task: r.Task, log: r.Log, logs: x.g.logs(x.call.Leader),
		peer: x.peer, address: x.in.Address, transport: x.in.Transport, since: time.Now()}
	s.expires, s.expired = x.expiry()
	s.last.Store(r.After)
	call := x.call.Call
	encoder := s.dialect.NewStream(s.id, &call, &s.task)
	s.frames.init(encoder)
	if s.keeper, _ = encoder.(translate.Keeper); s.keeper != nil {
		s.kept = x.g.memory.Lease(x.reader())
	}
	if s.unresumed, _ = s.dialect.(translate.Unresumer); s.unresumed == nil {
		s.peer.Claims = nil
	}
	s.frames.unnumbered = s.unresumed != nil && !s.unresumed.Numbered()
	s.snapshot = call.Snapshot && !(call.Message.Command == task.Start && r.After == 0)
	if t := &s.task; !call.Snapshot {
		// A caller resuming behind the end of a dialect's stream gets an empty stream.
		s.ended = x.resumes() && r.After == r.Last && !t.Status.State.Terminal() &&
			encoder.Snapshot(nil, t).End
		s.forgetTask()
	}
	x.hold()
	s.memory, x.in.memory = x.in.memory, limit.Lease{}
	if !call.Snapshot && !call.Reply {
		s.memory.Release()
	}
	s.reader, s.reserve = partner.Read(s.logs, s.log, r.After), s.hold
	s.sending.init(s)
	s.ctx, s.cancel = context.WithCancelCause(x.ctx)
	s.use = x.use.Move() // after the codec, since this may panic
	x.g.config.Process.open.add(s)
	s.cutInactive() // it may have become so since the call was admitted
	s.mu.Lock()     // a time may have come already
	defer s.mu.Unlock()
	s.undrain = context.AfterFunc(s.drainAt(), s.drain)
	if !s.expires.IsZero() {
		s.expiry = time.AfterFunc(s.untilExpiry(), s.checkExpiry)
	}
	return s
}

// Numbered reports whether the events have numbers, so a returning caller gets only the next ones.
func (s *Stream) Numbered() bool { return !s.frames.unnumbered }

// drainAt returns a context, done when the stream has to be drained.
func (s *Stream) drainAt() context.Context {
	if s.unresumed != nil {
		return s.g.config.Streaming.Exit
	}
	return s.g.config.Streaming.Drain
}

// drain ends the stream at a random time.
func (s *Stream) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.drained = time.AfterFunc(rand.N(s.g.config.Streaming.DrainFor+1), func() { s.Cut(errDrained) })
	}
}

// expiryCheck is the longest time between two checks for expiry: the wall clock may be set meanwhile.
const expiryCheck = time.Minute

// untilExpiry returns the time until the next check.
func (s *Stream) untilExpiry() time.Duration { return min(expiryCheck, time.Until(s.expires)) }

func (s *Stream) checkExpiry() {
	if !time.Now().Before(s.expires) {
		s.Cut(s.expired)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil {
		s.expiry.Reset(s.untilExpiry())
	}
}

// forgetTask keeps only the ids of the task, as every frame repeats these: a stream may be open for days.
func (s *Stream) forgetTask() {
	t := &s.task
	*t = task.Task{ID: t.ID, SessionID: t.SessionID, GroupID: t.GroupID}
}

// Cut ends a stream, for example because its front cannot send it. It may be called by any goroutine.
func (s *Stream) Cut(cause error) {
	s.mu.Lock()
	s.cancel(cause)
	s.mu.Unlock()
	s.Wake()
}

// Close gives back everything the stream holds. It is called once, when the stream has ended, or instead of running it.
func (s *Stream) Close() {
	s.mu.Lock()
	s.undrain()
	if s.drained != nil {
		s.drained.Stop()
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.cancel(errClosed)
	s.mu.Unlock()
	s.g.config.Process.open.remove(s)
	s.reader.Close()
	s.span.End()
	s.memory.Release()
	s.kept.Release()
	if s.use != nil {
		s.use.End()
	}
	s.g.config.Process.Streams.Give(s.counts, 1) // last: an uncounted stream holds nothing
}

// detach makes the stream independent of the request at its begin, and of the request's memory.
func (s *Stream) detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx := context.Background()
	if s.span.SpanContext().IsValid() {
		ctx = trace.ContextWithSpan(ctx, s.span)
	}
	before, cause := s.cancel, context.Cause(s.ctx)
	if s.ctx, s.cancel = context.WithCancelCause(ctx); cause != nil {
		s.cancel(cause)
	}
	before(nil)
}

// finish sends the reason of the stream's end.
func (s *Stream) finish(err error) {
	cut := false
	switch cause := context.Cause(s.ctx); {
	case err == nil:
		if !s.frames.sent {
			comment := "the task has ended, and there are no more events"
			if s.ended {
				comment = "there are no more events before the task continues"
			}
			s.out.Comment(comment)
		}
		err = s.deliver()
	case cause == errDrained && s.unresumed != nil:
		next := "you can subscribe to the task again"
		if s.frames.unnumbered {
			next = "the session takes the next message when it has finished"
		}
		err = s.fail(task.Errorf(task.AgentUnavailable, "the gateway is restarted; the agent works on, and %s", next))
		s.span.AddEvent("aip.stream.drained")
	case cause == errDrained:
		s.out.Comment("the configuration was replaced; re-stream from the last event")
		if err = s.out.Flush(); err == nil {
			s.why = errDrained
		}
		s.span.AddEvent("aip.stream.drained")
	case task.KindOf(cause) == task.AuthenticationRequired, // the caller's proof has ended
		task.KindOf(cause) == task.AuthorizationFailed, // see Process.CutRefused
		task.KindOf(cause) == task.AccessTokenInvalid,
		task.KindOf(cause) == task.AgentUnavailable: // the Partner takes no calls any more
		err = s.fail(cause)
		s.span.AddEvent("aip.stream.cut")
	case cause == nil:
		if task.KindOf(err) == task.TaskNotFound {
			s.span.AddEvent("aip.stream.expired")
		}
		err = s.fail(err)
	default:
		err = cause
		s.span.AddEvent("aip.stream.cut")
		cut = true
	}
	s.complete = !cut && s.out.Flush() == nil
	if s.span.IsRecording() {
		s.span.SetAttributes(attribute.Int64("aip.event.last", int64(s.last.Load())))
	}
	if err != nil {
		s.why = err
		s.g.config.Log.DebugContext(s.ctx, "a stream was cut", "task", s.task.ID, "leader", s.leader, "last", s.last.Load(),
			"error", err)
	}
}

// Outcome is the end of a stream.
type Outcome struct {
	Summary  Summary
	Events   int   // number of the sent ones
	Why      error // the stream has ended although the task, or the stream of the dialect, has not; nil if it has
	Complete bool  // the last frame was sent; else, the stream was cut
}

// Outcome returns the end of the stream. It is called afterwards.
func (s *Stream) Outcome() Outcome {
	o := Outcome{Summary: s.Summary(), Events: int(s.sent.Load()), Why: s.why, Complete: s.complete}
	if e, ok := errors.AsType[*task.Error](s.why); ok {
		o.Summary.Error = e.Kind.String()
	}
	return o
}

// Summary is the summary of the call while the stream is open. It is called by the goroutine running the stream.
func (s *Stream) Summary() Summary {
	return Summary{Dialect: s.dialect.Name(), Command: s.command, Leader: s.leader, User: s.user,
		Task: s.task.ID, State: s.reached, Trace: trace.SpanContextFromContext(s.ctx).TraceID()}
}

// fail sends an error as the last frame. It returns the error, joined with the error of sending it.
func (s *Stream) fail(err error) error {
	s.out.Data(func(dst []byte) []byte { return s.dialect.AppendError(dst, s.id, err) })
	return errors.Join(err, s.out.Flush())
}
