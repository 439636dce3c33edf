// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// An agent without task.* is spoken to by messages. A task is a thread of them: its first message names it, and all
// others belong to it.

// The events of a conversation, beside the notifications of task.*.
const (
	MessageReceived = "event/message.received" // its params are the data
	MessagesOver    = "event/messages.over"    // made by the gateway: the agent has said something, and then no more
)

// Conversation returns what stands for a turn where the agent has no task.*: the thread, the params of a message.send,
// and the response that a task.create would have had. params are those of the turn's own request.
func Conversation(params gjson.Result, to string) (thread string, send, response []byte, ok bool) {
	id := wire.Member(params, "message_id").String()
	thread = wire.Member(params, "task_id").String()
	if thread == "" {
		thread = wire.Member(wire.Member(params, "metadata"), "previous_task_id").String()
	}
	if thread == "" {
		thread = id
	}
	items, ok := ReadContent(wire.Member(params, "input"))
	if !ok || len(items) == 0 {
		return "", nil, nil, false
	}
	item := items[0]
	if len(items) > 1 { // one message has one payload
		if joined := wire.JoinTexts(nil, items); len(joined) == 1 {
			item = joined[0]
		} else {
			item = task.DataItem{Kind: task.DataKind, Data: AppendContent(nil, items)}
		}
	}
	send = task.AppendString([]byte(`{"to":`), to)
	send = task.AppendString(append(send, `,"message_id":`...), id)
	send = append(AppendPayload(append(send, `,"payload":`...), &item, "", thread), '}')
	return thread, send, answerOf(thread, StateName(task.Working, false)), true
}

// CanceledConversation returns the response to a cancel of a turn. Messages cannot cancel anything: what the agent says
// later is ignored.
func CanceledConversation(thread string) []byte {
	return answerOf(thread, StateName(task.Canceled, false))
}

func answerOf(thread, status string) []byte {
	dst := task.AppendString(append(jsonrpc.BeginResult(nil, nil), `{"task_id":`...), thread)
	return jsonrpc.End(append(task.AppendString(append(dst, `,"status":`...), status), '}'))
}

// ThreadOf returns the AID that has sent a message, and the thread to which it belongs. A message without a thread
// belongs to that which was begun by the message that it answers.
func ThreadOf(params gjson.Result) (from, thread string) {
	payload := wire.Member(params, "payload")
	thread = wire.Member(payload, "thread_id").String()
	if thread == "" {
		thread = wire.Member(payload, "reply_to").String()
	}
	return wire.Member(params, "from").String(), thread
}

// received reads a message of a conversation.
func received(data []byte) (agent.Report, error) {
	v, err := wire.Value(data, "message")
	if err != nil {
		return agent.Report{}, err
	}
	p, ok := ReadPayload(wire.Member(v, "payload"))
	if !ok {
		return agent.Report{}, nil // it means nothing to a task, such as an encrypted message
	}
	id := wire.Member(v, "message_id").String()
	if id == "" || len(id) > wire.MaxID {
		return agent.Report{}, wire.Refuse("the agent's message has no id")
	}
	return p.Report(id), nil
}
