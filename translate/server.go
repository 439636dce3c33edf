// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"net/url"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Server is a dialect's side towards callers.
type Server interface {
	// Name is the dialect's name in a configuration, in log lines and in documents: aip, a2a/legacy.
	Name() string

	// Route returns the route of a request by its method of HTTP and its path under the mount point, such as
	// "notification/set", escaped as in its URL; the empty path is the mount point itself. ok is false if the dialect has
	// no such path. If it has, but not with this method of HTTP, Route.Allow names the right ones.
	Route(method, path string) (r Route, ok bool)

	// Matches reports whether a request is of this dialect. It is called if several dialects may call and the path does
	// not decide.
	Matches(req *Request) bool

	// Decode reads a request. Every error is a *task.Error with the name of the field. The Call holds copies: the
	// request's body may be used for something else afterwards.
	Decode(req *Request) (Call, error)

	// AppendTask appends the whole response to a call, with a task.
	AppendTask(dst []byte, id jsonrpc.ID, c *Call, t *task.Task) []byte

	// AppendWebhooks appends the whole response to SetWebhook (hooks holds the one set), GetWebhooks and DeleteWebhooks
	// (hooks is empty). With Subscribe it says that there is no task yet; otherwise AppendTask answers.
	AppendWebhooks(dst []byte, id jsonrpc.ID, c *Call, hooks []task.Webhook) []byte

	// AppendError appends the whole response with an error. The error's kind becomes the dialect's number here and nowhere
	// else; an error without a kind is an internal error, without its text.
	AppendError(dst []byte, id jsonrpc.ID, err error) []byte

	// NewStream returns the encoder of one stream's events. t is their task; of it only ID, SessionID and GroupID are sure
	// to be set.
	NewStream(id jsonrpc.ID, c *Call, t *task.Task) Encoder

	Notifier
}

// Notifier is the part of a Server for notifying webhooks.
type Notifier interface {
	// AppendNotification appends the body of the request to a webhook about a task's state.
	AppendNotification(dst []byte, t *task.Task) []byte
	// NotificationHeader returns the header fields of that request, among them the content type and the credentials chosen
	// by the webhook's owner.
	NotificationHeader(w *task.Webhook) []Field
}

// Route is the meaning of a path under the mount point.
type Route struct {
	// Method is the only JSON-RPC method allowed on the path; empty if the envelope names it.
	Method string
	// Unenveloped is set without an envelope: Method is the request's meaning, PathParams are the parameters in its path,
	// and its body is the params. GET and DELETE have no body.
	Unenveloped bool
	PathParams  map[string]string
	// Allow is set, to the value of an Allow field, if the path exists but does not take the request's method of HTTP.
	Allow string
}

// Request is a request as a codec reads it. One without an envelope has no ID, and without a body no Params.
type Request struct {
	jsonrpc.Request
	HTTP       string            // the method of HTTP
	Content    string            // the media type of the body by its Content-Type, without parameters; empty for none
	Version    string            // the version named by the caller, A2A-Version as header or query; empty for none
	Activated  []string          // the values of the header fields for activating extensions of A2A
	PathParams map[string]string // of a Route without an envelope
	Query      url.Values        // of a request without an envelope
	NewID      func() string     // returns an id that no other request has; it cannot be guessed
	Groups     bool              // the Partner takes part in groups; otherwise a GroupServer refuses invitations
}

// A VersionedServer is a Server with another form of answers for a caller naming the version of its protocol, in
// Request.Version.
type VersionedServer interface {
	// Named returns the Server for such a caller.
	Named() Server
}

// A Lister is a Server of a dialect with lists of tasks.
type Lister interface {
	// AppendTasks appends the whole response to ListTasks.
	AppendTasks(dst []byte, id jsonrpc.ID, c *Call, page *task.Page) []byte
}

// A GroupServer is a Server of a dialect with groups of agents, meeting at a message broker.
type GroupServer interface {
	// AppendMembership appends the whole response to JoinGroup.
	AppendMembership(dst []byte, id jsonrpc.ID, c *Call, m *task.Membership) []byte

	// IsInvitation reports whether a method is the one of JoinGroup, and AppendInvitationError is AppendError for it.
	IsInvitation(method string) bool
	AppendInvitationError(dst []byte, id jsonrpc.ID, err error) []byte
}

// Sessions is a Server of callers that may name a part of a session. IsInSession reports whether a Message.SessionID,
// named beside Call.SessionOf, is the session of that task, or a part of it. For other servers, both must be the same.
type Sessions interface {
	IsInSession(named, session string) bool
}

// A CardServer is a Server of callers that may ask for an extended card. Not every caller may see it.
type CardServer interface {
	// AppendCard appends the whole response to ExtendedCard.
	AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte
}

// A StateFilter is a Server of a dialect showing several states of AIP as one. Its webhooks are notified of one of
// them.
type StateFilter interface {
	// NotifiedStates returns the states for notifying a webhook; nil means all of them.
	NotifiedStates() []task.State
}

// A ContentTyper is a Server with answers of another media type than application/json. Its errors are.
type ContentTyper interface {
	// ContentType returns the values of the Content-Type field. They are not to be changed.
	ContentType() []string
}

// A ContentChecker is a Server taking bodies of some media types only. Its Decode checks them, too.
type ContentChecker interface {
	// CheckContent returns the error of a body of a refused media type, before the body is read; see Request.Content.
	CheckContent(media string) error
}

// A Statuser is a Server with a status of HTTP for each error; for all other servers it is 200.
type Statuser interface {
	// Status returns the status of HTTP beside AppendError.
	Status(err error) int
}

// An ErrorStreamer is a Server that may answer a call for a stream with a stream of one event, the error, because some
// of its callers read nothing else and take any other answer for a stream that has ended well. StreamsErrors reports
// whether it does so.
type ErrorStreamer interface {
	StreamsErrors(r *Refused) bool
}

// Refused is the known part of a request answered by an error.
type Refused struct {
	Method     string // as far as it could be read; empty otherwise
	Stream     bool   // the request was decoded, and is for a stream
	Events     bool   // the caller accepts a stream of events
	OnlyEvents bool   // it accepts nothing else
}

// An Unresumer is a Server whose callers do not resume a cut stream, and take its end for the answer's. So a reload
// does not end a stream, and the exit of the process ends it with an error.
type Unresumer interface {
	// Numbered reports whether events have numbers, so that a caller could resume. If not, the rest of a cut stream is
	// lost.
	Numbered() bool
}

// A Marked Server is one whose callers may begin a body with a byte order mark. The mark means nothing.
type Marked interface{ TakesMark() }

// A Transcoder is a Server with protocol buffers as its messages, as those of gRPC, and not JSON. It appends messages,
// and AppendError appends a google.rpc.Status. Its requests have no envelope. Only fronts of gRPC serve it.
type Transcoder interface {
	// Params returns the params of a request as JSON, from its message. Every error is a *task.Error.
	Params(method string, message []byte) ([]byte, error)
}
