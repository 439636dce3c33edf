// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxWord and maxSentence bound what is told of an agent's words in errors, in runes.
const (
	maxWord     = 40
	maxSentence = 200
)

// answer reads the envelope of what an agent answers and returns its result, a view of body. The answer is known
// by the connection it came on, so its id is not looked at.
func answer(body []byte) (gjson.Result, error) {
	// How large a body may be is the transport's to decide, who has read it already.
	res, bad := jsonrpc.ParseResponse(body, jsonrpc.Limits{Bytes: math.MaxInt})
	switch {
	case bad == nil && res.Failure == nil:
		return res.Result, nil
	case bad == nil:
		return res.Result, failed(res.Failure.Code, res.Failure.Message)
	case bad.Code == jsonrpc.InvalidRequest && bad.Field == "result": // it is JSON, but no response
		if err := undressed(gjson.ParseBytes(body)); err != nil {
			return res.Result, err
		}
	}
	return res.Result, refuse("the agent's answer is no JSON-RPC response: %s", bad.Detail)
}

// undressed reads an error that has no envelope. Partners on the reference SDK answer so with a status of HTTP
// that tells of the error: {"detail":{"code":…,"message":…}}, or a list of what is wrong with the form of a
// request. It returns nil where v is neither.
func undressed(v gjson.Result) error {
	detail := member(v, "detail")
	switch {
	case detail.IsObject():
		if code, ok := jsonrpc.Int(member(detail, "code")); ok {
			return failed(code, member(detail, "message").Str)
		}
	case detail.IsArray():
		return failed(-32700, "")
	}
	return nil
}

// refuse says that the agent answered something that AIP does not allow. The words are never the agent's own,
// except where they are clean.
func refuse(format string, args ...any) *task.Error {
	return task.Errorf(task.InvalidAgentResponse, format, args...)
}

// failures are the errors of a Partner by their code (§5.2), and what each says where the Partner gives no words.
//
// What blames the gateway's own request is not blamed on a Leader, who did not write it. The reference SDK answers
// −32700 to a method that it does not have, and to commands of another version, so that is what −32700 means here.
// What is about identity is about the gateway's, not about the Leader's: its kinds are not passed on.
var failures = []struct {
	code int64
	kind task.Kind
	what string
}{
	{-32700, task.MethodNotFound, "the agent does not take this method in this form"},
	{-32600, task.Internal, "the agent does not accept the gateway's request"},
	{-32601, task.MethodNotFound, "the agent does not have this method"},
	{-32602, task.InvalidParams, "the agent does not accept the parameters"},
	{-32603, task.Internal, "the agent failed"},
	{-32001, task.TaskNotFound, "the agent does not know this task"},
	{-32002, task.TaskNotCancelable, "the agent refuses to cancel this task"},
	{-32003, task.NotificationNotSupported, "the agent sends no notifications"},
	{-32004, task.UnsupportedOperation, "the agent does not support this"},
	{-32005, task.ContentTypeNotSupported, "the agent does not take this kind of content"},
	{-32006, task.InvalidAgentResponse, "the agent could not make an answer"},
	{-32007, task.GroupNotSupported, "the agent does not join groups"},
	{-32008, task.InvalidAgentResponse, "the agent asks who the gateway is; the operator must check its certificate and its AIC"},
	{-32009, task.InvalidAgentResponse, "the agent does not let the gateway do this; the operator must check its certificate and its AIC"},
	{-32010, task.InvalidAgentResponse, "the agent does not accept the gateway's access token; the operator must check it"},
	{-32050, task.LimitExceeded, "a limit of the agent is reached"},
}

// failed turns an error that a Partner reports into one of its kind. What the table does not have is Internal.
func failed(code int64, message string) *task.Error {
	kind, what := task.Internal, "the agent reports error "+strconv.FormatInt(code, 10)
	for i := range failures {
		if failures[i].code == code {
			kind, what = failures[i].kind, failures[i].what
			break
		}
	}
	if words := clean(message, maxSentence); words != "" {
		what += ": " + words
	}
	return task.Errorf(kind, "%s", what)
}

// clean returns an agent's words as one line of at most limit runes.
func clean(s string, limit int) string {
	// White space does not count, so it must not be without bound either.
	if most := 4 * limit * utf8.UTFMax; len(s) > most {
		s = s[:most]
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
