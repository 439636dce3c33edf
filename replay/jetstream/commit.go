// SPDX-License-Identifier: Apache-2.0

package jetstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/aip-gateway/aip-gateway/replay"
)

const (
	// batchMessages and batchBytes bound a batch. A server takes 1,000 messages.
	batchMessages = 990
	batchBytes    = 4 << 20
	// commitLimit is the time to await the acknowledgement of messages before their outcome is looked up.
	commitLimit = 3 * time.Second
)

// commit writes values, in one atomic batch unless they are one message, and returns the sequence of the last message
// of the last value. It tries until it knows whether they are written. The error is ErrFenced, the one of ctx, or one
// for values that can never be written.
//
// The first message expects the last one of the stream, as this owner knows it. So the record of another owner, or
// anything else written meanwhile, has all of them refused: this is the fence. And messages sent again are written
// once, whatever becomes of the first try: at the sequences after the expected one, where they are found.
func (s *Store) commit(ctx context.Context, values []value) (uint64, error) {
	messages := s.messages(values)
	began := time.Now()
	for try := 0; ; try++ {
		err := s.publish(ctx, messages)
		written := err == nil
		if err != nil {
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			var api *jetstream.APIError
			refused := errors.As(err, &api) &&
				(api.ErrorCode == codeTooLarge || api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum)
			var readErr error
			written, readErr = s.lookUp(ctx, messages, began)
			if errors.Is(readErr, replay.ErrFenced) {
				return 0, readErr
			} else if readErr == nil && !written && refused {
				return 0, fmt.Errorf("the stream %s takes no such append: %w", s.st.name, err)
			}
		}
		if written {
			s.last += uint64(len(messages))
			if messages[len(messages)-1].Subject == s.st.batchSubject {
				return s.last - 1, nil
			}
			return s.last, nil
		}
		s.st.resent.Add(1)
		if err := pause(ctx, min(time.Duration(try+1)*5*time.Millisecond, 4*retryPause)); err != nil {
			return 0, err
		}
	}
}

// codeTooLarge is the server's code for a batch with too many messages.
const codeTooLarge = 10199

// messages returns the messages of values, in their order; without values that of an empty batch.
func (s *Store) messages(values []value) (all []*nats.Msg) {
	if len(values) == 0 {
		values = []value{{subject: s.st.fenceSubject, parts: [][]byte{nil}}}
	}
	for _, v := range values {
		for part := 1; part <= len(v.parts); part++ {
			m := &nats.Msg{Subject: v.subject, Data: v.parts[part%len(v.parts)]}
			if part < len(v.parts) {
				m.Subject = partSubject(v.subject, part)
			}
			all = append(all, m)
		}
	}
	if s.st.plain.Load() {
		all = append(all, &nats.Msg{Subject: s.st.batchSubject})
	}
	return all
}

// publish sends messages, and awaits that all of them are written.
func (s *Store) publish(ctx context.Context, messages []*nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	if len(messages) == 1 {
		m := &nats.Msg{Subject: messages[0].Subject, Data: messages[0].Data} // it gets a header
		_, err := s.st.js.PublishMsg(ctx, m, jetstream.WithExpectLastSequence(s.last), jetstream.WithRetryAttempts(0))
		return err
	}
	b, err := jetstreamext.NewBatchPublisher(s.st.js, jetstreamext.BatchFlowControl{})
	if err != nil {
		return err
	}
	last := len(messages) - 1
	for i, m := range messages[:last] {
		var fence []jetstreamext.BatchMsgOpt
		if i == 0 {
			fence = append(fence, jetstreamext.WithBatchExpectLastSequence(s.last))
		}
		if err := b.AddMsg(&nats.Msg{Subject: m.Subject, Data: m.Data}, fence...); err != nil {
			return err
		}
	}
	_, err = b.Commit(ctx, messages[last].Subject, messages[last].Data)
	return err
}

// lookUp reports whether messages sent since a time are written. The error is ErrFenced if they cannot be written any
// more. The message after the expected one tells it: this is the first one of them, or the record of the next owner,
// whose later ones may be the same as these.
func (s *Store) lookUp(ctx context.Context, messages []*nats.Msg, since time.Time) (bool, error) {
	last, err := s.st.lastSequence(ctx)
	switch {
	case err != nil:
		return false, err
	case last == s.last:
		return false, nil
	case last < s.last && time.Since(since) < s.st.config.GiveUp: // a deposed leader has answered
		return false, s.st.unavailable()
	}
	m, err := s.st.get(ctx, getRequest{Seq: s.last + 1})
	switch {
	case err == nil && m.subject == messages[0].Subject && bytes.Equal(m.data, messages[0].Data):
		return true, nil
	case err == nil || errors.Is(err, errNoMessage):
		return false, replay.ErrFenced
	}
	return false, err
}
