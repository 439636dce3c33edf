// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"errors"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/follow"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// retryAfter is after how long the log of a task is read again that could not be read, or whose messages could not be
// stored.
const retryAfter = time.Second

// follow makes messages of what happens to a task, from what the inbox has of it on, until the task has ended. It
// returns at once.
func (h *home) follow(aid, log string) {
	h.spawn(func() {
		for h.base.Err() == nil {
			err := h.read(aid, log)
			switch {
			case err == nil, errors.Is(err, replay.ErrNotFound): // dropped: a client can no longer ask about it
				h.end(aid, log)
				return
			case errors.Is(err, replay.ErrClosed), errors.Is(err, errEnded), h.base.Err() != nil:
				return
			}
			h.log.Warn("a conversation waits: its messages cannot be stored now", "aid", aid, "error", err)
			sleep(h.base, retryAfter)
		}
	})
}

// errEnded says that a conversation is about another task now.
var errEnded = errors.New("mailbox: the conversation is about another task")

// read stores the messages that come after those that the inbox has. It returns nil at the end of the log.
func (h *home) read(aid, log string) error {
	from, err := h.position(aid, log)
	if err != nil {
		return err
	}
	var s speaker
	for step, err := range follow.Follow(h.base, h.set.Logs(logname.ShardOf(h.set.Count(), log)), log, from) {
		if err == nil {
			err = h.say(aid, log, &step, &s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// say stores the messages that a step makes, together with how far the log has been read. A step that makes none, and
// enters no state, is read again after a restart.
func (h *home) say(aid, log string, step *follow.Step, s *speaker) error {
	if s.add(step); !step.Entered {
		return nil
	}
	return h.with(aid, func(b *inbox) error {
		if err := b.load(h.base); err != nil {
			return err
		}
		t := b.conversationAbout(log)
		if t == nil {
			return errEnded
		}
		var records [][]byte
		for i, p := range s.payloads(step, t) {
			id := t.Task + "-" + strconv.FormatUint(step.Seq, 10) + "-" + strconv.Itoa(i+1)
			records = append(records, appendMessage(t.Agent, aid, id, fanoutMode, p))
		}
		t.Read = step.After
		if err := b.receive(h.base, records); err != nil {
			return err
		}
		if step.After.State.Settled() {
			s.turn = task.Fold{}
		}
		return nil
	})
}

// end records that a task has ended.
func (h *home) end(aid, log string) {
	for h.base.Err() == nil {
		err := h.with(aid, func(b *inbox) error {
			if err := b.load(h.base); err != nil {
				return err
			}
			t := b.conversationAbout(log)
			if t == nil || !t.Open {
				return nil
			}
			t.Open = false
			return b.append(h.base, nil)
		})
		if err == nil {
			return
		}
		sleep(h.base, retryAfter)
	}
}

// position returns how far the log of a conversation has been read.
func (h *home) position(aid, log string) (at follow.Position, err error) {
	err = h.with(aid, func(b *inbox) error {
		if err := b.load(h.base); err != nil {
			return err
		}
		t := b.conversationAbout(log)
		if t == nil {
			return errEnded
		}
		at = t.Read
		return nil
	})
	return at, err
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
	turn task.Fold // the products of the turn
}

// add takes what a step says about products.
func (s *speaker) add(step *follow.Step) {
	if step.Task != nil || step.Chunk != nil || step.Status != nil && step.Offer != nil && step.Cause == nil {
		s.turn.Apply(step.Event)
	}
}

// payloads returns the payloads of a step that enters a state.
func (s *speaker) payloads(step *follow.Step, t *conversation) (payloads [][]byte) {
	status := step.Status
	if step.Task != nil {
		status = &step.Task.Status
	}
	if status.State.Settled() {
		products := s.turn.Task().Products
		for i := range products {
			payloads = appendItems(payloads, products[i].DataItems, t)
		}
		if t.Read.State != task.AwaitingCompletion { // when the agent has said it
			payloads = appendItems(payloads, status.DataItems, t)
		}
	}
	if event, ok := codec.AppendEvent(nil, status.State, t.Task, thread(t)); ok {
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
