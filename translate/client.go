// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"errors"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// Field is a header field.
type Field struct{ Name, Value string }

// Client is a dialect's side towards an agent. Its bodies are whole requests.
type Client interface {
	// Name is the dialect's name in a configuration.
	Name() string

	// For returns the Client of one request, with the facets of this one. Its bodies carry the request's id, if the
	// dialect has ids, and the answer it reads must be the one to this request. The error about an answer to another one
	// has the cause ErrOtherAnswer. Without For, answers to any request are read.
	For(q Query) Client

	// Header returns the header fields of every request, beside those of content negotiation. It is not to be changed.
	Header() []Field

	// AppendTurn appends the request for a turn; with stream, one to be answered by a stream.
	AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte

	// Reply reads the body of the answer to a turn, get or cancel. An error reported by the agent is a *task.Error of its
	// kind; an answer not allowed by the dialect is InvalidAgentResponse. known are the products so far, for
	// distinguishing the agent's artifacts.
	Reply(body []byte, known []task.Product) (agent.Report, error)

	// NewStream returns a reader of one stream's events.
	NewStream(known []task.Product) Stream

	// Push reads the body of an agent's request notifying the gateway of a task. The zero Report stands for one without a
	// meaning for a Leader.
	Push(body []byte, known []task.Product) (agent.Report, error)
}

// An Activator is a Client with header fields of its own in its requests about a turn: the extensions of the protocol
// activated by the caller.
type Activator interface {
	// Activate returns the fields; none as a rule.
	Activate(t *agent.Turn) []Field
}

// Query pairs a request with its answer. A connection, however sound, is not enough: on one out of step, the answer to
// one Leader's request would be stored as another Leader's task.
type Query struct {
	ID      string // of the request; no other one has it. It consists of small letters, digits and hyphens; empty for none
	Task    string // the name of the request's task; empty if it is for the agent to give it one
	Session string // likewise, for its session
	// Gave reports whether the gateway has given a session at this agent this name. It is set for a SessionTeller.
	Gave func(session string) bool
	// Turn is set if the request carries a turn. A Renamer may answer it by a name of its own for the task.
	Turn bool
	// Cancel is set if the request cancels the task. Some agents answer it by a mere acknowledgement.
	Cancel bool
	// Withdrawn are the task's products before a continue withdrew them: if an agent lists one of them, it is not new.
	Withdrawn []task.Product
}

// ErrOtherAnswer is the cause of an error of a Client: the answer is one to another request.
var ErrOtherAnswer = errors.New("translate: the answer to another request")

// ErrInformal is the cause of an error of a Client, reported by an agent in no form of its dialect. So it has no kind:
// the status of HTTP says more.
var ErrInformal = errors.New("translate: an error without a code")

// Stream reads the events of one stream of an agent, in order. It is used by one goroutine.
type Stream interface {
	// Event reads one event of the stream. event is its SSE name, data its data. The zero Report stands for an event
	// without a meaning for a Leader.
	Event(event string, data []byte) (agent.Report, error)
}

// A TextStream is a Stream reading most pieces of text in one pass.
type TextStream interface {
	// Text reads an event as Event does if it is nothing but a piece of a product with a plain text, in the usual form of
	// agents. It adds the piece to pieces, and keeps nothing of data. Otherwise it changes nothing and returns false: then
	// the event is for Event.
	Text(event string, data []byte, pieces *task.Pieces) bool
}

// A Concluder is a Stream of agents that may end it behind the answer, without the event for the end of the turn.
type Concluder interface {
	// Conclude returns the report of the events once the agent has ended the stream, and false if they are no answer.
	Conclude() (agent.Report, bool)
}

// Operation is the operation of a request to an agent.
type Operation uint8

// The operations. Those of a facet are only sent to agents whose Client has it.
const (
	Send        Operation = iota // a turn answered once
	SendStream                   // a turn answered by a stream
	Get                          // of a Getter
	Cancel                       // of a Canceler
	Resubscribe                  // of a Resubscriber
	Complete                     // of a Completer
	Register                     // of a Registrar
	Describe                     // of a Describer
	List                         // of a Locator
)

// A Getter is a Client with a request for the present state of a task. Without it, a turn is known only by the answer
// to its own request: it is not polled, and it is lost with its connection.
type Getter interface {
	// AppendGet appends the request for the present state of a task.
	AppendGet(dst []byte, ref agent.Ref) []byte
}

// A Canceler is a Client with a request to cancel a task. Without it, a cancel closes the connection of the turn, and
// the task is canceled.
type Canceler interface {
	// AppendCancel appends the request to cancel a task.
	AppendCancel(dst []byte, ref agent.Ref) []byte
}

// A SessionCanceler is a Canceler with a request to stop the run of a session, of any of its tasks. So it is sent only
// while the agent works on the task. Its answer says only that the agent has received it, and the stream of the run
// ends without another event.
type SessionCanceler interface {
	Canceler
	CancelsSession()
}

// A Resubscriber is a Client with a request to continue the stream of a task on a new connection.
type Resubscriber interface {
	// AppendResubscribe appends the request to continue the stream of a task.
	AppendResubscribe(dst []byte, ref agent.Ref) []byte
}

// A Completer is a Client of agents waiting for a Leader to complete a task, as AIP's do. So the gateway forwards a
// complete.
type Completer interface {
	// AppendComplete appends the request to complete a task.
	AppendComplete(dst []byte, ref agent.Ref) []byte
}

// A Registrar is a Client of agents taking a webhook not along with a turn, but by a request of its own before it.
type Registrar interface {
	// AppendRegister appends the request with the webhook for the agent's notifications of a task.
	AppendRegister(dst []byte, ref agent.Ref, w *task.Webhook) []byte
}

// A Describer is a Client of agents that may have an extended card, for known callers.
type Describer interface {
	// AppendDescribe appends the request for the card.
	AppendDescribe(dst []byte) []byte
	// Description reads the answer, and returns the card in it as the agent wrote it.
	Description(body []byte) ([]byte, error)
}

// A Binder is a Client whose requests differ in method of HTTP and path, and not only in their content.
type Binder interface {
	// Bind returns the method of HTTP and the path, with its query, to append to the agent's URL. A GET is sent
	// without a body.
	Bind(op Operation, ref agent.Ref) (method, path string)
}

// A Mounted Client is one for agents with a path for each method, or one URL for all of them, or no streams at all. The
// gateway finds this out.
type Mounted interface {
	// Path returns the path of an operation below the agent's mount point, without a slash before it.
	Path(op Operation) string
	// Streams reports whether a turn may be answered by a stream.
	Streams(t *agent.Turn) bool
}

// A Namer is a Client of agents naming their tasks themselves. Before such an agent has answered, nothing can be asked
// about the task, and a cancel would go to a name unknown to the agent. A stream says the name at once, so a turn of
// such a task asks for one if the agent has streams.
type Namer interface{ NamesTasks() }

// A Renamer is a Client of agents that may answer a turn by another name for the task than the gateway's, and know it
// by their own alone. So the name in the answer counts, unless it is the name of another task.
type Renamer interface{ RenamesTasks() }

// A SessionNamer is a Client of agents that may name the session of a start themselves, and refuse one with a name
// already. A turn need not have the session's name.
type SessionNamer interface{ NamesSessions() }

// A SessionTeller is a Client of agents whose answers name their session, and nothing else of the request.
type SessionTeller interface{ TellsSession() }

// A Streamer is a Client of agents answering every turn by a stream. So each turn asks for one.
type Streamer interface{ AlwaysStreams() }

// An Unstreamer is a Client of agents that may have no streams and say so by any error. So if its stream is refused
// before any event, a turn is sent once more, without asking for one.
type Unstreamer interface{ RefusesStreams() }

// A Forgetter is a Client of agents that may store a task at its end, or never. So if such an agent ends a stream
// without a settled state, the events so far are the result. An agent not knowing a task may still work on it.
type Forgetter interface{ ForgetsTasks() }

// ErrBusy is the cause of an error of a Client: the agent has not begun the turn, because it still works on another one
// of the session. So the turn may be sent again later.
var ErrBusy = errors.New("translate: the session is busy")

// A Locator is a Client of agents naming their tasks, and listing them. So a start with a lost answer is looked for
// before it is sent again.
type Locator interface {
	// AppendList appends the request for a page of the gateway's tasks. cursor is the one of the page before; empty for
	// the first.
	AppendList(dst []byte, cursor string) []byte
	// Listed reads the answer, and returns the possible tasks of a turn, and the cursor of the next page; empty for none.
	Listed(body []byte, t *agent.Turn) (tasks []agent.Ref, next string, err error)
	// Carries reports whether the answer to a get is the task begun by a turn.
	Carries(body []byte, t *agent.Turn) (bool, error)
}

// A Repeater is a Client of agents answering a repeated start with the task as it is. So a start is sent again if it is
// in doubt whether the agent received it.
type Repeater interface{ RepeatsStart() }

// A LateActor is a Client of agents that may act on a continue long before their task shows it, and act twice on one
// sent twice. So an unchanged task does not prove that its agent has not received the message: the messages of the task
// kept by the agent do.
type LateActor interface {
	// AppendGetMessages appends the request for a task with its messages.
	AppendGetMessages(dst []byte, ref agent.Ref) []byte
	// Received reads the answer, and reports whether the agent has the message of a turn. known is false if the answer
	// does not say: the agent keeps no messages, or not all of them.
	Received(body []byte, t *agent.Turn) (received, known bool, err error)
}

// A Restater is a Client of agents stating the whole task when they are asked, though a stream of theirs may have lost,
// repeated or reordered a piece of it. So a task is asked for once when an event of a stream has ended the turn.
type Restater interface{ RestatesTasks() }

// A StatusReader is a Client with protocol buffers as its messages, as those of gRPC. Its agents report an error not in
// a message but by a status in its place. Its Bind returns the path of each operation.
type StatusReader interface {
	Binder
	// Failure returns the error in a status, by its kind. status is a google.rpc.Status.
	Failure(status []byte) error
}

// A Resender is a Client of agents taking the message of a turn again, also while they work on it. So a turn is resumed
// by sending its message again.
type Resender interface{ ResendsTurns() }
