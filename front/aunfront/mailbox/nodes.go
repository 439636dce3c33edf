// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// A call is answered by the owner of the shard with the inbox that it reads or writes: the client's own, or that of the
// client to which a message goes. A message has an id before it is handed on, so it is sent only once.

// handed is a call of a client, as it is handed to the owner.
type handed struct {
	AID, Device, Slot string
	Peer              handedPeer
	Method            string
	Params            json.RawMessage

	Recall *sentMessage // of a message, by its sender; then Method is not used
	Thread *threadName  // its task is asked for; likewise
}

// handedPeer is a client of AUN, with its login as the proof of its identity.
type handedPeer struct {
	Proof identity.Proof
	Kind  identity.Kind
	ID    string
}

// handedBack is the answer.
type handedBack struct {
	Result json.RawMessage `json:",omitempty"`
	Fault  *aun.Error      `json:",omitempty"` // the answer to the client; nil for none
	Why    string          `json:",omitempty"` // a message was not recalled
	Task   string          `json:",omitempty"` // of a thread; empty for none
}

// openNodes has the mailbox answer other processes.
func (m *Mailbox) openNodes() {
	m.owners = ask.New(m.set, "mailbox", func(ctx context.Context, _ int, h handed) (back handedBack, err error) {
		c := Caller{h.AID, h.Device, h.Slot,
			identity.Peer{Proof: h.Peer.Proof, Kind: h.Peer.Kind, ID: h.Peer.ID, Login: true}}
		back, err = m.answerHere(ctx, c, h)
		if err == nil || errors.Is(err, replay.ErrClosed) {
			return back, err
		}
		back.Fault = aun.ErrorOf(err, codec.Fault)
		return back, nil
	})
	m.senders = ask.New(m.set, "mailbox.sent", func(_ context.Context, _ int, s sentMessage) (sentMessage, error) {
		s, _ = m.sentBy(s.From, s.ID)
		return s, nil
	})
}

// shardOf returns the shard with the inbox of an AID.
func (m *Mailbox) shardOf(aid string) int { return logname.ShardOfAID(m.set.Count(), aid) }

// hand has the owner of an inbox answer a call.
func (m *Mailbox) hand(ctx context.Context, inbox string, c Caller, h handed) (back handedBack, err error) {
	h.AID, h.Device, h.Slot = c.AID, c.Device, c.Slot
	h.Peer = handedPeer{c.Peer.Proof, c.Peer.Kind, c.Peer.ID}
	back, err = m.owners.Of(ctx, m.shardOf(inbox), h)
	if err == nil && back.Fault != nil {
		err = back.Fault
	}
	return back, err
}

// answerHere answers a call in the process with the inbox.
func (m *Mailbox) answerHere(ctx context.Context, c Caller, h handed) (back handedBack, err error) {
	switch {
	case h.Recall != nil:
		back.Why, err = m.recallHere(ctx, c, *h.Recall)
	case h.Thread != nil:
		back.Task, err = m.taskHere(ctx, c, *h.Thread)
	default:
		back.Result, err = m.callHere(ctx, c, h.Method, gjson.ParseBytes(h.Params))
	}
	return back, err
}

// answerAnywhere answers a call by the owner of an inbox.
func (m *Mailbox) answerAnywhere(ctx context.Context, inbox string, c Caller, h handed) (handedBack, error) {
	if m.here(inbox) {
		back, err := m.answerHere(ctx, c, h)
		if !errors.Is(err, replay.ErrClosed) || m.set.Peers() == nil {
			return back, err
		}
	}
	return m.hand(ctx, inbox, c, h)
}

// here reports whether this process has the inbox of an AID, or is the only one.
func (m *Mailbox) here(aid string) bool { return m.set.Peers() == nil || m.set.Owns(m.shardOf(aid)) }

// sendAnywhere is message.send, by the owner of the inbox it writes to.
func (m *Mailbox) sendAnywhere(ctx context.Context, c Caller, params gjson.Result) ([]byte, error) {
	if m.set.Peers() == nil { // all inboxes are here, so nothing has to be read to find one
		return m.send(ctx, c, params)
	}
	inbox := c.AID
	if to, err := aun.ParseAID(params.Get("to").String()); err == nil && m.agent(string(to)) == nil {
		read, _ := codec.ReadPayload(params.Get("payload"))
		if read.Task == "" || m.assignees == nil || !m.assignees.Has(c.AID, read.Task) {
			inbox = string(to)
		}
	}
	if params.Get("message_id").String() == "" { // it may be handed on when an agent has it
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(params.Raw), &members); err != nil {
			return nil, invalid("the params must be an object")
		}
		members["message_id"], _ = json.Marshal(newID()) // never fails
		raw, _ := json.Marshal(members)                  // of JSON
		params = gjson.ParseBytes(raw)
	}
	return m.callAnywhere(ctx, c, inbox, "message.send", params)
}

// callAnywhere is callHere by the owner of an inbox.
func (m *Mailbox) callAnywhere(
	ctx context.Context, c Caller, inbox, method string, params gjson.Result,
) ([]byte, error) {
	back, err := m.answerAnywhere(ctx, inbox, c, handed{Method: method, Params: json.RawMessage(params.Raw)})
	return back.Result, err
}

// sentBy returns what this process knows of a message: of the client's, or else of another one's with the same id.
func (m *Mailbox) sentBy(from, id string) (s sentMessage, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sent.find(from, id)
}

// sender is sentBy of all processes.
func (m *Mailbox) sender(ctx context.Context, from, id string) (s sentMessage, known bool) {
	s, known = m.sentBy(from, id)
	if s.From == from || m.set.Peers() == nil {
		return s, known
	}
	for answer, err := range m.senders.All(ctx, sentMessage{From: from, ID: id}) {
		if err != nil || answer.Value.From == "" {
			continue
		}
		if s, known = answer.Value, true; s.From == from {
			break
		}
	}
	return s, known
}

// recallAnywhere recalls a message in its inbox. Of an unknown one, why is the result of notSent.
func (m *Mailbox) recallAnywhere(ctx context.Context, c Caller, s sentMessage) (why string, err error) {
	inbox := s.To
	if inbox == "" {
		inbox = c.AID
	}
	back, err := m.answerAnywhere(ctx, inbox, c, handed{Recall: &s})
	return back.Why, err
}

// recallHere is recallAnywhere in the process with the inbox.
func (m *Mailbox) recallHere(ctx context.Context, c Caller, s sentMessage) (why string, err error) {
	if s.To == "" {
		return m.notSent(ctx, c, s.ID)
	}
	return m.recallFrom(ctx, c, s)
}

// with calls f with the inbox of an AID, locked, and again if another writer of the inbox was faster than f.
func (m *Mailbox) with(aid string, f func(*inbox) error) error {
	h := m.homes.Of(m.shardOf(aid))
	if h == nil {
		return partner.Moved()
	}
	return h.with(aid, f)
}
