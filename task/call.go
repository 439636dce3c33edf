// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
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
	StartOrContinue bool
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
