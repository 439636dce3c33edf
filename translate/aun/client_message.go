// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// An agent without task.* is spoken to by messages. A task is a thread of them: its first message names it, and all
// others belong to it. Its present state is what its messages say, which are pulled from the gateway's inbox.

// The events of a conversation, beside the notifications of task.*.
const (
	MessageReceived = "event/message.received" // its params are the data
	MessagesBegun   = "event/messages.begun"   // made by the gateway: the message of the turn is being sent
	MessagesOver    = "event/messages.over"    // made by the gateway: the agent has said something, and then no more
)

// position names a place in the gateway's inbox as the session of a task, where no agent looks at it. It is that of the
// last message before the turn.
const position = "after "

// Position returns the sequence number of the last message before a turn. ok is false where the turn is no conversation
// yet.
func Position(ref agent.Ref) (seq int64, ok bool) {
	text, ok := strings.CutPrefix(ref.Session, position)
	seq, err := strconv.ParseInt(text, 10, 64)
	return seq, ok && err == nil
}

// Conversation is what stands for a turn where the agent has no task.*.
type Conversation struct {
	Thread string // the thread of the task
	Send   []byte // the params of a message.send
	Begun  []byte // the data of MessagesBegun
}

// NewConversation returns the conversation of a turn. params are those of the turn's own request, ref is its task, and
// seen the sequence number of the last message that the gateway has received.
func NewConversation(params gjson.Result, to string, ref agent.Ref, seen int64) (c Conversation, ok bool) {
	id := jsonrpc.Member(params, "message_id").String()
	c.Thread = jsonrpc.Member(params, "task_id").String()
	if c.Thread == "" {
		c.Thread = jsonrpc.Member(jsonrpc.Member(params, "metadata"), "previous_task_id").String()
	}
	if c.Thread == "" {
		c.Thread = id
	}
	items, ok := ReadContent(jsonrpc.Member(params, "input"))
	if !ok || len(items) == 0 {
		return c, false
	}
	item := items[0]
	if len(items) > 1 { // one message has one payload
		if joined := wire.JoinTexts(nil, items); len(joined) == 1 {
			item = joined[0]
		} else {
			item = task.DataItem{Kind: task.DataKind, Data: AppendContent(nil, items)}
		}
	}
	c.Send = task.AppendString([]byte(`{"to":`), to)
	c.Send = task.AppendString(append(c.Send, `,"message_id":`...), id)
	c.Send = AppendPayload(append(c.Send, `,"payload":`...), &item, "", c.Thread)
	if ofAIP := jsonrpc.Member(jsonrpc.Member(params, "metadata"), "aip"); ofAIP.IsObject() { // see appendMetadata
		c.Send = append(append(c.Send[:len(c.Send)-1], `,"metadata":{"aip":`...), ofAIP.Raw...)
		c.Send = append(c.Send, '}', '}')
	}
	c.Send = append(c.Send, '}')
	if last, ok := Position(ref); ok {
		seen = max(seen, last)
	}
	c.Begun = task.AppendString([]byte(`{"thread_id":`), c.Thread)
	c.Begun = append(strconv.AppendInt(append(c.Begun, `,"seq":`...), seen, 10), '}')
	return c, true
}

// begun reads MessagesBegun.
func begun(data []byte) (agent.Report, error) {
	v, err := wire.Value(data, "event")
	if err != nil {
		return agent.Report{}, err
	}
	ref := refOf(jsonrpc.Member(v, "thread_id").String(), jsonrpc.Member(v, "seq").Int())
	return agent.Report{Ref: ref, State: task.Working}, nil
}

func refOf(thread string, seq int64) *agent.Ref {
	return &agent.Ref{Task: strings.Clone(thread), Session: position + strconv.FormatInt(seq, 10)}
}

// CanceledConversation returns the response to a cancel of a turn. Messages cannot cancel anything: what the agent says
// later is ignored.
func CanceledConversation(thread string) []byte {
	dst := task.AppendString(append(jsonrpc.BeginResult(nil, nil), `{"task_id":`...), thread)
	return jsonrpc.End(append(task.AppendString(append(dst, `,"status":`...), StateName(task.Canceled, false)), '}'))
}

// Received is what the gateway looks at in a message to it.
type Received struct {
	From   string
	Thread string // empty in an encrypted message. That of a message without one is begun by the message that it answers
	Seq    int64
	Says   bool // it has a content
	Sealed bool // it is encrypted
}

// ReadReceived reads the params of a message, or one that was pulled.
func ReadReceived(params gjson.Result) (r Received) {
	payload := jsonrpc.Member(params, "payload")
	r.From, r.Seq = jsonrpc.Member(params, "from").String(), jsonrpc.Member(params, "seq").Int()
	r.Sealed = jsonrpc.Member(params, "encrypted").Bool()
	for _, v := range []gjson.Result{params, payload} {
		r.Sealed = r.Sealed || strings.HasPrefix(jsonrpc.Member(v, "type").String(), "e2ee.")
	}
	r.Thread = jsonrpc.Member(payload, "thread_id").String()
	if r.Thread == "" {
		r.Thread = jsonrpc.Member(payload, "reply_to").String()
	}
	p, ok := ReadPayload(payload)
	if r.Thread == "" {
		r.Thread = p.Task
	}
	r.Says = ok && p.State == task.None && len(p.Items) > 0
	return r
}

// In reports whether a message belongs to a thread with an agent. What an encrypted one belongs to cannot be read: an
// agent that encrypts does so in each of its threads.
func (r *Received) In(thread, agent string) bool {
	return r.From == agent && (r.Thread == thread || r.Sealed && r.Thread == "")
}

// reportMessage reads a message of a conversation. thread is that of the task.
func reportMessage(v gjson.Result, thread string) (rep agent.Report, err error) {
	r := ReadReceived(v)
	if r.Sealed {
		rep.State, rep.NativeState = task.Failed, "encrypted"
		rep.Items = []task.DataItem{task.Text("the agent encrypts its messages; it must send them to the gateway as " +
			"plain text")}
		return settleMessages(rep, thread, r.Seq), nil
	}
	p, ok := ReadPayload(jsonrpc.Member(v, "payload"))
	if !ok {
		return rep, nil // it means nothing to a task
	}
	id := jsonrpc.Member(v, "message_id").String()
	if id == "" || len(id) > wire.MaxID {
		return rep, wire.Refuse("the agent's message has no id")
	}
	rep = p.Report(id)
	return settleMessages(rep, thread, r.Seq), nil
}

// settleMessages adds to a report that ends a turn the position up to which the inbox belongs to the turn.
func settleMessages(rep agent.Report, thread string, seq int64) agent.Report {
	if rep.State.Settled() && seq > 0 {
		rep.Ref = refOf(thread, seq)
		rep.Revision, rep.RevisionDated = "seq "+strconv.FormatInt(seq, 10), true
	}
	return rep
}

// Pulled makes the response that a task.get would have had from the messages of a thread. over says that the agent has
// said something, and then no more.
func Pulled(thread string, messages []gjson.Result, over bool) []byte {
	dst := task.AppendString(append(jsonrpc.BeginResult(nil, nil), `{"thread_id":`...), thread)
	dst = strconv.AppendBool(append(dst, `,"over":`...), over)
	dst = append(dst, `,"messages":[`...)
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.Raw...)
	}
	return jsonrpc.End(append(dst, ']', '}'))
}

// pulled reads what Pulled has made. A product that is known and was not pulled is one that the inbox has dropped.
func pulled(v gjson.Result, known []task.Product) (rep agent.Report, err error) {
	thread, last := jsonrpc.Member(v, "thread_id").String(), int64(0)
	rep = agent.Report{State: task.Working, Full: true, Products: slices.Clone(known)}
	jsonrpc.Member(v, "messages").ForEach(func(_, one gjson.Result) bool {
		var now agent.Report
		if now, err = reportMessage(one, thread); err != nil {
			return false
		}
		last = max(last, jsonrpc.Member(one, "seq").Int())
		for i := range now.Chunks {
			rep.Products = replace(rep.Products, now.Chunks[i].Product)
		}
		if now.State != task.None {
			rep.State, rep.Items, rep.NativeState = now.State, now.Items, now.NativeState
		}
		return !rep.State.Settled() && len(rep.Products) <= wire.MaxItems
	})
	if err != nil {
		return agent.Report{}, err
	}
	if !rep.State.Settled() && jsonrpc.Member(v, "over").Bool() {
		rep.State = task.AwaitingCompletion
	}
	rep.Revision = "seq " + strconv.FormatInt(last, 10)
	return settleMessages(rep, thread, last), nil
}

// replace puts a product in the place of that with the same id, or after all.
func replace(products []task.Product, p task.Product) []task.Product {
	i := slices.IndexFunc(products, func(q task.Product) bool { return q.ID == p.ID })
	if i < 0 {
		return append(products, p)
	}
	products[i] = p
	return products
}
