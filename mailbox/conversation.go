// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// retryAfter is after how long the log of a task is read again that could not be read, or whose messages could not be
// stored.
const retryAfter = time.Second

// follow makes messages of what happens to a task, beginning after an event, until the task has ended. It returns at
// once.
func (m *Mailbox) follow(aid, log string, after uint64) {
	m.spawn(func() {
		var s speaker
		for m.base.Err() == nil {
			err := m.read(aid, log, &after, &s)
			var compacted *replay.CompactedError
			switch {
			case err == nil, errors.Is(err, replay.ErrNotFound): // dropped: a client can no longer ask about it
				m.end(aid, log)
				return
			case errors.Is(err, replay.ErrClosed), errors.Is(err, errEnded):
				return
			case errors.As(err, &compacted):
				after, err = m.skip(aid, log, compacted, &s)
			}
			if err != nil && m.base.Err() == nil {
				m.log.Warn("a conversation waits: its messages cannot be stored now", "aid", aid, "error", err)
				sleep(m.base, retryAfter)
				s = speaker{} // what was not stored is read again
				if stored, ok := m.storedAfter(aid, log); ok {
					after = stored
				}
			}
		}
	})
}

// errEnded says that a conversation is about another task now.
var errEnded = errors.New("mailbox: the conversation is about another task")

// read stores the messages of the events after one. It returns nil at the end of the log.
func (m *Mailbox) read(aid, log string, after *uint64, s *speaker) error {
	for rec, err := range replay.Follow(m.base, m.store, log, *after, nil) {
		if err != nil {
			return err
		}
		ev, err := task.DecodeEvent(rec.Data)
		if err != nil {
			return err
		}
		ev.Seq = rec.Seq
		if err := m.say(aid, log, &ev, s); err != nil {
			return err
		}
		*after = rec.Seq
	}
	return m.base.Err()
}

// skip continues after events that are no longer kept, with the snapshot that stands for them.
func (m *Mailbox) skip(aid, log string, gap *replay.CompactedError, s *speaker) (after uint64, err error) {
	_, snapshot, _, err := m.store.Load(m.base, log)
	if err != nil {
		return gap.After, err
	}
	if len(snapshot) > 0 {
		ev, err := task.DecodeEvent(snapshot)
		if err != nil {
			return gap.After, err
		}
		ev.Seq = gap.First - 1
		if err := m.say(aid, log, &ev, s); err != nil {
			return gap.After, err
		}
	}
	return gap.First - 1, nil
}

// say stores the messages that an event makes, together with how far the log has been read. An event that makes none is
// read again after a restart.
func (m *Mailbox) say(aid, log string, ev *task.Event, s *speaker) error {
	var payloads [][]byte
	added := false // s has the event
	return m.with(aid, func(b *inbox) error {
		if err := b.load(m.base); err != nil {
			return err
		}
		t := b.conversationAbout(log)
		if t == nil {
			return errEnded
		}
		if s.state == task.None {
			s.state = t.State
		}
		if !added {
			payloads, added = s.add(ev, t), true
		}
		if s.state == t.State && len(payloads) == 0 {
			return nil
		}
		t.After, t.State = ev.Seq, s.state
		var records [][]byte
		for i, p := range payloads {
			id := t.Task + "-" + strconv.FormatUint(ev.Seq, 10) + "-" + strconv.Itoa(i+1)
			records = append(records, appendMessage(t.Agent, aid, id, fanoutMode, p))
		}
		return b.receive(m.base, records)
	})
}

// end records that a task has ended.
func (m *Mailbox) end(aid, log string) {
	for m.base.Err() == nil {
		err := m.with(aid, func(b *inbox) error {
			if err := b.load(m.base); err != nil {
				return err
			}
			t := b.conversationAbout(log)
			if t == nil || !t.Open {
				return nil
			}
			t.Open = false
			return b.append(m.base, nil)
		})
		if err == nil {
			return
		}
		sleep(m.base, retryAfter)
	}
}

// storedAfter returns how far the log of a conversation has been read.
func (m *Mailbox) storedAfter(aid, log string) (after uint64, ok bool) {
	err := m.with(aid, func(b *inbox) error {
		if err := b.load(m.base); err != nil {
			return err
		}
		if t := b.conversationAbout(log); t != nil {
			after, ok = t.After, true
		}
		return nil
	})
	return after, ok && err == nil
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// speaker makes payloads of the events of a task. What a turn has produced is said when it has settled: the products,
// then what the agent says along with its state, then an event.
type speaker struct {
	turn  task.Fold  // the products of the turn
	state task.State // of the task
}

// add returns the payloads of an event.
func (s *speaker) add(ev *task.Event, t *conversation) (payloads [][]byte) {
	var status *task.Status
	switch {
	case ev.Task != nil:
		s.turn.Apply(*ev)
		status = &ev.Task.Status
	case ev.Chunk != nil:
		s.turn.Apply(*ev)
	case ev.Status != nil:
		status = ev.Status
		if ev.Offer != nil && ev.Cause == nil {
			s.turn.Apply(*ev)
		}
	}
	if status == nil || status.State == s.state {
		return nil
	}
	was := s.state
	s.state = status.State
	if s.state == task.AwaitingCompletion || s.state == task.AwaitingInput || s.state.Terminal() {
		products := s.turn.Task().Products
		s.turn = task.Fold{}
		for i := range products {
			payloads = appendItems(payloads, products[i].DataItems, t)
		}
		if was != task.AwaitingCompletion { // when the agent has said it
			payloads = appendItems(payloads, status.DataItems, t)
		}
	}
	if event, ok := codec.AppendEvent(nil, s.state, t.Task, thread(t)); ok {
		payloads = append(payloads, event)
	}
	return payloads
}

// thread returns the thread of a conversation, which is never empty for the client.
func thread(t *conversation) string {
	if t.Thread == "" {
		return t.Task
	}
	return t.Thread
}

// appendItems appends the payloads of data items.
func appendItems(payloads [][]byte, items []task.DataItem, t *conversation) [][]byte {
	for i := range items {
		it := items[i]
		for it.Kind == task.TextItem && len(it.Text) > maxText {
			cut := maxText
			for !utf8.RuneStart(it.Text[cut]) {
				cut--
			}
			part := task.Text(it.Text[:cut])
			payloads = append(payloads, codec.AppendPayload(nil, &part, t.Task, thread(t)))
			it.Text = it.Text[cut:]
		}
		payload := codec.AppendPayload(nil, &it, t.Task, thread(t))
		if len(payload) > maxMessage {
			note := task.Text("A result of " + strconv.Itoa(len(payload)) + " bytes is too large for a message.")
			payload = codec.AppendPayload(nil, &note, t.Task, thread(t))
		}
		payloads = append(payloads, payload)
	}
	return payloads
}

// The delivery modes.
const (
	fanoutMode = "fanout" // kept for clients that are offline
	queueMode  = "queue"  // for one client that is online
)

// appendMessage returns a message as it is stored.
func appendMessage(from, to, id, mode string, payload []byte) []byte {
	m := task.AppendString([]byte(`{"from":`), from)
	m = task.AppendString(append(m, `,"to":`...), to)
	m = task.AppendString(append(m, `,"message_id":`...), id)
	m = append(append(m, `,"payload":`...), payload...)
	m = strconv.AppendInt(append(m, `,"timestamp":`...), time.Now().UnixMilli(), 10)
	return append(append(append(m, `,"delivery_mode":"`...), mode...), `","encrypted":false}`...)
}
