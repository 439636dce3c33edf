// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Event is one thing that happened to a Task, and one record of its log. Exactly one of Task, Status, Chunk
// and Message is set.
type Event struct {
	// Seq is the number of the event in its log, from 1: AIP's eventSeq. It is not a part of the stored event.
	Seq uint64

	Task    *Task    // the whole Task: the first event, or a snapshot in place of older ones
	Status  *Status  // a change of state, or more about the present one
	Chunk   *Chunk   // a product, or a piece of one
	Message *Message // a message of the Partner

	// Offer is the list of the ids of all products offered by the task from this Status on, in order: others are
	// withdrawn. Nil changes nothing, an empty list withdraws all.
	Offer []string

	// Cause is the Leader's message behind this event. It has no number of its own: eventSeq counts events received by a
	// Leader.
	Cause *Message
	// Withdrawn is Fold.Withdrawn, in a snapshot.
	Withdrawn []Product
}

// Chunk is a product or a piece of one (AIP v01.00 §6.2.4).
type Chunk struct {
	Product Product `json:"product"`
	Append  bool    `json:"append"`    // adds to the product of the same id; otherwise replaces it
	Last    bool    `json:"lastChunk"` // nothing more of this product follows

	// Extensions are those of the piece and not of the product.
	Extensions json.RawMessage `json:"metadata,omitempty"`
}

// The kinds of event are the first byte of the stored form. A stored event has one line or more: the kind and the JSON
// of the Task, Status, Chunk or Message; then the JSON of its offer, or of the withdrawn products, if it has them; then
// the JSON of its cause. The JSON has no line feeds, so an event can be split without being parsed.
const (
	TaskEvent    = 't'
	StatusEvent  = 's'
	ChunkEvent   = 'c'
	MessageEvent = 'm'

	offerEvent     = 'o' // a StatusEvent with an offer
	withdrawnEvent = 'w' // a TaskEvent with withdrawn products, in a Task of their own
)

// SplitEvent splits a stored event into its kind, the JSON of its content, and the JSON of its cause, nil if it has
// none. It is for readers passing events on without decoding them.
func SplitEvent(data []byte) (kind byte, value, cause []byte) {
	if len(data) == 0 {
		return 0, nil, nil
	}
	kind, value, _, cause = splitEvent(data)
	return kind, value, cause
}

// StateIn returns the new state of a task by a stored event; empty for an event without one. It decodes nothing else of
// the event.
func StateIn(data []byte) State {
	if len(data) == 0 {
		return ""
	}
	var value []byte
	switch data[0] {
	case StatusEvent, offerEvent:
		value = bytes.TrimPrefix(data[1:], []byte(`{"state":"`))
	case TaskEvent, withdrawnEvent:
		_, value, _ = bytes.Cut(data, []byte(`"status":{"state":"`)) // a quote within a string is escaped
	default:
		return ""
	}
	name, _, _ := bytes.Cut(value, []byte{'"'})
	for _, s := range States() {
		if string(name) == string(s) {
			return s
		}
	}
	return ""
}

// splitEvent is SplitEvent with the line of the offer or of the withdrawn products, too.
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

// AppendEvent appends the stored form of ev, for DecodeEvent.
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

// DecodeEvent reads an event of AppendEvent. An error means a damaged log.
func DecodeEvent(data []byte) (Event, error) {
	var ev Event
	if len(data) == 0 {
		return ev, errors.New("task: decoding an event of the log: it is empty")
	}
	if c, ok := decodeText(data); ok {
		ev.Chunk = &c
		return ev, nil
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
