// SPDX-License-Identifier: Apache-2.0

package task

import "time"

// Webhook is a URL to be notified of the changes of a task's state: AIP's NotificationConfig (v01.00 §6.3.1).
type Webhook struct {
	ID     string `json:"id"`
	TaskID string `json:"-"`
	URL    string `json:"url"`

	// Token is a part of every notification, for its receiver to know the sender by. It is a secret, as Credentials are.
	Token string `json:"token,omitempty"`
	// Scheme and Credentials make an Authorization field, if the dialect has one.
	Scheme      string `json:"scheme,omitempty"`
	Credentials string `json:"credentials,omitempty"`

	// Dialect is the dialect of its setting and of its notifications. With Confirm, they show a task finished by its agent
	// as one waiting for input, for its caller to confirm the result.
	Dialect string `json:"dialect"`
	Confirm bool   `json:"confirm,omitempty"`

	States []State `json:"states,omitempty"` // it is notified of these only; none means of all
}

// Wants reports whether a webhook is notified of a state.
func (w *Webhook) Wants(s State) bool {
	if len(w.States) == 0 {
		return true
	}
	for _, want := range w.States {
		if want == s {
			return true
		}
	}
	return false
}

// Position is the progress of a task.
type Position struct {
	Seq    uint64 // of its last event; 0 if it has none, or does not exist
	Exists bool
	Ended  bool
}

// Change is a change of a task's state.
type Change struct {
	Seq  uint64 // of the event in the task's log
	Task *Task  // after the change, without its histories; read-only
}

// List selects tasks of a caller. The zero List is the first page of all of them.
type List struct {
	SessionID string    // of this session only
	States    []State   // in one of these states only; nil for any state, an empty list for none
	After     time.Time // changed their state after this
	Size      int       // tasks on a page; 0 means the gateway's default
	Token     string    // Page.Next of the page before
	Products  bool      // with their products
	Count     bool      // counts the tasks for Page.Total

	// With SelfResuming, only tasks awaiting input with an agent that may resume by itself; with NotSelfResuming, only the
	// others.
	SelfResuming, NotSelfResuming bool
}

// Page is a part of a caller's tasks, in order: the last task to change comes first.
type Page struct {
	Tasks []Task
	Next  string // the Token of the next page; empty if there is none
	Size  int    // tasks on a full page
	Total int    // with List.Count, tasks on all pages; as many as were counted, if there are very many
}
