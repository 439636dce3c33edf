// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// The most of an agent's text to repeat in an error, in characters.
const (
	MaxWord     = 40  // of a name, such as a state
	MaxSentence = 200 // of an error message
)

// noLimit leaves the size of an agent's answer to the transport, since it has read the answer already.
var noLimit = jsonrpc.Limits{Bytes: math.MaxInt}

// Refuse returns the error of an agent's answer not allowed by its protocol. The agent's own text in the sentence is
// Clean.
func Refuse(format string, args ...any) *task.Error {
	return task.Errorf(task.InvalidAgentResponse, format, args...)
}

// Value reads an agent's body without an envelope: its "answer", or its "notification". It copies body: the value is a
// view of the copy.
func Value(body []byte, what string) (gjson.Result, error) {
	v, bad := parse(body, jsonrpc.ParseValue)
	switch {
	case bad == nil:
		return v, nil
	case bad.Code == jsonrpc.InvalidRequest: // a key appearing twice, or too deep
		return v, Refuse("the agent's %s is refused: %s", what, bad.Detail)
	}
	return v, Refuse("the agent's %s is not one JSON value", what)
}

// parse reads a copy of an agent's body, strictly, and if that fails once more as it was meant.
func parse[T any](body []byte, read func([]byte, jsonrpc.Limits) (T, *jsonrpc.Error)) (T, *jsonrpc.Error) {
	v, bad := read(bytes.Clone(body), noLimit)
	if bad == nil || bad.Code != jsonrpc.ParseError {
		return v, bad
	}
	if fixed := jsonrpc.Repaired(body); fixed != nil {
		return read(fixed, noLimit)
	}
	return v, bad
}

// Failure is an error of agents: its code, its kind here, and a sentence in place of a missing message of the agent.
type Failure struct {
	Code   int64
	Kind   task.Kind
	Detail string
}

// Failed returns an agent's error as one of its kind. An error not in the table is Internal. Many agents give the
// reason in the data, and no more than the fact of a failure in the message.
func Failed(table []Failure, f *jsonrpc.Failure) *task.Error {
	kind, detail := task.Internal, "the agent reports error "+strconv.FormatInt(f.Code, 10)
	for i := range table {
		if table[i].Code == f.Code {
			kind, detail = table[i].Kind, table[i].Detail
			break
		}
	}
	message, reason := Clean(f.Message, MaxSentence), Clean(Reason(f.Data), MaxSentence)
	if message != "" && !strings.Contains(reason, message) { // else the reason says all
		detail += ": " + message
	}
	if reason != "" && (!strings.Contains(message, reason) || message == reason) {
		detail += ": " + reason
	}
	return task.Errorf(kind, "%s", detail)
}

// Reason returns the words in an error of any form; empty for none. A code in an object, such as TASK_NOT_FOUND, is
// none, and of a trace of Python the last line is the reason.
func Reason(v gjson.Result) string { return reasonIn(v, maxReasonDepth) }

// maxReasonDepth is the largest depth of the words of an error, since each level is read again for the next one.
const maxReasonDepth = 6

func reasonIn(v gjson.Result, depth int) (reason string) {
	switch {
	case v.Type == gjson.String:
		if reason = strings.TrimSpace(v.Str); strings.Contains(reason, "Traceback (most recent call last)") {
			reason = strings.TrimSpace(reason[strings.LastIndexByte(reason, '\n')+1:])
		}
		return reason
	case depth == 0:
		return ""
	case v.IsArray(): // such as those of FastAPI
		jsonrpc.ForEach(v, func(_, entry gjson.Result) bool {
			reason = reasonIn(entry, depth-1)
			return reason == ""
		})
		return reason
	case !v.IsObject():
		return ""
	}
	for _, name := range [...]string{"message", "detail", "details", "reason", "error", "msg"} {
		reason = reasonIn(jsonrpc.Member(v, name), depth-1)
		if isCode := strings.Trim(reason, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""; !isCode {
			return reason
		}
	}
	return ""
}

// Enum returns a value of an enumeration as a string. In the JSON of protocol buffers, a value not in their schema is a
// number. The number is its name then.
func Enum(v gjson.Result) gjson.Result {
	if v.Type == gjson.Number {
		return gjson.Result{Type: gjson.String, Str: v.Raw, Raw: `"` + v.Raw + `"`}
	}
	return v
}

// Clean returns an agent's text as one line of at most limit characters, for an error or a log line. Nothing is left of
// a page of HTML, sent by proxies in an agent's place.
func Clean(s string, limit int) string {
	// White space is not counted below, so it is bounded here.
	if most := 4 * limit * utf8.UTFMax; len(s) > most {
		s = s[:most]
	}
	if l := strings.ToLower(s); strings.Contains(l, "<html") || strings.Contains(l, "<!doctype") ||
		strings.Contains(l, "</") {
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
