// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"errors"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
)

// Field is a header field.
type Field struct{ Name, Value string }

// Client is a dialect's side towards an agent. The bodies that it makes are whole requests.
type Client interface {
	// Name is the dialect's name in a configuration.
	Name() string

	// For returns the Client of one request, with the facets of this one. What it appends carries the request's id, if
	// the dialect has ids, and what it reads must be the answer to that request. The error about an answer to another
	// one has the cause ErrOtherAnswer. Without For, answers are read whatever request they are for.
	For(q Query) Client

	// Header returns the header fields that every request carries, beside those of content negotiation. It is
	// not to be changed.
	Header() []Field

	// AppendTurn appends the request that carries a turn out; with stream, one that is answered by a stream.
	AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte

	// Reply reads the body of the answer to a turn, get or cancel. An error that the agent reports is a
	// *task.Error of its kind; what the dialect does not allow is InvalidAgentResponse. known are the
	// products so far, which distinguish the agent's artifacts.
	Reply(body []byte, known []task.Product) (agent.Report, error)

	// NewStream returns a reader of one stream's events.
	NewStream(known []task.Product) Stream

	// Push reads the body of a request by which the agent notifies the gateway of a task. The zero Report says that
	// it means nothing to a Leader.
	Push(body []byte, known []task.Product) (agent.Report, error)
}

// An Activator is a Client whose requests about a turn have header fields of their own: the extensions of the protocol
// that the caller has activated.
type Activator interface {
	// Activate returns the fields; none as a rule.
	Activate(t *agent.Turn) []Field
}

// Query is what pairs a request with its answer. A connection, however sound, is not enough: on one that has lost its
// step, the answer to one Leader's request would be stored as another Leader's task.
type Query struct {
	ID      string // of the request; no other one has it. It consists of small letters, digits and hyphens; empty for none
	Task    string // the name of the task that the request is about; empty where it is for the agent to give it one
	Session string // likewise, that of its session
	// Turn says that the request carries a turn, which a Renamer may answer by a name of its own for the task.
	Turn bool
	// Cancel says that the request cancels the task, which some agents answer by no more than that they have taken it.
	Cancel bool
	// Withdrawn is what the task offered before a continue withdrew it: what an agent lists of that is not new.
	Withdrawn []task.Product
}

// ErrOtherAnswer is the cause of an error of a Client: what was read is not the answer to the request.
var ErrOtherAnswer = errors.New("translate: the answer to another request")

// ErrInformal is the cause of an error of a Client that an agent reports in no form of its dialect, so that it has no
// kind: the status of HTTP says more.
var ErrInformal = errors.New("translate: an error without a code")

// Stream reads the events of one stream of an agent, in order. It is used by one goroutine.
type Stream interface {
	// Event reads one event of the stream. event is its SSE name, data its data. The zero Report says that
	// the event means nothing to a Leader.
	Event(event string, data []byte) (agent.Report, error)
}

// A TextStream is a Stream that reads most pieces of text in one pass.
type TextStream interface {
	// Text reads an event as Event does if that is nothing but a piece of a product which is a plain text, in the form
	// that agents usually give it. It adds the piece to pieces, and keeps nothing of data. Otherwise it changes nothing
	// and returns false: then the event is for Event.
	Text(event string, data []byte, pieces *task.Pieces) bool
}

// A Concluder is a Stream whose agents may end it behind the answer, without the event that ends the turn.
type Concluder interface {
	// Conclude returns what the events amount to once the agent has ended the stream, and false where that is no answer.
	Conclude() (agent.Report, bool)
}

// Operation is what a request asks of an agent.
type Operation uint8

// The operations. Those of a facet are only sent to agents whose Client has it.
const (
	Send        Operation = iota // a turn that is answered once
	SendStream                   // a turn that is answered by a stream
	Get                          // of a Getter
	Cancel                       // of a Canceler
	Resubscribe                  // of a Resubscriber
	Complete                     // of a Completer
	Register                     // of a Registrar
	Describe                     // of a Describer
	List                         // of a Locator
)

// A Getter is a Client whose agents can be asked for the present state of a task. Without it, a turn is known only by
// the answer to its own request: it is not polled, and it is lost with its connection.
type Getter interface {
	// AppendGet appends the request for the present state of a task.
	AppendGet(dst []byte, ref agent.Ref) []byte
}

// A Canceler is a Client whose agents can be asked to cancel a task. Without it, a cancel closes the connection of the
// turn, and the task is canceled.
type Canceler interface {
	// AppendCancel appends the request to cancel a task.
	AppendCancel(dst []byte, ref agent.Ref) []byte
}

// A SessionCanceler is a Canceler whose request stops the run of a session, whichever task that belongs to. So it is
// sent only while the agent works on the task. Its answer means nothing but that the agent has received it, and the
// stream of the run ends without another event.
type SessionCanceler interface {
	Canceler
	CancelsSession()
}

// A Resubscriber is a Client whose agents continue the stream of a task on a new connection.
type Resubscriber interface {
	// AppendResubscribe appends the request to continue the stream of a task.
	AppendResubscribe(dst []byte, ref agent.Ref) []byte
}

// A Completer is a Client whose agents wait for a Leader to complete a task, as AIP's do. So the gateway forwards a
// complete.
type Completer interface {
	// AppendComplete appends the request to complete a task.
	AppendComplete(dst []byte, ref agent.Ref) []byte
}

// A Registrar is a Client whose agents take a webhook not along with a turn, but by a request of its own before it.
type Registrar interface {
	// AppendRegister appends the request that names the webhook by which the agent notifies the gateway of a task.
	AppendRegister(dst []byte, ref agent.Ref, w *task.Webhook) []byte
}

// A Describer is a Client whose agents may have an extended card, for callers that they know.
type Describer interface {
	// AppendDescribe appends the request for that card.
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

// A Mounted Client is one whose agents have a path for each method, or one URL for all of them, or no streams at all.
// The gateway finds out which.
type Mounted interface {
	// Path returns the path of an operation below the agent's mount point, without a slash before it.
	Path(op Operation) string
	// Streams reports whether a turn may be answered by a stream.
	Streams(t *agent.Turn) bool
}

// A Namer is a Client whose agents name their tasks themselves. Before such an agent has answered, nothing can be asked
// about the task, and a cancel would go to a name that the agent does not know. A stream says the name at once, so
// wherever the agent has streams, a turn of such a task asks for one.
type Namer interface{ NamesTasks() }

// A Renamer is a Client whose agents may answer a turn by another name for the task than the gateway has given it, and
// know it by that alone. So the name in the answer counts, unless it is that of another task.
type Renamer interface{ RenamesTasks() }

// A SessionNamer is a Client whose agents may name the session of a start themselves, and refuse one that has a name
// already. A turn need not have the session's name.
type SessionNamer interface{ NamesSessions() }

// A Streamer is a Client whose agents answer every turn by a stream. So each turn asks for one.
type Streamer interface{ AlwaysStreams() }

// An Unstreamer is a Client whose agents may have no streams and say so by any error. So a turn whose stream is refused
// before there is an event of it is sent once more, without asking for one.
type Unstreamer interface{ RefusesStreams() }

// A Forgetter is a Client whose agents may store a task at its end, or never. So what a stream has delivered that such
// an agent has ended without a settled state is the result, and that it does not know a task does not prove that it
// does not work on it.
type Forgetter interface{ ForgetsTasks() }

// ErrBusy is the cause of an error of a Client: the agent has not begun the turn, because it still works on another one
// of the session. So the turn may be sent again later.
var ErrBusy = errors.New("translate: the session is busy")

// A Locator is a Client whose agents name their tasks, and list them. So a start whose answer was lost is looked for
// before it is sent again.
type Locator interface {
	// AppendList appends the request for a page of the gateway's tasks. cursor is that of the page before; empty for the
	// first.
	AppendList(dst []byte, cursor string) []byte
	// Listed reads the answer, and returns the tasks that may be that of a turn, and the cursor of the next page; empty
	// for none.
	Listed(body []byte, t *agent.Turn) (tasks []agent.Ref, next string, err error)
	// Carries reports whether the answer to a get is the task that a turn has begun.
	Carries(body []byte, t *agent.Turn) (bool, error)
}

// A Repeater is a Client whose agents answer a repeated start with the task as it is. So a start is sent again where it
// is in doubt whether the agent received it.
type Repeater interface{ RepeatsStart() }

// A LateActor is a Client whose agents may act on a continue long before their task shows it, and act twice on one that
// they are sent twice. So an unchanged task does not prove that its agent has not received the message: the messages
// that the agent has kept of the task do.
type LateActor interface {
	// AppendGetMessages appends the request for a task with its messages.
	AppendGetMessages(dst []byte, ref agent.Ref) []byte
	// Received reads the answer, and reports whether the agent has the message of a turn. known is false where the
	// answer does not say: the agent keeps no messages, or not all of them.
	Received(body []byte, t *agent.Turn) (received, known bool, err error)
}

// A Restater is a Client whose agents state the whole task when they are asked, though a stream of theirs may have
// lost, repeated or reordered a piece of it. So a task is asked for once when an event of a stream has ended the turn.
type Restater interface{ RestatesTasks() }

// A StatusReader is a Client whose messages are protocol buffers, as those of gRPC, and whose agents report an error
// not in a message but by a status, which takes the place of one. Its Bind returns the path of each operation.
type StatusReader interface {
	Binder
	// Failure returns the error that a status reports, by its kind. status is a google.rpc.Status.
	Failure(status []byte) error
}

// A Resender is a Client whose agents take the message of a turn again, also while they work on it. So a turn is
// resumed by sending its message again.
type Resender interface{ ResendsTurns() }
