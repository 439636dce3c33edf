// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// batchMessages and batchBytes bound a batch. A server takes 1,000 messages.
	batchMessages = 990
	batchBytes    = 4 << 20
	// commitLimit is the time to await the acknowledgement of a batch before its outcome is looked up.
	commitLimit = 3 * time.Second
)

// commit writes values in one atomic batch, and returns the sequence of the last message of the last value. It tries
// until it knows whether they are written. The error is ErrFenced, the one of ctx, or one for values that can never be
// written.
//
// Each batch ends with a message at the subject of batches. It has the id of the batch, and expects the id of the batch
// before. So a batch sent again is written once, whatever becomes of the first try, and its id shows whether it was
// written. The first message expects the owner's record: this is the fence.
func (s *Store) commit(ctx context.Context, values []value) (uint64, error) {
	id := nuid.Next()
	for try := 0; ; try++ {
		seq, err := s.publish(ctx, values, id)
		if err == nil {
			s.last = seq
			return seq - 1, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		var api *jetstream.APIError
		refused := errors.As(err, &api) &&
			(api.ErrorCode == codeTooLarge || api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum)
		if seq, readErr := s.lookUp(ctx, id); readErr == nil && seq > 0 {
			s.last = seq
			return seq - 1, nil
		} else if errors.Is(readErr, replay.ErrFenced) {
			return 0, readErr
		} else if readErr == nil && refused {
			return 0, fmt.Errorf("the stream %s takes no such append: %w", s.st.name, err)
		}
		s.st.resent.Add(1)
		if err := pause(ctx, min(time.Duration(try+1)*5*time.Millisecond, 4*retryPause)); err != nil {
			return 0, err
		}
	}
}

// codeTooLarge is the server's code for a batch with too many messages.
const codeTooLarge = 10199

// publish sends a batch, and returns the sequence of its last message.
func (s *Store) publish(ctx context.Context, values []value, id string) (uint64, error) {
	b, err := jetstreamext.NewBatchPublisher(s.st.js, jetstreamext.BatchFlowControl{})
	if err != nil {
		return 0, err
	}
	if len(values) == 0 {
		values = []value{{subject: s.st.fenceSubject, parts: [][]byte{nil}}}
	}
	first := true
	for i := range values {
		v := &values[i]
		for part := 1; part <= len(v.parts); part++ {
			m := &nats.Msg{Subject: v.subject, Data: v.parts[part%len(v.parts)]}
			if part < len(v.parts) {
				m.Subject = partSubject(v.subject, part)
			}
			var fence []jetstreamext.BatchMsgOpt
			if first {
				fence = append(fence, jetstreamext.WithBatchExpectLastSequenceForSubject(s.owner.Epoch, s.st.ownerSubject))
				first = false
			}
			if err := b.AddMsg(m, fence...); err != nil {
				return 0, err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	ack, err := b.Commit(ctx, s.st.batchSubject, []byte(id), jetstreamext.WithBatchExpectLastSequencePerSubject(s.last))
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// lookUp returns the sequence of the last message of the batch with an id, 0 if it has not been written, and ErrFenced
// if it cannot be written any more.
func (s *Store) lookUp(ctx context.Context, id string) (uint64, error) {
	m, err := s.st.last(ctx, s.st.batchSubject)
	if err != nil && !errors.Is(err, errNoMessage) {
		return 0, err
	}
	if string(m.data) == id {
		return m.seq, nil
	}
	o, err := s.st.owner(ctx)
	if err != nil {
		return 0, err
	}
	if o.Epoch != s.owner.Epoch || m.seq != s.last {
		return 0, replay.ErrFenced
	}
	return 0, nil
}

// op is an append waiting to be written, a log dropped by the store itself, or else a Confirm.
type op struct {
	ctx   context.Context
	a     *replay.Append
	begun time.Time // time Append was called
	trim  trim      // effect of Append.Trim
	done  chan struct{}
	err   error

	log      *indexed // the log to write to
	dropped  string   // by the store: the name of the log
	values   []value
	head     head
	size     int64
	at       int       // index of the last message of the op in the batch
	awake    *followed // with something new to read for its readers; nil for none
	answered atomic.Bool
}

// confirms reports whether the op is a Confirm.
func (o *op) confirms() bool { return o.a == nil && o.dropped == "" }

// answer ends the wait for an op, and reports whether it had not ended. The first answer counts.
func (o *op) answer(err error) bool {
	if !o.answered.CompareAndSwap(false, true) {
		return false
	}
	o.err = err
	close(o.done)
	return true
}

// run writes the queued ops until the store is closed or fenced.
func (s *Store) run() {
	defer s.work.Done()
	for {
		select {
		case <-s.kick:
		case <-s.ctx.Done():
		}
		for s.ctx.Err() == nil && s.next() {
		}
		s.mu.Lock()
		ended := s.ctx.Err() != nil
		var left []*op
		if ended {
			left, s.queue = s.queue, nil
		}
		lost, endErr := s.unavailable, s.endErr()
		s.mu.Unlock()
		for _, o := range left {
			o.answer(endErr)
		}
		if ended {
			return
		}
		if lost { // a read has failed
			s.probe()
		}
	}
}

// next writes one batch, and reports whether there was anything to write.
func (s *Store) next() bool {
	ops := s.take()
	if len(ops) == 0 {
		return false
	}
	var values []value
	messages := 0
	for _, o := range ops {
		values = append(values, o.values...)
		for _, v := range o.values {
			messages += len(v.parts)
		}
		o.at = messages
	}
	s.mu.Lock()
	s.pending = ops
	s.mu.Unlock()
	late := time.AfterFunc(s.st.config.GiveUp, s.suspend)
	defer late.Stop()
	var ahead error
	for messages > batchMessages { // one op: all but its head is written ahead, at a place no reader looks at
		n, size := 0, 0
		for n < len(values)-2 && size+len(values[n].parts) <= batchMessages {
			size += len(values[n].parts)
			n++
		}
		if n == 0 {
			ahead = fmt.Errorf("the append has too many bytes for a stream whose messages have at most %d", s.st.room())
			break
		}
		if _, ahead = s.commit(s.ctx, values[:n]); ahead != nil {
			break
		}
		values = values[n:]
		messages -= size
		ops[0].at -= size
	}
	if ahead != nil {
		s.failed(ops, ahead)
		return true
	}
	end, err := s.commit(s.ctx, values)
	if err != nil {
		s.failed(ops, err)
		return true
	}
	s.st.batches.Add(1)
	s.mu.Lock()
	s.pending = nil
	for _, o := range ops {
		s.apply(o, end-uint64(messages-o.at))
	}
	s.mu.Unlock()
	s.available()
	for _, o := range ops {
		if !o.answer(nil) && o.awake != nil { // the writer has not waited
			o.awake.waiters.Call()
		}
	}
	return true
}

// failed answers ops not written, or possibly not.
func (s *Store) failed(ops []*op, err error) {
	s.mu.Lock()
	s.pending = nil
	endErr := s.endErr()
	s.mu.Unlock()
	if errors.Is(err, replay.ErrFenced) {
		for _, o := range ops {
			if o.a != nil {
				s.st.fenced.Add(1)
			}
		}
		s.fence()
	} else if s.ctx.Err() != nil {
		err = endErr
	} else {
		s.available()
	}
	for _, o := range ops {
		o.answer(err)
	}
}

// take returns the ops of the next batch, and answers those in conflict with the state of the logs. Of one log, a batch
// has one op.
func (s *Store) take() (ops []*op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	messages, bytes := 0, 0
	var left []*op
	busy := make(map[string]bool)
	for i, o := range s.queue {
		if messages >= batchMessages/2 || bytes >= batchBytes {
			left = append(left, s.queue[i:]...)
			break
		}
		name := o.dropped
		if o.a != nil {
			name = o.a.Log
		}
		if busy[name] {
			left = append(left, o)
			continue
		}
		if err := s.prepare(o, now); err != nil {
			if errors.Is(err, replay.ErrConflict) {
				s.st.conflicts.Add(1)
			}
			o.answer(err)
			continue
		}
		n, size := 0, 0
		for _, v := range o.values {
			n += len(v.parts)
			for _, p := range v.parts {
				size += len(p)
			}
		}
		if len(ops) > 0 && messages+n > batchMessages {
			left = append(left, s.queue[i:]...)
			break
		}
		busy[name] = true
		messages, bytes = messages+n, bytes+size
		ops = append(ops, o)
		if messages > batchMessages {
			left = append(left, s.queue[i+1:]...)
			break
		}
	}
	clear(s.queue)
	s.queue = append(s.queue[:0], left...)
	return ops
}

// prepare makes the values of an op. s.mu is held.
func (s *Store) prepare(o *op, now time.Time) error {
	st, room := s.st, s.st.room()
	if o.confirms() {
		return o.ctx.Err()
	}
	if o.a == nil {
		o.values = []value{{subject: st.headSubject(o.dropped), parts: [][]byte{nil}}}
		return nil
	}
	if err := o.ctx.Err(); err != nil {
		return err
	}
	a := o.a
	l := s.index.Get(a.Log)
	if l == nil {
		l = &indexed{Name: a.Log, Value: entry{begun: s.last}}
	}
	o.log = l
	before := s.index.Head(l)
	next, err := a.Next(before, now)
	if err != nil {
		return err
	}
	if a.Drop {
		o.values = []value{{subject: st.headSubject(a.Log), parts: [][]byte{nil}}}
		return nil
	}
	h := head{Head: next, begun: l.Value.begun, snapshot: l.Value.snapshot}
	if a.End {
		h.expires = now.Add(s.index.Settings().Retention)
	}
	records, first := a.Records, next.Last+1-uint64(len(a.Records))
	if next.First > first {
		n := min(next.First-first, uint64(len(records)))
		records, first = records[n:], first+n
	}
	if next.First > max(before.First, 1) {
		if o.trim.revision != before.Revision {
			return replay.ErrConflict // the log was another one when the drop was looked up
		}
		h.Bytes = o.trim.kept
		for _, r := range records {
			h.Bytes += int64(len(r))
		}
		h.snapshot = uint64(len(a.Snapshot)) + 1
		if o.trim.before == 0 {
			o.trim.before = s.last + 1
		}
	}
	o.values = recordValues(st, a.Log, first, records, room)
	if h.snapshot != l.Value.snapshot || next.First > max(before.First, 1) {
		o.values = append(o.values, newValue(st.snapshotSubject(a.Log), slices.Clone(a.Snapshot), room))
	}
	h.Metadata = slices.Clone(a.Metadata)
	o.head = h
	o.size = sizeOf(a.Log, &h)
	o.values = append(o.values, newValue(st.headSubject(a.Log), appendHead(nil, &h), room))
	return nil
}

// recordValues returns the records of an append as values: one if they fit into a message.
func recordValues(st *stream, log string, first uint64, records [][]byte, room int) (values []value) {
	for len(records) > 0 {
		n, size := 0, 16
		for n < len(records) && (n == 0 || size+len(records[n])+8 <= room) {
			size += len(records[n]) + 8
			n++
		}
		values = append(values, newValue(st.recordSubject(log, first), encodeRecords(records[:n]), room))
		records, first = records[n:], first+uint64(n)
	}
	return values
}

// logOverhead is the rough size of a log beside its bytes.
const logOverhead = 512

// sizeOf returns the number of bytes of a log.
func sizeOf(log string, h *head) int64 {
	size := logOverhead + int64(2*len(log)+len(h.Metadata)) + h.Bytes + int64(h.snapshot)
	for _, l := range h.Lists {
		size += int64(len(l.List) + len(l.Label) + 16)
	}
	return size
}
