// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// BeginRequest appends a request of JSON-RPC up to its params. Its id is the query's. If the query has none it is
// about, the name of the request's subject.
func BeginRequest(dst []byte, q *translate.Query, about, method string) []byte {
	if q.ID != "" {
		about = q.ID
	}
	var buf [96]byte
	return jsonrpc.BeginRequest(dst, task.AppendString(buf[:0], about), method)
}

// Response reads the envelope of an agent's answer to a query. It copies body: the response is a view of the copy. An
// error may be without an id, since an agent unable to read a request does not know its id (JSON-RPC 2.0, section 5).
func Response(body []byte, q *translate.Query) (jsonrpc.Response, error) {
	res, bad := parse(body, jsonrpc.ParseResponse)
	switch {
	case bad != nil:
		return res, Refuse("the agent's answer is no JSON-RPC response: %s", bad.Detail)
	case q.ID == "" || isID(res.ID, q.ID) || res.Failure != nil && (len(res.ID) == 0 || string(res.ID) == "null"):
		return res, nil
	}
	return res, otherAnswer(otherID)
}

// ResponseInExchange is Response for agents asked by one request in one exchange. Some answer with no id, or with one
// of their own: it is refused only if it is the id of another request.
func ResponseInExchange(body []byte, q *translate.Query) (jsonrpc.Response, error) {
	res, err := Response(body, q)
	if errors.Is(err, translate.ErrOtherAnswer) {
		err = InExchange(res.ID, q)
	}
	return res, err
}

// InExchange refuses an answer with the id of another request of this process.
func InExchange(id jsonrpc.ID, q *translate.Query) error {
	ours := q.ID[:strings.LastIndexByte(q.ID, '-')+1] // the beginning of all ids of this process
	if q.ID == "" || isID(id, q.ID) || len(id) == 0 || id[0] != '"' || !strings.HasPrefix(string(id[1:]), ours) {
		return nil
	}
	return otherAnswer(otherID)
}

const otherID = "the agent's answer does not have the id of the gateway's request"

func isID(id jsonrpc.ID, want string) bool {
	return len(id) == len(want)+2 && id[0] == '"' && string(id[1:len(id)-1]) == want
}

// About refuses an answer about another task than the query's. name is the task's name in the answer, empty for none.
func About(q *translate.Query, name string) error { return same(q.Task, name, "task") }

// GoesOn is About for the first answer to a turn, known to be the answer to its request. The agent may go on with the
// conversation by another task of the same session.
func GoesOn(q *translate.Query, name, session string) error {
	if q.Turn && session != "" && session == q.Session {
		return nil
	}
	return About(q, name)
}

// InSession refuses an answer naming another session of the gateway. Any other name is one of the agent's own, and says
// nothing.
func InSession(q *translate.Query, name string) error {
	if q.Gave == nil || !q.Gave(name) {
		return nil
	}
	return same(q.Session, name, "session")
}

func same(want, name, what string) error {
	if want == "" || name == "" || name == want {
		return nil
	}
	return otherAnswer("the agent's answer is about another " + what + " than the gateway's request")
}

func otherAnswer(detail string) error {
	return Refuse("%s", detail).WithCause(translate.ErrOtherAnswer)
}

// Informal returns the error in an event of a stream in no form of its dialect, in the agent's words. err is the reason
// why the event is no answer, and is returned if there are no such words. An event named "error" by the agent may be no
// more than a text; in any other, they are in a member "error".
func Informal(event string, data []byte, err error) error {
	if task.KindOf(err) != task.InvalidAgentResponse || errors.Is(err, translate.ErrOtherAnswer) {
		return err
	}
	v, bad := Value(data, "answer")
	var reason string
	switch {
	case event == "error" && bad != nil:
		reason = string(data)
	case event == "error":
		reason = Reason(v)
	case bad == nil && v.IsObject():
		reason = Reason(jsonrpc.Member(v, "error"))
	}
	if Clean(reason, MaxSentence) == "" {
		return err
	}
	return Uncoded(reason)
}

// Uncoded returns the error of an agent without a code, in the agent's words. There may be none.
func Uncoded(reason string) error {
	detail := "the agent reports an error"
	if reason = Clean(reason, MaxSentence); reason != "" {
		detail += ": " + reason
	}
	return task.Errorf(task.Internal, "%s", detail).WithCause(translate.ErrInformal)
}
