// SPDX-License-Identifier: Apache-2.0

package aun

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// An agent without task.* is spoken to by messages. A task is a thread of them: its first message names it, and all
// others belong to it. Its present state comes from its messages. They are pulled from the gateway's inbox.

// The events of a conversation, beside the notifications of task.*.
const (
	MessageReceived = "event/message.received" // its params are the data
	MessagesBegun   = "event/messages.begun"   // made by the gateway: the message of the turn is being sent
	MessagesSeen    = "event/messages.seen"    // made by the gateway: the turn's messages before a cut
	MessagesOver    = "event/messages.over"    // made by the gateway: the agent has said something, and then no more
)

// Place is the beginning of a turn in the gateway's inbox. It is kept as the session of a task: no agent looks at it
// there.
type Place struct {
	Seq    int64  // of the last message before the turn
	Later  bool   // the thread had a turn before
	Before string // the agent's own id of that one, if it has ended; empty for none
}

const (
	placeAfter = "after "
	placeEnded = " ended "
)

// PlaceOf returns the place of a turn. ok is false if the turn is no conversation yet.
func PlaceOf(ref agent.Ref) (p Place, ok bool) {
	text, ok := strings.CutPrefix(ref.Session, placeAfter)
	text, p.Before, p.Later = strings.Cut(text, placeEnded)
	seq, err := strconv.ParseInt(text, 10, 64)
	p.Seq = seq
	return p, ok && err == nil
}

// session returns the session for PlaceOf.
func (p *Place) session() string {
	text := placeAfter + strconv.FormatInt(p.Seq, 10)
	if p.Later {
		text += placeEnded + p.Before
	}
	return text
}

// Conversation stands for a turn with an agent without task.*.
type Conversation struct {
	Send  []byte    // the params of a message.send
	Begun []byte    // the data of MessagesBegun
	Ref   agent.Ref // the turn, with the name of the task as its thread
}

// NewConversation returns the conversation of a turn. params are those of the turn's own request, ref is its task, and
// seen the sequence number of the last message received by the gateway.
func NewConversation(params gjson.Result, to string, ref agent.Ref, seen int64) (c Conversation, ok bool) {
	id := jsonrpc.Member(params, "message_id").String()
	thread := jsonrpc.Member(params, "task_id").String()
	if thread == "" {
		thread = jsonrpc.Member(jsonrpc.Member(params, "metadata"), "previous_task_id").String()
	}
	if thread == "" {
		thread = id
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
	c.Send = AppendPayload(append(c.Send, `,"payload":`...), &item, "", thread)
	// Some agents answer with the chat sent to them, and without the thread.
	c.Send = append(task.AppendString(append(c.Send[:len(c.Send)-1], `,"chat_id":`...), thread), '}')
	if ofAIP := jsonrpc.Member(jsonrpc.Member(params, "metadata"), "aip"); ofAIP.IsObject() { // see appendMetadata
		c.Send = append(append(c.Send[:len(c.Send)-1], `,"metadata":{"aip":`...), ofAIP.Raw...)
		c.Send = append(c.Send, '}', '}')
	}
	c.Send = append(c.Send, '}')
	place, _ := PlaceOf(ref)
	place.Seq = max(place.Seq, seen)
	c.Ref = agent.Ref{Task: thread, Session: place.session()}
	c.Begun = task.AppendString([]byte(`{"thread_id":`), thread)
	c.Begun = append(task.AppendString(append(c.Begun, `,"session":`...), c.Ref.Session), '}')
	return c, true
}

// Talk is what the gateway knows of a turn by messages.
type Talk struct {
	thread string
	place  Place
	begun  bool   // the agent has said something in the turn
	own    string // the agent's own id of the turn, once it has named one
}

// begun reads MessagesBegun.
func begun(data []byte) (t Talk, rep agent.Report, err error) {
	v, err := wire.Value(data, "event")
	if err != nil {
		return t, rep, err
	}
	t = talkOf(v)
	return t, agent.Report{Ref: &agent.Ref{Task: t.thread, Session: t.place.session()}, State: task.Working}, nil
}

// seen reads MessagesSeen, made by Pulled. It reports nothing: another request does.
func seen(data []byte) (t Talk, err error) {
	v, err := result(data)
	if err == nil {
		t = talkOf(v)
		jsonrpc.ForEach(jsonrpc.Member(v, "messages"), func(_, one gjson.Result) bool {
			t.Belongs(one)
			return true
		})
	}
	return t, err
}

// NewTalk returns a turn of which no message is known.
func NewTalk(ref agent.Ref) (t Talk) {
	t.thread = ref.Task
	t.place, _ = PlaceOf(ref)
	return t
}

// talkOf returns the turn named by MessagesBegun or Pulled.
func talkOf(v gjson.Result) Talk {
	return NewTalk(agent.Ref{Task: strings.Clone(jsonrpc.Member(v, "thread_id").String()),
		Session: strings.Clone(jsonrpc.Member(v, "session").String())})
}

// Belongs reports whether the next message of the thread belongs to the turn.
func (t *Talk) Belongs(m gjson.Result) bool {
	p, ok := ReadPayload(jsonrpc.Member(m, "payload"))
	return !ok || t.belongs(&p)
}

// belongs reports whether a message of the thread belongs to the turn, and not to the turn before: some agents repeat
// the end of that turn when the next one has begun. The agent's own id of the turn tells them apart, if it has one.
// Otherwise an end belongs to the turn once the agent has said something else in it.
func (t *Talk) belongs(p *Payload) bool {
	own := p.Task
	if own == t.thread {
		own = "" // it is the same in all turns
	}
	switch {
	case !t.place.Later:
	case p.Starts && own == t.place.Before:
		t.place.Before = "" // likewise
	case p.Starts:
	case own != "" && t.place.Before != "":
		if own == t.place.Before {
			return false
		}
	case p.State.Settled() && !t.begun:
		return false
	}
	t.begun = t.begun || p.Starts || len(p.Items) > 0
	if own != "" {
		t.own = own
	}
	return true
}

// CanceledConversation returns the response to a cancel of a turn. Messages cannot cancel anything: the agent's later
// words are ignored.
func CanceledConversation(thread string) []byte {
	dst := task.AppendString(append(jsonrpc.BeginResult(nil, nil), `{"task_id":`...), thread)
	return jsonrpc.End(append(task.AppendString(append(dst, `,"status":`...), StateName(task.Canceled, false)), '}'))
}

// Received is what the gateway looks at in a message to it.
type Received struct {
	From    string
	Thread  string // or the chat; empty if the message names none, and in an encrypted message
	ReplyTo string // the message that it answers, if it names no thread
	Task    string // its task
	Seq     int64
	Says    bool // it is a product
	Starts  bool // it reports that the agent is at work
	Sealed  bool // it is encrypted

	payload Payload
	reads   bool // payload could be read
}

// ReadReceived reads the params of a message, or a pulled one.
func ReadReceived(params gjson.Result) (r Received) {
	payload := jsonrpc.Member(params, "payload")
	r.From, r.Seq = jsonrpc.Member(params, "from").String(), jsonrpc.Member(params, "seq").Int()
	r.Sealed = jsonrpc.Member(params, "encrypted").Bool()
	for _, v := range []gjson.Result{params, payload} {
		r.Sealed = r.Sealed || strings.HasPrefix(jsonrpc.Member(v, "type").String(), "e2ee.")
	}
	if r.Thread = jsonrpc.Member(payload, "thread_id").String(); r.Thread == "" {
		r.Thread = jsonrpc.Member(payload, "chat_id").String()
	}
	if r.Thread == "" {
		r.ReplyTo = jsonrpc.Member(payload, "reply_to").String()
	}
	r.payload, r.reads = ReadPayload(payload)
	p := &r.payload
	r.Task = p.Task
	r.Says = r.reads && p.State == task.None && len(p.Items) > 0
	r.Starts = r.reads && p.Starts
	return r
}

// In reports whether a message belongs to a thread with an agent. message is the id of the message that began its turn.
// The thread of an encrypted one cannot be read: an encrypting agent does so in each of its threads.
func (r *Received) In(thread, agent, message string) bool {
	return r.From == agent && (r.Thread == thread || r.Thread == "" &&
		(r.Sealed || r.Task == thread || r.ReplyTo != "" && (r.ReplyTo == thread || r.ReplyTo == message)))
}

// report reads a message of the turn.
func (t *Talk) report(v gjson.Result) (rep agent.Report, err error) {
	r := ReadReceived(v)
	if r.Sealed {
		rep.State, rep.NativeState = task.Failed, "encrypted"
		rep.Items = []task.DataItem{task.Text("the agent encrypts its messages; it must send them to the gateway as " +
			"plain text")}
		return t.settle(rep, r.Seq), nil
	}
	if !r.reads || !t.belongs(&r.payload) {
		return rep, nil // it means nothing to the turn
	}
	id := jsonrpc.Member(v, "message_id").String()
	if id == "" || len(id) > wire.MaxID {
		return rep, wire.Refuse("the agent's message has no id")
	}
	rep = r.payload.Report(id)
	return t.settle(rep, r.Seq), nil
}

// settle adds the position of the turn's end in the inbox to a report that ends the turn.
func (t *Talk) settle(rep agent.Report, seq int64) agent.Report {
	if rep.State.Settled() && seq > 0 {
		after := Place{Seq: seq, Later: true}
		if rep.State != task.AwaitingInput { // a question leaves the agent's task open
			after.Before = t.own
		}
		rep.Ref = &agent.Ref{Task: t.thread, Session: after.session()}
		rep.Revision, rep.RevisionDated = "seq "+strconv.FormatInt(seq, 10), true
	}
	return rep
}

// Pulled makes the response to a task.get from the messages of a thread. over is set if the agent has said something,
// and then no more.
func Pulled(ref agent.Ref, messages []gjson.Result, over bool) []byte {
	dst := task.AppendString(append(jsonrpc.BeginResult(nil, nil), `{"thread_id":`...), ref.Task)
	dst = task.AppendString(append(dst, `,"session":`...), ref.Session)
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

// pulled reads a response of Pulled. The inbox has dropped a product that is known and was not pulled.
func pulled(v gjson.Result, known []task.Product) (rep agent.Report, err error) {
	t, last := talkOf(v), int64(0)
	rep = agent.Report{State: task.Working, Full: true, Products: slices.Clone(known)}
	jsonrpc.ForEach(jsonrpc.Member(v, "messages"), func(_, one gjson.Result) bool {
		var now agent.Report
		if now, err = t.report(one); err != nil {
			return false
		}
		last = max(last, jsonrpc.Member(one, "seq").Int())
		for i := range now.Chunks {
			rep.Products = wire.PutProduct(rep.Products, now.Chunks[i].Product)
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
	return t.settle(rep, last), nil
}
