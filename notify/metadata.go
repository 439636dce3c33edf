// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// metadata is all of an outbox beside the bodies of its records. It is the Metadata of the log, as JSON; the names of
// its members are a stored format, so they stay when a field is renamed. Its methods do no I/O; their callers hold the
// lock of the outbox.
type metadata struct {
	Seen       uint64    `json:"seen"`                 // number of the last event of the task's log accounted for
	SeenAt     time.Time `json:"seenAt,omitzero"`      // when the state of the event was entered
	Ended      time.Time `json:"ended,omitzero"`       // when the task ended; zero while it has not
	Created    time.Time `json:"created"`              // when the outbox was created, or last waited for its task
	Epoch      string    `json:"epoch"`                // of the last engine to reconcile the outbox
	Generation uint64    `json:"generation,omitempty"` // the number of times the taskId has been used again
	First      uint64    `json:"first"`                // number of the first record of Queue
	Queue      []entry   `json:"queue,omitempty"`      // every record from First on, oldest first
	Waste      int       `json:"waste,omitempty"`      // bytes of records before First, between those of webhooks

	Hooks []hook `json:"webhooks"`
}

// entry is a record of the outbox, without its body. Its State is None if the record is a webhook.
type entry struct {
	Event      uint64     `json:"e"` // its number in the task's log
	State      task.State `json:"s"`
	At         int64      `json:"t"` // when it was written, in milliseconds since 1970
	Size       int        `json:"b"` // bytes of the record
	Generation uint64     `json:"g,omitempty"`
}

// hook is a webhook with its cursor in the outbox.
type hook struct {
	// Webhook has a record of its own, so its URL and its secrets are not written again whenever a cursor moves.
	Webhook  task.Webhook `json:"-"`
	Record   uint64       `json:"record"`             // number of its record; 0 before it is stored
	Size     int          `json:"size"`               // of its record
	Revision uint64       `json:"revision,omitempty"` // the number of times its receiver was replaced
	SetAfter uint64       `json:"setAfter"`           // number of the last event before it was set
	Cursor   uint64       `json:"cursor"`             // number of the last record without need of a further attempt

	// Of the head, the record after Cursor. It holds up the records behind it.
	Attempts int       `json:"attempts,omitempty"`
	Recent   []attempt `json:"recent,omitempty"` // the last of them, oldest first
	First    time.Time `json:"first,omitzero"`   // time of its first attempt
	Next     time.Time `json:"next,omitzero"`    // when its next attempt is due; zero if nothing is pending

	LastDead   time.Time `json:"lastDead,omitzero"`    // when a delivery last became dead, if none has succeeded since
	LastStatus int       `json:"lastStatus,omitempty"` // of HTTP, of the last attempt; 0: no answer
	LastError  string    `json:"lastError,omitempty"`

	Disabled   string       `json:"disabled,omitempty"` // the reason if nothing is sent any more
	DisabledAt time.Time    `json:"disabledAt,omitzero"`
	Dead       []deadLetter `json:"dead,omitempty"` // oldest record first

	endpointName, pathName string // of Webhook.URL; empty until they are needed
}

// endpoint returns the endpoint of the webhook.
func (h *hook) endpoint() string {
	if h.endpointName == "" {
		h.endpointName = endpointOf(h.Webhook.URL)
	}
	return h.endpointName
}

// path returns the path of the webhook, as an operator sees it.
func (h *hook) path() string {
	if h.pathName == "" {
		h.pathName = maskedPath(h.Webhook.URL)
	}
	return h.pathName
}

// replace makes w the webhook.
func (h *hook) replace(w task.Webhook) {
	w.States = slices.Clone(w.States) // it stays in memory
	h.Webhook, h.endpointName, h.pathName = w, "", ""
}

// deadLetter is a notification with all attempts used up.
type deadLetter struct {
	Record   uint64    `json:"record"`
	Attempts int       `json:"attempts"`         // since it was replayed last
	Recent   []attempt `json:"recent,omitempty"` // the last ones, those before a replay included; oldest first
	At       time.Time `json:"at"`               // when it became dead
	Status   int       `json:"status,omitempty"`
	Error    string    `json:"error,omitempty"`
	// Next is set while an operator has it delivered again. It is then a delivery of its own, and holds up no other one.
	Next time.Time `json:"next,omitzero"`
}

const (
	maxHooks = 16 // webhooks of one task
	// maxRecords and maxBytes bound an outbox with its receivers down. Beyond them the oldest notification is dropped, and
	// a line is logged.
	maxRecords = 512
	maxBytes   = 32 << 20
	maxDead    = 100 // dead letters of one webhook; beyond it the oldest is dropped

	keepEnded = 24 * time.Hour     // for an outbox after the end of its task, with everything delivered
	keepEmpty = 24 * time.Hour     // for an outbox waiting for its task
	keepDead  = 7 * 24 * time.Hour // for dead letters, and the queue of a disabled webhook
)

// last is the number of the newest record.
func (m *metadata) last() uint64 { return m.First + uint64(len(m.Queue)) - 1 }

// entry returns the entry of a record, or nil if it is no longer in the queue.
func (m *metadata) entry(record uint64) *entry {
	if record < m.First || record > m.last() {
		return nil
	}
	return &m.Queue[record-m.First]
}

func (m *metadata) pending(h *hook) bool { return h.Cursor < m.last() }

// hook returns the webhook of an id, or nil.
func (m *metadata) hook(id string) *hook {
	for i := range m.Hooks {
		if m.Hooks[i].Webhook.ID == id {
			return &m.Hooks[i]
		}
	}
	return nil
}

// add adds a webhook, to be notified of the events after a number, as far as they are still in the queue.
func (m *metadata) add(w task.Webhook, after uint64) {
	h := hook{SetAfter: after, Cursor: m.last()}
	h.replace(w)
	for h.Cursor >= m.First {
		if en := m.entry(h.Cursor); en.State != task.None && (en.Generation < m.Generation || en.Event <= after) {
			break
		}
		h.Cursor--
	}
	m.Hooks = append(m.Hooks, h)
}

// wants reports whether any webhook wants an event.
func (m *metadata) wants(event uint64, s task.State) bool {
	for i := range m.Hooks {
		if h := &m.Hooks[i]; event > h.SetAfter && h.Webhook.Wants(s) {
			return true
		}
	}
	return false
}

// beginGeneration is for a taskId used again after its task has ended and was dropped: its events are counted from 1
// again. Notifications of the earlier task are delivered first.
func (m *metadata) beginGeneration() {
	m.Generation++
	m.Seen, m.SeenAt, m.Ended = 0, time.Time{}, time.Time{}
	for i := range m.Hooks {
		// The cursor is already behind the earlier task's events not wanted by the webhook.
		m.Hooks[i].SetAfter = 0
	}
}

// reset forgets the attempts of the head, because another record is the head now.
func (h *hook) reset() {
	h.Attempts, h.Recent, h.First, h.Next = 0, nil, time.Time{}, time.Time{}
}

// skip moves the cursor over records not wanted by a webhook, and makes the head due.
func (m *metadata) skip(h *hook, now time.Time) {
	from := h.Cursor
	if h.Cursor+1 < m.First {
		h.Cursor = m.First - 1
	}
	for m.pending(h) {
		if m.wanted(h, m.entry(h.Cursor+1)) {
			break
		}
		h.Cursor++
	}
	if h.Cursor != from || !m.pending(h) {
		h.reset()
	}
	if m.pending(h) && h.Next.IsZero() {
		h.Next = now
	}
}

// tidy is called after every change. It moves each cursor to a record wanted by its webhook, and removes records not
// needed by any webhook: records before First can be dropped from the log. It returns the number of notifications lost
// because the outbox is full.
func (m *metadata) tidy(now time.Time) (lost int) {
	for i := range m.Hooks {
		h := &m.Hooks[i]
		if h.Disabled != "" && !h.DisabledAt.Add(keepDead).After(now) {
			h.Cursor = m.last()
		}
		kept := h.Dead[:0]
		for _, l := range h.Dead {
			if !l.Next.IsZero() || l.At.Add(keepDead).After(now) {
				kept = append(kept, l)
			}
		}
		h.Dead = kept
		for len(h.Dead) > maxDead {
			h.Dead = h.Dead[1:]
			lost++
		}
		h.trimAttempts()
		m.skip(h, now)
	}
	m.trim()
	count, size := 0, 0
	for i := range m.Queue {
		if m.Queue[i].State != task.None {
			count++
		}
		size += m.Queue[i].Size
	}
	for count > maxRecords || size > maxBytes && count > 1 {
		if m.Queue[0].State != task.None {
			count--
		}
		size -= m.Queue[0].Size
		for i := range m.Hooks {
			h := &m.Hooks[i]
			if len(h.Dead) > 0 && h.Dead[0].Record == m.First {
				h.Dead = h.Dead[1:]
				lost++
			}
			if h.Cursor+1 == m.First {
				h.Cursor++
				h.reset()
				lost++
			}
		}
		m.drop(1)
	}
	for i := range m.Hooks {
		m.skip(&m.Hooks[i], now)
	}
	m.trim()
	return lost
}

// trim drops the oldest records not needed by a cursor or a dead letter.
func (m *metadata) trim() {
	need := m.last() + 1
	for i := range m.Hooks {
		h := &m.Hooks[i]
		need = min(need, h.Cursor+1)
		for j := range h.Dead {
			need = min(need, h.Dead[j].Record)
		}
	}
	if need > m.First {
		m.drop(need - m.First)
	}
}

// drop drops a number of the oldest records.
func (m *metadata) drop(count uint64) {
	for i := range m.Queue[:count] {
		if m.Queue[i].State != task.None {
			m.Waste += m.Queue[i].Size
		}
	}
	m.Queue, m.First = m.Queue[count:], m.First+count
}

// forget releases the record of a deleted or replaced webhook.
func (m *metadata) forget(h *hook) {
	m.Waste += h.Size
	h.Record, h.Size = 0, 0
}

// store makes data, to be appended next, the record of a webhook.
func (m *metadata) store(h *hook, data []byte, now time.Time) {
	m.Queue = append(m.Queue, entry{At: now.UnixMilli(), Size: len(data)})
	h.Record, h.Size = m.last(), len(data)
}

// oldest returns the number of the oldest record needed.
func (m *metadata) oldest() uint64 {
	first := m.First
	for i := range m.Hooks {
		first = min(first, m.Hooks[i].Record)
	}
	return first
}

// wasteful reports whether the records of webhooks should be written again, to drop the records between them: when
// those have as many bytes. So at most twice as much is written and kept as is needed.
func (m *metadata) wasteful() bool {
	size := 0
	for i := range m.Hooks {
		if h := &m.Hooks[i]; h.Record < m.First {
			size += h.Size
		}
	}
	return size > 0 && m.Waste >= size
}
