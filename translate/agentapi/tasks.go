// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// The paths of the Agent API's server beside its process: a request answered at once, with a later question for its
// response by its id, and the end of the turn of a session.
const (
	submitTask  = process + "/task"
	checkTask   = submitTask + "/" // with an id behind it
	stopSession = "stop"
)

// idParam is the name of the id in the path of checkTask.
const idParam = "id"

// Route implements translate.Server. The mount point's own path is for callers with a path of its own in their URL;
// there dialects with an envelope come first.
func (server) Route(method, path string) (r translate.Route, ok bool) {
	r.Unenveloped = true
	takes := "POST"
	switch path {
	case "", process:
		r.Method = process
	case submitTask, stopSession:
		r.Method = path
	default:
		rest, is := strings.CutPrefix(path, checkTask)
		id, err := url.PathUnescape(rest)
		if !is || err != nil || id == "" || strings.Contains(rest, "/") {
			return translate.Route{}, false
		}
		r.Method, r.PathParams, takes = checkTask, map[string]string{idParam: id}, "GET"
	}
	if method != takes {
		r.Allow = takes
	}
	return r, true
}

// Decode implements translate.Server.
func (s server) Decode(req *translate.Request) (translate.Call, error) {
	switch req.Method {
	case submitTask:
		call, err := s.decodeMessage(req)
		call.Method, call.Stream, call.Blocking = submitTask, false, false
		call.Terms.Response, call.Followed = task.NoWait, true
		return call, err
	case checkTask:
		return decodeCheck(req)
	case stopSession:
		return s.decodeStop(req)
	}
	return s.decodeMessage(req)
}

// decodeCheck reads a question about a submitted response. The id of the response names its task.
func decodeCheck(req *translate.Request) (call translate.Call, err error) {
	call.Method, call.AnswerID = checkTask, strings.Clone(req.PathParams[idParam])
	m := &call.Message
	m.Command, m.SenderRole = task.Get, task.Leader
	var ok bool
	if m.TaskID, m.ID, ok = answeredBy(call.AnswerID); !ok || len(call.AnswerID) > 2*wire.MaxID {
		return call, task.Errorf(task.TaskNotFound, "this is not the id of a response of this gateway")
	}
	return call, nil
}

// decodeStop reads a request to end the turn of a session. It needs no input.
func (s server) decodeStop(req *translate.Request) (call translate.Call, err error) {
	call.Method = stopSession
	r, err := s.read(req)
	if err != nil {
		return call, err
	}
	if wire.Absent(r.session) && wire.Absent(r.previous) {
		r.Fail("session_id", "Field required")
	} else {
		r.identify(&call, req.NewID)
	}
	if r.Err != nil {
		return call, r.Err
	}
	call.BySession = true
	m := &call.Message
	m.ID, m.Command, m.SenderRole = req.NewID(), task.Cancel, task.Leader
	return call, nil
}

// appendSubmitted appends the answer to a submitted request. Its id names the task and the message.
func appendSubmitted(dst []byte, c *translate.Call, t *task.Task) []byte {
	dst = task.AppendString(append(dst, `{"task_id":`...), responseID(t.ID, c.Message.ID))
	return append(dst, `,"status":"submitted","queue":"stream_query","message":"Stream query task submitted `+
		`successfully"}`...)
}

// appendCheck appends the state of a task: pending, running, or finished, with its response even if that is a failure.
func (s server) appendCheck(dst []byte, c *translate.Call, t *task.Task) []byte {
	st := &t.Status
	switch {
	case st.State.Settled():
		dst = s.appendResponse(append(dst, `{"status":"finished","result":`...), c, t)
		return append(dst, '}')
	case st.State == task.Working:
		dst = strconv.AppendInt(append(dst, `{"status":"running","started_at":`...), st.ChangedAt.Unix(), 10)
		return append(dst, `,"result":null}`...)
	}
	return append(dst, `{"status":"pending","result":null}`...)
}

// appendStopped appends the answer to a request to stop. The server of the Agent API gives it even if there is nothing
// to stop.
func appendStopped(dst []byte) []byte {
	return append(dst, `{"status":"success","message":"Interrupt signal broadcasted."}`...)
}
