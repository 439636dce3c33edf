// SPDX-License-Identifier: Apache-2.0

package jsonrpc

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/tidwall/gjson"
)

var null = ID("null")

// Parse reads a request. It refuses a body other than JSON to the letter of RFC 8259 (ParseError), and JSON other than
// one JSON-RPC request within the limits (InvalidRequest): a batch, a name appearing twice in any object, a missing
// jsonrpc or method, a member of the wrong type. The errors of Check are left to the dialect. It copies nothing: see
// Request.
func Parse(body []byte, lim Limits) (Request, *Error) {
	top, err := scanObject(body, lim.or())
	if err != nil {
		return Request{}, err
	}
	return top.request()
}

// Message is a request or a response, on a connection where both ends may send either.
type Message struct {
	IsRequest bool
	Request   Request  // if IsRequest is set; without an id it is a notification
	Response  Response // otherwise
}

// ParseMessage reads a message: a request if it has a method, and otherwise a response, as Parse and ParseResponse do.
func ParseMessage(body []byte, lim Limits) (m Message, err *Error) {
	top, err := scanObject(body, lim.or())
	if err != nil {
		return Message{}, err
	}
	if m.IsRequest = len(top.method) > 0; m.IsRequest {
		m.Request, err = top.request()
	} else {
		m.Response, err = top.response()
	}
	return m, err
}

// request returns the request with these members.
func (m *members) request() (Request, *Error) {
	refuse := func(field, detail string) (Request, *Error) {
		return Request{}, &Error{ID: m.knownID(), Code: InvalidRequest, Field: field, Detail: detail}
	}
	switch {
	case len(m.version) == 0:
		return refuse("jsonrpc", `the member jsonrpc is missing; it must be "2.0"`)
	case !isVersion(m.version):
		return refuse("jsonrpc", `jsonrpc must be the string "2.0"`)
	case len(m.id) > 0 && !isID(m.id):
		return refuse("id", "id must be a string, a number or null")
	case len(m.method) == 0:
		return refuse("method", "the member method is missing; it must be a string")
	case m.method[0] != '"':
		return refuse("method", "method must be a string")
	}
	return Request{
		ID:     unsafe.Slice(unsafe.StringData(m.id), len(m.id)),
		Method: gjson.Parse(m.method).Str,
		Params: m.value(m.params, m.paramsAt),
	}, nil
}

// Check returns the error of a parsed request that is not one of JSON-RPC: it has no id, or its params are neither an
// object nor an array. The dialects differ in their answers then, and in the order of errors.
func (r *Request) Check() *Error {
	switch {
	case len(r.ID) == 0:
		return &Error{ID: null, Code: InvalidRequest, Field: "id",
			Detail: "the member id is missing; it must be a string, a number or null"}
	case r.Params.Exists() && !r.Params.IsObject() && !r.Params.IsArray():
		return &Error{ID: r.ID, Code: InvalidRequest, Field: "params",
			Detail: "params must be an object or an array, or be left out"}
	}
	return nil
}

// ParseResponse reads a response. It is as strict as Parse about JSON and limits, and lenient about known habits of
// other ends: a null error beside a result, a null result beside an error, no id, no jsonrpc. It copies nothing: see
// Response.
func ParseResponse(body []byte, lim Limits) (Response, *Error) {
	top, err := scanObject(body, lim.or())
	if err != nil {
		return Response{}, err
	}
	return top.response()
}

// response returns the response with these members.
func (m *members) response() (Response, *Error) {
	refuse := func(field, detail string) (Response, *Error) {
		return Response{}, &Error{ID: m.knownID(), Code: InvalidRequest, Field: field, Detail: detail}
	}
	res := Response{ID: unsafe.Slice(unsafe.StringData(m.id), len(m.id))}
	switch {
	case !absent(m.version) && !isVersion(m.version):
		return refuse("jsonrpc", `jsonrpc must be the string "2.0"`)
	case len(m.id) > 0 && !isID(m.id):
		return refuse("id", "id must be a string, a number or null")
	case absent(m.failure) && len(m.result) == 0:
		return refuse("result", "a response needs a result or an error")
	case absent(m.failure):
		res.Result = m.value(m.result, m.resultAt)
		return res, nil
	case m.failure[0] != '{':
		return refuse("error", "error must be an object")
	}
	res.Failure = new(Failure)
	var code, message gjson.Result
	ForEach(gjson.Parse(m.failure), func(key, value gjson.Result) bool {
		switch key.Str {
		case "code":
			code = value
		case "message":
			message = value
		case "data":
			if value.Type != gjson.Null {
				res.Failure.Data = value
			}
		}
		return true
	})
	var ok bool
	if res.Failure.Code, ok = Int(code); !ok {
		return refuse("error.code", "error.code must be an integer")
	}
	if message.Type != gjson.String && message.Type != gjson.Null {
		return refuse("error.message", "error.message must be a string")
	}
	res.Failure.Message = message.Str
	return res, nil
}

// ParseValue reads a body without an envelope: one JSON value of any kind. It is as strict as Parse about JSON, names
// appearing twice, and limits. It copies nothing: the value is a view of body. An Error has no id.
func ParseValue(body []byte, lim Limits) (gjson.Result, *Error) {
	m, _, err := scan(body, lim.or())
	if err != nil {
		err.ID = nil
		return gjson.Result{}, err
	}
	begins := strings.TrimLeft(view(body), " \t\r\n")
	return m.value(strings.TrimRight(begins, " \t\r\n"), len(body)-len(begins)), nil
}

// Check returns the error of params beyond l, of a request parsed with the default Limits. Its numbers are those of the
// params alone.
func (l Limits) Check(params string) *Error {
	if l = l.or(); len(params) <= l.Bytes && l.Depth >= DefaultDepth {
		return nil
	}
	l.Depth-- // the envelope
	_, err := ParseValue([]byte(params), l)
	return err
}

// members are the members of the envelope as they stand in the body: views, empty for none.
type members struct {
	version, id, method, params, result, failure string

	paramsAt, resultAt int   // offsets
	spans              spans // of the large values of the body
}

// value returns a value at an offset of the body, with what ForEach knows of the values in it.
func (m *members) value(raw string, at int) gjson.Result {
	v := gjson.Parse(raw)
	v.Index, v.Indexes = at, m.spans
	return v
}

// set keeps a member if it is one of the envelope.
func (m *members) set(name, raw string, at int) {
	switch name {
	case "jsonrpc":
		m.version = raw
	case "id":
		m.id = raw
	case "method":
		m.method = raw
	case "params":
		m.params, m.paramsAt = raw, at
	case "result":
		m.result, m.resultAt = raw, at
	case "error":
		m.failure = raw
	}
}

// knownID returns the id for the answer with an error about the body.
func (m *members) knownID() ID {
	if len(m.id) == 0 || !isID(m.id) {
		return null
	}
	return ID(m.id)
}

// isID reports whether a valid JSON value may be an id.
func isID(raw string) bool {
	switch raw[0] {
	case '{', '[', 't', 'f':
		return false
	}
	return true
}

func isVersion(raw string) bool { return raw[0] == '"' && gjson.Parse(raw).Str == "2.0" }

func absent(raw string) bool { return raw == "" || raw == "null" }

// view returns b as a string without a copy.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// scanners keeps the memory of scanners: that of their keys.
var scanners = sync.Pool{New: func() any { return &scanner{keys: make([]key, 0, 64)} }}

// maxKeys is the largest capacity of a scanner's keys kept for later.
const maxKeys = 4096

// scanObject checks a body, and returns the members of its envelope, as far as it was read. The body must be an object.
func scanObject(body []byte, lim Limits) (members, *Error) {
	top, kind, err := scan(body, lim)
	switch {
	case err != nil, kind == '{':
		return top, err
	case kind == '[':
		return top, &Error{ID: null, Code: InvalidRequest,
			Detail: "the body is an array, but batches are not supported; send one object"}
	}
	return top, &Error{ID: null, Code: InvalidRequest, Detail: "the body must be an object"}
}

// scan checks a body. It returns the first byte of its value and, of an object, the members of its envelope, as far as
// it was read.
func scan(body []byte, lim Limits) (members, byte, *Error) {
	if len(body) > lim.Bytes {
		return members{}, 0, &Error{ID: null, Code: InvalidRequest, Limit: "bytes", Max: lim.Bytes,
			Detail: fmt.Sprintf("the body is larger than %d bytes", lim.Bytes)}
	}
	s := scanners.Get().(*scanner)
	*s = scanner{body: body, depth: lim.Depth, twice: -1, keys: s.keys[:0], spans: s.spans[:0]}
	ok := s.document()
	top, kind, err := s.top, s.kind, (*Error)(nil)
	if !ok || s.twice >= 0 {
		err = s.refusal(ok)
	} else if len(s.spans) > 0 {
		top.spans = slices.Clone(s.spans)
	}
	if cap(s.keys) > maxKeys {
		s.keys = make([]key, 0, 64)
	}
	s.body, s.top = nil, members{} // the body is its owner's
	scanners.Put(s)
	return top, kind, err
}

// refusal returns the error of a refused body. ok is set if the body is JSON.
func (s *scanner) refusal(ok bool) *Error {
	switch {
	case !ok && s.deep:
		return &Error{ID: s.top.knownID(), Code: InvalidRequest, Limit: "depth", Max: s.depth,
			Detail: fmt.Sprintf("objects and arrays are nested more than %d deep", s.depth)}
	case !ok:
		return &Error{ID: null, Code: ParseError, Offset: s.offset, Detail: s.why}
	}
	field := path(s.body, s.twice)
	id := s.top.knownID()
	if field == "id" {
		id = null
	}
	return &Error{ID: id, Code: InvalidRequest, Field: field, Detail: "the key appears twice"}
}
