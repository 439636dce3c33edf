// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Event is one thing that happened to a Task, and one record of its log. Exactly one of Task, Status, Chunk
// and Message is set.
type Event struct {
	// Seq is the event's number in its log, from 1, dense: AIP's eventSeq. The log knows it, so it is not
	// part of the stored event.
	Seq uint64

	Task    *Task    // the whole Task: the first event, and the one behind which older ones were dropped
	Status  *Status  // a change of state, or more news of the present one
	Chunk   *Chunk   // a product, or a piece of one
	Message *Message // something that the Partner said

	// Offer is what the task offers from a Status on: the ids of its products, in order. Those that it does not name
	// are withdrawn. Nil changes nothing, an empty one withdraws all.
	Offer []string

	// Cause is the Leader's message that made this event happen. It takes no number of its own, so that
	// eventSeq counts only what a Leader is told.
	Cause *Message
	// Withdrawn is what a snapshot keeps for Fold.Withdrawn beside its Task; nil for nothing.
	Withdrawn []Product
}

// Chunk is a product or a piece of one (AIP v01.00 §6.2.4).
type Chunk struct {
	Product Product `json:"product"`
	Append  bool    `json:"append"`    // adds to the product of the same id; otherwise begins it, replacing what was there
	Last    bool    `json:"lastChunk"` // nothing more of this product follows

	// Extensions are those of the piece and not of the product.
	Extensions json.RawMessage `json:"metadata,omitempty"`
}

// The kinds of event, as the first byte of the stored form. A stored event is one line or more: a letter for its kind
// and the JSON of that, the JSON of its offer or of what was withdrawn, and the JSON of its cause. No JSON of ours
// holds a line feed, so an event can be taken apart without being parsed.
const (
	TaskEvent    = 't'
	StatusEvent  = 's'
	ChunkEvent   = 'c'
	MessageEvent = 'm'

	offerEvent     = 'o' // a StatusEvent that has an offer
	withdrawnEvent = 'w' // a TaskEvent that has withdrawn products, in a Task of their own
)

// SplitEvent takes a stored event apart: its kind, the JSON of that, and the JSON of its cause, nil where it
// has none. It is for those who pass events on as they are.
func SplitEvent(data []byte) (kind byte, value, cause []byte) {
	if len(data) == 0 {
		return 0, nil, nil
	}
	kind, value, _, cause = splitEvent(data)
	return kind, value, cause
}

// splitEvent is SplitEvent with the second line of an event that has an offer or withdrawn products.
func splitEvent(data []byte) (kind byte, value, second, cause []byte) {
	kind = data[0]
	value, cause, _ = bytes.Cut(data[1:], []byte{'\n'})
	switch kind {
	case offerEvent:
		kind = StatusEvent
	case withdrawnEvent:
		kind = TaskEvent
	default:
		return kind, value, nil, cause
	}
	second, cause, _ = bytes.Cut(cause, []byte{'\n'})
	return kind, value, second, cause
}

// AppendEvent appends the stored form of ev, which DecodeEvent reads.
func AppendEvent(dst []byte, ev *Event) []byte {
	switch {
	case ev.Task != nil && ev.Withdrawn != nil:
		dst = append(AppendTask(append(dst, withdrawnEvent), ev.Task), '\n')
		dst = AppendTask(dst, &Task{Products: ev.Withdrawn})
	case ev.Task != nil:
		dst = AppendTask(append(dst, TaskEvent), ev.Task)
	case ev.Status != nil && ev.Offer != nil:
		dst = append(AppendStatus(append(dst, offerEvent), ev.Status), '\n', '[')
		for i, id := range ev.Offer {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, id)
		}
		dst = append(dst, ']')
	case ev.Status != nil:
		dst = AppendStatus(append(dst, StatusEvent), ev.Status)
	case ev.Chunk != nil:
		dst = AppendChunk(append(dst, ChunkEvent), ev.Chunk)
	case ev.Message != nil:
		dst = AppendMessage(append(dst, MessageEvent), ev.Message)
	}
	if ev.Cause != nil {
		dst = AppendMessage(append(dst, '\n'), ev.Cause)
	}
	return dst
}

// DecodeEvent reads what AppendEvent wrote. An error means that the log is damaged.
func DecodeEvent(data []byte) (Event, error) {
	var ev Event
	if len(data) == 0 {
		return ev, errors.New("task: decoding an event of the log: it is empty")
	}
	kind, value, second, cause := splitEvent(data)
	var into any
	switch kind {
	case TaskEvent:
		ev.Task = new(Task)
		into = ev.Task
	case StatusEvent:
		ev.Status = new(Status)
		into = ev.Status
	case ChunkEvent:
		ev.Chunk = new(Chunk)
		into = ev.Chunk
	case MessageEvent:
		ev.Message = new(Message)
		into = ev.Message
	default:
		return ev, fmt.Errorf("task: decoding an event of the log: there is no kind %q", data[0])
	}
	err := json.Unmarshal(value, into)
	switch {
	case err != nil || second == nil:
	case ev.Task != nil:
		var withdrawn Task
		err = json.Unmarshal(second, &withdrawn)
		ev.Withdrawn = withdrawn.Products
	default:
		err = json.Unmarshal(second, &ev.Offer)
	}
	if err == nil && cause != nil {
		ev.Cause = new(Message)
		err = json.Unmarshal(cause, ev.Cause)
	}
	if err != nil {
		return Event{}, fmt.Errorf("task: decoding an event of the log: %w", err)
	}
	return ev, nil
}

// Fold turns events, in order, into the Task that they make. The zero Fold is a task of which nothing is
// known. It is not safe for concurrent use.
type Fold struct {
	Task Task
	Seq  uint64 // number of the last event that was applied

	// Withdrawn is what the task offered when the present turn began, where a continue withdrew that.
	Withdrawn []Product

	pieces Pieces
}

// Apply adds one event. Events must come in the order of their numbers.
func (f *Fold) Apply(ev Event) {
	f.Seq = ev.Seq
	switch {
	case ev.Task != nil:
		f.Task = *ev.Task
		f.Task.StatusHistory = slices.Clone(ev.Task.StatusHistory)
		f.Task.MessageHistory = slices.Clone(ev.Task.MessageHistory)
		f.Task.Products = append([]Product(nil), ev.Task.Products...) // nil where there are none, stored or not
		f.pieces, f.Withdrawn = Pieces{}, ev.Withdrawn
		if len(f.Task.StatusHistory) == 0 {
			f.Task.StatusHistory = []Status{f.Task.Status}
		}
	case ev.Status != nil:
		moved := ev.Status.State != f.Task.Status.State
		f.Task.Status = *ev.Status
		if news := ev.Status.TaskExtensions; len(news) > 0 {
			f.Task.Extensions, f.Task.Status.TaskExtensions = merged(f.Task.Extensions, news), nil
		}
		if moved {
			f.Task.StatusHistory = append(f.Task.StatusHistory, f.Task.Status)
		}
		if ev.Cause != nil {
			f.Withdrawn = nil
		}
		if ev.Offer != nil {
			f.offer(ev.Offer, ev.Cause != nil)
		}
	case ev.Chunk != nil:
		f.chunk(ev.Chunk)
	case ev.Message != nil:
		f.Task.MessageHistory = append(f.Task.MessageHistory, *ev.Message)
	}
	if ev.Cause != nil {
		f.Task.MessageHistory = append(f.Task.MessageHistory, *ev.Cause)
	}
}

// offer lets the task have the products that ids name, in their order, and no others.
func (f *Fold) offer(ids []string, continued bool) {
	if continued {
		f.Withdrawn = f.Task.Products
	}
	var offered []Product
	for _, id := range ids {
		p := findProduct(f.Task.Products, id)
		if p != nil && findProduct(offered, id) == nil {
			offered = append(offered, *p)
		}
	}
	for id := range f.pieces.texts {
		if findProduct(offered, id) == nil {
			f.pieces.Forget(id)
		}
	}
	f.Task.Products = offered
}

func (f *Fold) chunk(c *Chunk) {
	i := slices.IndexFunc(f.Task.Products, func(p Product) bool { return p.ID == c.Product.ID })
	if i < 0 {
		p := c.Product
		p.DataItems = slices.Clone(p.DataItems)
		f.Task.Products = append(slices.Clip(f.Task.Products), p)
		return
	}
	// Readers may hold the slice of an earlier moment: change a copy.
	f.Task.Products = slices.Clone(f.Task.Products)
	p := &f.Task.Products[i]
	if !c.Append {
		f.pieces.Forget(p.ID)
		*p = c.Product
		p.DataItems = slices.Clone(p.DataItems)
		return
	}
	p.DataItems = slices.Clone(p.DataItems)
	f.pieces.Add(p, &c.Product)
}
