// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Limits of one answer.
const (
	maxMessages = 10_000
	maxContents = 10_000 // of messages that are not complete
)

// stream reads the events of one answer. They are distinguished by their member object; their numbers are not used.
type stream struct{ reader }

// done is sent by some servers behind the last event.
var done = []byte("[DONE]")

// Event implements translate.Stream.
func (s *stream) Event(_ string, data []byte) (agent.Report, error) {
	if len(data) == 0 {
		return agent.Report{}, nil
	}
	if bytes.Equal(bytes.TrimSpace(data), done) {
		rep, _ := s.Conclude()
		return rep, nil
	}
	v, err := wire.Value(data, "event")
	if err != nil {
		return agent.Report{}, err
	}
	m := membersOf(v)
	switch m.object.Str {
	case objectResponse:
		return s.response(&m)
	case objectMessage:
		return s.message(&m)
	case objectContent:
		return s.content(&m, v)
	case "":
		return agent.Report{}, m.refusal()
	}
	return agent.Report{}, nil // of another version
}

// members are those of responses, messages and contents, by their common names.
type members struct {
	object, id, kind, role, status, failure, detail, output, usage, content, session, metadata gjson.Result
	messageID, index, delta, text, code, message                                               gjson.Result
}

func membersOf(v gjson.Result) (m members) {
	wire.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "object":
			m.object = v
		case "id":
			m.id = v
		case "type":
			m.kind = v
		case "role":
			m.role = v
		case "status":
			m.status = v
		case "error":
			m.failure = v
		case "detail":
			m.detail = v
		case "output":
			m.output = v
		case "usage":
			m.usage = v
		case "content":
			m.content = v
		case "session_id":
			m.session = v
		case "metadata":
			m.metadata = v
		case "msg_id":
			m.messageID = v
		case "index":
			m.index = v
		case "delta":
			m.delta = v
		case "text":
			m.text = v
		case "code":
			m.code = v
		case "message":
			m.message = v
		}
	})
	return m
}

// reader makes reports of the events of one answer.
type reader struct {
	expose   Expose
	query    translate.Query
	messages map[string]*agentMessage
	last     *agentMessage // the one of the last event
	contents int           // of incomplete messages, including the ones skipped by an index
	waiting  int           // bytes of contents whose messages are not known yet
	ended    *agentMessage // the last complete one
	open     []ask
	failure  string // the agent's last error outside of its response
}

// agentMessage is one message of the agent.
type agentMessage struct {
	id, kind string
	known    bool   // the agent has sent the message itself, with its type
	answers  bool   // it is for the asking caller
	waiting  int    // bytes of contents received before it was known
	shows    bool   // it is a product
	repeats  bool   // the words of the user or the system, not shown
	contents []part // by index
	begun    bool   // a piece of the product was reported
	grows    bool   // the last content is a growing text, shown as it grows
	mixed    bool   // a content before the last one has grown, so the product is not in order
	complete bool

	extensions json.RawMessage // of the product
}

// part is a content of a message: a text while it grows, or whole.
type part struct {
	raw   []byte // the JSON of the text without its quotes
	whole bool
	item  task.DataItem
}

// response reads a response, with the state of the run. The last one has all messages again.
func (r *reader) response(m *members) (agent.Report, error) {
	if err := wire.InSession(&r.query, m.session.Str); err != nil {
		return agent.Report{}, err
	}
	rep := agent.Report{
		NativeState: wire.Clean(m.status.Str, wire.MaxWord),
		Revision:    m.status.Str + " " + m.id.Str,
	}
	switch m.status.Str {
	case statusQueued, statusCreated:
		rep.State = task.Accepted
		return rep, nil
	case statusInProgress:
		rep.State = task.Working
		return rep, nil
	case statusCompleted:
		rep.State = task.AwaitingCompletion
	case statusIncomplete, statusFailed:
		rep.State = task.Failed
	case statusCanceled:
		rep.State = task.Canceled
	case statusRejected:
		rep.State = task.Rejected
	default: // unknown, without a meaning
		return agent.Report{}, nil
	}
	if err := r.output(&rep, m.output); err != nil {
		return agent.Report{}, err
	}
	if rep.State == task.AwaitingCompletion {
		r.end(&rep)
	}
	var usage wire.Extensions
	usage.Add("usage", m.usage)
	rep.TaskExtensions = usage.JSON(family, "")
	switch {
	case rep.State != task.AwaitingCompletion:
		rep.Items = []task.DataItem{task.Text(r.reason(m))}
		rep.Extensions = ended(m.status, m.failure.Get("code"), m.failure.Get("message"))
	case len(r.open) > 0:
		rep.State, rep.Items = task.AwaitingInput, r.question()
	case r.waiting > 0 && !r.showsAny():
		rep.Items = []task.DataItem{task.Text("the agent has sent contents without their messages, so they are not shown")}
	}
	return rep, nil
}

// output reads the messages of an ended response: those not completed in the stream.
func (r *reader) output(rep *agent.Report, list gjson.Result) (err error) {
	if wire.Absent(list) {
		return nil
	}
	if !list.IsArray() {
		return wire.Refuse("the agent's response has an output that is no array")
	}
	jsonrpc.ForEach(list, func(_, v gjson.Result) bool {
		m := membersOf(v)
		var msg *agentMessage
		if msg, err = r.messageOf(m.id.Str); err == nil {
			r.know(rep, msg, &m)
			err = r.completed(rep, msg, &m)
		}
		return err == nil
	})
	return err
}

// message reads the beginning or the end of a message.
func (r *reader) message(m *members) (rep agent.Report, err error) {
	if text := errorText(m.code, m.message); text != "" {
		r.failure = text
	}
	switch m.kind.Str {
	case typeHeartbeat:
		return rep, nil
	case typeError:
		if r.failure == "" {
			r.failure = "the agent reports an error, and does not say which"
		}
		return agent.Report{
			State: task.Failed, NativeState: typeError, Items: []task.DataItem{task.Text(r.failure)},
			Revision: typeError + " " + m.id.Str, Extensions: ended(gjson.Result{}, m.code, m.message),
		}, nil
	}
	msg, err := r.messageOf(m.id.Str)
	if err != nil {
		return rep, err
	}
	r.know(&rep, msg, m)
	switch m.status.Str {
	case statusCompleted, statusIncomplete, statusFailed, statusCanceled, statusRejected:
		err = r.completed(&rep, msg, m)
	}
	return rep, err
}

// messageOf returns the message with an id, old or new. Without an id, it is the last one.
func (r *reader) messageOf(id string) (*agentMessage, error) {
	if len(id) > wire.MaxID {
		return nil, wire.Refuse("the agent's answer has a message whose id has more than %d bytes", wire.MaxID)
	}
	if id == "" && r.last != nil {
		return r.last, nil
	}
	if id == "" {
		id = "message"
	}
	if msg := r.messages[id]; msg != nil {
		r.last = msg
		return msg, nil
	}
	if len(r.messages) == maxMessages {
		return nil, wire.Refuse("the agent's answer has more than %d messages", maxMessages)
	}
	id = strings.Clone(id) // of an event that may be large
	msg := &agentMessage{id: id, kind: typeMessage, shows: r.expose == ExposeProduct}
	if r.messages == nil {
		r.messages = make(map[string]*agentMessage)
	}
	r.messages[id], r.last = msg, msg
	return msg, nil
}

// content reads a content: a piece added to a text, or all of it.
func (r *reader) content(m *members, v gjson.Result) (rep agent.Report, err error) {
	msg, err := r.messageOf(m.messageID.Str)
	if err != nil || msg.complete || msg.known && !msg.shows {
		return rep, err
	}
	i, err := msg.index(m.index)
	if err != nil {
		return rep, err
	}
	whole := m.status.Str == statusCompleted
	adds := m.delta.Type == gjson.True && m.kind.Str == typeText && m.text.Type == gjson.String && m.text.Str != ""
	if !whole && !adds { // nothing of it is kept
		return rep, nil
	}
	if r.contents += max(i+1-len(msg.contents), 0); r.contents > maxContents {
		return rep, wire.Refuse("the agent's answer has more than %d contents in messages that are not complete",
			maxContents)
	}
	waits := !msg.known && (!msg.shows || !msg.begun && (whole || msg.waiting > 0))
	if waits {
		if err := r.wait(msg, len(v.Raw)); err != nil {
			return rep, err
		}
	}
	switch p := msg.part(i); {
	case whole && waits:
		*p, msg.grows = part{whole: true, item: readContent(v)}, false
	case whole:
		before := msg.product()
		*p, msg.grows = part{whole: true, item: readContent(v)}, false
		rep.Chunks = msg.change(before, false)
	case !p.whole:
		p.raw = append(p.raw, m.text.Raw[1:len(m.text.Raw)-1]...)
		if !waits {
			rep.Chunks = msg.piece(i, m.text.Str)
		}
	}
	return rep, nil
}

// piece returns a piece of the content with an index as a piece of the product.
func (m *agentMessage) piece(i int, text string) []task.Chunk {
	m.mixed = m.mixed || i < len(m.contents)-1
	product := task.Product{ID: m.id, Name: m.name(), DataItems: []task.DataItem{task.Text(text)}}
	if !m.begun {
		product.Extensions = m.extensions
	}
	chunks := []task.Chunk{{Product: product, Append: m.begun}}
	m.begun, m.grows = true, !m.mixed
	return chunks
}

// completed reads a complete message. If it lists no contents, those of the stream are all.
func (r *reader) completed(rep *agent.Report, msg *agentMessage, m *members) error {
	if msg.complete || wire.Absent(m.content) {
		return nil
	}
	if !m.content.IsArray() {
		return wire.Refuse("the agent's answer has a message whose content is no array")
	}
	var items []task.DataItem
	jsonrpc.ForEach(m.content, func(_, v gjson.Result) bool {
		items = append(items, readContent(v))
		return len(items) <= wire.MaxItems
	})
	if len(items) > wire.MaxItems {
		return wire.Refuse("the agent's answer has a message with more than %d contents", wire.MaxItems)
	}
	msg.complete, msg.grows, r.ended = true, false, msg
	r.contents -= len(msg.contents)
	switch {
	case msg.shows:
		before := msg.product()
		msg.extend(m)
		msg.contents = make([]part, len(items))
		for i := range items {
			msg.contents[i] = part{whole: true, item: items[i]}
		}
		rep.Chunks = append(rep.Chunks, msg.change(before, true)...)
	case r.expose == ExposeStatus && rep.State == task.None && !msg.repeats:
		rep.State, rep.NativeState = task.Working, statusInProgress
		for _, it := range items {
			it.Metadata = typed(msg.kind)
			rep.Items = append(rep.Items, it)
		}
	}
	msg.contents = nil
	return r.asked(msg.kind, items)
}

// name returns the name of the product of a message. An answer needs none.
func (m *agentMessage) name() string {
	if m.kind == typeMessage {
		return ""
	}
	return m.kind
}

// index returns the place of a content. One without an index is the last one, unless the last one is whole.
func (m *agentMessage) index(v gjson.Result) (int, error) {
	n := len(m.contents)
	if wire.Absent(v) {
		if n > 0 && !m.contents[n-1].whole {
			n--
		}
		return n, nil
	}
	i, ok := jsonrpc.Int(v)
	if !ok || i < 0 || i >= wire.MaxItems {
		return 0, wire.Refuse("the agent's answer has a content whose index is no integer from 0 to %d", wire.MaxItems-1)
	}
	return int(i), nil
}

// part returns the content with an index.
func (m *agentMessage) part(i int) *part {
	if i >= len(m.contents) {
		m.contents = append(m.contents, make([]part, i+1-len(m.contents))...)
	}
	return &m.contents[i]
}

// product returns the message as a product, as it is now. Adjacent texts are one.
func (m *agentMessage) product() task.Product {
	items := make([]task.DataItem, 0, len(m.contents))
	for i := range m.contents {
		switch p := &m.contents[i]; {
		case p.whole:
			items = append(items, p.item)
		case len(p.raw) > 0:
			text := gjson.ParseBytes(slices.Concat([]byte{'"'}, p.raw, []byte{'"'}))
			items = append(items, task.Text(text.Str))
		}
	}
	return task.Product{
		ID: m.id, Name: m.name(), DataItems: wire.JoinTexts(items[:0], items), Extensions: m.extensions,
	}
}
