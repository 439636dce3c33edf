// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/follow"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// inbox is the messages to one AID. The number of a message is its seq. All fields are guarded by mu.
type inbox struct {
	box *home
	aid string

	mu       sync.Mutex
	loaded   bool // the fields below are as in the store
	exists   bool
	revision uint64 // of the log; 0 while there is none
	last     uint64
	lost     uint64
	meta     metadata
	kept     []kept // the kept records, the oldest first
	bytes    int64  // of kept
	gone     int    // queued messages dropped before their time since the inbox was loaded
}

// metadata is stored with the log.
type metadata struct {
	Begin         uint64          `json:"begin,omitempty"`         // its messages begin after this number
	Conversations []*conversation `json:"conversations,omitempty"` // those of a thread in the order of their tasks
	Acks          []ack           `json:"acks,omitempty"`
	Recalled      []uint64        `json:"recalled,omitempty"` // the seqs of recalled messages
	Sent          []answer        `json:"sent,omitempty"`     // the last answers to the AID, the oldest first
	Keys          []deviceKey     `json:"keys,omitempty"`     // of the AID's devices, the oldest first
}

// conversation is the exchange of messages between an AID and an agent in one thread, about one task. A thread has
// another one before it for each task that has ended, but has messages that are not in the inbox yet.
type conversation struct {
	Agent  string          `json:"agent"`
	Thread string          `json:"thread,omitempty"`
	Task   string          `json:"task"`
	Log    string          `json:"log"`
	Read   follow.Position `json:"read"`            // behind the last event of Log with its messages in the inbox
	Shown  uint64          `json:"shown,omitempty"` // the last event of Log with a status in the inbox
	Open   bool            `json:"open,omitempty"`  // there may be more in Log; it is pinned
}

// ack is the message up to which a device has acknowledged all.
type ack struct {
	Device string `json:"device,omitempty"`
	Slot   string `json:"slot,omitempty"`
	Seq    uint64 `json:"seq"`
}

// kept is the inbox's knowledge of a record.
type kept struct {
	seq      uint64
	at       time.Time
	id, from string
	size     int64
	queued   bool
	recalled bool // or it is the record of a recall, as written by earlier versions
}

// over reports whether no device is shown the message any more.
func (k *kept) over(now time.Time) bool { return k.recalled || k.queued && now.Sub(k.at) >= queueFor }

// load reads the inbox, unless it is in memory.
func (b *inbox) load(ctx context.Context) error {
	if b.loaded {
		return nil
	}
	head, _, records, err := b.box.store.Load(ctx, logname.InboxOf(b.aid))
	if errors.Is(err, replay.ErrNotFound) {
		b.loaded = true
		return nil
	}
	var meta metadata
	if err == nil && len(head.Metadata) > 0 {
		err = json.Unmarshal(head.Metadata, &meta)
	}
	if err != nil {
		return partner.StoreError(err, "the inbox cannot be read")
	}
	b.exists, b.revision, b.last, b.lost = true, head.Revision, head.Last, head.Lost
	b.meta, b.kept, b.bytes = meta, nil, 0
	for _, r := range records {
		b.keep(r.Seq, r.Data)
	}
	b.loaded = true
	b.follow()
	return nil
}

// keep adds a record to the kept ones.
func (b *inbox) keep(seq uint64, record []byte) {
	v := gjson.ParseBytes(record)
	k := kept{seq: seq, at: time.UnixMilli(v.Get("timestamp").Int()), size: int64(len(record)),
		id: v.Get("message_id").String(), from: v.Get("from").String(), queued: v.Get("delivery_mode").Str == queueMode,
		recalled: slices.Contains(b.meta.Recalled, seq)}
	if ids := v.Get("message_ids"); ids.Exists() {
		k.recalled = true
		for _, id := range ids.Array() {
			if i := b.find(id.Str); i >= 0 {
				b.kept[i].recalled = true
			}
		}
	}
	b.kept = append(b.kept, k)
	b.bytes += k.size
}

// find returns the index of a message; -1 for none.
func (b *inbox) find(id string) int {
	return slices.IndexFunc(b.kept, func(k kept) bool { return k.id == id && id != "" })
}

// append writes records and the metadata, and drops the oldest records if there are too many or they are too old. If it
// fails, nothing is changed.
func (b *inbox) append(ctx context.Context, records [][]byte) error {
	b.begin()
	now := time.Now()
	a := replay.Append{Log: logname.InboxOf(b.aid), Expect: b.revision, Records: records, Skip: b.lost,
		DueAt: b.dueAt(now, len(records) > 0), Durable: true} // clients are answered when it is stored
	n, size := len(b.kept)+len(records), b.bytes
	for _, r := range records {
		size += int64(len(r))
	}
	dropped := 0
	for dropped < len(b.kept) {
		k := &b.kept[dropped]
		if n-dropped <= maxMessages && size <= maxBytes && now.Sub(k.at) < keepFor {
			break
		}
		size -= k.size
		a.Trim = k.seq
		dropped++
	}
	if dropped > 0 {
		a.Snapshot = []byte{'-'} // dropped records leave nothing
		b.meta.Recalled = slices.DeleteFunc(b.meta.Recalled, func(seq uint64) bool { return seq <= a.Trim })
	}
	var err error
	if a.Metadata, err = json.Marshal(&b.meta); err != nil {
		return err
	}
	for _, c := range b.meta.Conversations {
		if c.Open {
			a.Lists = append(a.Lists, replay.Pin(c.Log, c.Read.Seq))
		}
	}
	if err := b.box.store.Append(ctx, a); err != nil {
		b.loaded = false // it may have been written
		return partner.StoreError(err, "the inbox cannot be written")
	}
	b.exists = true
	b.revision++
	for _, k := range b.kept[:dropped] {
		b.bytes -= k.size
		if k.queued && now.Sub(k.at) < queueFor {
			b.gone++
		}
	}
	b.kept = slices.Clone(b.kept[dropped:])
	if len(records) > 0 {
		b.last, b.lost = b.last+b.lost, 0
		for _, r := range records {
			b.last++
			b.keep(b.last, r)
		}
	}
	b.box.scanner.ScanBy(a.DueAt)
	return nil
}

// dueAt returns the time for looking at the inbox again: at the start of the next process, if a conversation is open,
// or when its oldest message expires. This may be one being written.
func (b *inbox) dueAt(now time.Time, more bool) time.Time {
	for _, c := range b.meta.Conversations {
		if c.Open {
			return replay.Recover
		}
	}
	for _, k := range b.kept {
		if at := k.at.Add(keepFor); at.After(now) {
			return at.Add(scanEvery)
		}
	}
	if more {
		return now.Add(keepFor + scanEvery)
	}
	return time.Time{}
}

// deliver sends the client a message from the inbox.
func (b *inbox) deliver(seq uint64, record []byte) {
	one := gjson.GetBytes(record, "delivery_mode").Str == queueMode
	store, log := b.box.store, logname.InboxOf(b.aid)
	again := func(ctx context.Context) ([]byte, error) { return readMessage(ctx, store, log, seq) }
	b.box.connections.Deliver(b.aid, one, "event/message.received", withSeq(seq, record), again)
}

// readMessage reads a message from the log of an inbox.
func readMessage(ctx context.Context, store replay.Store, log string, seq uint64) ([]byte, error) {
	record, err := replay.ReadOne(ctx, store, log, seq)
	if err != nil {
		return nil, err
	}
	return withSeq(seq, record), nil
}

// withSeq returns a record, an object, with its seq.
func withSeq(seq uint64, record []byte) []byte {
	text := strconv.AppendUint([]byte(`{"seq":`), seq, 10)
	return append(append(text, ','), record[1:]...)
}

// begin sets the number before the messages of a new inbox, from the clock: SDKs drop a number not above the last one
// they have seen, and this may be from a lost inbox.
func (b *inbox) begin() {
	if b.last > 0 {
		return
	}
	if b.meta.Begin == 0 {
		b.meta.Begin = uint64(max(time.Now().UnixMilli(), 0))
	}
	b.lost = max(b.lost, b.meta.Begin)
}

// floor returns the number below the first message of the inbox, or below the next one. Without it, SDKs miss all
// numbers from 1 on, and those before 0.3 go through them, one by one.
func (b *inbox) floor() uint64 {
	if len(b.kept) > 0 {
		return b.kept[0].seq - 1
	}
	b.begin()
	return b.last + b.lost
}

// receive writes messages to the inbox, and delivers them.
func (b *inbox) receive(ctx context.Context, records [][]byte) error {
	b.begin()
	first := b.last + b.lost
	if err := b.append(ctx, records); err != nil {
		return err
	}
	for i, r := range records {
		b.deliver(first+1+uint64(i), r)
	}
	return nil
}

// conversationWith returns the last conversation of a thread with an agent; nil for none. To the client, the thread of
// a conversation begun without one is the task.
func (b *inbox) conversationWith(agent, thread string) *conversation {
	for _, c := range slices.Backward(b.meta.Conversations) {
		if c.Agent == agent && c.Thread == thread {
			return c
		}
	}
	for _, c := range b.meta.Conversations {
		if c.Agent == agent && c.Task == thread {
			return b.conversationWith(agent, c.Thread)
		}
	}
	return nil
}

// follow makes messages of the tasks of all open conversations, those of a thread one after the other.
func (b *inbox) follow() {
	type thread struct{ agent, name string }
	seen := make(map[thread]bool)
	for _, c := range b.meta.Conversations {
		if t := (thread{c.Agent, c.Thread}); c.Open && !seen[t] {
			seen[t] = true
			b.box.follow(b.aid, c.Log)
		}
	}
}

// end records that the task of a conversation has ended, and that all its messages are in the inbox.
func (b *inbox) end(ctx context.Context, c *conversation) error {
	c.Open = false
	if b.conversationWith(c.Agent, c.Thread) != c {
		b.meta.Conversations = slices.DeleteFunc(b.meta.Conversations, func(o *conversation) bool { return o == c })
	}
	err := b.append(ctx, nil)
	if err == nil {
		b.follow()
	}
	return err
}

// conversationAbout returns the conversation about the task of a log; nil for none.
func (b *inbox) conversationAbout(log string) *conversation {
	for _, c := range b.meta.Conversations {
		if c.Log == log {
			return c
		}
	}
	return nil
}

// roomForConversation makes room for one more conversation. If there are too many, the oldest ended one goes.
func (b *inbox) roomForConversation() error {
	if len(b.meta.Conversations) >= maxConversations {
		i := slices.IndexFunc(b.meta.Conversations, func(c *conversation) bool { return !c.Open })
		if i < 0 {
			return task.Errorf(task.LimitExceeded, "you have %d open conversations; end some", maxConversations).
				WithData("limit", "conversations").WithData("max", maxConversations)
		}
		b.meta.Conversations = slices.Delete(b.meta.Conversations, i, i+1)
	}
	return nil
}
