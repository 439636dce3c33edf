// SPDX-License-Identifier: Apache-2.0

// Package agent is the contract between the life-cycle of a task and the code that carries its turns out: the question
// to an agent (Turn), and its answer (Report). It knows no protocol and no transport.
package agent

import (
	"context"
	"encoding/json"

	"github.com/aip-gateway/aip-gateway/task"
)

// Ref names a task and its session as the agent knows them.
type Ref struct {
	Task    string `json:"task,omitempty"`
	Session string `json:"session,omitempty"`
}

// Turn is one start or continue, to be carried out by an agent.
type Turn struct {
	// Leader is the name under which the turn counts if Leaders share the agent's capacity; see limit.Key.
	Leader string
	// Caller is the caller for which the turn is, as the gateway names it to the agent.
	Caller Caller
	// Ref names the task. The names in a start were made by the gateway; an agent with names of its own takes them as
	// hints.
	Ref     Ref
	Message task.Message
	// References are the agent's names for the tasks named in Message (task.Message.References).
	References []string
	// OwnSession reports, of a start, whether the agent made the name of the session in Ref, in an earlier task.
	OwnSession bool
	// History is the executed messages of the Leader, oldest first, as far as they are stored. In a continue, the last one
	// is Message. It is not to be changed.
	History []task.Message
	// Known is the products that the task offers so far.
	Known []task.Product
	// Withdrawn is the products offered before a continue withdrew them.
	Withdrawn []task.Product
	// Revision is the revision of the report at the end of the turn before. An agent still reporting it has not begun this
	// turn.
	Revision string

	// From is the state in which a continue or a cancel found the task; None in a start. After AwaitingCompletion the
	// agent's own task has ended, so most dialects begin another one.
	From task.State
	// Asked is the agent's question, answered by a continue.
	Asked []task.DataItem
	// HasWork reports, of a cancel, whether the agent works on the message under way. It does not while the message waits
	// to be sent. While the message is with the agent and not answered in any way, HasWork waits for an answer, and
	// returns true if ctx ends first. Nil means: this is not known of the message, and the agent may have it.
	HasWork func(ctx context.Context) bool
	// Acknowledged reports, of a resumed turn, whether the agent answered its message before acting on it. So a task
	// settled at Revision may still change.
	Acknowledged bool
	// Answered reports, of a resumed turn, whether the agent answered its message by an error. Then the agent's word on
	// the task holds for good.
	Answered bool
	// Named reports, of a resumed turn, whether the agent has given the task its name in Ref. Of a continue after a crash
	// it is not known.
	Named bool
	// Unreported reports, of a resumed start, whether the agent has reported nothing of it before, although its Leader has
	// seen the task.
	Unreported bool
	// Kept reports, of a resumed turn, whether its agent had been seen, before the turn began, to know a task while it
	// works on it.
	Kept bool
	// Repeated reports whether the message is sent again because the agent denied having it.
	Repeated bool
	// Reported is the state reported in a resumed turn by an agent whose reports are answered: Working, or AwaitingInput
	// if it may resume by itself. None is for no report.
	Reported task.State
	// Webhook is the address of the agent's pushes; nil if it does not push. Each push must carry its Token.
	Webhook *task.Webhook
	// Sent is called when the message of a start has been sent to an agent with no reports before its answer. The function
	// it returns is called when the answer has come. Sent is nil if the beginning of the turn is not to be shown
	// meanwhile.
	Sent func() (answered func())
	// MayAct is called right before something is sent to the agent. It waits while another process may have taken over
	// this one's work for the task. After an error nothing must be sent. Nil for no other process.
	MayAct func(ctx context.Context) error
}

// Caller is the caller for which the gateway asks an agent. In a turn without a request, such as a resumed one, it is
// the caller stored with the task. The zero Caller stands for no caller.
type Caller struct {
	Leader string // the whole name
	Proof  string // the Leader's proof of its name, as identity.Proof names it; empty for none
	// Subject is the person or agent for which the Leader acts, as its access token says; empty for itself.
	Subject string
}

// Report is an agent's report on a turn: the whole of it, or a piece of news. The zero Report says nothing.
type Report struct {
	// State is the AIP state for the agent's own state; None when the report does not speak of it. An agent declaring
	// itself finished is AwaitingCompletion, also if its own task is completed; see Closed.
	State task.State
	// Items are the agent's words along with its state.
	Items []task.DataItem
	// Extensions and TaskExtensions become the members of the same name of the resulting Status.
	Extensions, TaskExtensions json.RawMessage

	// Products is every product of the task as the agent knows it now, if Full is set. Otherwise Chunks are new pieces, in
	// order.
	Full     bool
	Products []task.Product
	Chunks   []task.Chunk
	// Pieces take the place of Chunks in a report of many of them. They come before the rest of the report, and are valid
	// until it has been handled.
	Pieces *task.Pieces

	// Ref is set when the agent has given the task a name of its own.
	Ref *Ref
	// OwnSession reports whether the agent has made the name of the session in Ref. It knows the session by this name in
	// other tasks, too.
	OwnSession bool
	// WithoutTask reports, at the end of a turn, whether the agent answered by a message, the only product, and made no
	// task.
	WithoutTask bool

	// SelfResuming reports, of a settled State, whether the agent may resume without a message, its input coming another
	// way.
	SelfResuming bool

	// Follows is, of a settled State in a stream, the kind of event possible after it there.
	Follows Following
	// Message reports whether the state is the state of a message, the agent's answer in place of a task. In a stream,
	// other messages or a task may follow it.
	Message bool
	// Last reports whether the agent has called its stream ended, though the turn is not: nothing else need follow.
	Last bool

	// Closed reports, of a settled State, whether the agent has ended its own task for good, and acts on no further
	// message.
	Closed bool

	// Presumed reports, of a settled State, whether it is only inferred: the agent has ended its stream behind an answer.
	// A waiting cancel is taken for the reason of that end.
	Presumed bool

	// Verbatim reports whether the agent speaks the protocol of the canon: its words are shown in their own place.
	Verbatim bool

	// NativeState is the agent's own word for its state, for log lines.
	NativeState string
	// Revision changes whenever the agent changes anything in the task; the agent has lost a task if its Revision stands
	// still for long. The Revision of a settled report is the same whether it came by a stream or was asked for.
	Revision string
	// RevisionDated reports whether Revision holds the time of the agent's last change of state. Then an equal Revision is
	// the proof of no change. Without it, the agent may have reported the same again.
	RevisionDated bool

	// Stored is called once when the report is stored for good, and answers the agent. It must not wait. It is never
	// called if the report is not stored. It is nil if the agent waits for no answer.
	Stored func()

	// Delivery is set in a report of nothing else but Verbatim. Such a report comes from the gateway and not from the
	// agent.
	Delivery Delivery
}

// Following is the kind of event possible after a settled state in the stream of an agent.
type Following uint8

// The kinds of events after a settled state.
const (
	FollowsNothing    Following = iota
	FollowsStragglers           // the agent has ended the turn; a product may come late
	FollowsMore                 // the agent has not ended the turn, or does not say so
	FollowsWork                 // the agent goes on, by its own word: the state is one on the way
)

// EndsTurn reports whether a report ends its turn: nothing follows before the Leader acts.
func (r *Report) EndsTurn() bool { return r.State.Settled() && !r.SelfResuming }

// Delivery is the progress of a turn's message on its way to the agent, before the agent acts on it.
type Delivery uint8

// The deliveries. A turn whose message is sent at once reports none of them.
const (
	DeliveryUnknown      Delivery = iota
	DeliveryQueued                // nothing of the message has been sent yet
	DeliverySending               // the message has waited, and is about to be sent
	DeliveryAcknowledged          // the agent has answered the message, and has not acted on it yet
)
