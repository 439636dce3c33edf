// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"time"
)

// Call is a command as a caller gave it, with its parameters read. A front makes it; the life-cycle obeys it.
type Call struct {
	Message Message // its Command says which of the rest counts

	Terms Terms // start

	// Get answers only messages sent, and states entered, after these times. Zero means all.
	MessagesAfter time.Time
	StatesAfter   time.Time

	AfterSeq uint64 // re-stream: the last event that the caller has; 0 means from the beginning

	// Snapshot asks a stream to begin with the task as it is, and to go on with what comes after: the caller's
	// dialect has no numbers to go on from.
	Snapshot bool
	// Strict makes a command that the table would ignore an error: UnsupportedOperation, and of a cancel
	// TaskNotCancelable. So it does with a re-stream of a task that has ended. Where a webhook is set, it makes one an
	// id that is not known.
	Strict bool
	// Either makes a start of a task that exists a continue.
	Either bool
	// Finished says that to the caller a task that awaits completion has ended, so that a cancel or re-stream of it is
	// refused as Strict has it.
	Finished bool

	// Accept, if it is set, is called when the life-cycle accepts a start or a continue, while nothing else can happen
	// to the task: with the name of the task's log, and with where the task stands before the command. Only the store
	// can fail after it. An error refuses the command. undo, which may be nil, is called if the command cannot be
	// stored. A command that changes nothing, and is not refused, is accepted as well.
	Accept func(log string, at At) (undo func(), err error)

	Room Room
}

// Room, if it is set, is called before about n bytes of memory are held for a call: for its message, and for what is read
// from the store. It may wait, and is called while nothing is locked. An error refuses the call. With n 0 the call itself
// holds them no longer; without that, they are held until its answer is sent.
type Room func(ctx context.Context, n int64) error

// Terms are what a Leader may ask for when it starts a task (AIP v01.00 §4.3, StartCommandParams). Zero
// means that the Leader left it to the Partner.
type Terms struct {
	Response           time.Duration `json:"response,omitempty"`           // how long a start or continue may wait for its answer
	AwaitingInput      time.Duration `json:"awaitingInput,omitempty"`      // then the task is canceled
	AwaitingCompletion time.Duration `json:"awaitingCompletion,omitempty"` // then the task is completed
	MaxProductsBytes   int64         `json:"maxProductsBytes,omitempty"`   // then the task fails; see ProductsSize

	// AutoComplete completes a task as soon as its agent has finished: its caller has no word for it.
	AutoComplete bool `json:"autoComplete,omitempty"`
}

// Or returns t with every zero replaced from defaults.
func (t Terms) Or(defaults Terms) Terms {
	if t.Response == 0 {
		t.Response = defaults.Response
	}
	if t.AwaitingInput == 0 {
		t.AwaitingInput = defaults.AwaitingInput
	}
	if t.AwaitingCompletion == 0 {
		t.AwaitingCompletion = defaults.AwaitingCompletion
	}
	if t.MaxProductsBytes == 0 {
		t.MaxProductsBytes = defaults.MaxProductsBytes
	}
	return t
}

// AtMost returns t with no wait of a task for its Leader longer than max; 0 is no bound.
func (t Terms) AtMost(max time.Duration) Terms {
	if max > 0 {
		t.AwaitingInput, t.AwaitingCompletion = min(t.AwaitingInput, max), min(t.AwaitingCompletion, max)
	}
	return t
}

// Ref names a task and its session as the agent knows them.
type Ref struct {
	Task    string `json:"task,omitempty"`
	Session string `json:"session,omitempty"`
}

// Turn is one start or continue, to be carried out by an agent.
type Turn struct {
	Ref     Ref // of a start: names that the gateway made, which an agent that gives its own takes for hints
	Message Message
	Known   []Product // what the task offers so far
	// Withdrawn is what the task offered before a continue withdrew that.
	Withdrawn []Product
	Stamp     string // of the report that ended the turn before; an agent that still gives it has not taken this one

	// From is the state that a continue found the task in; None in a start. After AwaitingCompletion the agent's
	// own task has ended, so that most dialects begin another one.
	From State
	// Taken says of a turn that is resumed that the agent has answered its message before it acted on it. A task that
	// rests as Stamp says may still change.
	Taken bool
	// Webhook is where the agent is to tell of the task unasked; nil for nowhere. Its Token is to come with it.
	Webhook *Webhook
}

// Report is what an agent says about a turn: the whole of it, or a piece of news. The zero Report says
// nothing.
type Report struct {
	// State is the AIP state that the agent's own state means; None when the report does not speak of it.
	// An agent that says it has finished is AwaitingCompletion: only a Leader completes a task.
	State State
	// Items is what the agent said along with its state.
	Items []DataItem
	// Extra and TaskExtra are what the Status that tells of this report has under these names.
	Extra, TaskExtra json.RawMessage

	// Products is every product of the task as the agent knows it now, where Whole is set. Otherwise Chunks
	// are new pieces, in order.
	Whole    bool
	Products []Product
	Chunks   []Chunk

	// Ref is set when the agent has given the task a name of its own.
	Ref *Ref

	// Open says of a State that rests that the agent may go on without a message: what it is waiting for comes
	// to it by another way.
	Open bool

	// Said is the agent's own word for its state, for log lines. Stamp changes whenever the agent changes
	// anything; one that stands still tells that the agent has lost the task. That of a report that rests is the
	// same whether it came by a stream or was asked for.
	Said, Stamp string
	// Dated says that Stamp holds when the agent changed its state, so that one which stands still proves that the
	// agent has changed nothing. Without it, the agent may have said the same again.
	Dated bool

	// Delivery is set in a report that says nothing else: it is the gateway's own, and not the agent's.
	Delivery Delivery
}

// Delivery says what has become of a turn's message before the agent has acted on it.
type Delivery uint8

// The deliveries. A turn that never waits tells none of them.
const (
	NoNews  Delivery = iota
	Waiting          // nothing of the message has been sent yet
	Sending          // it is about to be sent, after it has waited
	Taken            // the agent has answered it, and has not acted on it yet
)

// Over reports whether a report ends its turn: nothing follows before the Leader acts.
func (r *Report) Over() bool { return r.State.Rests() && !r.Open }

// Rests reports whether a turn that has reached s is over: nothing follows before the Leader acts.
func (s State) Rests() bool {
	return s == AwaitingInput || s == AwaitingCompletion || s.Terminal()
}

// Diff returns the chunks that turn the known products into the present ones. A product whose text only grew
// gives the piece that was added; products that are gone, or stand in another order, are for Offer to tell. An
// Extra that is gone stays, too, and one that is all that has changed gives a piece without data items.
func Diff(known, now []Product) []Chunk {
	var out []Chunk
	for i := range now {
		p := &now[i]
		old := findProduct(known, p.ID)
		switch {
		case old == nil:
			out = append(out, Chunk{Product: *p, Last: true})
		case sameProduct(old, p):
		default:
			if tail, ok := grown(old, p); ok {
				out = append(out, Chunk{Product: tail, Append: true, Last: true})
			} else {
				out = append(out, Chunk{Product: *p, Last: true})
			}
		}
	}
	return out
}

// Offer returns the ids of the present products, in their order, where Diff alone would leave the task with others or in
// another order; nil where it would not. An agent that lists no products at all may be one that does not list them, so
// that takes nothing back.
func Offer(known, now []Product) []string {
	if len(now) == 0 {
		return nil
	}
	ids := make([]string, len(now))
	same := len(known) <= len(now)
	for i := range now {
		ids[i] = now[i].ID
		same = same && (i >= len(known) || known[i].ID == ids[i])
	}
	if same {
		return nil
	}
	return ids
}

func findProduct(list []Product, id string) *Product {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

func sameProduct(a, b *Product) bool {
	if a.Name != b.Name || a.Description != b.Description || len(a.DataItems) != len(b.DataItems) || !sameExtra(a, b) {
		return false
	}
	for i := range a.DataItems {
		if !sameItem(&a.DataItems[i], &b.DataItems[i]) {
			return false
		}
	}
	return true
}

// sameExtra reports whether b's Extra is not news to who knows a.
func sameExtra(a, b *Product) bool { return len(b.Extra) == 0 || string(a.Extra) == string(b.Extra) }

func sameItem(a, b *DataItem) bool {
	return a.Kind == b.Kind && a.Text == b.Text && a.Name == b.Name && a.MIMEType == b.MIMEType &&
		a.URI == b.URI && a.Bytes == b.Bytes && string(a.Data) == string(b.Data) &&
		string(a.Metadata) == string(b.Metadata)
}

// grown returns what was added to old to make p, if p is old with something added at its end.
func grown(old, p *Product) (Product, bool) {
	n := len(old.DataItems)
	if n == 0 && len(p.DataItems) > 0 || len(p.DataItems) < n || p.Name != old.Name || p.Description != old.Description {
		return Product{}, false
	}
	tail := Product{ID: p.ID}
	if !sameExtra(old, p) {
		tail.Extra = p.Extra
	}
	if n == 0 {
		return tail, true
	}
	for i := range n - 1 {
		if !sameItem(&old.DataItems[i], &p.DataItems[i]) {
			return Product{}, false
		}
	}
	for i := n; i < len(p.DataItems); i++ {
		if plainText(&p.DataItems[i-1]) && plainText(&p.DataItems[i]) {
			return Product{}, false // appending would join the two texts
		}
	}
	last, was := p.DataItems[n-1], &old.DataItems[n-1]
	switch {
	case sameItem(was, &last):
	case plainText(was) && plainText(&last) && len(last.Text) > len(was.Text) && last.Text[:len(was.Text)] == was.Text:
		tail.DataItems = append(tail.DataItems, Text(last.Text[len(was.Text):]))
	default:
		return Product{}, false
	}
	tail.DataItems = append(tail.DataItems, p.DataItems[n:]...)
	return tail, true
}
