// SPDX-License-Identifier: Apache-2.0

package legacy

import (
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Server returns the side of A2A v0.1 towards callers. With confirm, a task awaiting completion is input-required to
// them; without, it is completed, and may be continued all the same, as in v0.1.
func Server(confirm bool) translate.Server { return server{confirm} }

type server struct{ confirm bool }

// Name implements translate.Server.
func (server) Name() string { return version.NameLegacy }

// Route implements translate.Server: all methods are called at the mount point.
func (server) Route(method, path string) (r translate.Route, ok bool) {
	return rpc.Route(method, path)
}

// Matches implements translate.Server.
func (server) Matches(req *translate.Request) bool {
	return rpc.Matches(req, version.Legacy, send, sendSubscribe, pushSet, pushGet)
}

// AppendTask implements translate.Server: the response is the Task.
func (s server) AppendTask(dst []byte, id jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	dst = jsonrpc.BeginResult(dst, id)
	dst = s.appendTask(dst, t, c.History)
	return jsonrpc.End(dst)
}

// AppendWebhooks implements translate.Server: {id, pushNotificationConfig}. v0.1 cannot delete.
func (s server) AppendWebhooks(dst []byte, id jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	if c.Op == translate.DeleteWebhooks {
		return jsonrpc.End(append(jsonrpc.BeginResult(dst, id), "null"...))
	}
	if len(hooks) == 0 {
		return s.AppendError(dst, id, webhook.NotFound)
	}
	w := hooks[0]
	dst = append(jsonrpc.BeginResult(dst, id), `{"id":`...)
	dst = task.AppendString(dst, w.TaskID)
	dst = append(dst, `,"pushNotificationConfig":`...)
	w.ID = "" // callers of v0.1 do not know of it
	dst = webhook.Append(dst, &w)
	return jsonrpc.End(append(dst, '}'))
}

// AppendError implements translate.Server.
func (server) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := wire.ErrorOf(err)
	return rpc.Faults[e.Kind].Append(dst, id, e)
}

// Status implements translate.Statuser.
func (server) Status(err error) int { return rpc.HTTPStatus(err) }

// AppendNotification implements translate.Server: the Task, without its history.
func (s server) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.appendTask(dst, t, 0)
}

// NotificationHeader implements translate.Server.
func (server) NotificationHeader(w *task.Webhook) []translate.Field {
	return webhook.Header(w)
}

// StreamsErrors implements translate.ErrorStreamer. Callers of 0.3 are answered here, too, if their request does not
// show its version.
func (server) StreamsErrors(r *translate.Refused) bool { return r.OnlyEvents }

// Numbered implements translate.Unresumer: a client could subscribe to the task again, but none does so by itself.
func (server) Numbered() bool { return true }

// Without confirm, two states of AIP look the same to callers, and a webhook is notified once. In 0.3 and 1.0 it is
// notified when the task is completed, as this follows at once; in v0.1 when the agent has finished, because the task
// stays open for its caller.

// NotifiedStates implements translate.StateFilter.
func (s server) NotifiedStates() []task.State { return status.AllExcept(task.Completed, s.confirm) }

// Interface guards.
var (
	_ translate.Server      = server{}
	_ translate.Statuser    = server{}
	_ translate.StateFilter = server{}
	_ translate.Unresumer   = server{}
)
