// SPDX-License-Identifier: Apache-2.0

package v03

import (
	"errors"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/message"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Server returns the side of A2A 0.2 and 0.3 over JSON-RPC towards callers. With confirm, a task awaiting completion is
// input-required to them; without, it is completed as soon as its agent has finished.
func Server(confirm bool) translate.Server { return server{confirm: confirm} }

type server struct {
	confirm bool
	named   bool // the caller names the version
}

// Named implements translate.VersionedServer.
func (s server) Named() translate.Server { return server{s.confirm, true} }

// Name implements translate.Server.
func (server) Name() string { return version.Name03 }

// Route implements translate.Server: all methods are called at the mount point.
func (server) Route(method, path string) (r translate.Route, ok bool) {
	return rpc.Route(method, path)
}

// Matches implements translate.Server.
func (server) Matches(req *translate.Request) bool {
	return rpc.Matches(req, version.V03,
		send, sendStream, pushSet, pushGet, pushList, pushDelete, extendedCard)
}

// AppendTask implements translate.Server: the response is the Task, or the Message of an agent without a task.
func (s server) AppendTask(dst []byte, id jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	if p := message.Alone(t, c, s.confirm); p != nil {
		return appendAnswer(dst, id, p, t.SessionID)
	}
	dst = jsonrpc.BeginResult(dst, id)
	dst = s.appendTask(dst, t, c.History)
	return jsonrpc.End(dst)
}

// AppendWebhooks implements translate.Server: {taskId, pushNotificationConfig}, an array of these for a list, and null
// for a delete.
func (s server) AppendWebhooks(dst []byte, id jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	switch {
	case c.Op == translate.DeleteWebhooks:
		return jsonrpc.End(append(jsonrpc.BeginResult(dst, id), "null"...))
	case c.Method == pushList:
		dst = append(jsonrpc.BeginResult(dst, id), '[')
		for i := range hooks {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendWebhook(dst, &hooks[i])
		}
		return jsonrpc.End(append(dst, ']'))
	case len(hooks) == 0:
		return s.AppendError(dst, id, webhook.NotFound)
	}
	return jsonrpc.End(appendWebhook(jsonrpc.BeginResult(dst, id), &hooks[0]))
}

func appendWebhook(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"taskId":`...)
	dst = task.AppendString(dst, w.TaskID)
	dst = webhook.Append(append(dst, `,"pushNotificationConfig":`...), w)
	return append(dst, '}')
}

// AppendError implements translate.Server. An SDK of 1.0 names the version, and may read no code if an error has the
// data of 0.3. So such a caller gets no data, and the message is the detail.
func (s server) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := inWords(wire.ErrorOf(err))
	if s.named {
		return rpc.FaultsV03[e.Kind].AppendPlain(dst, id, e)
	}
	return rpc.FaultsV03[e.Kind].Append(dst, id, e)
}

// inWords returns an error as agents on the SDKs of 0.3 say it: a message to an ended task has an invalid parameter.
// The text says nothing of it; 1.0 does, and has another code for it.
func inWords(e *task.Error) *task.Error {
	of, is := errors.AsType[*task.StateError](e)
	if !is || e.Kind != task.UnsupportedOperation || !of.State.Terminal() {
		return e
	}
	said := *e
	said.Kind = task.InvalidParams
	return &said
}

// Status implements translate.Statuser.
func (server) Status(err error) int { return rpc.HTTPStatus(err) }

// AppendNotification implements translate.Server: the whole Task.
func (s server) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.appendTask(dst, t, -1)
}

// NotificationHeader implements translate.Server.
func (server) NotificationHeader(w *task.Webhook) []translate.Field {
	return webhook.Header(w)
}

// StreamsErrors implements translate.ErrorStreamer.
func (server) StreamsErrors(r *translate.Refused) bool { return r.OnlyEvents }

// Numbered implements translate.Unresumer: a client could subscribe to the task again, but none does so by itself.
func (server) Numbered() bool { return true }

// NotifiedStates implements translate.StateFilter.
func (s server) NotifiedStates() []task.State {
	return status.AllExcept(task.AwaitingCompletion, s.confirm)
}

// AppendCard implements translate.CardServer.
func (server) AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte {
	return jsonrpc.End(append(jsonrpc.BeginResult(dst, id), card...))
}

// Interface guards.
var (
	_ translate.Server          = server{}
	_ translate.VersionedServer = server{}
	_ translate.Statuser        = server{}
	_ translate.StateFilter     = server{}
	_ translate.CardServer      = server{}
	_ translate.Unresumer       = server{}
)
