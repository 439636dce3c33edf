// SPDX-License-Identifier: Apache-2.0

package task

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Event is one thing that happened to a Task, and one record of its log. Exactly one of Task, Status, Chunk
// and Message is set.
type Event struct {
	// Seq is the event's number in its log, from 1, dense: AIP's eventSeq. The log knows it, so it is not
	// part of the encoded event.
	Seq uint64 `json:"-"`

	Task    *Task    `json:"task,omitempty"`    // the whole Task: the first event, and the one behind which older ones were dropped
	Status  *Status  `json:"status,omitempty"`  // a change of state, or more news of the present one
	Chunk   *Chunk   `json:"chunk,omitempty"`   // a product, or a piece of one
	Message *Message `json:"message,omitempty"` // something that the Partner said

	// Cause is the Leader's message that made this event happen. It takes no number of its own, so that
	// eventSeq counts only what a Leader is told.
	Cause *Message `json:"cause,omitempty"`
}

// Chunk is a product or a piece of one (AIP v01.00 §6.2.4).
type Chunk struct {
	Product Product `json:"product"`
	Append  bool    `json:"append"`    // adds to the product of the same id; otherwise begins it, replacing what was there
	Last    bool    `json:"lastChunk"` // nothing more of this product follows
}

// AppendEvent appends the stored form of ev, which DecodeEvent reads.
func AppendEvent(dst []byte, ev *Event) []byte {
	dst = append(dst, '{')
	switch {
	case ev.Task != nil:
		dst = append(dst, `"task":`...)
		dst = AppendTask(dst, ev.Task)
	case ev.Status != nil:
		dst = append(dst, `"status":`...)
		dst = AppendStatus(dst, ev.Status)
	case ev.Chunk != nil:
		dst = append(dst, `"chunk":{"product":`...)
		dst = AppendProduct(dst, &ev.Chunk.Product)
		dst = append(dst, `,"append":`...)
		dst = appendBool(dst, ev.Chunk.Append)
		dst = append(dst, `,"lastChunk":`...)
		dst = appendBool(dst, ev.Chunk.Last)
		dst = append(dst, '}')
	case ev.Message != nil:
		dst = append(dst, `"message":`...)
		dst = AppendMessage(dst, ev.Message)
	}
	if ev.Cause != nil {
		dst = append(dst, `,"cause":`...)
		dst = AppendMessage(dst, ev.Cause)
	}
	return append(dst, '}')
}

// DecodeEvent reads what AppendEvent wrote. An error means that the log is damaged.
func DecodeEvent(data []byte) (Event, error) {
	var ev Event
	if err := json.Unmarshal(data, &ev); err != nil {
		return Event{}, fmt.Errorf("task: decoding an event of the log: %w", err)
	}
	n := 0
	for _, set := range []bool{ev.Task != nil, ev.Status != nil, ev.Chunk != nil, ev.Message != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return Event{}, fmt.Errorf("task: decoding an event of the log: %d kinds in one event", n)
	}
	return ev, nil
}

// Fold turns events, in order, into the Task that they make. The zero Fold is a task of which nothing is
// known. It is not safe for concurrent use.
type Fold struct {
	Task Task
	Seq  uint64 // number of the last event that was applied

	// growing holds the text of products that arrive in pieces, so that a long stream costs no copy of all
	// that went before. A Builder never rewrites what it has given out.
	growing map[string]*strings.Builder
}

// Apply adds one event. Events must come in the order of their numbers.
func (f *Fold) Apply(ev Event) {
	f.Seq = ev.Seq
	switch {
	case ev.Task != nil:
		f.Task = *ev.Task
		f.Task.StatusHistory = slices.Clone(ev.Task.StatusHistory)
		f.Task.MessageHistory = slices.Clone(ev.Task.MessageHistory)
		f.Task.Products = slices.Clone(ev.Task.Products)
		f.growing = nil
		if len(f.Task.StatusHistory) == 0 {
			f.Task.StatusHistory = []Status{f.Task.Status}
		}
	case ev.Status != nil:
		moved := ev.Status.State != f.Task.Status.State
		f.Task.Status = *ev.Status
		if moved {
			f.Task.StatusHistory = append(f.Task.StatusHistory, *ev.Status)
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
		delete(f.growing, p.ID)
		*p = c.Product
		p.DataItems = slices.Clone(p.DataItems)
		return
	}
	if c.Product.Name != "" {
		p.Name = c.Product.Name
	}
	if c.Product.Description != "" {
		p.Description = c.Product.Description
	}
	p.DataItems = slices.Clone(p.DataItems)
	for _, it := range c.Product.DataItems {
		last := len(p.DataItems) - 1
		if last >= 0 && plainText(&it) && plainText(&p.DataItems[last]) {
			p.DataItems[last].Text = f.grow(p.ID, p.DataItems[last].Text, it.Text)
			continue
		}
		delete(f.growing, p.ID)
		p.DataItems = append(p.DataItems, it)
	}
}

// grow returns head+tail, where head is what the last call for the same product returned.
func (f *Fold) grow(product, head, tail string) string {
	b := f.growing[product]
	if b == nil {
		if f.growing == nil {
			f.growing = make(map[string]*strings.Builder)
		}
		b = new(strings.Builder)
		b.WriteString(head)
		f.growing[product] = b
	}
	b.WriteString(tail)
	return b.String()
}

// plainText reports whether an item is text and nothing else, so that it can be joined with its neighbour.
func plainText(it *DataItem) bool { return it.Kind == TextItem && len(it.Metadata) == 0 }
