// SPDX-License-Identifier: Apache-2.0

package task

import "time"

// Call is a command with its parameters read.
type Call struct {
	Message Message // the fields that count depend on its Command

	Terms Terms // start; a continue may have its own Response

	// The answer to a get has only messages sent, and states entered, after these times. Zero means all.
	MessagesAfter time.Time
	StatesAfter   time.Time

	AfterSeq uint64 // re-stream: the caller's last event; 0 means from the beginning
}

// Terms are a Leader's possible requests at the start of a task (AIP v01.00 §4.3, StartCommandParams). Zero leaves it
// to the Partner.
type Terms struct {
	// until a start or continue is answered; see NoWait
	Response           time.Duration `json:"response,omitempty"`
	AwaitingInput      time.Duration `json:"awaitingInput,omitempty"`      // after it the task is canceled
	AwaitingCompletion time.Duration `json:"awaitingCompletion,omitempty"` // after it the task is completed
	MaxProductsBytes   int64         `json:"maxProductsBytes,omitempty"`   // beyond it the task fails; see ProductsSize
}

// NoWait is a Terms.Response for an answer at once, with the task as it is.
const NoWait time.Duration = -1

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
