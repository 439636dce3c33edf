// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/tidwall/gjson"
)

// InSession returns a start in a session.
func InSession(id, session, text string) *task.Call {
	call := StartCall(id, text)
	call.Message.SessionID = session
	return call
}

// StartBody returns a good start, whose parts a test then spoils.
func StartBody(sender, taskID string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"rpc","id":"req-1","params":{"message":{"type":"message","id":"msg-1",`+
		`"sentAt":"2025-09-01T14:30:00+08:00","senderRole":"leader","senderId":%q,"command":"start",`+
		`"dataItems":[{"type":"text","text":"hello"}],"taskId":%q,"sessionId":"session-1"}}}`, sender, taskID)
}

// Answered is what most tests ask of an answer.
type Answered struct {
	State    task.State
	Says     string
	Products []string
}

// AnswerOf returns the parts of an answer that most tests check.
func AnswerOf(t *task.Task) Answered {
	return Answered{t.Status.State, Says(t.Status.DataItems), Product(t)}
}

// JSONRequest makes a request with a body, or without one.
func JSONRequest(method, url, body string, header ...string) *http.Request {
	req, err := http.NewRequest(method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err) // the test made it
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	return req
}

// ContentOf returns what parts or data items hold, one after another. The members of an object are sorted, because over
// gRPC they have no order.
func ContentOf(parts gjson.Result) string {
	var b strings.Builder
	for _, p := range parts.Array() {
		b.WriteString(p.Get("text").Str)
		b.WriteString(p.Get(`data|@pretty:{"sortKeys":true}|@ugly`).Raw)
		b.WriteString(p.Get("raw").Str + p.Get("file.bytes").Str + p.Get("bytes").Str)
	}
	return b.String()
}

// RestsIn reports whether nothing more comes in a turn.
func RestsIn(state string) bool {
	switch state {
	case "", "submitted", "accepted", "working":
		return false
	}
	return true
}

// Again sends a command beside a reload, once more if its connection was reset, or if it came to a configuration that
// failed. On Linux, each configuration has a listening socket of its own for one port, and a connection that the old
// one has not accepted yet is reset with it. Every command may be repeated.
func (c *Caller) Again(call *task.Call) (*task.Task, error) {
	got, err := c.Try(call)
	refusal, _ := errors.AsType[*leader.Error](err)
	if errors.Is(err, syscall.ECONNRESET) || refusal != nil && strings.Contains(refusal.Message, "was not put in force") {
		got, err = c.Try(call)
	}
	return got, err
}
