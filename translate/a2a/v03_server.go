// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// V03Server returns the side of A2A 0.2 and 0.3 over JSON-RPC towards callers. confirm says what a task is that awaits
// its completion, for which A2A has no word: with confirm it asks its caller for input; without, it is completed as
// soon as its agent has finished.
func V03Server(confirm bool) translate.Server { return v03Server{confirm} }

type v03Server struct{ confirm bool }

// Name implements translate.Server.
func (v03Server) Name() string { return name03 }

// Route implements translate.Server: all methods are called at one place.
func (v03Server) Route(method, path string) (r translate.Route, ok bool) {
	return rpcRoute(method, path)
}

// Speaks implements translate.Server.
func (v03Server) Matches(req *translate.Request) bool {
	return rpcMatches(req, verV03,
		v03Send, v03Stream, v03PushSet, v03PushGet, v03PushList, v03PushDelete, v03ExtendedCard)
}

// AppendTask implements translate.Server: the response is the Task.
func (s v03Server) AppendTask(dst []byte, id jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	dst = s.appendTask(dst, t, c.History)
	return jsonrpc.End(dst)
}

// AppendWebhooks implements translate.Server: {taskId, pushNotificationConfig}, an array of these for a list, and null
// for a delete.
func (s v03Server) AppendWebhooks(dst []byte, id jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	switch {
	case c.Op == translate.DeleteWebhooks:
		return jsonrpc.End(append(jsonrpc.BeginResult(dst, id), "null"...))
	case c.Method == v03PushList:
		dst = append(jsonrpc.BeginResult(dst, id), '[')
		for i := range hooks {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendV03Webhook(dst, &hooks[i])
		}
		return jsonrpc.End(append(dst, ']'))
	case len(hooks) == 0:
		return s.AppendError(dst, id, legacyNoWebhook)
	}
	return jsonrpc.End(appendV03Webhook(jsonrpc.BeginResult(dst, id), &hooks[0]))
}

func appendV03Webhook(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"taskId":`...)
	dst = task.AppendString(dst, w.TaskID)
	dst = appendLegacyConfig(append(dst, `,"pushNotificationConfig":`...), w)
	return append(dst, '}')
}

// AppendError implements translate.Server.
func (v03Server) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := legacyErrorOf(err)
	return v03Faults[e.Kind].append(dst, id, e)
}

// Status implements translate.Statuser.
func (v03Server) Status(err error) int { return legacyHTTPStatus(err) }

// AppendNotification implements translate.Server: the whole Task.
func (s v03Server) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.appendTask(dst, t, -1)
}

// NotificationHeader implements translate.Server.
func (v03Server) NotificationHeader(w *task.Webhook) []translate.Field {
	return legacyNotificationHeader(w)
}

// StreamsErrors implements translate.ErrorStreamer.
func (v03Server) StreamsErrors() bool { return true }

// NotifiedStates implements translate.StateFilter.
func (s v03Server) NotifiedStates() []task.State { return allBut(task.AwaitingCompletion, s.confirm) }

// AppendCard implements translate.CardServer.
func (v03Server) AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte {
	return jsonrpc.End(append(jsonrpc.BeginResult(dst, id), card...))
}
