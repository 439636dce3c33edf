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

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// How much of an agent's text an error may repeat, in characters.
const (
	MaxWord     = 40  // of a name, such as a state
	MaxSentence = 200 // of an error message
)

// noLimit leaves the size of what an agent sends to the transport, which has read it already.
var noLimit = jsonrpc.Limits{Bytes: math.MaxInt}

// Refuse says that the agent answered something that its protocol does not allow. What the sentence repeats of the
// agent's own text is Clean.
func Refuse(format string, args ...any) *task.Error {
	return task.Errorf(task.InvalidAgentResponse, format, args...)
}

// Value reads what an agent sends without an envelope: its "answer", or its "notification". It copies body: the value
// is a view of the copy.
func Value(body []byte, what string) (gjson.Result, error) {
	v, bad := parse(body, jsonrpc.ParseValue)
	switch {
	case bad == nil:
		return v, nil
	case bad.Code == jsonrpc.InvalidRequest: // a key that appears twice, or too deep
		return v, Refuse("the agent's %s is refused: %s", what, bad.Detail)
	}
	return v, Refuse("the agent's %s is not one JSON value", what)
}

// parse reads a copy of what an agent has sent, strictly, and where that fails once more as it was meant.
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

// Failure is an error that agents report: its code, the kind that it is here, and a sentence for where the agent gives
// no message.
type Failure struct {
	Code   int64
	Kind   task.Kind
	Detail string
}

// Failed returns an error that an agent reports as one of its kind. What the table does not have is Internal. Many
// agents say in the data what has failed, and in the message no more than that something has.
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

// Reason returns the words in an error of whatever form; empty where there are none. A code in an object, such as
// TASK_NOT_FOUND, is none, and of a trace of Python the last line is the reason.
func Reason(v gjson.Result) string { return reasonIn(v, maxReasonDepth) }

// maxReasonDepth is how deep the words of an error may be, since each level is read again for the next one.
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
		v.ForEach(func(_, entry gjson.Result) bool {
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

// Enum returns a value of an enumeration as a string. In the JSON of protocol buffers, a value that their schema does
// not have is a number, which is its name then.
func Enum(v gjson.Result) gjson.Result {
	if v.Type == gjson.Number {
		return gjson.Result{Type: gjson.String, Str: v.Raw, Raw: `"` + v.Raw + `"`}
	}
	return v
}

// Clean returns an agent's text as one line of at most limit characters, for an error or a log line. Of a page of HTML,
// which proxies send in an agent's place, nothing is left.
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
