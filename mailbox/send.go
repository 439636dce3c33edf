// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
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
	read, ok := codec.ReadPayload(payload)
	if !ok {
		return nil, invalid("payload must be an object with a type, and with what its type requires")
	}
	if len(payload.Raw) > maxMessage {
		return nil, invalid("payload has %d bytes, and at most %d are allowed", len(payload.Raw), maxMessage)
	}
	id := params.Get("message_id")
	if id.Exists() && id.Type != gjson.String && id.Type != gjson.Null || len(id.Str) > maxID {
		return nil, invalid("message_id must be a string of at most %d bytes", maxID)
	}
	messageID := id.Str
	if messageID == "" {
		messageID = newID()
	}
	if read.Task != "" && m.assignees != nil && m.assignees.Has(c.AID, read.Task) {
		return m.report(ctx, c, read.Task, messageID, payload)
	}
	if a := m.agent(string(to)); a != nil {
		return m.toAgent(ctx, c, string(to), a, messageID, payload, &read)
	}
	mode := params.Get("delivery_mode.mode").String()
	if mode != queueMode {
		mode = fanoutMode
	}
	return m.forward(ctx, c, string(to), messageID, mode, payload)
}

// sent returns the result of message.send.
func sent(id string, seq int64, mode string) ([]byte, error) {
	return json.Marshal(map[string]any{"message_id": id, "seq": seq, "timestamp": time.Now().UnixMilli(),
		"status": "sent", "delivery_mode": mode})
}

// report is a message of an assignee about its task.
func (m *Mailbox) report(
	ctx context.Context, c Caller, taskID, messageID string, payload gjson.Result,
) ([]byte, error) {
	params := append(task.AppendString([]byte(`{"message_id":`), messageID), `,"payload":`...)
	params = append(append(params, payload.Raw...), '}')
	if _, err := m.assignees.Say(ctx, c.AID, taskID, codec.MessageSend, gjson.ParseBytes(params)); err != nil {
		return nil, err
	}
	return sent(messageID, m.seq.Add(1), queueMode)
}

// toAgent sends a message to an agent. It continues the task of its thread, or starts one. The same message again
// changes nothing.
func (m *Mailbox) toAgent(
	ctx context.Context, c Caller, to string, a Agent, messageID string, payload gjson.Result, read *codec.Payload,
) ([]byte, error) {
	if len(read.Items) == 0 {
		return nil, invalid("payload says nothing that an agent could act on")
	}
	name := read.Thread
	if chat := payload.Get("chat_id").String(); name == "" && len(chat) <= maxID {
		name = chat
	}
	message := task.Message{ID: messageID, SenderRole: task.Leader, DataItems: read.Items,
		SessionID: sessionOf(c, to, name)}
	err := m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		t := b.talkOf(to, name)
		if t != nil && t.Thread != name { // it has named the thread by the task
			name = t.Thread
			message.SessionID = sessionOf(c, to, name)
		}
		first := taskOf(c, to, name, messageID)
		if t != nil && t.Task != first {
			message.Command, message.TaskID = task.Continue, t.Task
			if _, err := a.Say(ctx, c.Peer, message); !over(err) {
				return err
			}
		}
		if t == nil {
			t = &talk{Agent: to, Thread: name}
			if err := b.addTalk(t); err != nil {
				return err
			}
		}
		message.Command, message.TaskID = task.Start, first
		log, err := a.Say(ctx, c.Peer, message)
		if err != nil || t.Log == log { // the same message again
			b.loaded = b.loaded && err == nil
			return err
		}
		*t = talk{Agent: to, Thread: name, Task: first, Log: log, Open: true}
		if err := b.append(ctx, nil); err != nil {
			return err
		}
		m.follow(c.AID, log, 0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return sent(messageID, m.seq.Add(1), fanoutMode)
}

// over reports whether an error says that the task of a conversation has ended, so that another one is started.
func over(err error) bool {
	if state, ok := errors.AsType[*task.StateError](err); ok {
		return state.State.Terminal()
	}
	return err != nil && task.KindOf(err) == task.TaskNotFound
}

// sessionOf returns the session of a conversation, and taskOf the id of the task that a message of it starts: the same
// message starts the same task.
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
func (m *Mailbox) forward(
	ctx context.Context, c Caller, to, messageID, mode string, payload gjson.Result,
) (result []byte, err error) {
	err = m.with(to, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		if i := b.find(messageID); i >= 0 {
			if b.kept[i].from != c.AID {
				return invalid("message_id is that of another message")
			}
			result, err = sent(messageID, int64(b.kept[i].seq), mode) // the same message again
			return err
		}
		online := m.connections.Online(to)
		switch {
		case !online && (mode == queueMode || !b.exists):
			return aun.Errorf(codes.AgentOffline, "%s is not connected here", to)
		case !b.hasRoom(c.AID):
			return task.Errorf(task.LimitExceeded, "the inbox of %s takes no more of your messages until it has read some", to).
				WithData("limit", "messages").WithData("max", maxMessages/2)
		}
		record := appendMessage(c.AID, to, messageID, mode, []byte(payload.Raw))
		if err := b.receive(ctx, [][]byte{record}); err != nil {
			return err
		}
		if mode == fanoutMode {
			m.mu.Lock()
			m.sent.add(sentMessage{messageID, c.AID, to, time.Now()})
			m.mu.Unlock()
		}
		result, err = sent(messageID, int64(b.last), mode)
		return err
	})
	return result, err
}

// hasRoom reports whether a client may send one more message. The messages of clients that no device has acknowledged
// have half of the inbox; the other half is for answers of agents. One client may fill half of what others have left
// free of that, so that no client closes an inbox for others.
func (b *inbox) hasRoom(from string) bool {
	read := uint64(0)
	for _, a := range b.meta.Acks {
		read = max(read, a.Seq)
	}
	free, freeBytes, own, ownBytes := maxMessages/2, int64(maxBytes/2), 0, int64(0)
	for _, k := range b.kept {
		if k.seq <= read || b.box.agent(k.from) != nil {
			continue
		}
		free, freeBytes = free-1, freeBytes-k.size
		if k.from == from {
			own, ownBytes = own+1, ownBytes+k.size
		}
	}
	return own < free && ownBytes < freeBytes
}
