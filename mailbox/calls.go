// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
)

// checkDevice refuses a device or a slot that is not that of the connection.
func checkDevice(c Caller, params gjson.Result) error {
	for _, f := range [...][2]string{{"device_id", c.Device}, {"slot_id", c.Slot}} {
		if v := params.Get(f[0]); v.Exists() && v.Type != gjson.Null && (v.Type != gjson.String || v.Str != f[1]) {
			return invalid("%s is not that of this connection", f[0])
		}
	}
	return nil
}

// whole returns a parameter that is a whole number.
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

// pull is message.pull.
func (m *Mailbox) pull(ctx context.Context, c Caller, params gjson.Result) (result []byte, err error) {
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
	err = m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		if !b.exists { // from now on, others can send to it
			if err := b.create(ctx); err != nil {
				return err
			}
		}
		now := time.Now()
		shown := make(map[uint64]bool)
		var earliest *uint64
		queued := 0
		for i := len(b.kept) - 1; i >= 0; i-- {
			k := &b.kept[i]
			if k.queued {
				if queued++; queued > maxQueued || now.Sub(k.at) >= queueFor {
					continue
				}
				earliest = &k.seq
			}
			shown[k.seq] = !k.recalled && now.Sub(k.at) < keepFor
		}
		messages, latest, err := b.page(ctx, after, int(limit), shown)
		if err != nil {
			return err
		}
		list := []byte{'['}
		for i, record := range messages {
			if i > 0 {
				list = append(list, ',')
			}
			list = append(list, record...)
		}
		result, err = json.Marshal(struct {
			Messages json.RawMessage `json:"messages"`
			Count    int             `json:"count"`
			Latest   uint64          `json:"latest_seq"`
			Earliest *uint64         `json:"ephemeral_earliest_available_seq"`
			Dropped  int             `json:"ephemeral_dropped_count"`
		}{append(list, ']'), len(messages), latest, earliest, b.gone + max(queued-maxQueued, 0)})
		return err
	})
	return result, err
}

// create creates the inbox of a client that has none.
func (b *inbox) create(ctx context.Context) error {
	b.exists = true
	return b.append(ctx, nil)
}

// page reads the messages after a seq that are shown. latest is the seq of the last one, or after.
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

// ack is message.ack.
func (m *Mailbox) ack(ctx context.Context, c Caller, params gjson.Result) (result []byte, err error) {
	if err := checkDevice(c, params); err != nil {
		return nil, err
	}
	if !params.Get("seq").Exists() {
		return nil, invalid("seq is missing; it must be that of a message")
	}
	seq, err := whole(params, "seq", 0, 0)
	if err != nil {
		return nil, err
	}
	err = m.with(c.AID, func(b *inbox) error {
		if err := b.load(ctx); err != nil {
			return err
		}
		before, now := b.acknowledge(c, min(seq, b.last))
		if now > before {
			if err := b.append(ctx, nil); err != nil {
				return err
			}
			m.notifySenders(c, b, before, now)
		}
		result, err = json.Marshal(map[string]any{"success": true, "ack_seq": now})
		return err
	})
	return result, err
}

// acknowledge moves the acknowledgement of a device. It never moves back.
func (b *inbox) acknowledge(c Caller, seq uint64) (before, now uint64) {
	for i := range b.meta.Acks {
		if a := &b.meta.Acks[i]; a.Device == c.Device && a.Slot == c.Slot {
			before, a.Seq = a.Seq, max(a.Seq, seq)
			return before, a.Seq
		}
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
	seen := make(map[string]bool)
	for _, k := range b.kept {
		if k.seq <= after || k.seq > upTo || seen[k.from] || m.agent(k.from) != nil {
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

// maxIDs is how many ids one call may name.
const maxIDs = 100

// ids returns a parameter that is a list of strings.
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
	m.mu.Lock()
	s, ok := m.sent.byID[id]
	m.mu.Unlock()
	switch {
	case !ok:
		return "not_found", nil
	case s.from != c.AID:
		return "not_sender", nil
	case time.Since(s.at) > recallFor:
		return "expired", nil
	}
	err = m.with(s.to, func(b *inbox) error {
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
		record, err := json.Marshal(map[string]any{"from": c.AID, "to": s.to, "message_ids": []string{id},
			"timestamp": time.Now().UnixMilli()})
		if err != nil {
			return err
		}
		if err := b.append(ctx, [][]byte{record}); err != nil {
			return err
		}
		m.connections.Notify(s.to, "event/message.recalled", record)
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
