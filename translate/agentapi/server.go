// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Server returns the side of the Agent API towards callers. Its callers name a session and no task: a request continues
// the last task of its session, or starts another one after an ended one. With confirm, a task awaiting completion
// stays open, so that the next request continues it; without, it is completed at once.
func Server(confirm bool) translate.Server { return server{confirm} }

// server has the facets of the interface guards below.
type server struct{ confirm bool }

// process is the path of messages, and the method for them. See submitTask for the others.
const process = "process"

// Name implements translate.Server.
func (server) Name() string { return name }

// Matches implements translate.Server: no other dialect has the path.
func (server) Matches(*translate.Request) bool { return true }

// StreamsErrors implements translate.ErrorStreamer: an error is the only line of the stream.
func (server) StreamsErrors(r *translate.Refused) bool { return r.Stream }

// Numbered implements translate.Unresumer: a response is sent once.
func (server) Numbered() bool { return false }

// TakesMark implements translate.Marked.
func (server) TakesMark() {}

// AppendWebhooks implements translate.Server. The Agent API has no webhooks.
func (s server) AppendWebhooks(dst []byte, id jsonrpc.ID, _ *translate.Call, _ []task.Webhook) []byte {
	return s.AppendError(dst, id, task.Errorf(task.NotificationNotSupported, "the Agent API has no webhooks"))
}

// AppendNotification implements translate.Notifier.
func (s server) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.AppendTask(dst, nil, new(translate.Call), t)
}

// NotificationHeader implements translate.Notifier.
func (server) NotificationHeader(w *task.Webhook) []translate.Field {
	header := []translate.Field{{Name: "Content-Type", Value: "application/json"}}
	if w.Token != "" {
		header = append(header, translate.Field{Name: "Authorization", Value: "Bearer " + w.Token})
	}
	return header
}

// Interface guards.
var (
	_ translate.Server         = server{}
	_ translate.Statuser       = server{}
	_ translate.ErrorStreamer  = server{}
	_ translate.Unresumer      = server{}
	_ translate.Marked         = server{}
	_ translate.Sessions       = server{}
	_ translate.ContentChecker = server{}
)
