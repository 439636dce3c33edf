// SPDX-License-Identifier: Apache-2.0

// Package agent is the contract between the life-cycle of a task and the code that carries its turns out: what an agent
// is asked (Turn), and what it answers (Report). It knows no protocol and no transport.
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
	// Leader is the name under which the turn counts where Leaders share what the agent can do; see quota.Key.
	Leader string
	// Caller is the caller that the gateway names to the agent as the one that the turn is for.
	Caller Caller
	// Ref names the task. The names in a start were made by the gateway; an agent that makes its own names takes them
	// as hints.
	Ref     Ref
	Message task.Message
	// References are the names that the agent has given the tasks to which Message refers (task.Message.References).
	References []string
	// OwnSession says of a start that the agent has made the name of the session in Ref, in an earlier task.
	OwnSession bool
	// History is the messages of the Leader that were executed, oldest first, as far as they are stored. In a continue,
	// the last one is Message. It is not to be changed.
	History []task.Message
	// Known is what the task offers so far.
	Known []task.Product
	// Withdrawn is what the task offered before a continue withdrew it.
	Withdrawn []task.Product
	// Revision is that of the report which ended the turn before. An agent that still reports it has not begun this
	// turn.
	Revision string

	// From is the state in which a continue or a cancel found the task; None in a start. After AwaitingCompletion the
	// agent's own task has ended, so that most dialects begin another one.
	From task.State
	// Asked is what the agent has said when it asked for the input that a continue gives.
	Asked []task.DataItem
	// HasWork reports, of a cancel, whether the agent works on the message under way, which it does not while that waits
	// to be sent. While the message is with the agent and not answered in any way, HasWork waits for that, and returns
	// true if ctx ends first. Nil is for a message of which that is not known, and which the agent may have.
	HasWork func(ctx context.Context) bool
	// Acknowledged says of a resumed turn that the agent has answered its message before it acted on it. So a task that
	// is settled at Revision may still change.
	Acknowledged bool
	// Answered says of a resumed turn that the agent has answered its message, by an error: so what the agent says of the
	// task holds for good.
	Answered bool
	// Named says of a resumed turn that the agent has given the task its name in Ref. Of a continue after a crash it is
	// not known.
	Named bool
	// Unreported says of a start that is resumed that the agent has reported nothing of it before, although its Leader
	// has seen the task.
	Unreported bool
	// Kept says of a resumed turn that its agent had been seen to know a task while it works on it when the turn began.
	Kept bool
	// Repeated says that the message is sent again because the agent has said that it does not have it.
	Repeated bool
	// Reported is the state that an agent which is answered has reported in a resumed turn: Working, or AwaitingInput if
	// it may resume by itself. None is for no report.
	Reported task.State
	// Webhook is where the agent pushes what it does; nil if it does not push. Each push must carry its Token.
	Webhook *task.Webhook
	// Sent is called when the message of a start has been sent to an agent that reports nothing before its answer, and
	// what it returns when that has come. Nil where the beginning of the turn is not to be shown meanwhile.
	Sent func() (answered func())
	// MayAct is called right before something is sent to the agent. It waits while another process may have taken over
	// what this one does for the task. The error says that nothing must be sent. Nil for no other process.
	MayAct func(ctx context.Context) error
}

// Caller is the caller for which the gateway asks an agent. In a turn without a request, such as one that is resumed,
// it is the one that is stored with the task. The zero Caller stands for no caller.
type Caller struct {
	Leader string // the whole name
	Proof  string // how the Leader has proven who it is, as identity.Proof names it; empty for not at all
	// Subject is the person or agent for which the Leader acts, as its access token says; empty for itself.
	Subject string
}

// Report is what an agent says about a turn: the whole of it, or a piece of news. The zero Report says nothing.
type Report struct {
	// State is the AIP state that stands for the agent's own state; None when the report does not speak of it.
	// An agent that says it has finished is AwaitingCompletion, also where its own task is completed; see Closed.
	State task.State
	// Items is what the agent said along with its state.
	Items []task.DataItem
	// Extensions and TaskExtensions become the members of the same name of the Status that the report leads to.
	Extensions, TaskExtensions json.RawMessage

	// Products is every product of the task as the agent knows it now, where Full is set. Otherwise Chunks
	// are new pieces, in order.
	Full     bool
	Products []task.Product
	Chunks   []task.Chunk
	// Pieces take the place of Chunks in a report of many of them. They come before what else the report says, and are
	// valid until it has been handled.
	Pieces *task.Pieces

	// Ref is set when the agent has given the task a name of its own.
	Ref *Ref
	// OwnSession says that the agent has made the name of the session in Ref. It knows the session by that in other
	// tasks, too.
	OwnSession bool
	// WithoutTask says of the report which ends a turn that the agent has answered by a message, which is the only
	// product, and has made no task.
	WithoutTask bool

	// SelfResuming says of a settled State that the agent may resume without a message: it gets what it waits for in
	// another way.
	SelfResuming bool

	// Follows says of a settled State in a stream what may still follow it there.
	Follows Following
	// Message says that the state is that of a message, by which an agent answers in place of a task. In a stream, other
	// messages or a task may follow it.
	Message bool
	// Last says that the agent has called its stream ended, though the turn is not: nothing else need follow.
	Last bool

	// Closed says of a settled State that the agent has ended its own task for good, and acts on no further message.
	Closed bool

	// Presumed says of a settled State that the agent has not said it: it has ended its stream behind an answer. If a
	// cancel waits, that is what has ended it.
	Presumed bool

	// Verbatim says that the agent speaks the protocol of the canon: what it says is shown where it says it.
	Verbatim bool

	// NativeState is the agent's own word for its state, for log lines.
	NativeState string
	// Revision changes whenever the agent changes anything in the task; a task whose Revision stands still for long is
	// one that the agent has lost. The Revision of a settled report is the same whether it came by a stream or was
	// asked for.
	Revision string
	// RevisionDated says that Revision holds the time when the agent changed its state, so that an equal Revision
	// proves that nothing has changed. Without it, the agent may have reported the same again.
	RevisionDated bool

	// Stored is called once when what the report says is stored for good, by which the agent is answered. It must not
	// wait. Of a report that is not stored it is never called. It is nil where the agent waits for no answer.
	Stored func()

	// Delivery is set in a report that says nothing else but Verbatim. Such a report comes from the gateway and not from
	// the agent.
	Delivery Delivery
}

// Following says what may follow a settled state in the stream of an agent.
type Following uint8

// What may follow.
const (
	FollowsNothing    Following = iota
	FollowsStragglers           // the agent has ended the turn; a product may come late
	FollowsMore                 // the agent has not ended the turn, or does not say so
	FollowsWork                 // the agent says that it goes on: the state is one on the way
)

// EndsTurn reports whether a report ends its turn: nothing follows before the Leader acts.
func (r *Report) EndsTurn() bool { return r.State.Settled() && !r.SelfResuming }

// Delivery says how far the delivery of a turn's message to the agent has come, before the agent acts on it.
type Delivery uint8

// The deliveries. A turn whose message is sent at once reports none of them.
const (
	DeliveryUnknown      Delivery = iota
	DeliveryQueued                // nothing of the message has been sent yet
	DeliverySending               // the message has waited, and is about to be sent
	DeliveryAcknowledged          // the agent has answered the message, and has not acted on it yet
)
