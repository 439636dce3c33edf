// SPDX-License-Identifier: Apache-2.0

package mailbox

import (
	"slices"
	"time"
)

// recent holds the last messages of clients, for recalling them. After a restart, none can be recalled.
type recent struct {
	byID map[string][]sentMessage // the first one of each sender with the id
	by   map[string][]string      // the ids of a sender's messages, the oldest first
	n    int
}

type sentMessage struct {
	ID, From, To string
	At           time.Time
	Final        bool // it cannot be recalled
}

// remember keeps a sent message.
func (m *Mailbox) remember(s sentMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sent.add(s)
}

// find returns a message of a sender, or else one of another client with the same id.
func (r *recent) find(from, id string) (s sentMessage, known bool) {
	same := r.byID[id]
	if len(same) == 0 {
		return sentMessage{ID: id}, false
	}
	return same[max(r.index(from, id), 0)], true
}

func (r *recent) index(from, id string) int {
	return slices.IndexFunc(r.byID[id], func(s sentMessage) bool { return s.From == from })
}

// add adds a message. If there are too many, expired ones go first, and then the oldest of the sender with the most:
// messages of others take no client's recalls away.
func (r *recent) add(s sentMessage) {
	if r.byID == nil {
		r.byID, r.by = make(map[string][]sentMessage), make(map[string][]string)
	}
	r.expire(s.From, s.At)
	if r.index(s.From, s.ID) >= 0 {
		return
	}
	if r.n >= maxSent {
		most := ""
		for from := range r.by {
			if r.expire(from, s.At); len(r.by[from]) > len(r.by[most]) {
				most = from
			}
		}
		if r.n >= maxSent {
			r.drop(most)
		}
	}
	r.byID[s.ID] = append(r.byID[s.ID], s)
	r.by[s.From] = append(r.by[s.From], s.ID)
	r.n++
}

// expire drops the expired messages of a sender.
func (r *recent) expire(from string, now time.Time) {
	for len(r.by[from]) > 0 {
		id := r.by[from][0]
		if now.Sub(r.byID[id][r.index(from, id)].At) <= 2*recallFor {
			return
		}
		r.drop(from)
	}
}

// drop drops the oldest message of a sender.
func (r *recent) drop(from string) {
	id := r.by[from][0]
	i := r.index(from, id)
	if r.byID[id] = slices.Delete(r.byID[id], i, i+1); len(r.byID[id]) == 0 {
		delete(r.byID, id)
	}
	if r.by[from] = r.by[from][1:]; len(r.by[from]) == 0 {
		delete(r.by, from)
	}
	r.n--
}
