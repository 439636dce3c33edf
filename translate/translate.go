// SPDX-License-Identifier: Apache-2.0

// Package translate says what a dialect is: one protocol at one version, as pure functions between its bytes
// and the canon of package task. There is one folder a protocol, and none of them knows another, so N
// dialects are at most 2N codecs. Codecs do no I/O, read no clock and start no goroutine; all of them may be
// used by any number of goroutines at once.
package translate

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Server is a dialect's side towards callers.
type Server interface {
	// Name is the dialect's name in a configuration, in log lines and in documents: aip, a2a/legacy.
	Name() string

	// Method returns the only method that may be called on a path under the mount point, such as
	// "notification/set". The empty path is the mount point itself, where the method decides: any says so.
	// ok is false where the dialect has no such path.
	Method(path string) (method string, any, ok bool)

	// Decode reads a request. Whatever it refuses, it refuses with a *task.Error that names the field.
	Decode(req *jsonrpc.Request) (Call, error)

	// AppendTask appends the whole response, envelope included, that answers a call with a task.
	AppendTask(dst []byte, id jsonrpc.ID, t *task.Task) []byte

	// AppendEvent appends the whole response that carries one event of a stream, on one line. t is the task
	// that the event belongs to; only its ID, SessionID and GroupID are read.
	AppendEvent(dst []byte, id jsonrpc.ID, ev *task.Event, t *task.Task) []byte

	// AppendError appends the whole response that says what went wrong. The error's kind becomes the
	// dialect's number here and nowhere else; what has no kind is an internal error, without its text.
	AppendError(dst []byte, id jsonrpc.ID, err error) []byte
}

// Call is a decoded request: the command, and how its answer is wanted.
type Call struct {
	task.Call
	Stream bool // the answer is a stream of events
}

// Client is a dialect's side towards an agent. The bodies that it makes are whole requests.
type Client interface {
	// Name is the dialect's name in a configuration.
	Name() string

	// AppendTurn appends the request that carries a turn out; with stream, one that is answered by a stream.
	AppendTurn(dst []byte, t *task.Turn, stream bool) []byte
	// AppendGet appends the request for the present state of a task.
	AppendGet(dst []byte, ref task.Ref) []byte
	// AppendCancel appends the request to cancel a task.
	AppendCancel(dst []byte, ref task.Ref) []byte
	// AppendResubscribe appends the request to go on with the stream of a task.
	AppendResubscribe(dst []byte, ref task.Ref) []byte

	// Reply reads the body of the answer to a turn, get or cancel. An error that the agent reports is a
	// *task.Error of its kind; what the dialect does not allow is InvalidAgentResponse. known are the
	// products so far, which tell the agent's artifacts apart.
	Reply(body []byte, known []task.Product) (task.Report, error)

	// NewStream returns a reader of one stream's events.
	NewStream(known []task.Product) Stream
}

// Stream reads the events of one stream of an agent, in order. It is used by one goroutine.
type Stream interface {
	// Event reads one event of the stream. event is its SSE name, data its data. The zero Report says that
	// the event means nothing to a Leader.
	Event(event string, data []byte) (task.Report, error)
}
