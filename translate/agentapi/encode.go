// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// NewStream implements translate.Server.
func (server) NewStream(_ jsonrpc.ID, c *translate.Call, t *task.Task) translate.Encoder {
	return newEncoder(c, t)
}

// AppendTask implements translate.Server.
func (s server) AppendTask(dst []byte, _ jsonrpc.ID, c *translate.Call, t *task.Task) []byte {
	switch c.Method {
	case submitTask:
		return appendSubmitted(dst, c, t)
	case checkTask:
		return s.appendCheck(dst, c, t)
	case stopSession:
		return appendStopped(dst)
	}
	return s.appendResponse(dst, c, t)
}

// appendResponse appends the last response of a stream, for a caller without the stream.
func (server) appendResponse(dst []byte, c *translate.Call, t *task.Task) []byte {
	e := newEncoder(c, t)
	e.take(&task.Event{Task: t})
	if !e.ended {
		e.add(step{write: (*encoder).appendProgress, text: statusInProgress})
	}
	begin := len(dst)
	for i := range e.steps {
		dst = e.steps[i].write(e, dst[:begin], &e.steps[i])
	}
	return dst
}

// encoder writes the stream of a response: the response created and in progress; each message in progress, its
// contents, and the message completed; then the response completed, with all messages, or failed. Objects are numbered
// in one row. A product is a message, and so are the agent's words with a state. The answer is the last one.
//
// The result of an event is a list of steps. Each step is one frame.
type encoder struct {
	id, session string // of the response
	turn        string // makes the ids of messages unique in a conversation
	created     int64  // seconds since 1970; 0 if it is not known
	usage       json.RawMessage

	numbered int64 // written objects
	messages []*message
	ending   []*message // over, and not completed before another one begins: see encode_answer.go
	opened   int        // messages, including dropped ones
	kept     int64
	begun    bool
	ended    bool

	steps []step
	at    int // the next step
	more  func(dst []byte) translate.Frame
}

// step is one frame.
type step struct {
	write   func(e *encoder, dst []byte, s *step) []byte
	message *message
	content int    // its index in the message
	text    string // a piece of it
	status  *task.Status
}

// message is a message of the response.
type message struct {
	id, kind string
	product  *task.Product // all but its data items; nil for the agent's words with a state
	contents []content
	says     bool // it has a text
	done     bool
	written  []byte // its completed contents, with commas between them, then all of it
}

// content is a content of a message.
type content struct {
	item task.DataItem // but for the text
	text []byte
	done bool // it is completed, and kept by its message as it was written
}

func newEncoder(c *translate.Call, t *task.Task) *encoder {
	_, session := userAndSession(t.SessionID)
	e := &encoder{id: c.AnswerID, session: session, turn: c.Message.ID}
	if e.id == "" {
		e.id = responseID(t.ID, c.Message.ID)
	}
	e.more = e.next
	return e
}

// Kept implements translate.Keeper.
func (e *encoder) Kept() int64 { return e.kept }

// Snapshot implements translate.Encoder.
func (e *encoder) Snapshot(dst []byte, t *task.Task) translate.Frame {
	return e.Event(dst, &task.Event{Task: t})
}

// Event implements translate.Encoder. A turn ends with every state of a waiting or finished agent.
func (e *encoder) Event(dst []byte, ev *task.Event) translate.Frame {
	e.take(ev)
	return e.next(dst)
}

// take lists the steps of an event.
func (e *encoder) take(ev *task.Event) {
	e.steps, e.at = e.steps[:0], 0
	switch {
	case ev.Task != nil:
		e.begin(&ev.Task.Status)
		e.usage = usageOf(ev.Task.Extensions)
		for i := range ev.Task.Products { // those of a failed task are from before its failure
			e.product(&task.Chunk{Product: ev.Task.Products[i], Last: isFailure(ev.Task.Status.State)})
		}
		e.status(&ev.Task.Status)
	case ev.Status != nil:
		e.begin(ev.Status)
		e.usage = usageOf(ev.Status.TaskExtensions)
		if ev.Offer != nil {
			e.withdraw(func(m *message) bool {
				return m.product != nil && !slices.Contains(ev.Offer, m.product.ID)
			})
		}
		e.status(ev.Status)
	case ev.Chunk != nil:
		e.begin(&task.Status{})
		e.product(ev.Chunk)
	case ev.Message != nil && ev.Message.SenderRole == task.Partner:
		e.begin(&task.Status{})
		e.say(typeMessage, ev.Message.DataItems, !e.answered())
	}
}

// next appends the frame of the next step.
func (e *encoder) next(dst []byte) translate.Frame {
	if e.at == len(e.steps) {
		return translate.Frame{}
	}
	s := &e.steps[e.at]
	e.at++
	f := translate.Frame{Data: s.write(e, dst, s)}
	if e.at < len(e.steps) {
		f.Next = e.more
	} else {
		f.End = e.ended
	}
	return f
}

func (e *encoder) add(s step) { e.steps = append(e.steps, s) }

// begin begins the response, at the time of the first state seen.
func (e *encoder) begin(st *task.Status) {
	if e.begun {
		return
	}
	e.begun = true
	if !st.ChangedAt.IsZero() {
		e.created = st.ChangedAt.Unix()
	}
	e.add(step{write: (*encoder).appendProgress, text: statusCreated})
	e.add(step{write: (*encoder).appendProgress, text: statusInProgress})
}

// status adds the agent's words with a state, and the end of the response if the turn ends with it.
func (e *encoder) status(st *task.Status) {
	if !st.State.Settled() {
		e.say(typeReasoning, st.DataItems, false)
		return
	}
	if e.ended {
		return
	}
	e.ended = true
	if isFailure(st.State) { // messages not over yet are never completed
		e.completeEnding()
	} else {
		e.finish(st)
	}
	e.add(step{write: (*encoder).appendEnd, status: st})
}

// say adds a message with the agent's words with a state, in pieces as an answer, or as whole contents. Items from
// messages of another type become messages of that type again.
func (e *encoder) say(kind string, items []task.DataItem, pieces bool) {
	for len(items) > 0 {
		as, n := messageType(typeOf(&items[0]), kind), 1
		for n < len(items) && messageType(typeOf(&items[n]), kind) == as {
			n++
		}
		m := e.open(as, nil)
		e.extend(m, items[:n], pieces)
		if !pieces {
			e.completeContents(m)
		}
		e.ends(m)
		items = items[n:]
	}
}

// messageType returns name if messages have such a type, and otherwise the other name.
func messageType(name, otherwise string) string {
	switch name {
	case typeReasoning, typeFunctionCall, typeFunctionCallOutput, typeApprovalRequest, typeApprovalResponse,
		typeUIResponse, typeUIAction,
		"plugin_call", "plugin_call_output", "component_call", "component_call_output", "mcp_list_tools", "mcp_call",
		"mcp_call_output":
		return name
	}
	return otherwise
}

// product adds a product, or a piece of one. A completed message stays as it is: later pieces make another one.
func (e *encoder) product(c *task.Chunk) {
	items := c.Product.DataItems
	m := e.messageOf(c.Product.ID)
	pieces := true
	if !c.Append { // it takes the place of the whole product so far
		e.withdraw(func(n *message) bool { return n != m && n.isOf(c.Product.ID) })
		if m != nil && m.grows(items) {
			items = []task.DataItem{task.Text(items[0].Text[len(m.contents[0].text):])}
		} else if m != nil {
			e.replace(m)
			pieces = false
		}
	}
	if m == nil {
		m = e.open(messageType(c.Product.Name, typeMessage), &c.Product)
	} else if len(c.Product.Extensions) > 0 {
		e.kept += int64(len(c.Product.Extensions) - len(m.product.Extensions))
		m.product.Extensions = c.Product.Extensions
	}
	e.extend(m, items, pieces)
	if c.Last {
		e.ends(m)
	}
}

// messageOf returns the message in progress of a product. Most often it is the last one, as that grows.
func (e *encoder) messageOf(product string) *message {
	for i := len(e.messages) - 1; i >= 0; i-- {
		if m := e.messages[i]; !m.done && m.isOf(product) {
			return m
		}
	}
	return nil
}

// isOf reports whether a message is a product, or a part of one.
func (m *message) isOf(product string) bool { return m.product != nil && m.product.ID == product }

// open begins a message.
func (e *encoder) open(kind string, p *task.Product) *message {
	e.opened++
	m := &message{id: "msg_" + e.turn + "_" + strconv.Itoa(e.opened), kind: kind}
	if p != nil {
		m.product = &task.Product{ID: p.ID, Name: p.Name, Description: p.Description, Extensions: p.Extensions}
		e.kept += int64(len(p.Extensions))
	}
	e.messages = append(e.messages, m)
	e.kept += overhead
	e.add(step{write: (*encoder).appendMessageBegin, message: m})
	e.follow(m)
	return m
}

// overhead is about the number of bytes of a message or a content beside its texts and data.
const overhead = 256

// replace forgets the contents of a message. Later contents are not sent in pieces, because a caller adds pieces to the
// earlier ones, and takes a completed content for all of it.
func (e *encoder) replace(m *message) {
	for i := range m.contents {
		e.kept -= m.contents[i].size() + overhead
	}
	e.kept -= int64(len(m.written))
	m.contents, m.written, m.says = nil, nil, false
}

// size returns the number of bytes held by a content before its completion.
func (c *content) size() int64 {
	it := &c.item
	return int64(len(c.text) + len(it.Bytes) + len(it.URI) + len(it.Data) + len(it.Metadata))
}

// grows reports whether a message is one plain text, and other contents repeat and continue it.
func (m *message) grows(items []task.DataItem) bool {
	return len(m.contents) == 1 && len(items) == 1 && !m.contents[0].done && m.contents[0].item.PlainText() &&
		items[0].PlainText() && strings.HasPrefix(items[0].Text, string(m.contents[0].text))
}

// extend adds contents to a message, texts in pieces if pieces says so. A plain text continues a plain text at the end,
// as in task.Fold.
func (e *encoder) extend(m *message, items []task.DataItem, pieces bool) {
	for i := range items {
		it := &items[i]
		last := len(m.contents) - 1
		if i > 0 || last < 0 || m.contents[last].done || !it.PlainText() ||
			!m.contents[last].item.PlainText() {
			e.completeContents(m)
			m.contents = append(m.contents, content{item: *it})
			last++
			m.contents[last].item.Text = ""
			e.kept += m.contents[last].size() + overhead
		}
		if it.Text == "" {
			continue
		}
		m.says = true
		c := &m.contents[last]
		c.text = append(c.text, it.Text...)
		e.kept += int64(len(it.Text))
		if pieces {
			e.add(step{write: (*encoder).appendDelta, message: m, content: last, text: it.Text})
		}
	}
}

// completeContents completes the contents in progress of a message.
func (e *encoder) completeContents(m *message) {
	for i := range m.contents {
		if c := &m.contents[i]; !c.done {
			c.done = true
			e.add(step{write: (*encoder).appendContent, message: m, content: i})
		}
	}
}

// complete completes a message.
func (e *encoder) complete(m *message) {
	if m.done {
		return
	}
	e.completeContents(m)
	m.done = true
	e.add(step{write: (*encoder).appendMessageEnd, message: m})
}

// withdraw drops messages from the response.
func (e *encoder) withdraw(drop func(m *message) bool) {
	e.messages = slices.DeleteFunc(e.messages, func(m *message) bool {
		if !drop(m) {
			return false
		}
		e.replace(m)
		e.kept -= overhead
		if m.product != nil {
			e.kept -= int64(len(m.product.Extensions))
		}
		m.done = true // for callers it never is: they have seen it begin
		return true
	})
}
