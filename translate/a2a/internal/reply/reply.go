// SPDX-License-Identifier: Apache-2.0

// Package reply reads the envelopes of what agents answer and push, and gives their errors a kind.
package reply

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/value"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxWord and maxSentence bound what is told of an agent's words in errors, in runes.
const (
	MaxWord     = 40
	maxSentence = 200
)

// response reads the envelope of what an agent answers, whatever the HTTP status: agents differ in that. The
// answer is known by the connection it came on, so its id is not looked at. All of the response is a view of body.
func Parse(body []byte) (jsonrpc.Response, error) {
	// How large a body may be is the transport's to decide, who has read it already.
	res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{Bytes: math.MaxInt})
	if bad != nil {
		return res, Refuse("the agent's answer is no JSON-RPC response: %s", bad.Detail)
	}
	return res, nil
}

// pushed reads the body of a request by which an agent tells of a task unasked. It finds what is told in the
// envelopes that agents put around it: the result of a response, the params of a notification, an event in those.
// It copies body; the Result is a view of the copy.
func Pushed(body []byte) (gjson.Result, error) {
	v, bad := jsonrpc.ParseValue(bytes.Clone(body), jsonrpc.Limits{Bytes: math.MaxInt})
	if bad != nil {
		return v, Refuse("the agent's notification is no JSON")
	}
	if !v.IsObject() {
		return v, Refuse("the agent's notification is no object")
	}
	for _, envelope := range [...]string{"result", "params", "event"} {
		value.Members(v, func(key string, inner gjson.Result) {
			if key == envelope && inner.IsObject() {
				v = inner
			}
		})
	}
	return v, nil
}

// refuse says that the agent answered something that its protocol does not allow. The words are never the
// agent's own, except where they are clean.
func Refuse(format string, args ...any) *task.Error {
	return task.Errorf(task.InvalidAgentResponse, format, args...)
}

// failure is the kind of an error that an agent reports, and what it says when the agent gives no words.
type Failure struct {
	Code int64
	Kind task.Kind
	Text string
}

// legacyFailures are the errors of v0.1 by their code. What blames the gateway's own request is Internal, so
// that no Leader looks for a mistake in a request that it did not write.
var Failures = []Failure{
	{-32700, task.Internal, "the agent could not read the gateway's request"},
	{-32600, task.Internal, "the agent does not accept the gateway's request"},
	{-32601, task.MethodNotFound, "the agent does not have this method"},
	{-32602, task.InvalidParams, "the agent does not accept the parameters"},
	{-32603, task.Internal, "the agent failed"},
	{-32001, task.TaskNotFound, "the agent does not know this task"},
	{-32002, task.TaskNotCancelable, "the agent refuses to cancel this task"},
	{-32003, task.NotificationNotSupported, "the agent has no push notifications"},
	{-32004, task.UnsupportedOperation, "the agent does not support this"},
	{-32005, task.ContentTypeNotSupported, "the agent does not take this kind of content"},
}

// v03Failures are the errors of 0.2 and 0.3 by their code.
var FailuresV03 = append([]Failure{
	{-32006, task.InvalidAgentResponse, "the agent says that it made an invalid response"},
	{-32007, task.UnsupportedOperation, "the agent has no extended card"},
	{-31401, task.Internal, "the agent wants to know who the gateway is"},
}, Failures...)

// failed turns an error that the agent reports into one of its kind. What the table does not have is Internal.
func Failed(table []Failure, f *jsonrpc.Failure) *task.Error {
	kind, what := task.Internal, "the agent reports error "+strconv.FormatInt(f.Code, 10)
	for _, row := range table {
		if row.Code == f.Code {
			kind, what = row.Kind, row.Text
			break
		}
	}
	if words := Clean(f.Message, maxSentence); words != "" {
		what += ": " + words
	}
	return task.Errorf(kind, "%s", what)
}

// clean returns an agent's words as one line of at most limit runes, or nothing where they are a page.
func Clean(s string, limit int) string {
	// No rune is longer than UTFMax, and white space is bounded too, lest a long text be read for a short one.
	if most := 4 * limit * utf8.UTFMax; len(s) > most {
		s = s[:most]
	}
	if l := strings.ToLower(s); strings.Contains(l, "<html") || strings.Contains(l, "<!doctype") || strings.Contains(l, "</") {
		return ""
	}
	var b strings.Builder
	n, gap := 0, false
	for _, r := range s {
		switch {
		case r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r):
			gap = n > 0
			continue
		case n >= limit:
			return b.String() + "…"
		case gap:
			b.WriteByte(' ')
			n++
			gap = false
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
