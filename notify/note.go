// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"time"

	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
)

// note is all that an outbox knows beside the bodies of its records. The store keeps it in the log's head, as
// JSON. Its methods do no I/O; whoever calls them holds the outbox's lock.
type note struct {
	Seen  uint64    `json:"seen"`            // number of the last event of the task's log that is accounted for
	Told  time.Time `json:"told,omitzero"`   // when the last state that is accounted for was entered
	Ended time.Time `json:"ended,omitzero"`  // when the task ended; zero while it has not
	Made  time.Time `json:"made"`            // when the outbox was, or was last asked for before its task came
	Epoch string    `json:"epoch"`           // of the engine that last made sure that nothing is missing
	Life  uint64    `json:"life,omitempty"`  // how often the taskId has been used again
	First uint64    `json:"first"`           // number of the record that Queue begins with
	Queue []entry   `json:"queue,omitempty"` // every record from First on, oldest first
	Waste int       `json:"waste,omitempty"` // bytes of records before First that are kept for those of webhooks between them

	Configs []config `json:"configs"`
}

// entry is a record of the outbox, without its body. Its State is None where the record is that of a webhook.
type entry struct {
	Event uint64     `json:"e"` // its number in the task's log
	State task.State `json:"s"`
	At    int64      `json:"t"` // when it was written, in milliseconds since 1970
	Size  int        `json:"b"` // bytes of the record
	Life  uint64     `json:"l,omitempty"`
}

// config is one webhook: a follower of the outbox.
type config struct {
	// Webhook has a record of its own, so that its URL and its secrets are not written again whenever a cursor moves. A
	// stored note has it only if an earlier build wrote that.
	Webhook task.Webhook `json:"webhook,omitzero"`
	Kept    uint64       `json:"kept,omitempty"`  // number of that record; 0 while there is none
	Size    int          `json:"bytes,omitempty"` // of that record
	Rev     uint64       `json:"rev,omitempty"`   // how often it was replaced
	From    uint64       `json:"from"`            // events up to this one were before it was set
	Cursor  uint64       `json:"cursor"`          // number of the last record that is dealt with

	// Of the record after Cursor, the head, which holds up those behind it.
	Attempts int       `json:"attempts,omitempty"`
	First    time.Time `json:"first,omitzero"` // time of its first attempt
	Next     time.Time `json:"next,omitzero"`  // when its next attempt is due; zero where nothing is pending

	GaveUp     time.Time `json:"gaveUp,omitzero"`      // when the last delivery became dead, if none has succeeded since
	LastStatus int       `json:"lastStatus,omitempty"` // of HTTP, of the last attempt of all; 0 where there was no answer
	LastError  string    `json:"lastError,omitempty"`

	Disabled   string    `json:"disabled,omitempty"` // why nothing more is sent
	DisabledAt time.Time `json:"disabledAt,omitzero"`
	Dead       []letter  `json:"dead,omitempty"` // oldest record first
}

// letter is a delivery that was given up.
type letter struct {
	Record   uint64    `json:"record"`
	Attempts int       `json:"attempts"`
	At       time.Time `json:"at"` // when it was given up
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
	// Next is set while it is being delivered again. It is then a delivery of its own, that holds up nobody.
	Next time.Time `json:"next,omitzero"`
}

const (
	// maxHooks is the number of webhooks that one task may have.
	maxHooks = 16
	// maxRecords and maxBytes bound an outbox whose receivers are down. Beyond them the oldest notification is
	// dropped, and said to be.
	maxRecords = 512
	maxBytes   = 32 << 20
	// maxDead bounds the dead letters of a webhook; beyond it the oldest is dropped.
	maxDead = 100

	keepEnded = 24 * time.Hour     // how long an outbox stays when its task has ended and all is told
	keepEmpty = 24 * time.Hour     // how long it waits for its task
	keepDead  = 7 * 24 * time.Hour // how long dead letters stay, and the queue of a webhook that is disabled
)

// last is the number of the newest record.
func (n *note) last() uint64 { return n.First + uint64(len(n.Queue)) - 1 }

// entry returns a record that is kept.
func (n *note) entry(record uint64) *entry {
	if record < n.First || record > n.last() {
		return nil
	}
	return &n.Queue[record-n.First]
}

func (n *note) pending(c *config) bool { return c.Cursor < n.last() }

// config returns the webhook of an id, or nil.
func (n *note) config(id string) *config {
	for i := range n.Configs {
		if n.Configs[i].Webhook.ID == id {
			return &n.Configs[i]
		}
	}
	return nil
}

// wants reports whether any webhook is to be told of an event.
func (n *note) wants(event uint64, s task.State) bool {
	for i := range n.Configs {
		if c := &n.Configs[i]; event > c.From && c.Webhook.Wants(s) {
			return true
		}
	}
	return false
}

// renew is for a taskId that is used again after its task has ended and is no longer known: its events are
// counted from 1 anew. What the earlier task still owes is told first.
func (n *note) renew() {
	n.Life++
	n.Seen, n.Told, n.Ended = 0, time.Time{}, time.Time{}
	for i := range n.Configs {
		// Of the earlier task's events, those that a webhook is not to be told of are behind its cursor already.
		n.Configs[i].From = 0
	}
}

// reset is for a head that has changed.
func (c *config) reset() {
	c.Attempts, c.First, c.Next = 0, time.Time{}, time.Time{}
}

// skip passes over what a webhook is not to be told of, and gives the head a time.
func (n *note) skip(c *config, now time.Time) {
	from := c.Cursor
	if c.Cursor+1 < n.First {
		c.Cursor = n.First - 1
	}
	for n.pending(c) {
		en := n.entry(c.Cursor + 1)
		if en.State != task.None && (en.Event > c.From || en.Life < n.Life) && c.Webhook.Wants(en.State) {
			break
		}
		c.Cursor++
	}
	if c.Cursor != from || !n.pending(c) {
		c.reset()
	}
	if n.pending(c) && c.Next.IsZero() {
		c.Next = now
	}
}

// tidy puts a note in order after any change: every cursor stands before a record that its webhook wants, and
// what nobody needs is gone. Records below First are to be dropped from the log. It returns how many
// notifications were lost because the outbox is full.
func (n *note) tidy(now time.Time) (lost int) {
	for i := range n.Configs {
		c := &n.Configs[i]
		if c.Disabled != "" && !c.DisabledAt.Add(keepDead).After(now) {
			c.Cursor = n.last()
		}
		kept := c.Dead[:0]
		for _, l := range c.Dead {
			if !l.Next.IsZero() || l.At.Add(keepDead).After(now) {
				kept = append(kept, l)
			}
		}
		c.Dead = kept
		for len(c.Dead) > maxDead {
			c.Dead = c.Dead[1:]
			lost++
		}
		n.skip(c, now)
	}
	n.trim()
	count, size := 0, 0
	for i := range n.Queue {
		if n.Queue[i].State != task.None {
			count++
		}
		size += n.Queue[i].Size
	}
	for count > maxRecords || size > maxBytes && count > 1 {
		if n.Queue[0].State != task.None {
			count--
		}
		size -= n.Queue[0].Size
		for i := range n.Configs {
			c := &n.Configs[i]
			if len(c.Dead) > 0 && c.Dead[0].Record == n.First {
				c.Dead = c.Dead[1:]
				lost++
			}
			if c.Cursor+1 == n.First {
				c.Cursor++
				c.reset()
				lost++
			}
		}
		n.drop(1)
	}
	for i := range n.Configs {
		n.skip(&n.Configs[i], now)
	}
	n.trim()
	return lost
}

// trim forgets the oldest records, as far as no cursor and no dead letter needs them.
func (n *note) trim() {
	need := n.last() + 1
	for i := range n.Configs {
		c := &n.Configs[i]
		need = min(need, c.Cursor+1)
		for j := range c.Dead {
			need = min(need, c.Dead[j].Record)
		}
	}
	if need > n.First {
		n.drop(need - n.First)
	}
}

// drop forgets a number of the oldest records.
func (n *note) drop(count uint64) {
	for i := range n.Queue[:count] {
		if n.Queue[i].State != task.None {
			n.Waste += n.Queue[i].Size
		}
	}
	n.Queue, n.First = n.Queue[count:], n.First+count
}

// forget is for a webhook whose record is not needed any more.
func (n *note) forget(c *config) {
	n.Waste += c.Size
	c.Kept, c.Size = 0, 0
}

// keep makes data the record of a webhook.
func (n *note) keep(c *config, data []byte, now time.Time) {
	n.Queue = append(n.Queue, entry{At: now.UnixMilli(), Size: len(data)})
	c.Kept, c.Size = n.last(), len(data)
}

// oldest returns the number of the oldest record that is needed.
func (n *note) oldest() uint64 {
	first := n.First
	for i := range n.Configs {
		first = min(first, n.Configs[i].Kept)
	}
	return first
}

// wasteful reports whether the records of webhooks should be written again, so that those between them can go: they are
// when they have no more bytes than what goes, so that at most twice as much is written and kept as is needed.
func (n *note) wasteful() bool {
	size := 0
	for i := range n.Configs {
		if c := &n.Configs[i]; c.Kept < n.First {
			size += c.Size
		}
	}
	return size > 0 && n.Waste >= size
}

// target is a delivery whose time has come.
type target struct {
	record uint64
	letter bool // a dead one that is being delivered again
}

// due returns the delivery of a webhook to attempt now, the one of the earliest event.
func (n *note) due(c *config, now time.Time) (target, bool) {
	if c.Disabled != "" {
		return target{}, false
	}
	for i := range c.Dead { // oldest record first, and all of them are behind the cursor
		if l := &c.Dead[i]; !l.Next.IsZero() && !l.Next.After(now) {
			return target{record: l.Record, letter: true}, true
		}
	}
	if n.pending(c) && !c.Next.After(now) {
		return target{record: c.Cursor + 1}, true
	}
	return target{}, false
}

// letter returns the dead letter of a record, or -1.
func (c *config) letter(record uint64) int {
	for i := range c.Dead {
		if c.Dead[i].Record == record {
			return i
		}
	}
	return -1
}

// bury makes the head, or a letter that was tried again, a dead letter.
func (n *note) bury(c *config, t target, l letter) {
	l.Record = t.record
	if t.letter {
		if i := c.letter(t.record); i >= 0 {
			c.Dead[i] = l
		}
		return
	}
	c.Dead = append(c.Dead, l)
	c.Cursor++
	c.reset()
}

// postpone moves what is due of a webhook to another time.
func (n *note) postpone(c *config, now, to time.Time) {
	for i := range c.Dead {
		if l := &c.Dead[i]; !l.Next.IsZero() && !l.Next.After(now) {
			l.Next = to
		}
	}
	if n.pending(c) && !c.Next.After(now) {
		c.Next = to
	}
}

// next is when something of a webhook is due; zero for never.
func (n *note) next(c *config) (at time.Time) {
	if c.Disabled != "" {
		return at
	}
	if n.pending(c) {
		at = c.Next
	}
	for i := range c.Dead {
		at = earlier(at, c.Dead[i].Next)
	}
	return at
}

// earlier returns the earlier of two times, of which the zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// wake is when the outbox must be looked at again, and whether it is then to go altogether.
func (n *note) wake() (at time.Time, goes bool) {
	for i := range n.Configs {
		at = earlier(at, n.next(&n.Configs[i]))
	}
	if !at.IsZero() {
		return at, false
	}
	var drop, latest time.Time // of what is kept for a while
	for i := range n.Configs {
		c := &n.Configs[i]
		if c.Disabled != "" && n.pending(c) {
			t := c.DisabledAt.Add(keepDead)
			drop, latest = earlier(drop, t), later(latest, t)
		}
		for j := range c.Dead {
			t := c.Dead[j].At.Add(keepDead)
			drop, latest = earlier(drop, t), later(latest, t)
		}
	}
	switch {
	case !n.Ended.IsZero():
		return later(latest, n.Ended.Add(keepEnded)), true
	case !drop.IsZero():
		return drop, false
	case n.Seen == 0:
		return n.Made.Add(keepEmpty), true
	}
	return replay.Recover, false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
