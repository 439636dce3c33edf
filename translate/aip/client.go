// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"encoding/json"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Client returns the side of AIP v01.00 towards a Partner, with the gateway as its Leader. sender is its AIC in
// senderId.
//
// An endpoint of transport JSONRPC is the one URL of all methods; other Partners have a path for each. A task and its
// session have the gateway's names: in AIP a Leader makes both.
func Client(sender string) translate.Client {
	return &client{
		name: name, sender: sender, appendRequest: appendMessage, continues: true,
		lastMessage: "lastMessageSentAt",
	}
}

// client is the side towards a Partner of any version. The versions differ in the wrapping of a command. One reader
// reads the answers of all, and distinguishes them by their members.
type client struct {
	name, sender  string
	query         translate.Query
	appendRequest func(dst []byte, q *translate.Query, method string, m *task.Message) []byte
	lastMessage   string // the parameter of get for an answer with later messages only
	continues     bool   // a continue may be answered by a stream
}

// noHistory is a time later than all events, so that no answer to a get holds a history. The gateway keeps its own, and
// a polled task would send its history each time.
const noHistory = `"2999-01-01T00:00:00+08:00"`

// epoch stands for an unknown time: AIP demands a sentAt, but a codec has no clock, and the gateway may send a get, a
// cancel or a complete by itself. It has a numeric offset, as more readers understand one than Z.
var epoch = time.Unix(0, 0).In(beijing)

// Name implements translate.Client.
func (c *client) Name() string { return c.name }

// For implements translate.Client.
func (c *client) For(q translate.Query) translate.Client {
	paired := *c
	paired.query = q
	return &paired
}

// Header implements translate.Client. AIP has no header fields of its own for requests to a Partner.
func (c *client) Header() []translate.Field { return nil }

// AppendTurn implements translate.Client. The message keeps the caller's id and time if it has them. Its mentions and
// its group are not passed on: the Partner is not in the caller's group.
//
// Turn.Webhook is not used: AIP registers a webhook by a request of its own (§6.3.1), and a turn has only one.
func (c *client) AppendTurn(dst []byte, t *agent.Turn, stream bool) []byte {
	command := commandOf(t)
	m := c.message(command, t.Ref)
	m.Params, m.DataItems, m.Extensions = wire.Passed(t.Message.Params), t.Message.DataItems, t.Message.Extensions
	if !t.Message.SentAt.IsZero() {
		m.SentAt = t.Message.SentAt
	}
	m.ID = messageID(t)
	method := methodRPC
	if stream && c.Streams(t) {
		method = methodStream
	}
	return c.appendRequest(dst, &c.query, method, &m)
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

// RepeatsStart implements translate.Repeater: a task has the name given by its Leader (§4.3).
func (*client) RepeatsStart() {}

// RestatesTasks implements translate.Restater.
func (*client) RestatesTasks() {}

// messageID returns the id of the message for a turn: the caller's, if the message has one.
func messageID(t *agent.Turn) string {
	if t.Message.ID != "" {
		return t.Message.ID
	}
	return turnID(t, commandOf(t))
}

// turnID makes an id for a message without one. It is the same when the same turn is sent again, and another one in the
// next turn.
func turnID(t *agent.Turn, command task.Command) string {
	sum := crc32.ChecksumIEEE([]byte(t.Revision))
	sum = crc32.Update(sum, crc32.IEEETable, task.AppendStatus(nil, &task.Status{DataItems: t.Message.DataItems}))
	return t.Ref.Task + "-" + string(command) + "-" + strconv.FormatUint(uint64(sum), 16)
}

// AppendGet implements translate.Getter.
func (c *client) AppendGet(dst []byte, ref agent.Ref) []byte {
	return c.appendGet(dst, ref, noHistory)
}

// appendGet appends a get. lastMessage is a time, in JSON. The answer is to hold the messages after it.
func (c *client) appendGet(dst []byte, ref agent.Ref, lastMessage string) []byte {
	m := c.message(task.Get, ref)
	m.Params = json.RawMessage(`{"` + c.lastMessage + `":` + lastMessage + `,"lastStateChangedAt":` + noHistory + `}`)
	return c.appendRequest(dst, &c.query, methodRPC, &m)
}

// AppendCancel implements translate.Canceler.
func (c *client) AppendCancel(dst []byte, ref agent.Ref) []byte {
	m := c.message(task.Cancel, ref)
	return c.appendRequest(dst, &c.query, methodRPC, &m)
}

// AppendComplete implements translate.Completer.
func (c *client) AppendComplete(dst []byte, ref agent.Ref) []byte {
	m := c.message(task.Complete, ref)
	return c.appendRequest(dst, &c.query, methodRPC, &m)
}

// AppendResubscribe implements translate.Resubscriber. The number of the last event is not known here, so the stream is
// asked for from the beginning. Its events only show a change; the gateway then gets the task.
func (c *client) AppendResubscribe(dst []byte, ref agent.Ref) []byte {
	m := c.message(task.ReStream, ref)
	return c.appendRequest(dst, &c.query, methodStream, &m)
}

// message returns a message with a command. If the gateway repeats it, it has the same id.
func (c *client) message(command task.Command, ref agent.Ref) task.Message {
	return task.Message{
		ID: ref.Task + "-" + string(command), SentAt: epoch, SenderRole: task.Leader, SenderID: c.sender,
		Command: command, TaskID: ref.Task, SessionID: ref.Session,
	}
}

// appendMessage appends an RpcRequest or a StreamRequest (§6.1.1, §6.2.1).
func appendMessage(dst []byte, q *translate.Query, method string, m *task.Message) []byte {
	dst = wire.BeginRequest(dst, q, m.TaskID, method)
	dst = append(dst, `{"message":`...)
	dst = form.AppendMessage(dst, m)
	return jsonrpc.End(append(dst, '}'))
}
