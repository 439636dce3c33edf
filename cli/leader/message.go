// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// NewID returns a unique id: prefix, a hyphen and 26 random letters and digits.
func NewID(prefix string) string { return prefix + "-" + rand.Text() }

// complete returns the message of a call, with defaults for missing members.
func (c *Client) complete(call *task.Call) task.Message {
	m := call.Message
	if m.ID == "" {
		m.ID = NewID("msg")
	}
	if m.SentAt.IsZero() {
		m.SentAt = time.Now().Truncate(time.Millisecond)
	}
	if m.SenderRole == "" {
		m.SenderRole = task.Leader
	}
	if m.SenderID == "" {
		m.SenderID = c.Sender
	}
	if m.Params == nil {
		m.Params = c.version().params(call)
	}
	return m
}

// params returns the commandParams of a call (AIP v01.00 §4.3, §6.2), or nil if it has none.
func (v *version) params(call *task.Call) json.RawMessage {
	dst := []byte{'{'}
	number := func(key string, n int64) {
		if n == 0 {
			return
		}
		if len(dst) > 1 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"`+key+`":`...)
		dst = strconv.AppendInt(dst, n, 10)
	}
	switch call.Message.Command {
	case task.Start:
		number(v.responseTimeout, call.Terms.Response.Milliseconds())
		number("awaitingInputTimeout", call.Terms.AwaitingInput.Milliseconds())
		number("awaitingCompletionTimeout", call.Terms.AwaitingCompletion.Milliseconds())
		number("maxProductsBytes", call.Terms.MaxProductsBytes)
	case task.ReStream:
		number("lastEventSeq", int64(call.AfterSeq))
	case task.Get:
		dst = appendTimeOrNull(append(append(append(dst, '"'), v.lastMessage...), `":`...), call.MessagesAfter)
		dst = appendTimeOrNull(append(dst, `,"lastStateChangedAt":`...), call.StatesAfter)
	}
	if len(dst) == 1 {
		return nil
	}
	return append(dst, '}')
}

func appendTimeOrNull(dst []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	return task.AppendTime(dst, t)
}

// requestID returns the id of the request with a message. It is the message's id, so logs on both sides name one id
// only.
func requestID(m *task.Message) jsonrpc.ID { return task.AppendString(nil, m.ID) }

// Error is a JSON-RPC error in a Partner's answer.
type Error struct {
	Code    int64
	Message string
	Data    json.RawMessage // nil if there is none
	Raw     []byte          // the whole response as it was sent
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// FormatError is an answer with HTTP status 200, but no JSON-RPC response.
type FormatError struct {
	Detail string // its fault
	Body   []byte
}

// Error implements error.
func (e *FormatError) Error() string { return "the answer is not a JSON-RPC response: " + e.Detail }

// ErrEmpty is an answer with HTTP status 200 and no body. Servers answer so on a path without a mount.
var ErrEmpty = errors.New("the answer has HTTP status 200 and is empty")

// parse reads the envelope of the response to the request with an id.
func parse(body []byte, id jsonrpc.ID) (res jsonrpc.Response, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return res, ErrEmpty
	}
	res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{Bytes: math.MaxInt})
	if bad != nil {
		return res, &FormatError{Detail: bad.Detail, Body: body}
	}
	if f := res.Failure; f != nil {
		// A Partner unable to read the request does not know its id.
		return res, &Error{Code: f.Code, Message: f.Message, Data: json.RawMessage(f.Data.Raw), Raw: body}
	}
	if !sameID(res.ID, id) {
		return res, fmt.Errorf("the answer has the id of another request")
	}
	return res, nil
}

// decode reads the response to the request with the id of a message.
func (v *version) decode(body []byte, id jsonrpc.ID) (*Answer, error) {
	res, err := parse(body, id)
	if err != nil {
		return nil, err
	}
	a := &Answer{Raw: body}
	switch kind := res.Result.Get("type").Str; kind {
	case v.task:
		a.Task, err = v.readTask(res.Result.Raw)
		if err == nil && !a.Task.Status.State.Valid() {
			return nil, fmt.Errorf("the answer is a task in an unknown state")
		}
	case "message":
		a.Message = new(task.Message)
		err = json.Unmarshal([]byte(res.Result.Raw), a.Message)
	case v1.task, v2.task:
		return nil, errors.New("the answer is neither a task nor a message" + v.other)
	default:
		return nil, errors.New("the answer is neither a task nor a message")
	}
	if err != nil {
		return nil, fmt.Errorf("the answer is no valid AIP object: %w", err)
	}
	return a, nil
}

// sameID compares ids as JSON values, because encoders escape strings in different ways.
func sameID(a, b jsonrpc.ID) bool {
	return slices.Equal(a, b) || len(a) > 0 && a[0] == '"' && gjson.ParseBytes(a).Str == gjson.ParseBytes(b).Str
}
