// SPDX-License-Identifier: Apache-2.0

package agentapi

import (
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

func TestRoutes(t *testing.T) {
	for path, want := range map[string]struct{ method, id, takes string }{
		"":                               {process, "", "POST"},
		"process":                        {process, "", "POST"},
		"process/task":                   {submitTask, "", "POST"},
		"process/task/response_t_m":      {checkTask, "response_t_m", "GET"},
		"process/task/response%5Ft%2F_m": {checkTask, "response_t/_m", "GET"},
		"stop":                           {stopSession, "", "POST"},
	} {
		for _, method := range []string{"GET", "POST", "OPTIONS"} {
			r, ok := Server(false).Route(method, path)
			allow := want.takes
			if method == allow {
				allow = ""
			}
			if !ok || !r.Unenveloped || r.Method != want.method || r.PathParams[idParam] != want.id || r.Allow != allow {
				t.Errorf("%s %q: %+v, %t", method, path, r, ok)
			}
		}
	}
	for _, path := range []string{"x", "process/", "process/task/", "process/task/x/y", "process/task/%zz", "stop/x"} {
		if r, ok := Server(false).Route("GET", path); ok {
			t.Errorf("%q is %+v", path, r)
		}
	}
}

// decodeAs decodes a request of a method.
func decodeAs(t *testing.T, method, id, body string) (translate.Call, error) {
	t.Helper()
	req := translate.Request{HTTP: "POST", Request: jsonrpc.Request{Method: method},
		PathParams: map[string]string{idParam: id}, NewID: func() string { return "new" }}
	if body != "" {
		v, bad := jsonrpc.ParseValue([]byte(body), jsonrpc.Limits{})
		if bad != nil {
			t.Fatal(bad)
		}
		req.Params = v
	}
	return Server(false).Decode(&req)
}

func TestDecodeCheck(t *testing.T) {
	call, err := decodeAs(t, checkTask, "response_t_1_m", "")
	m := &call.Message
	if err != nil || m.Command != task.Get || m.TaskID != "t_1" || m.ID != "m" || call.AnswerID != "response_t_1_m" {
		t.Errorf("a question is %+v, %v", call, err)
	}
	for _, id := range []string{"x", "response_m", "response__m"} {
		if _, err := decodeAs(t, checkTask, id, ""); task.KindOf(err) != task.TaskNotFound {
			t.Errorf("the id %q: %v", id, err)
		}
	}
}

func TestDecodeStop(t *testing.T) {
	call, err := decodeAs(t, stopSession, "", `{"input":[],"user_id":"u","session_id":"s"}`)
	m := &call.Message
	if err != nil || m.Command != task.Cancel || m.TaskID != "" || m.SessionID != conversation("u", "s") ||
		!call.BySession {
		t.Errorf("a stop is %+v, %v", call, err)
	}
	call, err = decodeAs(t, stopSession, "", `{"previous_response_id":"response_t_m"}`)
	if err != nil || call.SessionOf != "t" {
		t.Errorf("a stop of the session of a response is %+v, %v", call, err)
	}
	for body, want := range map[string]task.Kind{
		`{"user_id":"u"}`: task.InvalidParams, `[]`: task.InvalidRequest, "": task.InvalidRequest,
		`{"session_id":[]}`: task.InvalidRequest,
	} {
		if call, err := decodeAs(t, stopSession, "", body); task.KindOf(err) != want || call.Stream {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// TestSubmitRefused: mistakes in a submitted request are answered without a stream.
func TestSubmitRefused(t *testing.T) {
	for _, body := range []string{`{}`, `[]`, `{"input":[{"role":"nurse","content":[]}]}`} {
		if call, err := decodeAs(t, submitTask, "", body); err == nil || call.Stream {
			t.Errorf("%s: %v, in a stream: %t", body, err, call.Stream)
		}
	}
	call, err := decodeAs(t, submitTask, "", `{"input":[],"stream":true}`)
	if err != nil || call.Stream || call.Blocking || !call.Followed || call.Terms.Response != task.NoWait ||
		call.Message.Command != task.Start {
		t.Errorf("a request is %+v, %v", call, err)
	}
}
