// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
)

// op is an append waiting to be written, a log dropped by the store itself, a mark, or else a Confirm.
type op struct {
	ctx   context.Context
	a     *replay.Append
	begun time.Time // time Append was called
	trim  trim      // effect of Append.Trim
	base  base      // what it adds to
	done  chan struct{}
	err   error

	entry    entry  // of the log before the append
	first    uint64 // number of its first record
	dropped  string // by the store: the name of the log
	marks    uint64 // the sequence; 0 for no mark
	values   []value
	head     head
	size     int64
	at       int       // index of the last message of the op in the batch
	awake    *followed // with something new to read for its readers; nil for none
	answered atomic.Bool
}

// confirms reports whether the op is a Confirm.
func (o *op) confirms() bool { return o.a == nil && o.dropped == "" && o.marks == 0 }

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
	s.st.underway.add(1)
	defer s.st.underway.add(-1)
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
	s.mu.Lock()
	queued := len(s.queue)
	s.mu.Unlock()
	if queued == 0 {
		return false
	}
	end, err := s.st.underway.begin(s.ctx)
	if err != nil {
		return false
	}
	defer end()
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
	last, err := s.commit(s.ctx, values)
	if err != nil {
		s.failed(ops, err)
		return true
	}
	s.st.batches.Add(1)
	s.mu.Lock()
	s.pending = nil
	for _, o := range ops {
		s.apply(o, last-uint64(messages-o.at))
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
		if n > batchMessages {
			o.answer(fmt.Errorf("the append has too many bytes for a stream whose messages have at most %d", s.st.room()))
			continue
		}
		if messages+n > batchMessages {
			left = append(left, s.queue[i:]...)
			break
		}
		busy[name] = true
		messages, bytes = messages+n, bytes+size
		ops = append(ops, o)
	}
	clear(s.queue)
	s.queue = append(s.queue[:0], left...)
	return ops
}
