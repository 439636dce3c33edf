// SPDX-License-Identifier: Apache-2.0

package auntransport

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	codec "github.com/aip-gateway/aip-gateway/translate/aun"
)

// defaultQuiet is the default of an agent's longest silence.
const defaultQuiet = 10 * time.Second

// The most of the inbox pulled at once to find the messages of a thread.
const (
	maxPages = 64
	pageSize = 200
)

// byMessages reports whether the other end has messages and no task.*.
func byMessages(h *aun.Hello) bool { return h.Has("message") && !h.Has("task") }

// converse carries out a request by messages.
func (x *exchange) converse(ctx context.Context, call *jsonrpc.Request) {
	x.thread, x.talk = x.request.Ref.Task, codec.NewTalk(x.request.Ref)
	place, begun := codec.PlaceOf(x.request.Ref)
	switch op := x.request.Operation; {
	case op == translate.Send || op == translate.SendStream:
		x.say(ctx, call)
	case op == translate.Cancel:
		x.queue.push(message{data: codec.CanceledConversation(x.thread)})
	case op == translate.List: // a lost message is sent again: its id shows it to be the same one
		x.queue.push(message{data: []byte(`{"jsonrpc":"2.0","id":1,"result":{"tasks":[]}}`)})
	case !begun:
		x.err = task.Errorf(task.TaskNotFound, "the agent has been sent no message of the task")
	case op == translate.Resubscribe:
		x.listen()
		x.pull(ctx, codec.MessagesSeen, place.Seq)
	default:
		x.pull(ctx, "", place.Seq)
	}
}

// say sends the message of a turn. The answer is the messages of its thread.
func (x *exchange) say(ctx context.Context, call *jsonrpc.Request) {
	c, ok := codec.NewConversation(call.Params, x.peer, x.request.Ref, x.link.topics.lastSeq())
	if !ok {
		x.err = task.Errorf(task.InvalidParams, "the agent is sent messages, and the turn has no data items")
		return
	}
	x.talk = codec.NewTalk(c.Ref)
	x.thread, x.message = c.Ref.Task, call.Params.Get("message_id").String()
	x.queue.push(message{name: codec.MessagesBegun, data: c.Begun}) // before any message of the agent
	x.listen()
	result, frame, err := x.call(ctx, codec.MessageSend, c.Send)
	if x.err = err; err == nil && !result.Exists() { // refused
		x.messages, x.streams = false, false
		x.queue.replace(message{data: frame})
	}
}

// listen has the exchange receive the messages of its thread.
func (x *exchange) listen() {
	x.messages, x.streams = true, true
	x.topic = conversation(x.peer, x.thread)
	x.link.topics.add(x.topic, x)
}

// pull answers with the state of the task, as the messages of its thread show it. name is the name of the answer.
func (x *exchange) pull(ctx context.Context, name string, after int64) {
	var thread []gjson.Result
	m := message{name: name}
	var last int64
	for range maxPages {
		params := strconv.AppendInt([]byte(`{"after_seq":`), after, 10)
		params = append(strconv.AppendInt(append(params, `,"limit":`...), pageSize, 10), '}')
		page, frame, err := x.call(ctx, "message.pull", params)
		if x.err = err; err != nil {
			return
		}
		if !page.Exists() {
			x.queue.push(message{data: frame})
			return
		}
		next := after
		page.Get("messages").ForEach(func(_, one gjson.Result) bool {
			r := codec.ReadReceived(one)
			next = max(next, r.Seq)
			if r.In(x.thread, x.peer, x.message) {
				if thread, last = append(thread, one), r.Seq; x.talk.Belongs(one) {
					m.says, m.starts = m.says || r.Says, m.starts || r.Starts
				}
			}
			return true
		})
		if next == after {
			break
		}
		after = next
	}
	over := m.says && !m.starts && x.link.topics.silentFor(conversation(x.peer, x.thread), last) >= x.quiet
	m.data = codec.Pulled(x.request.Ref, thread, over)
	x.queue.push(m)
}

// conversation is the topic of a thread with an agent. Only that agent's messages belong to it.
func conversation(agent, thread string) string { return "\x00" + agent + "\x00" + thread }

// quietFor returns how long the exchange waits for a message before the turn is over; 0 while the agent has said
// nothing, and after it has declared itself at work: it then declares the end, too.
func (x *exchange) quietFor() time.Duration {
	if x.messages && x.said && !x.works {
		return x.quiet
	}
	return 0
}

// deliverMessage hands a message to the exchanges of its conversation. An encrypted one does not name its conversation,
// so it goes to all with its sender.
func (t *topics) deliverMessage(params gjson.Result) {
	r := codec.ReadReceived(params)
	m := message{name: codec.MessageReceived, data: []byte(params.Raw), event: true, says: r.Says, starts: r.Starts}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq = max(t.seq, r.Seq)
	for _, x := range t.talks(&r) {
		x.queue.push(m)
	}
}

// cutFor is the time a turn counts as open after its exchange was cut: it is resumed meanwhile.
const cutFor = time.Minute

// talks returns the exchanges to get a message. t.mu is held.
//
// Lenient: an answer that names no thread is that of the only turn open with its agent.
func (t *topics) talks(r *codec.Received) (list []*exchange) {
	if r.Thread != "" {
		return t.of[conversation(r.From, r.Thread)]
	}
	if list = t.of[conversation(r.From, r.Task)]; len(list) > 0 {
		return list
	}
	prefix, open := conversation(r.From, ""), 0
	for topic, of := range t.of {
		if !strings.HasPrefix(topic, prefix) {
			continue
		}
		open++
		for _, x := range of {
			if r.ReplyTo == "" || r.ReplyTo == x.thread || r.ReplyTo == x.message {
				list = append(list, x)
			}
		}
	}
	if r.Sealed || r.ReplyTo != "" {
		return list
	}
	for topic, at := range t.cut {
		if time.Since(at) > cutFor {
			delete(t.cut, topic)
		} else if strings.HasPrefix(topic, prefix) {
			open++
		}
	}
	if open > 1 {
		t.log.Warn("an answer of an agent is left out: it names no thread, and several turns are open with the agent",
			"agent", r.From, "turns", open)
		return nil
	}
	return list
}

// lastSeq returns the sequence number of the last message received by the connection.
func (t *topics) lastSeq() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seq
}

// silentFor returns the time since a message became the last one of a conversation. The time begins with the first call
// for the message.
func (t *topics) silentFor(conversation string, seq int64) time.Duration {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.silence.Get(conversation)
	if !ok || s.after != seq {
		s = silence{after: seq, since: now}
		t.silence.Add(conversation, s)
	}
	return now.Sub(s.since)
}
