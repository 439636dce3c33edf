// SPDX-License-Identifier: Apache-2.0

// Package translate says what a dialect is: one protocol at one version, as pure functions between its bytes
// and the canon of package task. There is one folder a protocol, and none of them knows another, so N
// dialects are at most 2N codecs. Codecs do no I/O, read no clock and start no goroutine; all of them may be
// used by any number of goroutines at once.
package translate

import (
	"net/url"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/dialect"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Server is a dialect's side towards callers.
type Server interface {
	// Name is the dialect's name in a configuration, in log lines and in documents: aip, a2a/legacy.
	Name() string

	// Route says what a request is for by its method of HTTP and its path under the mount point, such as
	// "notification/set"; the empty path is the mount point itself. ok is false where the dialect has no such
	// path. Where it has, but not with this method of HTTP, Route.Allow says with which.
	Route(method, path string) (r Route, ok bool)

	// Speaks reports whether a request is of this dialect. It is asked where several may call and the path
	// does not decide.
	Matches(req *Request) bool

	// Decode reads a request. Whatever it refuses, it refuses with a *task.Error that names the field. The
	// Call holds copies: the request's body may be used for something else afterwards.
	Decode(req *Request) (Call, error)

	// AppendTask appends the whole response that answers a call with a task.
	AppendTask(dst []byte, id jsonrpc.ID, c *Call, t *task.Task) []byte

	// AppendWebhooks appends the whole response to SetWebhook (hooks holds the one that was set), GetWebhooks
	// and DeleteWebhooks (hooks is empty).
	AppendWebhooks(dst []byte, id jsonrpc.ID, c *Call, hooks []task.Webhook) []byte

	// AppendError appends the whole response that says what went wrong. The error's kind becomes the
	// dialect's number here and nowhere else; what has no kind is an internal error, without its text.
	AppendError(dst []byte, id jsonrpc.ID, err error) []byte

	// NewStream returns what writes the events of one stream. t is the task that they belong to; of it only
	// ID, SessionID and GroupID are sure to be set.
	NewStream(id jsonrpc.ID, c *Call, t *task.Task) Encoder

	// AppendNotification appends the body of the request that tells a webhook of a task's state.
	AppendNotification(dst []byte, t *task.Task) []byte
	// NotificationHeader returns the header fields of that request, the content type and what the webhook's
	// owner asked to be authenticated by among them.
	NotificationHeader(w *task.Webhook) []Field
}

// A Lister is a Server whose dialect can list tasks.
type Lister interface {
	// AppendTasks appends the whole response to ListTasks.
	AppendTasks(dst []byte, id jsonrpc.ID, c *Call, page *task.Page) []byte
}

// A Describing Server is one whose callers may ask for a card that not everybody sees.
type Describing interface {
	// AppendCard appends the whole response to ExtendedCard.
	AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte
}

// A Selective Server has fewer words for states than AIP, and tells a webhook of those that it would tell twice only
// once.
type Selective interface {
	// NotifiedStates returns the states that a webhook is told of; nil means all of them.
	NotifiedStates() []task.State
}

// A Typed Server is one whose answers are not of the media type application/json. Its errors are.
type Typed interface {
	// ContentType returns the values of the Content-Type field. They are not to be changed.
	ContentType() []string
}

// A Statuser is a Server whose errors have a status of HTTP; that of all others is 200.
type Statuser interface {
	// Status returns the status of HTTP that goes with AppendError.
	Status(err error) int
}

// Route is what a path under the mount point is for.
type Route struct {
	// Method is the only JSON-RPC method that may be called on the path; empty where the envelope says which.
	Method string
	// Bare says that there is no envelope: Method is what the request stands for, Vars what its path says, and
	// its body, which GET and DELETE do not have, is the params.
	Unenveloped bool
	PathParams  map[string]string
	// Allow is set, to what an Allow field holds, where the path exists but does not take the request's method
	// of HTTP.
	Allow string
}

// Request is a request as a codec reads it. A bare one has no ID, and no Params where it had no body.
type Request struct {
	jsonrpc.Request
	HTTP       string            // the method of HTTP
	Content    string            // the media type that the Content-Type of the body names, without parameters; empty for none
	Version    string            // the version that the caller names, A2A-Version as header or query; empty for none
	PathParams map[string]string // of a bare Route
	Query      url.Values        // of a bare request
}

// Op says what a Call asks for.
type Op uint8

// The operations. All but Command are about what the gateway keeps, and never reach an agent.
const (
	Command        Op = iota // what Call.Message.Command says
	SetWebhook               // create or replace Call.Webhook
	GetWebhooks              // the webhook Call.Webhook.ID of the task, or all of them where that is empty
	DeleteWebhooks           // likewise
	ListTasks                // Call.List
	ExtendedCard             // the card that only callers may see
)

// Call is a decoded request: what is asked for, and how its answer is wanted. A Message.TaskID that is empty
// in a start is made by the gateway. SenderID is empty in dialects that name no sender.
type Call struct {
	task.Call
	dialect.Policy
	Op     Op
	Method string // the dialect's own word for it, where several have the same Op; a constant, no view

	Stream bool // the answer is a stream of events
	// Blocking says that a start or continue is answered when its turn rests, and Terms.Response leaves open how long
	// that may take: in the dialect, callers wait for as long as the gateway lets them.
	Blocking bool
	// History is how many of the last messages the answer shows; negative means all of them.
	History int

	// Webhook is what SetWebhook, GetWebhooks and DeleteWebhooks are about; only TaskID and ID count for the last
	// two. Of a Command it is the webhook to use: with a URL it is set first, with an ID alone it must exist,
	// and States narrow it either way.
	Webhook *task.Webhook
	// TaskExists says that SetWebhook, GetWebhooks and DeleteWebhooks are for tasks that exist; otherwise a webhook may
	// be there before its task. To delete one that is not there is no error then.
	TaskExists bool
	List       *task.List
}

// Encoder writes the frames of one stream, in order. It is used by one goroutine.
type Encoder interface {
	// Snapshot appends the first frame that shows the whole task.
	Snapshot(dst []byte, t *task.Task) Frame
	// Event appends the first frame of an event. A Frame without Data says that the dialect does not show the event.
	Event(dst []byte, ev *task.Event) Frame
}

// A RecordEncoder is an Encoder that writes events as the log has them, so that an event is sent without being decoded.
type RecordEncoder interface {
	// Record does what Event does, from the stored form of the event.
	Record(dst []byte, seq uint64, record []byte) Frame
}

// Frame is one message of a stream, such as one event of SSE.
//
// Most dialects have one frame for an event. Where a dialect has several, each names the Next one. A transport that
// numbers its messages gives the event's number to the last frame only: a caller that has seen only some of the frames
// then resumes after the event before, and receives all frames of the event again. So a frame with Data may only be
// followed by frames with Data.
type Frame struct {
	Name string                 // the name of the event in SSE; empty for the default
	Data []byte                 // dst with one line appended; nil for nothing
	End  bool                   // the dialect's stream ends here, though the task may go on; set on the last frame only
	Next func(dst []byte) Frame // appends the next frame of the same event; nil on the last frame
}

// Field is a header field.
type Field struct{ Name, Value string }

// Client is a dialect's side towards an agent. The bodies that it makes are whole requests.
type Client interface {
	// Name is the dialect's name in a configuration.
	Name() string

	// Header returns the header fields that every request carries, beside those of content negotiation. It is
	// not to be changed.
	Header() []Field

	// AppendTurn appends the request that carries a turn out; with stream, one that is answered by a stream.
	AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte
	// Reply reads the body of the answer to a turn, get or cancel. An error that the agent reports is a
	// *task.Error of its kind; what the dialect does not allow is InvalidAgentResponse. known are the
	// products so far, which tell the agent's artifacts apart.
	Reply(body []byte, known []task.Product) (agent.Report, error)

	// NewStream returns a reader of one stream's events.
	NewStream(known []task.Product) Stream

	// Push reads the body of a request by which the agent tells of a task unasked. The zero Report says that it
	// means nothing to a Leader.
	Push(body []byte, known []task.Product) (agent.Report, error)
}

// A Getter is a Client whose agents can be asked for the present state of a task. Without it, a turn is known only by the
// answer to its own request: it is not polled, and it is lost with its connection.
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

// A Resubscriber is a Client whose agents continue the stream of a task on a new connection.
type Resubscriber interface {
	// AppendResubscribe appends the request to continue the stream of a task.
	AppendResubscribe(dst []byte, ref agent.Ref) []byte
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
)

// A Binder is a Client whose requests are told apart by method of HTTP and path, and not by what is in them.
type Binder interface {
	// Bind returns the method of HTTP and the path, with its query, to append to the agent's URL. A GET is sent
	// without a body.
	Bind(e Operation, ref agent.Ref) (method, path string)
}

// A Mounted Client is one whose agents have a path for each method, or one URL for all of them, or no streams at all.
// Which it is, is found out.
type Mounted interface {
	// Path returns the path of an errand below the agent's mount point, without a slash before it.
	Path(e Operation) string
	// Streams reports whether a turn may be answered by a stream.
	Streams(t *agent.Turn) bool
}

// A Namer is a Client whose agents name their tasks themselves. Before such an agent has answered, nothing can be asked
// about the task, and a cancel would go to a name that the agent does not know. A stream says the name at once, so that a
// turn of such a task is sent for a stream wherever the agent has streams.
type Namer interface{ NamesTasks() }

// A Repeater is a Client whose agents answer a start of a task that they have with the task as it is. So a start is sent
// again where it is in doubt whether the agent has it.
type Repeater interface{ RepeatsStart() }

// A LateActor is a Client whose agents may leave a task as it is while they act on a continue, and may act on one twice
// that they are sent twice. So an unchanged task does not prove that its agent does not have the message.
type LateActor interface{ ActsLate() }

// A Completer is a Client whose agents await a Leader's word as AIP's do, so that the gateway passes on what ends
// a task: complete.
type Completer interface {
	// AppendComplete appends the request to complete a task.
	AppendComplete(dst []byte, ref agent.Ref) []byte
}

// A Describer is a Client whose agents may have a card that only those see whom they know.
type Describer interface {
	// AppendDescribe appends the request for that card.
	AppendDescribe(dst []byte) []byte
	// Description reads the answer, and returns the card in it as the agent wrote it.
	Description(body []byte) ([]byte, error)
}

// A Registrar is a Client whose agents take a webhook not along with a turn, but by a request of its own before it.
type Registrar interface {
	// AppendRegister appends the request that tells the agent where to tell of a task.
	AppendRegister(dst []byte, ref agent.Ref, w *task.Webhook) []byte
}

// Stream reads the events of one stream of an agent, in order. It is used by one goroutine.
type Stream interface {
	// Event reads one event of the stream. event is its SSE name, data its data. The zero Report says that
	// the event means nothing to a Leader.
	Event(event string, data []byte) (agent.Report, error)
}
