// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Client returns the side of AIP v01.00 towards a Partner, whose Leader the gateway is. sender is the AIC that
// it gives as senderId.
//
// An endpoint of transport JSONRPC is the one URL of all methods; other Partners have a path for each. A task and its
// session have the names that the gateway gave them: in AIP a Leader makes both.
func Client(sender string) translate.Client {
	return &client{
		name: name, sender: sender, appendRequest: appendMessage, continues: true,
		getParams: json.RawMessage(`{"lastMessageSentAt":` + noHistory + `,"lastStateChangedAt":` + noHistory + `}`),
	}
}

// client is the side towards a Partner of any version. The versions differ in how they wrap a command; what a
// Partner answers is told apart by what is in it, so that one reader does for all.
type client struct {
	name, sender  string
	appendRequest func(dst []byte, method string, m *task.Message) []byte
	getParams     json.RawMessage
	continues     bool // a continue may be answered by a stream
}

// noHistory is a time after which nothing has happened, so that no answer to a get holds a history. The gateway
// keeps its own, and that of a task that is asked for many times would be sent each time.
const noHistory = `"2999-01-01T00:00:00+08:00"`

// epoch stands for a time that is not known. A codec has no clock, and a get, a cancel or a complete may be the
// gateway's own idea; but AIP wants a sentAt. It has an offset in figures, which more readers take than Z.
var epoch = time.Unix(0, 0).In(beijing)

// Name implements translate.Client.
func (c *client) Name() string { return c.name }

// Header implements translate.Client. AIP has no header fields of its own for requests to a Partner.
func (c *client) Header() []translate.Field { return nil }

// AppendTurn implements translate.Client. The message keeps the caller's id and time where it has them. Its
// mentions and its group are the caller's own affair, and no business of a Partner that is spoken to alone.
//
// Turn.Webhook is not used: AIP registers a webhook by a request of its own (§6.3.1), and a turn has only one.
func (c *client) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	command := commandOf(t)
	m := c.message(command, t.Ref)
	m.Params, m.DataItems, m.Extensions = passed(t.Message.Params), t.Message.DataItems, t.Message.Extensions
	if !t.Message.SentAt.IsZero() {
		m.SentAt = t.Message.SentAt
	}
	if m.ID = t.Message.ID; m.ID == "" {
		m.ID = turnID(t, command)
	}
	method := methodRPC
	if stream && c.Streams(t) {
		method = methodStream
	}
	return c.appendRequest(dst, method, &m)
}

func commandOf(t *agent.Turn) task.Command {
	if t.From != task.None || t.Message.Command == task.Continue {
		return task.Continue
	}
	return task.Start
}

// Path implements translate.Mounted: a method is its own path (§6, §7).
func (*client) Path(e translate.Operation) string {
	if e == translate.SendStream || e == translate.Resubscribe {
		return methodStream
	}
	return methodRPC
}

// Streams implements translate.Mounted.
func (c *client) Streams(t *agent.Turn) bool { return c.continues || commandOf(t) == task.Start }

// RepeatsStart implements translate.Repeater: a task has the name that its Leader gives it (§4.3).
func (*client) RepeatsStart() {}

// ActsLate implements translate.LateActor: the reference implementation leaves the state of a task to what is built upon
// it, and does not look at the ids of messages.
func (*client) ActsLate() {}

// turnID makes an id for a message that has none. It is the same when the same turn is made again, and another
// one in the next turn.
func turnID(t *agent.Turn, command task.Command) string {
	sum := crc32.ChecksumIEEE([]byte(t.Revision))
	sum = crc32.Update(sum, crc32.IEEETable, task.AppendStatus(nil, &task.Status{DataItems: t.Message.DataItems}))
	return t.Ref.Task + "-" + string(command) + "-" + strconv.FormatUint(uint64(sum), 16)
}

// AppendGet implements translate.Getter.
func (c *client) AppendGet(dst []byte, ref agent.Ref) []byte {
	m := c.message(task.Get, ref)
	m.Params = c.getParams
	return c.appendRequest(dst, methodRPC, &m)
}

// AppendCancel implements translate.Canceler.
func (c *client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	m := c.message(task.Cancel, ref)
	return c.appendRequest(dst, methodRPC, &m)
}

// AppendComplete implements translate.Completer.
func (c *client) AppendComplete(dst []byte, ref agent.Ref) []byte {
	m := c.message(task.Complete, ref)
	return c.appendRequest(dst, methodRPC, &m)
}

// AppendResubscribe implements translate.Resubscriber. Nobody knows here which event was the last, so the stream is
// asked for from the beginning: its events tell that there is news, and the news is asked for.
func (c *client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	m := c.message(task.ReStream, ref)
	return c.appendRequest(dst, methodStream, &m)
}

// message returns a message that gives a command. One that the gateway repeats has the same id, since it means
// the same.
func (c *client) message(command task.Command, ref agent.Ref) task.Message {
	return task.Message{
		ID: ref.Task + "-" + string(command), SentAt: epoch, SenderRole: task.Leader, SenderID: c.sender,
		Command: command, TaskID: ref.Task, SessionID: ref.Session,
	}
}

// passed returns the parameters of a caller's command that are for the Partner: all but those that the gateway
// keeps itself. It answers in time, it ends a task that waits too long and one whose products are too large, and
// it tells the caller's webhooks; a Partner that did so too would do it at another moment, and the two would not
// agree. It returns nil where nothing is left.
func passed(params json.RawMessage) json.RawMessage {
	all := gjson.ParseBytes(params)
	if !all.IsObject() {
		return nil
	}
	var out []byte
	all.ForEach(func(key, v gjson.Result) bool {
		switch key.Str {
		case "responseTimeout", "awaitingInputTimeout", "awaitingCompletionTimeout", "timeout", "maxProductsBytes",
			"notificationConfigId", "notifyOnStates":
			return true
		}
		if out == nil {
			out = append(out, '{')
		} else {
			out = append(out, ',')
		}
		out = append(append(append(out, key.Raw...), ':'), v.Raw...)
		return true
	})
	if out == nil {
		return nil
	}
	return append(out, '}')
}

// appendMessage appends an RpcRequest or a StreamRequest (§6.1.1, §6.2.1).
func appendMessage(dst []byte, method string, m *task.Message) []byte {
	dst = beginRequest(dst, method, m.TaskID)
	dst = append(dst, `{"message":`...)
	dst = form.AppendMessage(dst, m)
	return jsonrpc.End(append(dst, '}'))
}

// beginRequest begins a request. Its id is the task's, which makes a capture of the wire readable; its answer is
// known by the connection it comes on.
func beginRequest(dst []byte, method, taskID string) []byte {
	var room [96]byte
	return jsonrpc.BeginRequest(dst, task.AppendString(room[:0], taskID), method)
}
