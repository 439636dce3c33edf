// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"strconv"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/message"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// AppendTask implements translate.Server. The answer to a message has the Task as a member, because it could be a
// Message as well; other answers are the Task itself.
func (s Base) AppendTask(dst []byte, id jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	if p := message.Alone(t, c, s.confirm); p != nil {
		return s.appendAnswer(dst, id, p, t.SessionID)
	}
	dst = s.begin(dst, id)
	if cmd := c.Message.Command; cmd == task.Start || cmd == task.Continue {
		dst = append(dst, `{"task":`...)
		dst = append(s.appendTask(dst, t, c.History, true), '}')
	} else {
		dst = s.appendTask(dst, t, c.History, true)
	}
	return s.end(dst)
}

// appendAnswer appends the answer to a message: a Message of the agent.
func (s Base) appendAnswer(dst []byte, id jsonrpc.ID, p *task.Product, session string) []byte {
	dst = append(s.begin(dst, id), `{"message":{"messageId":`...)
	dst = task.AppendString(dst, p.ID)
	dst = append(append(append(dst, `,"role":"ROLE_AGENT","`...), s.schema.Parts...), '"', ':')
	dst = s.schema.AppendParts(dst, p.DataItems)
	dst = wire.AppendOptional(dst, `,"contextId":`, session)
	return s.end(append(extension.AppendAnswer(dst, p.Extensions), '}', '}'))
}

// AppendTasks implements translate.Lister.
func (s Base) AppendTasks(dst []byte, id jsonrpc.ID, c *translate.Call, page *task.Page) []byte {
	dst = s.begin(dst, id)
	dst = append(dst, `{"tasks":[`...)
	for i := range page.Tasks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = s.appendTask(dst, &page.Tasks[i], c.History, c.List != nil && c.List.Products)
	}
	dst = append(dst, `],"nextPageToken":`...)
	dst = task.AppendString(dst, page.Next)
	dst = append(dst, `,"pageSize":`...)
	dst = strconv.AppendInt(dst, int64(page.Size), 10)
	dst = append(dst, `,"totalSize":`...)
	dst = strconv.AppendInt(dst, int64(page.Total), 10)
	return s.end(append(dst, '}'))
}

// AppendWebhooks implements translate.Server.
func (s Base) AppendWebhooks(dst []byte, id jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	dst = s.begin(dst, id)
	switch {
	case c.Op == translate.DeleteWebhooks:
		dst = append(dst, '{', '}')
	case len(hooks) == 1 && (c.Op == translate.SetWebhook || c.Method == getConfig):
		dst = s.schema.AppendWebhook(dst, &hooks[0])
	default:
		dst = append(dst, `{"configs":[`...)
		for i := range hooks {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = s.schema.AppendWebhook(dst, &hooks[i])
		}
		dst = append(dst, `],"nextPageToken":""}`...)
	}
	return s.end(dst)
}

// appendConfig appends a TaskPushNotificationConfig with its secrets: only the caller setting it and the agent using it
// read it.
func appendConfig(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"url":`...)
	dst = task.AppendString(dst, w.URL)
	dst = wire.AppendOptional(dst, `,"id":`, w.ID)
	dst = wire.AppendOptional(dst, `,"taskId":`, w.TaskID)
	dst = wire.AppendOptional(dst, `,"token":`, w.Token)
	if w.Scheme != "" {
		dst = append(dst, `,"authentication":{"scheme":`...)
		dst = task.AppendString(dst, w.Scheme)
		dst = append(wire.AppendOptional(dst, `,"credentials":`, w.Credentials), '}')
	}
	return append(dst, '}')
}

// AppendNotification implements translate.Server: a StreamResponse, without the history.
func (s Base) AppendNotification(dst []byte, t *task.Task) []byte {
	dst = append(dst, `{"task":`...)
	return append(s.appendTask(dst, t, 0, true), '}')
}

// appendTask appends a Task with the last messages of its history; a negative number means all of them.
func (s Base) appendTask(dst []byte, t *task.Task, history int, products bool) []byte {
	dst = append(dst, `{"id":`...)
	dst = task.AppendString(dst, t.ID)
	dst = wire.AppendOptional(dst, `,"contextId":`, t.SessionID)
	dst = append(dst, `,"status":`...)
	dst = s.appendStatus(dst, &t.Status, status.Shown(t), t.ID, t.SessionID)
	if products && len(t.Products) > 0 {
		dst = append(dst, `,"artifacts":[`...)
		for i := range t.Products {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = s.appendArtifact(dst, &t.Products[i])
		}
		dst = append(dst, ']')
	}
	if shown := message.Last(t.MessageHistory, history); len(shown) > 0 {
		sep := `,"history":[`
		for i := range shown {
			if len(shown[i].DataItems) > 0 {
				m := extension.InHistory(&shown[i])
				dst = append(dst, sep...)
				dst = s.appendMessage(dst, &m, t.ID, t.SessionID)
				sep = ","
			}
		}
		dst = append(dst, ']')
	}
	return append(extension.AppendResult(dst, t.Extensions, task.None), '}')
}

// stateName returns the name of a state. A task awaiting completion is input-required with confirm, and completed
// without.
func (s Base) stateName(state task.State) string {
	switch state {
	case task.Accepted:
		return "TASK_STATE_SUBMITTED"
	case task.Working:
		return "TASK_STATE_WORKING"
	case task.AwaitingInput:
		return "TASK_STATE_INPUT_REQUIRED"
	case task.AwaitingCompletion:
		if s.confirm {
			return "TASK_STATE_INPUT_REQUIRED"
		}
		return "TASK_STATE_COMPLETED"
	case task.Completed:
		return "TASK_STATE_COMPLETED"
	case task.Canceled:
		return s.schema.Canceled
	case task.Failed:
		return "TASK_STATE_FAILED"
	case task.Rejected:
		return "TASK_STATE_REJECTED"
	}
	return "TASK_STATE_UNSPECIFIED"
}

// authRequired is the state of a task waiting for authorization.
const authRequired = "TASK_STATE_AUTH_REQUIRED"

// appendStatus appends a TaskStatus with the message of said, perhaps an earlier status.
func (s Base) appendStatus(dst []byte, st, said *task.Status, taskID, session string) []byte {
	word := s.stateName(st.State)
	if status.AwaitsAuth(st) {
		word = authRequired
	}
	dst = append(dst, `{"state":"`...)
	dst = append(append(dst, word...), '"')
	if said = status.WithoutMark(said); status.HasMessage(said) {
		m := task.Message{SentAt: said.ChangedAt, SenderRole: task.Partner, DataItems: said.DataItems,
			Extensions: said.Extensions}
		dst = append(dst, `,"message":`...)
		dst = s.appendMessage(dst, &m, taskID, session)
	}
	if !st.ChangedAt.IsZero() {
		dst = append(dst, `,"timestamp":"`...)
		dst = st.ChangedAt.UTC().AppendFormat(dst, timeForm)
		dst = append(dst, '"')
	}
	return append(extension.AppendStatus(dst, said.Extensions), '}')
}

// timeForm is the format of times: ISO 8601 in UTC with milliseconds.
const timeForm = "2006-01-02T15:04:05.000Z"

// appendMessage appends a Message. One without an id gets that of message.Made, because clients on a2a-go read no
// message without one over gRPC.
func (s Base) appendMessage(dst []byte, m *task.Message, taskID, session string) []byte {
	id := m.ID
	if id == "" {
		begin := len(dst)
		dst = s.schema.AppendParts(dst, m.DataItems)
		id = message.Made(taskID, m.SentAt, dst[begin:])
		dst = dst[:begin]
	}
	dst = append(dst, `{"messageId":`...)
	dst = task.AppendString(dst, id)
	if m.SenderRole == task.Partner {
		dst = append(dst, `,"role":"ROLE_AGENT"`...)
	} else {
		dst = append(dst, `,"role":"ROLE_USER"`...)
	}
	dst = append(append(append(dst, ',', '"'), s.schema.Parts...), '"', ':')
	dst = s.schema.AppendParts(dst, m.DataItems)
	dst = wire.AppendOptional(dst, `,"taskId":`, taskID)
	dst = wire.AppendOptional(dst, `,"contextId":`, session)
	return append(extension.AppendMessage(dst, m.Extensions), '}')
}

func (s Base) appendArtifact(dst []byte, p *task.Product) []byte {
	dst = append(dst, `{"artifactId":`...)
	dst = task.AppendString(dst, p.ID)
	dst = wire.AppendOptional(dst, `,"name":`, p.Name)
	dst = wire.AppendOptional(dst, `,"description":`, p.Description)
	dst = append(dst, `,"parts":`...)
	dst = s.schema.AppendParts(dst, p.DataItems)
	return append(extension.AppendArtifact(dst, p.Extensions, ""), '}')
}

// NewStream implements translate.Server. The id must not change until the stream has ended.
func (s Base) NewStream(id jsonrpc.ID, c *translate.Call, t *task.Task) translate.Encoder {
	session := t.SessionID
	if e := message.Stream(t, c, s.confirm, func(dst []byte, p *task.Product) []byte {
		return s.appendAnswer(dst, id, p, session)
	}); e != nil {
		return e
	}
	return &encoder{server: s, id: id, task: t.ID, session: t.SessionID, history: c.History,
		state: task.Working, subscribed: c.Message.Command == task.ReStream}
}

// encoder writes the StreamResponses of one stream.
type encoder struct {
	server        Base
	id            jsonrpc.ID
	task, session string
	history       int
	state         task.State   // the last one sent
	said          *task.Status // the one left out
	subscribed    bool         // to a task, until it ends; otherwise the stream is the answer to a message
}

// ends reports whether the stream ends with a status. It does not end while its task waits for authorization (§7.6.1
// of 1.0): the agent goes on by itself, in 0.3, too. A subscription ends with its task (§3.1.6), over HTTP+JSON also
// when the task begins to await input (§11.7), but not if it awaits it already.
func (f *encoder) ends(st *task.Status, first bool) bool {
	switch {
	case status.AwaitsAuth(st):
		return false
	case !st.State.Settled(), st.State.Terminal(), f.server.schema.Lenient,
		st.State == task.AwaitingCompletion && !f.server.confirm:
		return st.State.Settled()
	}
	return !f.subscribed || f.server.interrupts && !first
}

// Snapshot implements translate.Encoder.
func (f *encoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	f.state = t.Status.State
	dst = append(f.server.begin(dst, f.id), `{"task":`...)
	dst = append(f.server.appendTask(dst, t, f.history, true), '}')
	return translate.Frame{Data: f.server.end(dst), End: f.ends(&t.Status, true)}
}

// Event implements translate.Encoder. A stream ends without a mark. Without confirm, awaiting completion is left out,
// since completed follows.
func (f *encoder) Event(dst []byte, ev *task.Event) translate.Frame {
	switch {
	case ev.Task != nil:
		return f.Snapshot(dst, ev.Task)
	case ev.Status != nil:
		st, said := ev.Status, ev.Status
		switch {
		case st.State == task.AwaitingCompletion && !f.server.confirm:
			f.said = st
			return translate.Frame{}
		case st.State == task.Completed && len(st.DataItems) == 0 && f.said != nil:
			said = f.said
		}
		f.state = st.State
		return f.update(dst, st, said)
	case ev.Chunk != nil:
		dst = append(f.server.begin(dst, f.id), `{"artifactUpdate":{`...)
		dst = append(f.names(dst), `,"artifact":`...)
		dst = f.server.appendArtifact(dst, &ev.Chunk.Product)
		if ev.Chunk.Append {
			dst = append(dst, `,"append":true`...)
		}
		if ev.Chunk.Last {
			dst = append(dst, `,"lastChunk":true`...)
		}
		dst = extension.AppendResult(dst, ev.Chunk.Extensions, task.None)
		return translate.Frame{Data: f.server.end(append(dst, '}', '}'))}
	case ev.Message != nil && ev.Message.SenderRole == task.Partner && len(ev.Message.DataItems) > 0:
		// In A2A a Message would be the whole answer, so a message of the Partner is sent with the present state.
		st := status.Of(ev.Message, f.state)
		return f.update(dst, st, st)
	}
	return translate.Frame{}
}

// update appends an event of a state.
func (f *encoder) update(dst []byte, st, said *task.Status) translate.Frame {
	dst = append(f.server.begin(dst, f.id), `{"statusUpdate":{`...)
	dst = append(f.names(dst), `,"status":`...)
	dst = f.server.appendStatus(dst, st, said, f.task, f.session)
	if f.server.schema.Final {
		dst = strconv.AppendBool(append(dst, `,"final":`...), f.ends(st, false))
	}
	dst = extension.AppendResult(dst, said.TaskExtensions, task.None)
	return translate.Frame{Data: f.server.end(append(dst, '}', '}')), End: f.ends(st, false)}
}

// names appends the ids of the task and the context of an event.
func (f *encoder) names(dst []byte) []byte {
	dst = append(dst, `"taskId":`...)
	dst = task.AppendString(dst, f.task)
	return wire.AppendOptional(dst, `,"contextId":`, f.session)
}
