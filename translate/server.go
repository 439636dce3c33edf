// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"net/url"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Server is a dialect's side towards callers.
type Server interface {
	// Name is the dialect's name in a configuration, in log lines and in documents: aip, a2a/legacy.
	Name() string

	// Route says what a request is for by its method of HTTP and its path under the mount point, such as
	// "notification/set", escaped as in its URL; the empty path is the mount point itself. ok is false where the dialect
	// has no such path. Where it has, but not with this method of HTTP, Route.Allow says with which.
	Route(method, path string) (r Route, ok bool)

	// Matches reports whether a request is of this dialect. It is called where several dialects may call and the path
	// does not decide.
	Matches(req *Request) bool

	// Decode reads a request. Every error is a *task.Error that names the field. The Call holds copies: the request's
	// body may be used for something else afterwards.
	Decode(req *Request) (Call, error)

	// AppendTask appends the whole response that answers a call with a task.
	AppendTask(dst []byte, id jsonrpc.ID, c *Call, t *task.Task) []byte

	// AppendWebhooks appends the whole response to SetWebhook (hooks holds the one that was set), GetWebhooks
	// and DeleteWebhooks (hooks is empty). With Subscribe it says that there is no task yet; otherwise AppendTask answers.
	AppendWebhooks(dst []byte, id jsonrpc.ID, c *Call, hooks []task.Webhook) []byte

	// AppendError appends the whole response that says what went wrong. The error's kind becomes the
	// dialect's number here and nowhere else; what has no kind is an internal error, without its text.
	AppendError(dst []byte, id jsonrpc.ID, err error) []byte

	// NewStream returns what writes the events of one stream. t is the task that they belong to; of it only
	// ID, SessionID and GroupID are sure to be set.
	NewStream(id jsonrpc.ID, c *Call, t *task.Task) Encoder

	Notifier
}

// Notifier is the part of a Server that notifies webhooks.
type Notifier interface {
	// AppendNotification appends the body of the request that notifies a webhook of a task's state.
	AppendNotification(dst []byte, t *task.Task) []byte
	// NotificationHeader returns the header fields of that request, among them the content type and what the
	// webhook's owner asked to be authenticated by.
	NotificationHeader(w *task.Webhook) []Field
}

// Route is what a path under the mount point is for.
type Route struct {
	// Method is the only JSON-RPC method that may be called on the path; empty where the envelope says which.
	Method string
	// Unenveloped says that there is no envelope: Method is what the request stands for, PathParams what its path says,
	// and its body, which GET and DELETE do not have, is the params.
	Unenveloped bool
	PathParams  map[string]string
	// Allow is set, to what an Allow field holds, where the path exists but does not take the request's method
	// of HTTP.
	Allow string
}

// Request is a request as a codec reads it. One without an envelope has no ID, and no Params where it had no body.
type Request struct {
	jsonrpc.Request
	HTTP       string            // the method of HTTP
	Content    string            // the media type of the body by its Content-Type, without parameters; empty for none
	Version    string            // the version that the caller names, A2A-Version as header or query; empty for none
	Activated  []string          // the values of the header fields by which a caller of A2A activates extensions
	PathParams map[string]string // of a Route without an envelope
	Query      url.Values        // of a request without an envelope
	NewID      func() string     // returns an id that no other request has, which cannot be guessed
	Groups     bool              // the Partner takes part in groups; otherwise a GroupServer refuses invitations
}

// A VersionedServer is a Server that answers a caller who names the version of its protocol, in Request.Version, in
// another form.
type VersionedServer interface {
	// Named returns the Server for such a caller.
	Named() Server
}

// A Lister is a Server whose dialect can list tasks.
type Lister interface {
	// AppendTasks appends the whole response to ListTasks.
	AppendTasks(dst []byte, id jsonrpc.ID, c *Call, page *task.Page) []byte
}

// A GroupServer is a Server whose dialect has groups of agents that meet at a message broker.
type GroupServer interface {
	// AppendMembership appends the whole response to JoinGroup.
	AppendMembership(dst []byte, id jsonrpc.ID, c *Call, m *task.Membership) []byte

	// IsInvitation reports whether a method is that of JoinGroup, and AppendInvitationError is AppendError for it.
	IsInvitation(method string) bool
	AppendInvitationError(dst []byte, id jsonrpc.ID, err error) []byte
}

// Sessions is a Server whose callers may name a part of a session. IsInSession reports whether what Message.SessionID
// names beside Call.SessionOf is, or is a part of, the session of that task. For other servers, both must be the same.
type Sessions interface {
	IsInSession(named, session string) bool
}

// A CardServer is a Server whose callers may ask for an extended card, which not every caller may see.
type CardServer interface {
	// AppendCard appends the whole response to ExtendedCard.
	AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte
}

// A StateFilter is a Server whose dialect shows several states of AIP as one. Its webhooks are notified of one of them.
type StateFilter interface {
	// NotifiedStates returns the states that a webhook is notified of; nil means all of them.
	NotifiedStates() []task.State
}

// A ContentTyper is a Server whose answers are not of the media type application/json. Its errors are.
type ContentTyper interface {
	// ContentType returns the values of the Content-Type field. They are not to be changed.
	ContentType() []string
}

// A ContentChecker is a Server that takes bodies of some media types only. Its Decode checks that, too.
type ContentChecker interface {
	// CheckContent returns why a body of a media type is refused, before it is read; see Request.Content.
	CheckContent(media string) error
}

// A Statuser is a Server whose errors have a status of HTTP; that of all others is 200.
type Statuser interface {
	// Status returns the status of HTTP that goes with AppendError.
	Status(err error) int
}

// An ErrorStreamer is a Server that may answer a call for a stream with a stream whose only event is the error, because
// some of its callers read nothing else and take any other answer for a stream that has ended well. StreamsErrors
// reports whether it does so.
type ErrorStreamer interface {
	StreamsErrors(r *Refused) bool
}

// Refused is what is known of a request that is answered by an error.
type Refused struct {
	Method     string // as far as it could be read; empty otherwise
	Stream     bool   // the request was decoded, and is for a stream
	Events     bool   // the caller says that it accepts a stream of events
	OnlyEvents bool   // it accepts nothing else
}

// An Unresumer is a Server whose callers do not resume a stream that is cut, and take its end for that of the answer.
// So a reload does not end a stream, and the exit of the process ends it with an error.
type Unresumer interface {
	// Numbered reports whether events have numbers, from which a caller could resume. If not, what is cut is lost.
	Numbered() bool
}

// A Marked Server is one whose callers may begin a body with a byte order mark, which means nothing.
type Marked interface{ TakesMark() }

// A Transcoder is a Server whose messages are protocol buffers, as those of gRPC, and not JSON. What it appends are
// messages, and AppendError appends a google.rpc.Status. Its requests have no envelope. Only fronts of gRPC serve it.
type Transcoder interface {
	// Params returns the params of a request as JSON, from its message. Every error is a *task.Error.
	Params(method string, message []byte) ([]byte, error)
}
