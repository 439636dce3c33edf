// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// retryAfter is the time after which the log of a task is read again after an error, of reading it or of storing its
// messages.
const retryAfter = time.Second

// follow makes messages of the events of a task, from the inbox's position on, until the task has ended, unless another
// goroutine does. It returns at once.
func (h *home) follow(aid, log string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.followed[log] {
		return
	}
	h.followed[log] = true
	h.work.Go(func() {
		defer func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			delete(h.followed, log)
		}()
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

// errEnded is the error for an ended conversation.
var errEnded = errors.New("mailbox: the conversation has ended")

// read stores the messages after those in the inbox. It returns nil at the end of the log.
func (h *home) read(aid, log string) error {
	from, err := h.position(aid, log)
	if err != nil {
		return err
	}
	var products turn
	for step, err := range follow.Follow(h.base, h.set.Logs(logname.ShardOf(h.set.Count(), log)), log, from) {
		if err == nil {
			err = h.add(aid, log, &step, &products)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add stores the messages of a step. After a step into a state, the log has been read up to it. Any other step is read
// again after a restart, with the pieces of products before it, but its message is not sent again.
func (h *home) add(aid, log string, step *follow.Step, of *turn) error {
	of.add(step)
	said := of.says(step)
	if !step.Entered && said == "" {
		return nil
	}
	return h.about(aid, log, func(b *inbox, c *conversation) error {
		shows := said != "" && step.Seq > max(c.Read.Seq, c.Shown) && b.unread() < maxMessages/2
		if !step.Entered && !shows {
			return nil
		}
		payloads := of.payloads(step, c)
		if shows {
			payloads, c.Shown = append(payloads, codec.AppendProgress(nil, said, c.Task, thread(c))), step.Seq
		}
		var records [][]byte
		for i, p := range payloads {
			id := c.Task + "-" + strconv.FormatUint(step.Seq, 10) + "-" + strconv.Itoa(i+1)
			records = append(records, appendMessage(c.Agent, aid, id, fanoutMode, p))
		}
		if !step.Entered {
			return b.receive(h.base, records)
		}
		c.Read = step.After
		if err := b.receive(h.base, records); err != nil {
			return err
		}
		if step.After.State.Settled() {
			*of = turn{}
		}
		return nil
	})
}

// end records the end of a task.
func (h *home) end(aid, log string) {
	for h.base.Err() == nil {
		err := h.about(aid, log, func(b *inbox, c *conversation) error {
			if !c.Open {
				return nil
			}
			return b.end(h.base, c)
		})
		if err == nil || errors.Is(err, errEnded) {
			return
		}
		sleep(h.base, retryAfter)
	}
}

// position returns the position in the log of a conversation.
func (h *home) position(aid, log string) (at follow.Position, err error) {
	err = h.about(aid, log, func(_ *inbox, c *conversation) error {
		at = c.Read
		return nil
	})
	return at, err
}

// about calls f with the inbox of an AID, as with does, and with its conversation about the task of a log. The error is
// errEnded if there is none.
func (h *home) about(aid, log string, f func(*inbox, *conversation) error) error {
	return h.with(aid, func(b *inbox) error {
		if err := b.load(h.base); err != nil {
			return err
		}
		c := b.conversationAbout(log)
		if c == nil {
			return errEnded
		}
		return f(b, c)
	})
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// The bounds of the messages to a client while an agent works: they must leave room for the results in its inbox. For
// the same reason, none are sent while half of the inbox is unread.
const (
	progressEvery = 2 * time.Second // the least time between two statuses of a turn
	maxProgress   = 64              // of a turn
	maxSaid       = 4 << 10         // bytes of one
)

// turn has the products of a turn. At its end they become payloads: the products, then what the agent says along with
// its state, then an event.
type turn struct {
	products task.Fold
	statuses int       // number of messages to the client about the agent's progress
	last     time.Time // the agent's time of the last of them
}

// add takes the products of a step.
func (t *turn) add(step *follow.Step) {
	if step.Task != nil || step.Chunk != nil || step.Status != nil && step.Offer != nil && step.Cause == nil {
		t.products.Apply(step.Event)
	}
}

// says returns the agent's message about its progress in a step, if the client is to learn of it; empty if not.
func (t *turn) says(step *follow.Step) string {
	var items []task.DataItem
	var at time.Time
	switch st, m := step.Status, step.Message; {
	case st != nil && st.State == task.Working && step.Cause == nil:
		items, at = st.DataItems, st.ChangedAt
	case m != nil && m.SenderRole == task.Partner:
		items, at = m.DataItems, m.SentAt
	}
	text := textOf(items)
	if text == "" || len(text) > maxSaid || t.statuses == maxProgress || t.statuses > 0 && at.Sub(t.last) < progressEvery {
		return ""
	}
	t.statuses, t.last = t.statuses+1, at
	return text
}

// textOf returns the texts of data items.
func textOf(items []task.DataItem) string {
	var texts []string
	for _, it := range items {
		if it.Kind == task.TextItem && it.Text != "" {
			texts = append(texts, it.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// payloads returns the payloads of a step into a state, and none of another one.
func (t *turn) payloads(step *follow.Step, c *conversation) (payloads [][]byte) {
	if !step.Entered {
		return nil
	}
	status := step.Status
	if step.Task != nil {
		status = &step.Task.Status
	}
	if status.State.Settled() {
		products := t.products.Task().Products
		for i := range products {
			payloads = appendItems(payloads, products[i].DataItems, c)
		}
		if c.Read.State != task.AwaitingCompletion { // when the agent has said it
			payloads = appendItems(payloads, status.DataItems, c)
		}
	}
	if event, ok := codec.AppendEvent(nil, status.State, c.Task, thread(c)); ok {
		payloads = append(payloads, event)
	}
	return payloads
}

// thread returns the thread of a conversation, never empty for the client.
func thread(c *conversation) string {
	if c.Thread == "" {
		return c.Task
	}
	return c.Thread
}

// appendItems appends the payloads of data items.
func appendItems(payloads [][]byte, items []task.DataItem, c *conversation) [][]byte {
	for i := range items {
		it := items[i]
		for it.Kind == task.TextItem && len(it.Text) > maxText {
			cut := maxText
			for !utf8.RuneStart(it.Text[cut]) {
				cut--
			}
			part := task.Text(it.Text[:cut])
			payloads = append(payloads, codec.AppendPayload(nil, &part, c.Task, thread(c)))
			it.Text = it.Text[cut:]
		}
		payload := codec.AppendPayload(nil, &it, c.Task, thread(c))
		if len(payload) > maxMessage {
			note := task.Text("A result of " + strconv.Itoa(len(payload)) + " bytes is too large for a message.")
			payload = codec.AppendPayload(nil, &note, c.Task, thread(c))
		}
		payloads = append(payloads, payload)
	}
	return payloads
}

// The delivery modes.
const (
	fanoutMode = "fanout" // kept for offline clients
	queueMode  = "queue"  // for one online client
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
