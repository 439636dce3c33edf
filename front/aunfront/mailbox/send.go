// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// maxID is the length of the longest id of a message, in bytes.
const maxID = 200

// send is message.send.
func (m *Mailbox) send(ctx context.Context, c Caller, params gjson.Result) ([]byte, error) {
	to, err := aun.ParseAID(params.Get("to").String())
	if err != nil {
		return nil, invalid("to: %v", err)
	}
	if params.Get("encrypted").Bool() || params.Get("type").String() != "" {
		return nil, invalid("encrypted messages are not supported here; send it in plaintext")
	}
	payload := params.Get("payload")
	if len(payload.Raw) > maxMessage {
		return nil, invalid("payload has %d bytes, and at most %d are allowed", len(payload.Raw), maxMessage)
	}
	if !payload.Exists() || payload.Type == gjson.Null {
		return nil, invalid("payload is missing")
	}
	read, ok := codec.ReadPayload(payload)
	id := params.Get("message_id")
	if id.Exists() && id.Type != gjson.String && id.Type != gjson.Null || len(id.Str) > maxID {
		return nil, invalid("message_id must be a string of at most %d bytes", maxID)
	}
	s := &message{id: strings.Clone(id.Str), given: id.Str != "", to: string(to), payload: payload}
	if !s.given {
		s.id = newID()
	}
	if read.Task != "" && m.assignees != nil && m.assignees.Has(c.AID, read.Task) {
		return m.report(ctx, c, read.Task, s)
	}
	if a := m.agent(s.to); a != nil {
		if !ok {
			return nil, invalid("payload must be a text, or an object with a type and with what its type requires")
		}
		return m.toAgent(ctx, c, a, s, &read)
	}
	mode := params.Get("delivery_mode.mode").String()
	if mode != queueMode {
		mode = fanoutMode
	}
	return m.forward(ctx, c, s, mode)
}

// report is a message of an assignee about its task. It is not written to an inbox, so its answer is kept in memory
// only: after a crash, the same message again changes nothing, because its content is a product with its id.
func (m *Mailbox) report(ctx context.Context, c Caller, taskID string, s *message) (result []byte, err error) {
	err = m.with(c.AID, func(b *inbox) (err error) {
		if err = b.load(ctx); err == nil {
			result, err = b.answered(s)
		}
		return err
	})
	if err != nil || result != nil {
		return result, err
	}
	params := append(task.AppendString([]byte(`{"message_id":`), s.id), `,"payload":`...)
	params = append(append(params, s.payload.Raw...), '}')
	if _, err := m.assignees.Say(ctx, c.AID, taskID, codec.MessageSend, gjson.ParseBytes(params)); err != nil {
		return nil, err
	}
	err = m.with(c.AID, func(b *inbox) (err error) {
		result, err = b.answer(s, queueMode)
		return err
	})
	return result, err
}

// toAgent sends a message to an agent. The same message again changes nothing. An aside is taken, and tells the agent
// nothing: one asking for its menu is answered here.
func (m *Mailbox) toAgent(
	ctx context.Context, c Caller, a Agent, s *message, read *codec.Payload,
) (result []byte, err error) {
	if len(read.Items) == 0 && !read.Aside {
		return nil, invalid("payload says nothing that an agent could act on")
	}
	err = m.with(c.AID, func(b *inbox) error {
		err := b.load(ctx)
		if err == nil {
			result, err = b.answered(s)
		}
		if err != nil || result != nil {
			return err
		}
		begun := false
		if !read.Aside {
			if begun, err = b.act(ctx, c, a, s, read); err != nil {
				return err
			}
		}
		result, err = b.answer(s, fanoutMode)
		switch menu, asked := codec.AppendMenu(nil, s.payload); {
		case err != nil:
		case asked:
			id := "menu-" + digest(c.AID, s.to, s.id)
			err = b.receive(ctx, [][]byte{appendMessage(s.to, c.AID, id, fanoutMode, menu)})
		case begun || s.given:
			err = b.append(ctx, nil)
		}
		if err == nil && begun {
			b.follow()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	m.remember(sentMessage{ID: s.id, From: c.AID, To: s.to, At: time.Now(), Final: true})
	return result, nil
}

// act has an agent act on a message: it continues the task of its thread, or begins a conversation about another one.
// b.mu is held.
func (b *inbox) act(
	ctx context.Context, c Caller, a Agent, s *message, read *codec.Payload,
) (begun bool, err error) {
	name := read.Thread
	if chat := s.payload.Get("chat_id").String(); name == "" && len(chat) <= maxID {
		name = chat
	}
	conv := b.conversationWith(s.to, name)
	if conv != nil { // the client may have named the thread by the task
		name = conv.Thread
	}
	message := task.Message{ID: s.id, SenderRole: task.Leader, DataItems: read.Items, SessionID: sessionOf(c, s.to, name)}
	first := taskOf(c, s.to, name, s.id)
	if conv != nil && conv.Task != first {
		message.Command, message.TaskID = task.Continue, conv.Task
		if _, err := execute(ctx, c, a, message); !over(err) {
			return false, err
		}
	}
	another := conv == nil || conv.Open && conv.Task != first // its last messages are still to come
	if another {
		if err := b.roomForConversation(); err != nil {
			return false, err
		}
	}
	message.Command, message.TaskID = task.Start, first
	log, err := execute(ctx, c, a, message)
	if err != nil || b.conversationAbout(log) != nil { // the same message again
		b.loaded = b.loaded && err == nil
		return false, err
	}
	next := &conversation{Agent: s.to, Thread: name, Task: first, Log: log, Open: true}
	if another {
		b.meta.Conversations = append(b.meta.Conversations, next)
	} else {
		*conv = *next
	}
	return true, nil
}

// execute gives an agent a message, which starts the task it names, or continues it, and returns the name of the log
// with the agent's events. It does not wait for the agent. A started task is completed as soon as the agent has
// finished. The agent knows it by its id, so no other task may have this id.
func execute(ctx context.Context, c Caller, a Agent, m task.Message) (log string, err error) {
	var q gateway.Request
	defer q.Release()
	call := gateway.Call{Dialect: codec.Name, AgentTask: m.TaskID}
	call.Message, call.Terms.Response = m, task.NoWait
	call.Strict, call.AutoComplete, call.Tentative, call.Followed, call.Begun = true, true, true, true, true
	r, err := a.Do(ctx, c.Peer, &q, &call)
	return r.Log, err
}

// over reports whether an error says that the task of a conversation has ended, so another one is started.
func over(err error) bool {
	if state, ok := errors.AsType[*task.StateError](err); ok {
		return state.State.Terminal()
	}
	return err != nil && task.KindOf(err) == task.TaskNotFound
}

// sessionOf returns the session of a conversation, and taskOf the id of the task started by one of its messages: the
// same message starts the same task.
func sessionOf(c Caller, to, thread string) string { return "thread-" + digest(c.AID, to, thread) }

func taskOf(c Caller, to, thread, messageID string) string {
	return "msg-" + digest(c.AID, to, thread, messageID)
}

func digest(parts ...string) string {
	var text []byte
	for _, p := range parts {
		text = append(strconv.AppendInt(text, int64(len(p)), 10), ':')
		text = append(text, p...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// forward is a message to another client.
func (m *Mailbox) forward(ctx context.Context, c Caller, s *message, mode string) (result []byte, err error) {
	err = m.with(s.to, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		if i := b.find(s.id); i >= 0 {
			result, err = b.receivedBefore(ctx, c, s, &b.kept[i])
			return err
		}
		online := m.connections.Online(s.to)
		switch {
		case !online && (mode == queueMode || !b.exists):
			return aun.Errorf(codes.AgentOffline, "%s is not connected here", s.to)
		case !b.withinQuota(c.AID):
			return task.Errorf(task.LimitExceeded, "the inbox of %s takes no more of your messages until it has read some",
				s.to).WithData("limit", "messages").WithData("max", maxMessages/2)
		}
		record := appendMessage(c.AID, s.to, s.id, mode, []byte(s.payload.Raw))
		if err := b.receive(ctx, [][]byte{record}); err != nil {
			return err
		}
		last := b.kept[len(b.kept)-1]
		m.remember(sentMessage{ID: s.id, From: c.AID, To: s.to, At: last.at, Final: mode == queueMode})
		result, err = sent(s.id, int64(last.seq), last.at, mode)
		return err
	})
	return result, err
}

// receivedBefore answers a message with the id of one in the inbox.
func (b *inbox) receivedBefore(ctx context.Context, c Caller, s *message, had *kept) (result []byte, err error) {
	if had.from != c.AID {
		return nil, errIDTaken
	}
	record, err := readMessage(ctx, b.box.store, logname.InboxOf(b.aid), had.seq)
	if err != nil {
		return nil, partner.StoreError(err, "the inbox cannot be read")
	}
	before := message{to: s.to, payload: gjson.GetBytes(record, "payload")}
	if before.of() != s.of() {
		return nil, errIDTaken
	}
	return sent(s.id, int64(had.seq), had.at, gjson.GetBytes(record, "delivery_mode").Str)
}

// withinQuota reports whether a client may send one more message. The messages of clients, as long as no device has
// acknowledged them, have half of the inbox; the other half is for answers of agents. One client may fill half of the
// space others have left free, so no client closes an inbox for others. A message no device is shown any more counts as
// long as one is unread before it: sending and recalling again and again must not have this one dropped.
func (b *inbox) withinQuota(from string) bool {
	read := b.read()
	agents, now, unread := b.box.allAgents(), time.Now(), false
	free, freeBytes, own, ownBytes := maxMessages/2, int64(maxBytes/2), 0, int64(0)
	for _, k := range b.kept {
		if k.seq <= read || !unread && k.over(now) {
			continue
		}
		if unread = true; agents[k.from] != nil {
			continue
		}
		free, freeBytes = free-1, freeBytes-k.size
		if k.from == from {
			own, ownBytes = own+1, ownBytes+k.size
		}
	}
	return own < free && ownBytes < freeBytes
}

// read returns the seq up to which some device has acknowledged all.
func (b *inbox) read() (seq uint64) {
	for _, a := range b.meta.Acks {
		seq = max(seq, a.Seq)
	}
	return seq
}

// unread returns how many messages no device has acknowledged.
func (b *inbox) unread() (n int) {
	read := b.read()
	for i := range b.kept {
		if b.kept[i].seq > read {
			n++
		}
	}
	return n
}
