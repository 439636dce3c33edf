// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"time"

	"github.com/aip-gateway/aip-gateway/notify/delivery"
)

const (
	maxAttemptsKept     = 10  // of one notification: the last ones
	maxDeadAttemptsKept = 100 // of the dead letters of one webhook; the newest letters keep theirs
)

// Attempt is a failed attempt to deliver a notification, as an operator sees it.
type Attempt struct {
	At       time.Time // when it began
	Duration time.Duration
	Status   int    // of HTTP; 0 if there was no answer
	Error    string // the reason for no answer; empty if there is a status
}

// attempt is an Attempt in the metadata of an outbox. It is stored in the same write as the outcome.
type attempt struct {
	At       int64  `json:"t"`           // in milliseconds since 1970
	Duration int64  `json:"d,omitempty"` // in milliseconds
	Status   int    `json:"s,omitempty"`
	Error    string `json:"e,omitempty"`
}

// attemptOf returns a failed attempt as it is stored.
func attemptOf(n *notification, o *delivery.Outcome) attempt {
	a := attempt{At: n.Began.UnixMilli(), Duration: n.duration.Milliseconds(), Status: o.Status}
	if o.Status == 0 {
		a.Error = o.Error
	}
	return a
}

// addAttempt appends an attempt. Only the last ones are kept.
func addAttempt(kept []attempt, a attempt) []attempt {
	if over := len(kept) + 1 - maxAttemptsKept; over > 0 {
		kept = slices.Delete(kept, 0, over)
	}
	return append(kept, a)
}

// trimAttempts bounds the attempts of all dead letters of the webhook.
func (h *hook) trimAttempts() {
	left := maxDeadAttemptsKept
	for i := range slices.Backward(h.Dead) {
		l := &h.Dead[i]
		l.Recent = l.Recent[max(0, len(l.Recent)-left):]
		left -= len(l.Recent)
	}
}

// attemptsKept is the number of attempts of the webhook kept.
func (h *hook) attemptsKept() int {
	n := len(h.Recent)
	for i := range h.Dead {
		n += len(h.Dead[i].Recent)
	}
	return n
}

// attemptsShown returns attempts as an operator sees them.
func attemptsShown(kept []attempt) []Attempt {
	var out []Attempt
	for _, a := range kept {
		out = append(out, Attempt{
			At: time.UnixMilli(a.At), Duration: time.Duration(a.Duration) * time.Millisecond,
			Status: a.Status, Error: a.Error,
		})
	}
	return out
}
