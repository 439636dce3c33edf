// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// quiet is how long an agent that is spoken to by messages may say nothing after a message until its turn is over. Only
// some agents report the end.
const quiet = 10 * time.Second

// byMessages reports whether the other end has messages and no task.*.
func byMessages(h *aun.Hello) bool { return h.Has("message") && !h.Has("task") }

// converse carries out a request by messages.
func (x *exchange) converse(ctx context.Context, call *jsonrpc.Request) {
	switch x.request.Operation {
	case translate.Send, translate.SendStream:
	case translate.Cancel:
		x.queue.push(message{data: codec.CanceledConversation(x.request.Ref.Task)})
		return
	default:
		x.err = task.Errorf(task.UnsupportedOperation, "the agent has no task.*, and messages cannot be asked for")
		return
	}
	thread, params, response, ok := codec.Conversation(call.Params, x.peer)
	if !ok {
		x.err = task.Errorf(task.InvalidParams, "the agent is sent messages, and the turn has no data items")
		return
	}
	x.messages, x.streams = true, true
	x.topic = conversation(x.peer, thread)
	x.link.topics.add(x.topic, x)
	x.queue.push(message{data: response}) // before any message of the agent
	result, frame, err := x.call(ctx, "message.send", params)
	if x.err = err; err == nil && !result.Exists() { // refused
		x.streams = false
		x.queue.replace(message{data: frame})
	}
}

// conversation is the topic of a thread with an agent. Only that agent's messages belong to it.
func conversation(agent, thread string) string { return "\x00" + agent + "\x00" + thread }

// quietFor returns how long the exchange waits for a message before the turn is over; 0 while the agent has said
// nothing.
func (x *exchange) quietFor() time.Duration {
	if x.messages && x.said {
		return quiet
	}
	return 0
}
