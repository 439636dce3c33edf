// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bug"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

const (
	// flushSize is the number of bytes after which gathered events are sent, although more can be had at once.
	flushSize = 64 << 10
	// trySize is the most gathered bytes sent by a goroutine that must not wait. A stream with more has fallen behind.
	trySize = 16 << 10
)

// sending is the sending side of a stream. A stream is sent in steps, and between them it rests. One goroutine at a
// time makes them:
//
//   - first the owner's, until the stream rests;
//   - then, if the sink is a TrySink, the waking goroutine, or a worker: it must not wait;
//   - when it would have to wait, and at the end, the owner's again, or, for a parked stream, a goroutine for the
//     purpose.
type sending struct {
	out    Sink
	try    TrySink   // out; nil if it is no TrySink
	abort  AbortSink // out; nil if it is no AbortSink
	trying bool      // the stepping goroutine must not wait
	begun  bool
	over   bool  // nothing but the end of the stream is left to be sent
	err    error // the reason, if it is not the end of the task or of the dialect's stream

	page    []replay.Record // read, and not sent
	more    bool            // and more follow
	refused bool            // Next was refused memory in a step without waiting

	state  atomic.Uint32
	wake   func() // Stream.appended
	resume func() // has a goroutine make the next step, with leave to wait
}

func (s *sending) init(of *Stream) { s.wake = of.appended }

// The states of a stream.
const (
	stepping uint32 = iota // a goroutine makes a step, or the stream has ended
	woken                  // and another one follows
	resting                // the next Wake takes it up
	queued                 // for a worker, or for the waking goroutine
)

// progress is the result of a step.
type progress uint8

const (
	rests   progress = iota // everything at hand was sent
	blocked                 // a step with leave to wait has to follow
	ended
)

var errWouldWait = errors.New("gateway: this step must not wait")

// Run sends the stream to a sink, and returns when the stream has ended. It is called at most once.
func (s *Stream) Run(out Sink) { s.run(out, nil) }

// RunFor is Run, but it also returns when the stream rests after a time. It reports whether the stream has ended; if
// not, Run or Park follows, and the sink may be another one then.
func (s *Stream) RunFor(out Sink, least time.Duration) (over bool) {
	ticker := time.NewTicker(least)
	defer ticker.Stop()
	return s.run(out, ticker.C)
}

// run sends the stream until it has ended, or until it rests at a tick.
func (s *Stream) run(out Sink, ticks <-chan time.Time) (over bool) {
	turns := make(chan struct{}, 1)
	s.begin(out, func() { turns <- struct{}{} })
	for s.step(false) != ended {
		if s.rest() && !s.await(turns, ticks) {
			return false
		}
	}
	return true
}

// await waits until the goroutine has a step to make, and reports true, or until a tick during the stream's rest. In
// both cases the stream no longer does.
func (s *Stream) await(turns <-chan struct{}, ticks <-chan time.Time) bool {
	for {
		select {
		case <-turns:
			return true
		case <-s.ctx.Done(): // the caller has left
			s.Wake()
			<-turns
			return true
		case <-ticks:
			if s.state.CompareAndSwap(resting, stepping) {
				return false
			}
		}
	}
}

// Park sends the rest of the stream to a sink, without the calling goroutine and independently of the request's
// context: from now on, only Cut reports the caller's leaving. over is called when the stream has ended, by any
// goroutine.
func (s *Stream) Park(out Sink, over func()) {
	s.detach()
	s.begin(out, func() { go s.carryOn(over) })
	if s.rest() {
		return
	}
	s.resume()
}

// carryOn makes those steps of a parked stream allowed to wait.
func (s *Stream) carryOn(over func()) {
	defer func() {
		if p := recover(); p != nil {
			s.broken(p)
			over()
		}
	}()
	for s.step(false) != ended {
		if s.rest() {
			return
		}
	}
	over()
}

func (s *Stream) begin(out Sink, resume func()) {
	s.out, s.resume = out, resume
	s.try, _ = out.(TrySink)
	s.abort, _ = out.(AbortSink)
}

// Wake has the next step made: a front calls it when a heartbeat is due. It may be called by any goroutine, and does
// not wait.
func (s *Stream) Wake() { s.wakeUp(false) }

// appended is Wake for a goroutine appending to the task's log. If no other stream follows the log, this goroutine
// makes the step itself: this takes less of its time, and of the caller's, than waking a worker. The steps of several
// streams would hold the task for too long.
func (s *Stream) appended() { s.wakeUp(s.reader.Alone()) }

// wakeUp has the next step made, by the calling goroutine if here says so and the step does not wait.
func (s *Stream) wakeUp(here bool) {
	for {
		switch state := s.state.Load(); state {
		case woken, queued:
			return
		case stepping:
			if s.state.CompareAndSwap(stepping, woken) {
				return
			}
		case resting:
			if s.try == nil {
				if s.state.CompareAndSwap(resting, stepping) {
					s.resume()
					return
				}
			} else if s.state.CompareAndSwap(resting, queued) {
				if here {
					s.tryStep()
				} else {
					s.g.config.Process.workers.add(s)
				}
				return
			}
		}
	}
}

// rest lets a stream rest after a step. It reports false if there is something to do already: the caller makes the
// next step then.
func (s *Stream) rest() bool {
	s.reader.Wake(s.wake)
	if s.state.CompareAndSwap(stepping, resting) {
		return true
	}
	s.state.Store(stepping)
	return false
}

// tryStep makes steps of a queued stream, without waiting. A bug of a codec ends the stream.
func (s *Stream) tryStep() {
	defer func() {
		if p := recover(); p != nil {
			s.broken(p)
			s.resume()
		}
	}()
	s.state.Store(stepping)
	for s.step(true) == rests {
		if s.rest() {
			return
		}
	}
	s.resume()
}

// step sends everything at hand, and ends the stream if there is no more to come. With try, it neither waits for the
// caller or memory, nor ends the stream.
func (s *Stream) step(try bool) progress {
	s.trying = try
	if !s.over {
		over, err := s.send()
		switch {
		case err == errWouldWait:
			return blocked
		case err == nil && !over:
			return rests
		}
		s.over, s.err = true, err
	}
	if try {
		return blocked
	}
	s.finish(s.err)
	return ended
}

// send sends everything at hand. It reports whether all events of the task, or of the dialect's stream, are sent.
func (s *Stream) send() (over bool, err error) {
	if err := s.ctx.Err(); err != nil {
		return false, err
	}
	if !s.begun {
		s.begun = true
		if over, err := s.sendSnapshot(); over || err != nil {
			return over, err
		}
	}
	for {
		if len(s.page) == 0 {
			s.refused = false
			s.page, s.more, err = s.reader.Next(s.ctx, s.reserve)
			switch {
			case err == io.EOF:
				return true, nil
			case s.refused:
				return false, errWouldWait
			case err != nil:
				return false, err
			}
		}
		for len(s.page) > 0 {
			if over, err := s.sendRecord(&s.page[0]); over || err != nil {
				return over, err
			}
		}
		switch {
		case s.more && s.trying:
			return false, errWouldWait
		case s.more:
			continue // more can be had at once: it is sent together
		}
		if err := s.flush(); err != nil {
			return false, err
		}
		s.memory.Release()
		return false, nil
	}
}

// sendSnapshot begins the stream. It reports whether the dialect's stream ends with the snapshot.
func (s *Stream) sendSnapshot() (over bool, err error) {
	if s.ended {
		return true, nil
	}
	if s.snapshot {
		s.memory.Take(2 * s.task.Size()) // the task and its frame; the call has waited for it
		over = s.frames.snapshot(s.out, s.last.Load(), &s.task)
		s.forgetTask()
		used := s.useBytes(s.out.Buffered())
		if err := s.deliver(); over || err != nil {
			return over, err
		}
		if used != nil {
			return false, used
		}
	}
	s.forgetTask()
	s.memory.Release()
	return false, nil
}

// sendRecord sends the first record of the page, or gathers it. It reports whether the dialect's stream ends with it.
func (s *Stream) sendRecord(rec *replay.Record) (over bool, err error) {
	// For a page from the store, the memory was taken before.
	size := int64(len(rec.Data))
	if 2*size > limit.Free && !s.trying && s.out.Buffered() > 0 {
		if err := s.deliver(); err != nil || len(s.page) == 0 { // the record is read again
			return false, err
		}
	}
	if err := s.hold(s.ctx, size); err != nil {
		return false, err
	}
	before := s.out.Buffered()
	switch over, err = s.frame(rec); {
	case err == errSendFirst:
		return false, s.deliver() // and then the record again
	case err != nil:
		return false, err
	}
	if s.keeper != nil {
		s.kept.Take(s.keeper.Kept())
	}
	if state := task.StateIn(rec.Data); state != "" {
		s.reached = state
	}
	s.last.Store(rec.Seq)
	s.sent.Add(1)
	s.page = s.page[1:]
	s.g.meter.Events.Add(1)
	n := s.out.Buffered()
	used := s.useBytes(n - before)
	switch {
	case over: // finish sends it
	case used != nil:
		return false, used
	case s.trying && n > trySize:
		return false, errWouldWait
	case n >= flushSize:
		err = s.deliver()
	}
	return over, err
}

var errSendFirst = errors.New("gateway: what is gathered must be sent before this record")

// frame gathers the frames of a record. It reports whether the dialect's stream ends with them.
func (s *Stream) frame(rec *replay.Record) (over bool, err error) {
	if s.frames.results == nil || !settles(rec.Data) {
		return s.frames.add(s.out, rec)
	}
	if s.trying { // the log is read
		return false, errWouldWait
	}
	at, err := task.DecodeEvent(rec.Data)
	if err != nil {
		return false, errDamaged(err)
	}
	at.Seq = rec.Seq
	t, err := s.taskAt(&at)
	if err != nil {
		return false, err
	}
	return s.frames.settled(s.out, rec.Seq, &t), nil
}

// taskAt returns the task as it was after a Status in its log. There is memory for it and for its frame.
func (s *Stream) taskAt(at *task.Event) (task.Task, error) {
	if o := s.g.in(s.leader); o != nil {
		if t, ok := o.partner.Settled(s.ctx, s.log, at.Seq); ok {
			return t, s.holdWhole(s.ctx, t.Size())
		}
	}
	return partner.TaskAt(s.ctx, s.logs, s.log, at, s.holdWhole)
}

// settles reports whether a record is the Status of a settled task.
func settles(record []byte) bool {
	kind, _, _ := task.SplitEvent(record)
	return kind == task.StatusEvent && task.StateIn(record).Settled()
}

// holdWhole implements replay.Reserve. It holds memory for n bytes of records, their task, and its frame.
func (s *Stream) holdWhole(ctx context.Context, n int64) error {
	if n += n / 2; 2*n > limit.Free && s.out.Buffered() > 0 {
		return errSendFirst
	}
	return s.hold(ctx, n)
}

// useBytes counts bytes sent. The error ends a stream, unless it is over with them.
func (s *Stream) useBytes(n int) error {
	if s.use == nil {
		return nil
	}
	return s.use.Send(int64(n))
}

// deliver sends the gathered bytes. It may wait for the caller, and meanwhile the stream holds nothing else: the rest
// of the page is read again afterwards. Its memory is lent, so a caller that does not read keeps no memory from others.
func (s *Stream) deliver() error {
	if s.try != nil {
		if done, err := s.try.TryFlush(); done || err != nil {
			return err
		}
	}
	if len(s.page) > 0 || s.out.Buffered() > limit.Free { // a large record is the last one of its page
		s.more = s.more || len(s.page) > 0
		s.page = nil
		s.reader.Rewind(s.last.Load())
	}
	s.memory.Take(int64(s.out.Buffered()))
	s.memory.Lend(s.reclaim)
	defer s.memory.TakeBack()
	return s.out.Flush()
}

// Taken reports that the caller has taken a piece of the bytes sent: it reads, if slowly. A front calls it while Flush
// runs.
func (s *Stream) Taken() { s.memory.Renew() }

// reclaim cuts a stream with a caller that does not read, because others need the memory of its frame.
func (s *Stream) reclaim() {
	s.Cut(errUnread)
	if s.abort != nil {
		s.abort.Abort()
	}
}

var errUnread = errors.New("gateway: the caller did not read a frame whose memory others need")

// flush sends the gathered bytes.
func (s *Stream) flush() error {
	if !s.trying {
		return s.deliver()
	}
	done, err := s.try.TryFlush()
	if err == nil && !done {
		return errWouldWait
	}
	return err
}

// hold implements replay.Reserve. It holds memory for n bytes of records and for their frames.
func (s *Stream) hold(ctx context.Context, n int64) error {
	switch {
	case n == 0:
		s.memory.Release()
		return nil
	case 2*n <= limit.Free:
		return nil
	case s.trying:
		s.refused = true
		return errWouldWait
	}
	if s.out.Buffered() > 0 { // there is no page: sendRecord has sent the gathered bytes
		if err := s.deliver(); err != nil {
			return err
		}
	} else if err := s.out.Flush(); err != nil { // the caller need not wait for the head of its answer
		return err
	}
	err := partner.WaitForMemory(ctx, &s.memory, 2*n, s.g.config.Streaming.Patience)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// broken ends a stream after a panic.
func (s *Stream) broken(p any) {
	bug.Log(s.ctx, s.g.config.Log,
		"the gateway failed while it sent a stream; this is a bug of the gateway", p)
	s.over, s.err = true, task.Errorf(task.Internal, "the stream has failed; the operator finds the reason in the log")
	s.why = s.err
}
