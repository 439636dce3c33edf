// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// request is an AgentRequest.
type request struct {
	wire.Reader
	input, stream, user, session, id, responseID, previous gjson.Result
	n, maxTokens, temperature                              gjson.Result // they are among others, too
	others                                                 wire.Extensions
}

func (r *request) set(name string, v gjson.Result) {
	switch name {
	case "input":
		r.input = v
	case "stream":
		r.stream = asFlag(v)
	case "user_id":
		r.user = asID(v)
	case "session_id":
		r.session = asID(v)
	case "id":
		r.id = asID(v)
	case "response_id":
		r.responseID = asID(v)
	case "previous_response_id":
		r.previous = v
	default:
		r.others.Add(name, v)
		switch name {
		case "n":
			r.n = asNumber(v)
		case "max_tokens":
			r.maxTokens = asNumber(v)
		case "temperature":
			r.temperature = asNumber(v)
		}
	}
}

// decodeMessage reads a message. Members that the gateway has no use for, such as the name of a model or tools, are
// passed on to the agent as extensions of the message. As by the server of the Agent API, an error in the types is
// answered by a status, and an error in the values by a stream, unless the request asks for none.
func (s server) decodeMessage(req *translate.Request) (translate.Call, error) {
	r, err := s.read(req)
	if err != nil {
		return translate.Call{}, err
	}
	call := translate.Call{Stream: true}
	if !wire.Absent(r.stream) {
		call.Stream = r.Flag(r.stream, "stream")
	}
	call.Blocking = !call.Stream
	call.BySession, call.AutoComplete = true, !s.confirm
	m := &call.Message
	m.Command, m.SenderRole = task.Start, task.Leader
	r.checkRanges()
	if m.DataItems = r.messages(); r.Err == nil {
		r.identify(&call, req.NewID)
	}
	if r.Err != nil {
		return translate.Call{Stream: call.Stream}, r.Err
	}
	m.ID = req.NewID()
	m.Extensions = r.others.JSON(family, requestNames)
	return call, nil
}

// read reads the members of a request. It refuses a body other than an object, and members of other types than the
// schema's.
func (s server) read(req *translate.Request) (*request, error) {
	if err := s.CheckContent(req.Content); err != nil {
		return nil, err
	}
	if !req.Params.IsObject() {
		return nil, wrongType("", noObject)
	}
	r := new(request)
	wire.Members(req.Params, r.set)
	if r.checkTypes(); r.Err != nil {
		return nil, r.Err
	}
	return r, nil
}

// identify reads the session, and the id for the response.
func (r *request) identify(call *translate.Call, newID func() string) {
	user, session := r.ID(r.user, "user_id"), r.ID(r.session, "session_id")
	previous := r.Bounded(r.previous, "previous_response_id", 2*wire.MaxID)
	id := r.ID(r.id, "id")
	if id == "" {
		id = r.ID(r.responseID, "response_id")
	}
	wire.Own(&user, &session, &previous, &id)
	call.AnswerID = id
	m := &call.Message
	switch {
	case previous != "":
		var ok bool
		if call.SessionOf, _, ok = answeredBy(previous); !ok {
			r.Fail("previous_response_id", "previous_response_id is not the id of a response of this gateway")
		}
		if user != "" || session != "" {
			m.SessionID = conversation(user, session)
		}
		return
	case session == "":
		session = newID()
	}
	if user == "" {
		user = session
	}
	m.SessionID = conversation(user, session)
}

// messages reads the contents of all messages of the input.
func (r *request) messages() (items []task.DataItem) {
	if wire.Absent(r.input) {
		r.Fail("input", "Field required")
		return nil
	}
	// The items are views of this copy.
	input := gjson.Parse(strings.Clone(r.input.Raw))
	items = []task.DataItem{}
	if input.Type == gjson.String { // the form of callers with one text only
		return append(items, task.Text(input.Str))
	}
	several, n := input.Get("1").Exists(), 0
	r.Each(input, "input", wire.MaxItems, func(v gjson.Result) {
		if !r.Object(v, "") {
			return
		}
		h := head{index: -1}
		if several {
			h.index = n
		}
		r.message(v, &h, &items)
		n++
	})
	return items
}

// message reads the contents of a message, and marks them with the head of the message.
func (r *request) message(v gjson.Result, h *head, items *[]task.DataItem) {
	var role, kind, content gjson.Result
	wire.Members(v, func(name string, v gjson.Result) {
		switch name {
		case "role":
			role = v
		case "type":
			kind = v
		case "id":
			h.id = wire.Line(v)
		case "metadata":
			h.metadata = wire.Line(v)
		case "content":
			content = v
		}
	})
	h.kind, h.role = r.Bounded(kind, ".type", wire.MaxID), r.Bounded(role, ".role", wire.MaxID)
	r.checkRole(h.role)
	if r.Err != nil || wire.Absent(content) {
		return
	}
	if content.Type == gjson.String { // a text
		it := task.Text(content.Str)
		h.mark(&it, true)
		*items = append(*items, it)
		return
	}
	first := true
	r.Each(content, ".content", wire.MaxItems, func(v gjson.Result) {
		if len(*items) == wire.MaxItems {
			r.Fail("", "the messages must have at most %d contents", wire.MaxItems)
			return
		}
		if !r.Object(v, "") || !r.known(v) {
			return
		}
		it := readContent(v)
		h.mark(&it, first)
		first = false
		*items = append(*items, it)
	})
}

// known reports whether a content is of a type of the schema. A text may say nothing.
func (r *request) known(v gjson.Result) bool {
	switch r.Text(jsonrpc.Member(v, "type"), ".type") {
	case typeText, "", typeData, typeImage, typeVideo, typeAudio, typeFile, typeRefusal:
	default:
		r.Fail(".type", "the type must be text, data, image, video, audio, file or refusal")
	}
	return r.Err == nil
}
