// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// wireJobs are about what no SDK sends.
func wireJobs(w *world) []job {
	return []job{
		{"list by pages", func(t *testing.T) { byPages(t, w) }},
		{"slashes", func(t *testing.T) { bySlashes(t, w) }},
		{"versions", func(t *testing.T) { byVersions(t, w) }},
		{"refused streams", func(t *testing.T) { byRefusal(t, w) }},
		{"rules", func(t *testing.T) { byRules(t, w) }},
	}
}

// ask sends a request and returns the status and the body of its answer.
func ask(t *testing.T, req *http.Request) (status int, media string, body string) {
	t.Helper()
	res, err := http.DefaultClient.Do(req.WithContext(site.Within(t, site.Patience)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("Content-Type"), string(b)
}

// byPages lists the tasks of one context, two at a time, in both bindings of A2A 1.0.
func byPages(t *testing.T, w *world) {
	mount := w.mount(w.backs[2])
	session := leader.NewID("context")
	var made []string
	for i := range 5 {
		_, _, body := ask(t, site.JSONRequest("POST", mount, rpc(
			"SendMessage",
			fmt.Sprintf(
				`{"message":{"messageId":"m%d","contextId":%q,"role":"ROLE_USER","parts":[{"text":"echo %d"}]}}`,
				i,
				session,
				i,
			),
		), "A2A-Version", "1.0"))
		id := gjson.Get(body, "result.task.id").Str
		if id == "" {
			t.Fatalf("the task is answered as %s", body)
		}
		made = append(made, id)
		site.Outlast(gjson.Get(body, "result.task.status.timestamp").Time())
	}
	slices.Reverse(made) // the newest first
	pages := map[string]func(token string) gjson.Result{
		"JSON-RPC": func(token string) gjson.Result {
			_, _, body := ask(
				t,
				site.JSONRequest(
					"POST",
					mount,
					rpc("ListTasks", fmt.Sprintf(`{"contextId":%q,"pageSize":2,"pageToken":%q}`, session, token)),
					"A2A-Version",
					"1.0",
				),
			)
			return gjson.Get(body, "result")
		},
		"REST": func(token string) gjson.Result {
			q := url.Values{"contextId": {session}, "pageSize": {"2"}, "pageToken": {token}}
			_, _, body := ask(t, site.JSONRequest("GET", mount+"/tasks?"+q.Encode(), "", "A2A-Version", "1.0"))
			return gjson.Parse(body)
		},
	}
	for name, page := range pages {
		var got []string
		var sizes []int
		token := ""
		for len(sizes) < 10 {
			v := page(token)
			if total := v.Get("totalSize").Int(); total != 5 {
				t.Fatalf("%s: there are %d tasks: %s", name, total, v.Raw)
			}
			list := v.Get("tasks").Array()
			sizes = append(sizes, len(list))
			for _, one := range list {
				got = append(got, one.Get("id").Str)
			}
			if token = v.Get("nextPageToken").Str; token == "" {
				break
			}
		}
		if diff := cmp.Diff(made, got); diff != "" {
			t.Errorf("%s lists (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]int{2, 2, 1}, sizes); diff != "" {
			t.Errorf("%s has pages of (-want +got):\n%s", name, diff)
		}
	}
}

// bySlashes ends paths with a slash, as some callers do.
func bySlashes(t *testing.T, w *world) {
	mount := w.mount(w.backs[1])
	message := v1Message("m", "echo hi")
	for name, req := range map[string]*http.Request{
		"1.0":  site.JSONRequest("POST", mount+"/", rpc("SendMessage", message), "A2A-Version", "1.0"),
		"REST": site.JSONRequest("POST", mount+"/message:send/", message, "A2A-Version", "1.0"),
		"0.3": site.JSONRequest("POST", mount+"/", rpc("message/send",
			`{"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"echo hi"}]}}`)),
		"legacy": site.JSONRequest("POST", mount+"/", rpc("tasks/send",
			`{"id":"slashes","message":{"role":"user","parts":[{"type":"text","text":"echo hi"}]}}`)),
		"aip":  site.JSONRequest("POST", mount+"/rpc/", site.StartBody("leader", "slashes")),
		"card": site.JSONRequest("GET", mount+"/.well-known/agent-card.json/", ""),
	} {
		status, _, body := ask(t, req)
		if status != http.StatusOK || gjson.Get(body, "error").Exists() {
			t.Errorf("%s is answered with %d: %s", name, status, body)
		}
	}
}

// byVersions names versions that are not spoken.
func byVersions(t *testing.T, w *world) {
	mount := w.mount(w.backs[1])
	for _, version := range []string{"2.0", "1.7", "tomorrow"} {
		status, _, body := ask(
			t,
			site.JSONRequest("POST", mount, rpc("SendMessage", v1Message("m", "echo hi")), "A2A-Version", version),
		)
		if status != http.StatusOK || gjson.Get(body, "error.code").Int() != -32009 || gjson.Get(body, "id").Str != "q" {
			t.Errorf("version %s is answered with %d: %s", version, status, body)
		}
		status, _, body = ask(
			t,
			site.JSONRequest("POST", mount+"/message:send", v1Message("m", "echo hi"), "A2A-Version", version),
		)
		if status != http.StatusBadRequest || gjson.Get(body, "error.details.0.reason").Str != "VERSION_NOT_SUPPORTED" {
			t.Errorf("in REST, version %s is answered with %d: %s", version, status, body)
		}
	}
	for _, version := range []string{"1.0", "1.0.1", ""} {
		if _, _, body := ask(t, site.JSONRequest("POST", mount, rpc("SendMessage", v1Message("m", "echo hi")), "A2A-Version",
			version)); gjson.Get(body, "error").
			Exists() {
			t.Errorf("version %q is answered with %s", version, body)
		}
	}
}

// byRefusal asks for streams of tasks that do not exist. A client that accepts only a stream gets the error in a
// stream.
func byRefusal(t *testing.T, w *world) {
	mount := w.mount(w.backs[1])
	const stream, either = "text/event-stream", "application/json, text/event-stream"
	for name, tc := range map[string]struct {
		req   *http.Request
		media string
	}{
		"1.0": {site.JSONRequest("POST", mount, rpc("SubscribeToTask", `{"id":"none"}`), "Accept", stream), stream},
		"1.0, either": {site.JSONRequest("POST", mount, rpc("SubscribeToTask", `{"id":"none"}`), "Accept", either),
			"application/json"},
		"1.0, anything": {site.JSONRequest("POST", mount, rpc("SubscribeToTask", `{"id":"none"}`)), "application/json"},
		"0.3": {site.JSONRequest("POST", mount, rpc("tasks/resubscribe", `{"id":"none"}`), "Accept", stream,
			"A2A-Version", "0.3"), stream},
		"legacy": {site.JSONRequest("POST", mount, rpc("tasks/resubscribe", `{"id":"none"}`), "Accept", stream), stream},
		"aip": {site.JSONRequest("POST", mount+"/stream", string(site.StreamBody("leader", "re-stream", "none", "", "")),
			"Accept", stream), "application/json"},
	} {
		status, media, body := ask(t, tc.req)
		failure := body
		if media == stream {
			failure = body[len("data: ") : len(body)-len("\n\n")]
		}
		if status != http.StatusOK || media != tc.media || gjson.Get(failure, "error.code").Int() != -32001 {
			t.Errorf("%s: a task that does not exist is answered with %d, %s: %q", name, status, media, body)
		}
	}
	status, media, body := ask(
		t,
		site.JSONRequest("GET", mount+"/tasks/none:subscribe", "", "Accept", stream, "A2A-Version", "1.0"),
	)
	if status != http.StatusNotFound || media != "application/json" ||
		gjson.Get(body, "error.details.0.reason").Str != "TASK_NOT_FOUND" {
		t.Errorf("in REST, a task that does not exist is answered with %d, %s: %s", status, media, body)
	}
}

// byRules breaks rules of A2A, each of which has an answer of its own.
func byRules(t *testing.T, w *world) {
	mount := w.mount(w.backs[2])
	_, _, body := ask(t, site.JSONRequest("POST", mount+"/message:send", v1Message("m", "echo hi"), "A2A-Version", "1.0"))
	id := gjson.Get(body, "task.id").Str
	if id == "" || gjson.Get(body, "task.status.state").Str != "TASK_STATE_COMPLETED" {
		t.Fatalf("the task is answered as %s", body)
	}
	const none = "gw-aaaaaaaaaaaaaaaaaaaaaaaaaa"
	hook := `{"id":"h","url":"` + w.inbox.url + `/rules"}`
	for _, c := range []struct {
		name   string
		req    *http.Request
		status int
		media  string
		says   string
	}{
		{"subscribing to what has ended", site.JSONRequest("POST", mount+"/tasks/"+id+":subscribe", "", "Accept",
			"text/event-stream"), 400, "application/json", `"UNSUPPORTED_OPERATION"`},
		{"the same by JSON-RPC", site.JSONRequest("POST", mount, rpc("SubscribeToTask", `{"id":"`+id+`"}`), "Accept",
			"text/event-stream, application/json"), 200, "application/json", `-32004`},
		{"a webhook of no task", site.JSONRequest("POST", mount+"/tasks/"+none+"/pushNotificationConfigs", hook), 404,
			"application/json", `"TASK_NOT_FOUND"`},
		{"no webhook to delete", site.JSONRequest("DELETE", mount+"/tasks/"+id+"/pushNotificationConfigs/h", ""), 200,
			"application/a2a+json", `{}`},
		{"0.3 over HTTP, get", site.JSONRequest("GET", mount+"/v1/tasks/"+id, ""), 200, "application/json",
			`"content":[{"text":"echo hi"}]`},
		{"0.3 over HTTP, no task", site.JSONRequest("GET", mount+"/v1/tasks/"+none, ""), 404, "application/json",
			`{"code":-32001,`},
		{"no parts", site.JSONRequest("POST", mount, rpc("message/send",
			`{"message":{"kind":"message","messageId":"m","role":"user","parts":[]}}`)), 200, "application/json", `-32602`},
		{"no id, and no message", site.JSONRequest("POST", mount, `{"jsonrpc":"2.0","method":"message/send","params":{}}`),
			200,
			"application/json", `-32602`},
		{"no JSON", site.JSONRequest("POST", mount+"/message:send", v1Message("m", "echo hi")+`,"x":1`), 400,
			"application/json",
			`"PARSE_ERROR"`},
		{"no JSON, by its own word", site.JSONRequest("POST", mount+"/message:send", v1Message("m", "echo hi"),
			"Content-Type",
			"text/plain"), 400, "application/json", `"CONTENT_TYPE_NOT_SUPPORTED"`},
	} {
		status, media, body := ask(t, c.req)
		if status != c.status || media != c.media || !strings.Contains(body, c.says) {
			t.Errorf("%s: answered with %d, %s: %s; want %d, %s with %s", c.name, status, media, body, c.status, c.media, c.says)
		}
	}
}
