// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"
	"strings"
)

// An agent's words along with a state become a message of the Partner in the history once it says something else, or
// the task moves on. If a state repeats the words in the history, it does not become one: at the end of a turn, say,
// when the answer is all the words of the turn.

const (
	// maxRemarks is the number of messages of one turn standing apart. The last of them grows by all later words, since an
	// agent may say its answer in small pieces.
	maxRemarks = 64
	// maxLastItems is the most data items of the last of them, with adjacent texts joined to one. Beyond that the older
	// ones are forgotten, down to a half: each reader of the history gets a copy of them.
	maxLastItems = 256
	// maxSaid is the most bytes of the agent's words kept, if Fold.MaxSaid is not less.
	maxSaid = 4 << 20
)

// remarks is a Fold's knowledge of the messages of the Partner in the history.
type remarks struct {
	from  int     // the place of the turn's first one in the history, but for words said before the agent worked
	size  int64   // of all of them
	last  Product // the content of the last one, if it grows; else without items
	texts Texts   // of last
	late  bool    // last has more than the history
}

// see takes over the history of a snapshot.
func (r *remarks) see(t *Task) {
	history := t.MessageHistory
	*r = remarks{from: len(history)}
	for r.from > 0 && history[r.from-1].SenderRole == Partner && !waited(t, &history[r.from-1]) {
		r.from--
	}
	for i := range history {
		if history[i].SenderRole == Partner {
			r.size += history[i].Size()
		}
	}
}

// waited reports whether the agent did not work yet when it said something.
func waited(t *Task, m *Message) bool {
	rows := t.StatusHistory
	return len(rows) > 1 && rows[0].State == Accepted && m.SentAt.Before(rows[1].ChangedAt)
}

// pass puts the agent's words along with the present state into the history, since the status next takes its place;
// cause is the Leader's message behind next.
func (f *Fold) pass(next *Status, cause *Message) {
	was := &f.task.Status
	switch {
	case len(was.DataItems) == 0, was.State == AwaitingCompletion && next.State == Completed,
		cause == nil && f.repeats(next), was.State.Settled() && slices.EqualFunc(was.DataItems, f.Said(), DataItem.Equal):
	default:
		f.remark(Message{SentAt: was.ChangedAt, SenderRole: Partner, DataItems: was.DataItems,
			Extensions: was.Extensions})
	}
	if was.State == Accepted && next.State == Working {
		f.said.from = len(f.task.MessageHistory) // see waited
	}
}

// repeats reports whether a status says all the words of the present one: the same, or a text beginning with them. Some
// agents say the whole text again whenever it has grown.
func (f *Fold) repeats(next *Status) bool {
	was := f.task.Status.DataItems
	if len(was) != 1 || len(next.DataItems) != 1 || !was[0].PlainText() || !next.DataItems[0].PlainText() {
		return false
	}
	text, whole := was[0].Text, next.DataItems[0].Text
	return text == whole ||
		f.said.from == len(f.task.MessageHistory) && strings.HasPrefix(whole, text) && strings.TrimSpace(text) != ""
}

// remark adds a message of the Partner to the history.
func (f *Fold) remark(m Message) {
	r := &f.said
	m.TaskID, m.SessionID, m.GroupID = f.task.ID, f.task.SessionID, f.task.GroupID
	if n := len(f.task.MessageHistory); n-r.from < maxRemarks {
		f.task.MessageHistory = append(f.task.MessageHistory, m)
		r.size += m.Size()
	} else {
		if r.last.DataItems == nil {
			r.last.DataItems = slices.Clone(f.task.MessageHistory[n-1].DataItems)
		}
		had := len(r.last.DataItems)
		r.texts.Add(&r.last, &Product{DataItems: m.DataItems})
		r.size += itemsSize(m.DataItems) - int64(entrySize*(had+len(m.DataItems)-len(r.last.DataItems)))
		if all := r.last.DataItems; len(all) > maxLastItems {
			old := len(all) - max(maxLastItems/2, len(m.DataItems))
			r.size -= itemsSize(all[:old])
			r.last.DataItems = slices.Clone(all[old:])
		}
		r.late = true
	}
	if most := f.maxSaid(); r.size > most {
		f.forget(most / 2)
	}
}

func (f *Fold) maxSaid() int64 {
	if f.MaxSaid > 0 {
		return min(f.MaxSaid, maxSaid)
	}
	return maxSaid
}

// forget removes the oldest messages of the Partner from the history, until the rest have so many bytes at most.
func (f *Fold) forget(most int64) {
	f.joinRemarks()
	r := &f.said
	left, from := make([]Message, 0, len(f.task.MessageHistory)), 0
	for i, m := range f.task.MessageHistory {
		if m.SenderRole == Partner && r.size > most {
			r.size -= m.Size()
			continue
		}
		left = append(left, m)
		if i < r.from {
			from = len(left)
		}
	}
	f.task.MessageHistory = left
	r.from, r.last, r.texts = from, Product{}, Texts{}
}

// joinRemarks makes the last message of the history complete.
func (f *Fold) joinRemarks() {
	r := &f.said
	if !r.late {
		return
	}
	r.late = false
	f.task.MessageHistory = slices.Clone(f.task.MessageHistory) // readers may hold the slices of an earlier moment
	f.task.MessageHistory[len(f.task.MessageHistory)-1].DataItems = slices.Clone(r.last.DataItems)
}

// turn begins the next turn. Its message is the last one of the history.
func (r *remarks) turn(history []Message) {
	*r = remarks{from: len(history), size: r.size}
}

// Said returns the agent's words in the turn so far, with adjacent plain texts joined to one, as in a product; nothing
// if they are blank.
func (f *Fold) Said() []DataItem {
	f.joinRemarks()
	var whole Product
	var texts Texts
	add := func(items []DataItem) {
		if slices.ContainsFunc(items, isThought) {
			items = slices.DeleteFunc(slices.Clone(items), isThought)
		}
		if whole.DataItems == nil {
			whole.DataItems = slices.Clone(items)
			return
		}
		texts.Add(&whole, &Product{DataItems: items})
	}
	for i := f.said.from; i < len(f.task.MessageHistory); i++ {
		add(f.task.MessageHistory[i].DataItems)
	}
	if f.task.Status.State == Working {
		add(f.task.Status.DataItems)
	}
	if IsBlank(whole.DataItems) {
		return nil
	}
	return whole.DataItems
}

// thought is the metadata of a Thought.
const thought = `{"thought":true}`

// Thought returns an agent's thought while it works: it is in the history, and never a part of an answer.
func Thought(text string) DataItem {
	it := Text(text)
	it.Metadata = []byte(thought)
	return it
}

// isThought reports whether a data item is a Thought.
func isThought(it DataItem) bool { return it.Kind == TextItem && string(it.Metadata) == thought }

// IsBlank reports whether items say nothing.
func IsBlank(items []DataItem) bool {
	return !slices.ContainsFunc(items, func(it DataItem) bool {
		return it.Kind != TextItem || strings.TrimSpace(it.Text) != ""
	})
}
