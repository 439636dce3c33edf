// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// LegacyServer returns the side of A2A v0.1 towards callers. confirm says what a task is that awaits its completion,
// for which A2A has no word: with confirm it asks its caller for input; without, it is completed, and may be gone on
// with all the same, as v0.1 has it.
func LegacyServer(confirm bool) translate.Server { return legacyServer{confirm} }

type legacyServer struct{ confirm bool }

// The methods of v0.1.
const (
	legacySend          = "tasks/send"
	legacySendSubscribe = "tasks/sendSubscribe"
	legacyGet           = "tasks/get"
	legacyCancel        = "tasks/cancel"
	legacyResubscribe   = "tasks/resubscribe"
	legacyPushSet       = "tasks/pushNotification/set"
	legacyPushGet       = "tasks/pushNotification/get"
)

// Name implements translate.Server.
func (legacyServer) Name() string { return nameLegacy }

// Route implements translate.Server: all methods are called at one place.
func (legacyServer) Route(method, path string) (r translate.Route, ok bool) {
	return legacyRoute(method, path)
}

func legacyRoute(method, path string) (r translate.Route, ok bool) {
	if path != "" {
		return r, false
	}
	if method != "POST" {
		r.Allow = "POST"
	}
	return r, true
}

// Speaks implements translate.Server.
func (legacyServer) Matches(req *translate.Request) bool { return legacyNameOf(req) == nameLegacy }

// legacyNameOf returns the name of the dialect before 1.0 that a request is of, or nothing. Some methods are the same
// in all of these versions; there, the version that the caller names decides, and then who has made the task's id: in
// v0.1 its caller, later the gateway.
func legacyNameOf(req *translate.Request) string {
	generation := 0
	if req.Version != "" {
		if generation = generationOf(req.Version); generation != 0 && generation != legacyGeneration {
			return ""
		}
	}
	switch req.Method {
	case legacySend, legacySendSubscribe, legacyPushSet, legacyPushGet:
		return nameLegacy
	case v03Send, v03Stream, v03PushSet, v03PushGet, v03PushList, v03PushDelete, v03ExtendedCard:
		return name03
	case legacyGet, legacyCancel, legacyResubscribe:
	default:
		return ""
	}
	switch {
	case generation == legacyGeneration:
		return nameLegacy
	case req.Version != "":
		return name03
	}
	var id gjson.Result
	members(req.Params, func(key string, v gjson.Result) {
		if key == "id" {
			id = v
		}
	})
	if id.Type == gjson.String && translate.MadeHere(id.Str) {
		return name03
	}
	return nameLegacy
}

// AppendTask implements translate.Server: the response is the Task.
func (s legacyServer) AppendTask(dst []byte, id jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	dst = s.appendTask(dst, t, c.History)
	return jsonrpc.End(dst)
}

// AppendWebhooks implements translate.Server: {id, pushNotificationConfig}. v0.1 cannot delete.
func (s legacyServer) AppendWebhooks(dst []byte, id jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	if c.Op == translate.DeleteWebhooks {
		return jsonrpc.End(append(jsonrpc.BeginResult(dst, id), "null"...))
	}
	if len(hooks) == 0 {
		return s.AppendError(dst, id, legacyNoWebhook)
	}
	w := hooks[0]
	dst = append(jsonrpc.BeginResult(dst, id), `{"id":`...)
	dst = task.AppendString(dst, w.TaskID)
	dst = append(dst, `,"pushNotificationConfig":`...)
	w.ID = "" // callers of v0.1 do not know of it
	dst = appendLegacyConfig(dst, &w)
	return jsonrpc.End(append(dst, '}'))
}

// legacyNoWebhook answers who asks for the one webhook of a task that has none.
var legacyNoWebhook = task.Errorf(task.TaskNotFound, "this task has no push notification configuration")

// AppendError implements translate.Server.
func (legacyServer) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := legacyErrorOf(err)
	return legacyFaults[e.Kind].append(dst, id, e)
}

// Status implements translate.Statuser.
func (legacyServer) Status(err error) int { return legacyHTTPStatus(err) }

// AppendNotification implements translate.Server: the Task, without its history.
func (s legacyServer) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.appendTask(dst, t, 0)
}

// NotificationHeader implements translate.Server.
func (legacyServer) NotificationHeader(w *task.Webhook) []translate.Field {
	return legacyNotificationHeader(w)
}

// ErrorEvents says that what refuses a stream is told as an event of it. Callers of 0.3 whose request does not show its
// version are answered here, too.
func (legacyServer) ErrorEvents() bool { return true }
