// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// checkDevice refuses a device or a slot other than the connection's.
func checkDevice(c Caller, params gjson.Result) error {
	for _, f := range [...][2]string{{"device_id", c.Device}, {"slot_id", c.Slot}} {
		if v := params.Get(f[0]); v.Exists() && v.Type != gjson.Null && (v.Type != gjson.String || v.Str != f[1]) {
			return invalid("%s is not that of this connection", f[0])
		}
	}
	return nil
}

// whole returns a parameter with a whole number.
func whole(params gjson.Result, name string, least, otherwise uint64) (uint64, error) {
	v := params.Get(name)
	if !v.Exists() || v.Type == gjson.Null {
		return otherwise, nil
	}
	n := v.Uint()
	if v.Type != gjson.Number || v.Num != float64(n) || n < least {
		return 0, invalid("%s must be a whole number of %d or more", name, least)
	}
	return n, nil
}

// The bounds of message.pull.
const (
	defaultPull = 100
	maxPull     = 200
	maxPage     = 900_000 // bytes of messages in one answer
)

// page is the result of message.pull.
type page struct {
	messages [][]byte
	latest   uint64  // the seq of the last one
	earliest *uint64 // of the messages in mode queue still there; nil for none
	dropped  int     // messages in mode queue that are gone
	more     bool    // there are messages after the last one
	acked    uint64  // up to this seq there is nothing for the device to look for: it has acknowledged it, or it is gone
}

// pull is message.pull, and message.v2.pull, with another result.
func (m *Mailbox) pull(
	ctx context.Context, c Caller, params gjson.Result, form func(*page) ([]byte, error),
) (result []byte, err error) {
	if err := checkDevice(c, params); err != nil {
		return nil, err
	}
	after, err := whole(params, "after_seq", 0, 0)
	if err != nil {
		return nil, err
	}
	limit, err := whole(params, "limit", 1, defaultPull)
	if err != nil {
		return nil, err
	}
	limit = min(limit, maxPull)
	read, err := whole(params, "ack_up_to_seq", 0, 0)
	if err != nil {
		return nil, err
	}
	err = m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		if !b.exists || b.last == 0 && b.meta.Begin == 0 { // others can send to it then; one of an earlier version begins
			if err := b.append(ctx, nil); err != nil {
				return err
			}
		}
		if read > 0 { // SDKs acknowledge a page with the request for the next one
			if _, err := m.acknowledge(ctx, c, b, read); err != nil {
				return err
			}
		}
		p := page{acked: max(b.acked(c), b.floor())}
		now := time.Now()
		shown := make(map[uint64]bool)
		queued := 0
		for i := len(b.kept) - 1; i >= 0; i-- {
			k := &b.kept[i]
			if k.queued {
				if queued++; queued > maxQueued || now.Sub(k.at) >= queueFor {
					continue
				}
				p.earliest = &k.seq
			}
			shown[k.seq] = !k.recalled && now.Sub(k.at) < keepFor
		}
		p.dropped = b.gone + max(queued-maxQueued, 0)
		if p.messages, p.latest, err = b.page(ctx, after, int(limit), shown); err != nil {
			return err
		}
		for seq, is := range shown {
			p.more = p.more || is && seq > p.latest
		}
		result, err = form(&p)
		return err
	})
	return result, err
}

// list returns the messages as a list.
func (p *page) list() json.RawMessage {
	return append(append([]byte{'['}, bytes.Join(p.messages, []byte{','})...), ']')
}

// pulled returns the result of message.pull.
func pulled(p *page) ([]byte, error) {
	return json.Marshal(struct {
		Messages json.RawMessage `json:"messages"`
		Count    int             `json:"count"`
		Latest   uint64          `json:"latest_seq"`
		Earliest *uint64         `json:"ephemeral_earliest_available_seq"`
		Dropped  int             `json:"ephemeral_dropped_count"`
		Acked    uint64          `json:"server_ack_seq,omitempty"`
	}{p.list(), len(p.messages), p.latest, p.earliest, p.dropped, p.acked})
}

// pulledV2 returns the result of message.v2.pull, a method for encrypted messages. It shows those in plaintext as
// messages of the version before.
func pulledV2(p *page) ([]byte, error) {
	type message struct {
		Version string          `json:"version"`
		Seq     uint64          `json:"seq"`
		ID      string          `json:"message_id"`
		From    string          `json:"from_aid"`
		At      int64           `json:"t_server"`
		Legacy  json.RawMessage `json:"legacy_v1"`
	}
	messages := make([]message, len(p.messages))
	for i, m := range p.messages {
		v := gjson.ParseBytes(m)
		messages[i] = message{"v1", v.Get("seq").Uint(), v.Get("message_id").String(), v.Get("from").String(),
			v.Get("timestamp").Int(), m}
	}
	return json.Marshal(struct {
		Messages []message `json:"messages"`
		Count    int       `json:"count"`
		Latest   uint64    `json:"latest_seq"`
		More     bool      `json:"has_more"`
		Acked    uint64    `json:"server_ack_seq,omitempty"`
	}{messages, len(messages), p.latest, p.more, p.acked})
}

// page reads the shown messages after a seq. latest is the seq of the last one, or after.
func (b *inbox) page(
	ctx context.Context, after uint64, limit int, shown map[uint64]bool,
) (messages [][]byte, latest uint64, err error) {
	latest = after
	reader := b.box.store.Read(logname.InboxOf(b.aid), after)
	defer func() { reader.Close() }()
	for size := 0; len(messages) < limit; {
		records, _, err := reader.Next(ctx, nil)
		var gap *replay.CompactedError
		var future *replay.FutureError
		switch {
		case errors.As(err, &gap):
			reader.Close()
			reader = b.box.store.Read(logname.InboxOf(b.aid), gap.First-1)
			continue
		case errors.As(err, &future), errors.Is(err, io.EOF), errors.Is(err, replay.ErrNotFound):
			return messages, latest, nil
		case err != nil:
			return nil, latest, partner.StoreError(err, "the inbox cannot be read")
		case len(records) == 0:
			return messages, latest, nil
		}
		for _, r := range records {
			if !shown[r.Seq] {
				continue
			}
			if size += len(r.Data); len(messages) == limit || size > maxPage && len(messages) > 0 {
				return messages, latest, nil
			}
			messages, latest = append(messages, withSeq(r.Seq, r.Data)), r.Seq
		}
	}
	return messages, latest, nil
}

// ack is message.ack, and message.v2.ack, with another name for the seq.
func (m *Mailbox) ack(ctx context.Context, c Caller, params gjson.Result, name string) (result []byte, err error) {
	if err := checkDevice(c, params); err != nil {
		return nil, err
	}
	if !params.Get(name).Exists() {
		return nil, invalid("%s is missing; it must be the seq of a message", name)
	}
	seq, err := whole(params, name, 0, 0)
	if err != nil {
		return nil, err
	}
	err = m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		now, err := m.acknowledge(ctx, c, b, seq)
		if err != nil {
			return err
		}
		result, err = json.Marshal(map[string]any{"success": true, "ack_seq": now})
		return err
	})
	return result, err
}

// acknowledge stores that a device has read all up to a seq, and informs the senders.
func (m *Mailbox) acknowledge(ctx context.Context, c Caller, b *inbox, seq uint64) (now uint64, err error) {
	before, now := b.acknowledge(c, min(seq, b.last))
	if now > before {
		if err := b.append(ctx, nil); err != nil {
			return 0, err
		}
		m.notifySenders(c, b, before, now)
	}
	return now, nil
}

// acked returns the seq up to which a device has acknowledged all.
func (b *inbox) acked(c Caller) uint64 {
	if a := b.ackOf(c); a != nil {
		return a.Seq
	}
	return 0
}

// ackOf returns the acknowledgement of a device; nil if it has made none.
func (b *inbox) ackOf(c Caller) *ack {
	for i := range b.meta.Acks {
		if a := &b.meta.Acks[i]; a.Device == c.Device && a.Slot == c.Slot {
			return a
		}
	}
	return nil
}

// acknowledge moves the acknowledgement of a device. It never moves back.
func (b *inbox) acknowledge(c Caller, seq uint64) (before, now uint64) {
	if a := b.ackOf(c); a != nil {
		before, a.Seq = a.Seq, max(a.Seq, seq)
		return before, a.Seq
	}
	if len(b.meta.Acks) >= maxDevices {
		b.meta.Acks = b.meta.Acks[1:]
	}
	b.meta.Acks = append(b.meta.Acks, ack{c.Device, c.Slot, seq})
	return 0, seq
}

// notifySenders notifies the clients whose messages a device has acknowledged.
func (m *Mailbox) notifySenders(c Caller, b *inbox, after, upTo uint64) {
	var event []byte
	seen, agents := make(map[string]bool), m.allAgents()
	for _, k := range b.kept {
		if k.seq <= after || k.seq > upTo || seen[k.from] || agents[k.from] != nil {
			continue
		}
		seen[k.from] = true
		if event == nil {
			event, _ = json.Marshal(map[string]any{"to": c.AID, "device_id": c.Device, "slot_id": c.Slot,
				"ack_seq": upTo, "timestamp": time.Now().UnixMilli()}) // never fails
		}
		m.connections.Notify(k.from, "event/message.ack", event)
	}
}

// maxIDs is the number of ids in one call, at most.
const maxIDs = 100

// ids returns a parameter with a list of strings.
func ids(params gjson.Result, name string) (list []string, err error) {
	v := params.Get(name)
	if !v.IsArray() {
		return nil, invalid("%s must be a list of strings", name)
	}
	for _, one := range v.Array() {
		if one.Type != gjson.String || len(list) == maxIDs {
			return nil, invalid("%s must be a list of at most %d strings", name, maxIDs)
		}
		list = append(list, one.Str)
	}
	return list, nil
}

// recall is message.recall. A message to an agent cannot be recalled, because the agent acts on it at once.
func (m *Mailbox) recall(ctx context.Context, c Caller, params gjson.Result) ([]byte, error) {
	list, err := ids(params, "message_ids")
	if err != nil {
		return nil, err
	}
	type failure struct {
		ID    string `json:"message_id"`
		Error string `json:"error"`
	}
	var failures []failure
	recalled := 0
	for _, id := range list {
		why, err := m.recallOne(ctx, c, id)
		if err != nil {
			return nil, err
		}
		if why == "" {
			recalled++
			continue
		}
		failures = append(failures, failure{id, why})
	}
	return json.Marshal(map[string]any{"success": true, "accepted": len(list), "recalled": recalled, "errors": failures})
}

// recallOne recalls a message. why is empty if it has been recalled.
func (m *Mailbox) recallOne(ctx context.Context, c Caller, id string) (why string, err error) {
	s, known := m.sender(ctx, c.AID, id)
	switch {
	case !known: // it may be one received by the client
	case s.From != c.AID:
		return "not_sender", nil
	case s.Final:
		return "not_found", nil
	case time.Since(s.At) > recallFor:
		return "expired", nil
	}
	return m.recallAnywhere(ctx, c, s)
}

// recallFrom recalls a message from its inbox.
func (m *Mailbox) recallFrom(ctx context.Context, c Caller, s sentMessage) (why string, err error) {
	id := s.ID
	err = m.with(s.To, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		i := b.find(id)
		switch {
		case i < 0:
			why = "not_found"
			return nil
		case b.kept[i].recalled:
			why = "already_recalled"
			return nil
		}
		event, err := json.Marshal(map[string]any{"from": c.AID, "to": s.To, "message_ids": []string{id},
			"timestamp": time.Now().UnixMilli()})
		if err != nil {
			return err
		}
		b.kept[i].recalled = true
		b.meta.Recalled = append(b.meta.Recalled, b.kept[i].seq)
		if err := b.append(ctx, nil); err != nil {
			return err
		}
		m.connections.Notify(s.To, "event/message.recalled", event)
		return nil
	})
	return why, err
}

// notSent says why a message cannot be recalled that this process has not seen being sent. The client may have received
// it.
func (m *Mailbox) notSent(ctx context.Context, c Caller, id string) (why string, err error) {
	why = "not_found"
	err = m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		if i := b.find(id); i >= 0 && b.kept[i].from != c.AID {
			why = "not_sender"
		}
		return nil
	})
	return why, err
}

// queryOnline is message.query_online.
func (m *Mailbox) queryOnline(params gjson.Result) ([]byte, error) {
	list, err := ids(params, "aids")
	if err != nil {
		return nil, err
	}
	online := make(map[string]bool)
	for _, s := range list {
		aid, err := aun.ParseAID(s)
		if err != nil {
			return nil, invalid("aids: %v", err)
		}
		a := m.agent(string(aid))
		online[s] = m.connections.Online(string(aid)) || a != nil && a.Online()
	}
	return json.Marshal(map[string]any{"online": online})
}
