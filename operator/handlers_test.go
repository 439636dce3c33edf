// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestAdmitted: only a request of the table of routes reaches an answer, with the Partner by its stored name.
func TestAdmitted(t *testing.T) {
	p := newAlone(t, nil)
	p.refuses(map[string]string{
		"DELETE /aip/tasks": "Method Not Allowed: use GET",
		"PUT /aip/drain":    "Method Not Allowed: use GET, POST, DELETE",
		"GET /aip/tasks?leader=a;b": "Bad Request: the query cannot be read (invalid semicolon separator in query); " +
			"encode its values with percent signs",
		"GET /aip/tasks?reader=a": `Bad Request: there is no "reader"; use partner, leader, task, session, search, state, ` +
			"min_age, max_age, since, sort, after or limit",
		"GET /aip/cluster?full=1": `Bad Request: there is no "full"; use brief`,
		"GET /aip/groups?state=odd": "Bad Request: state is \"odd\", but must be one of " +
			"[joining joined reconnecting waiting unregistered leaving]",
		"GET /aip/certificates?partner=P": `Bad Request: there is no "partner": the route takes no parameters`,
		"GET /aip/tasks/events?partner=P": "Bad Request: " +
			"name the task by partner, leader and task, as the list of tasks does",
		"POST /aip/registrations?partner=P":   "Bad Request: a registration has no query; name the Partner in the body",
		"GET /aip/agents/settings?partner=Q":  `Conflict: the Partner "Q" is not in the configuration`,
		"GET /aip/agents/card?partner=nobody": `Conflict: the Partner "nobody" is not in the configuration`,
	})
	var one adminapi.AgentCard
	p.ask("GET", adminapi.AgentCardOf+"?partner=maps", "", &one)
	if one.Partner != "P" || one.Reason != "" || len(one.Skills) == 0 {
		t.Errorf("the card by the title is %+v", one)
	}
}

// TestNotRunning: without a running configuration the host's error is the answer, but not to another method.
func TestNotRunning(t *testing.T) {
	for path, h := range Handlers(func() (*Admin, error) { return nil, &Refusal{503, "nothing runs"} }) {
		method, _, _ := strings.Cut(adminapi.RouteOf(path).Method, ",")
		for method, want := range map[string]int{method: http.StatusServiceUnavailable, "PUT": http.StatusMethodNotAllowed} {
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, httptest.NewRequest(method, path, nil)); w.Code != want {
				t.Errorf("%s %s is answered with %d %s", method, path, w.Code, w.Body)
			}
		}
	}
}

// TestRefused: the status of an error is that of its kind, and its text has no kind.
func TestRefused(t *testing.T) {
	for want, err := range map[Refusal]error{
		{400, "a"}: task.Errorf(task.InvalidParams, "a"),
		{404, "b"}: fmt.Errorf("around: %w", task.Errorf(task.TaskNotFound, "b")),
		{409, "c"}: task.Errorf(task.TaskNotCancelable, "c"),
		{409, "d"}: task.Errorf(task.UnsupportedOperation, "d").WithCause(errors.New("hidden")),
		{429, "e"}: errTails,
		{503, "f"}: task.Errorf(task.StoreUnavailable, "f"),
		{500, "g"}: errors.New("g"),
		{500, "h"}: task.Errorf(task.Internal, "h"),
		{418, "i"}: fmt.Errorf("around: %w", &Refusal{418, "i"}),
	} {
		if want.Reason == "e" {
			want.Reason = "64 streams of tasks are open, which is the most there may be"
		}
		if diff := cmp.Diff(&want, Refused(err, sentenceOf)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
	}
}

// TestHandlerWrites: no error follows an answer.
func TestHandlerWrites(t *testing.T) {
	w := httptest.NewRecorder()
	h := Handler(func(w http.ResponseWriter, _ *http.Request) error {
		w.WriteHeader(http.StatusAccepted)
		return nil
	})
	if h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil)); w.Code != http.StatusAccepted || w.Body.Len() > 0 {
		t.Errorf("the answer is %d %s", w.Code, w.Body)
	}
}
