// SPDX-License-Identifier: Apache-2.0

package legacyagent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// post returns the answer to a request, with every timestamp as T.
func post(t testing.TB, a http.Handler, ctx context.Context, body string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("HTTP status %d", w.Code)
	}
	return timeless(w.Body.String())
}

func timeless(s string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(s, `"timestamp":"`)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		_, s, _ = strings.Cut(after, `"`)
		b.WriteString("T")
	}
}

func request(method, id, text string) string {
	params := fmt.Sprintf(`{"id":%q}`, id)
	if strings.HasPrefix(method, "tasks/send") {
		params = fmt.Sprintf(`{"id":%q,"sessionId":"s","message":{"role":"user","parts":[{"type":"text","text":%q}]}}`, id,
			text)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

// talk runs a script of "method text" lines against one task, in a bubble of its own time.
func talk(t *testing.T, lines ...string) (answers []string) {
	bubble.Test(t, func(t *testing.T) {
		a := New(Options{})
		for _, line := range lines {
			method, text, _ := strings.Cut(line, " ")
			answers = append(answers, post(t, a, t.Context(), request("tasks/"+method, "t", text)))
		}
		a.Close()
	})
	return answers
}

func ok(result string) string { return `{"jsonrpc":"2.0","id":1,"result":` + result + `}` }

func says(state, text string) string {
	return `"status":{"state":"` + state + `","message":{"role":"agent","parts":[{"type":"text","text":"` + text +
		`"}]},T}`
}

func text(name, s string, index int, adds, last bool) string {
	return fmt.Sprintf(`{"name":%q,"parts":[{"type":"text","text":%q}],"index":%d,"append":%t,"lastChunk":%t}`, name, s,
		index, adds, last)
}

func status(s string, final bool) string {
	return "event: task_status_update\ndata: " + ok(fmt.Sprintf(`{"id":"t",%s,"final":%t}`, s, final)) + "\n\n"
}

func chunk(s string) string {
	return "event: task_artifact_update\ndata: " + ok(`{"id":"t","artifact":`+s+`}`) + "\n\n"
}

const working = `"status":{"state":"working",T}`

func TestAgent(t *testing.T) {
	const begin = `{"id":"t","sessionId":"s",`
	for _, tc := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"echo", []string{"send hi \"you\"", "get"}, []string{
			ok(begin + says("completed", "ok") + `,"artifacts":[` + text("echo", `echo: hi "you"`, 0, false, true) + `]}`),
			ok(begin + says("completed", "ok") + `,"artifacts":[` + text("echo", `echo: hi "you"`, 0, false, true) + `]}`)}},
		{"a finished task is continued", []string{"send a", "send b"}, []string{
			ok(begin + says("completed", "ok") + `,"artifacts":[` + text("echo", "echo: a", 0, false, true) + `]}`),
			ok(begin + says("completed", "ok") + `,"artifacts":[` + text("echo", "echo: a", 0, false, true) + `,` +
				text("echo", "echo: b", 1, false, true) + `]}`)}},
		{"word by word", []string{"sendSubscribe hello big  world"}, []string{
			status(working, false) + chunk(text("echo", "echo:", 0, false, false)) +
				chunk(text("echo", " hello", 0, true, false)) +
				chunk(text("echo", " big", 0, true, false)) + chunk(text("echo", " world", 0, true, true)) +
				status(says("completed", "ok"), true)}},
		{"no word", []string{"sendSubscribe  "}, []string{
			status(working, false) + chunk(text("echo", "echo:", 0, false, true)) + status(says("completed", "ok"), true)}},
		{"stream", []string{"sendSubscribe stream 2 5", "get"}, []string{
			status(working, false) + chunk(text("out", "chunk-0 ", 0, false, false)) +
				chunk(text("out", "chunk-1 ", 0, true, true)) + status(says("completed", "streamed"), true),
			ok(begin + says("completed", "streamed") + `,"artifacts":[` + text("out", "chunk-0 chunk-1 ", 0, false, true) +
				`]}`)}},
		{"a stream that is not streamed", []string{"send stream 2"}, []string{
			ok(begin + says("completed", "streamed") + `,"artifacts":[` + text("out", "chunk-0 chunk-1 ", 0, false, true) +
				`]}`)}},
		{"slow", []string{"sendSubscribe slow 2"}, []string{
			status(working, false) + status(says("working", "tick 0"), false) + status(says("working", "tick 1"), false) +
				status(says("completed", "slow done"), true)}},
		{"ask", []string{"send ask", "sendSubscribe stream 3"}, []string{
			ok(begin + says("input-required", "which colour?") + `}`),
			status(working, false) + chunk(text("answer", "you said: stream 3", 0, false, true)) +
				status(says("completed", "done"), true)}},
		{"fail", []string{"send fail"}, []string{ok(begin + says("failed", "agent broke") + `}`)}},
		{"reject", []string{"send reject", "get"}, []string{
			ok(begin + says("rejected", "not my job") + `}`), ok(begin + says("rejected", "not my job") + `}`)}},
		{"reject a stream", []string{"sendSubscribe reject"}, []string{status(says("rejected", "not my job"), true)}},
		{"two", []string{"send two"}, []string{ok(begin + says("completed", "ok") + `,"artifacts":[` +
			text("one", "one", 0, false, true) + `,` + text("two", "two", 1, false, true) + `]}`)}},
		{"file", []string{"send file"}, []string{ok(begin + says("completed", "ok") +
			`,"artifacts":[{"name":"file","parts":[{"type":"file","file":{"name":"hello.txt","mimeType":"text/plain",` +
			`"bytes":"aGVsbG8K"}}],"index":0,"append":false,"lastChunk":true}]}`)}},
		{"data", []string{"sendSubscribe data"}, []string{status(working, false) +
			chunk(`{"name":"data","parts":[{"type":"data","data":{"colour":"blue","parts":[1,2,3]}}],"index":0,"append":false,`+
				`"lastChunk":true}`) + status(says("completed", "ok"), true)}},
		{"cancel what waits", []string{"send ask", "cancel", "cancel", "resubscribe"}, []string{
			ok(begin + says("input-required", "which colour?") + `}`), ok(begin + says("canceled", "canceled") + `}`),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"Task cannot be canceled"}}`,
			status(says("canceled", "canceled"), true)}},
		{"unknown task", []string{"get", "cancel", "resubscribe"}, []string{
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found"}}`}},
		{"what it does not do", []string{"pushNotification/set", "pushNotification/get", "list"}, []string{
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"Push Notification is not supported"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"Push Notification is not supported"}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, talk(t, tc.lines...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	a := New(Options{})
	defer a.Close()
	for _, tc := range []struct{ in, want string }{
		{`x`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a JSON value is expected"}}`},
		{`{"jsonrpc":"2.0","id":"a","method":"tasks/send"}`,
			`{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"params.id must be a string of 1 to 256 bytes"}}`},
		{`{"jsonrpc":"2.0","id":"a","method":"tasks/get","params":[]}`,
			`{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"params.id must be a string of 1 to 256 bytes"}}`},
		{`{"jsonrpc":"2.0","id":"a","method":"tasks/send","params":{"id":"x","message":{"parts":[{"text":"a"}]}}}`,
			`{"jsonrpc":"2.0","id":"a","error":{"code":-32602,"message":"params.message.parts must have a part of type text"}}`},
		{strings.Repeat(" ", maxBody+1),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the body is larger than 33554432 bytes"}}`},
	} {
		if diff := cmp.Diff(tc.want, post(t, a, t.Context(), tc.in)); diff != "" {
			t.Errorf("%.40s (-want +got):\n%s", tc.in, diff)
		}
	}
}

// Work continues when the client leaves; a resubscriber gets the state of the task and the later events.
func TestDisconnect(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := New(Options{})
		defer a.Close()
		ctx, leave := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer leave()
		got := []string{
			post(t, a, ctx, request("tasks/sendSubscribe", "t", "slow 3")),
			post(t, a, t.Context(), request("tasks/send", "t", "more")),
			post(t, a, t.Context(), request("tasks/resubscribe", "t", "")),
		}
		want := []string{
			status(working, false) + status(says("working", "tick 0"), false),
			`{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"The task is running"}}`,
			status(says("working", "tick 0"), false) + status(says("working", "tick 1"), false) +
				status(says("working", "tick 2"), false) + status(says("completed", "slow done"), true),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestCancelEndsTheStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := New(Options{})
		defer a.Close()
		stream := make(chan string)
		go func() { stream <- post(t, a, t.Context(), request("tasks/sendSubscribe", "t", "slow 100")) }()
		synctest.Wait()
		post(t, a, t.Context(), request("tasks/cancel", "t", ""))
		if diff := cmp.Diff(status(working, false)+status(says("canceled", "canceled"), true), <-stream); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// The oldest tasks give way, and their work ends.
func TestTasksAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := New(Options{Tasks: 2})
		defer a.Close()
		first := make(chan string)
		go func() { first <- post(t, a, t.Context(), request("tasks/send", "t1", "slow 100")) }()
		synctest.Wait()
		for _, id := range []string{"t2", "t3", "t4"} {
			post(t, a, t.Context(), request("tasks/send", id, "x"))
		}
		if got := <-first; !strings.Contains(got, `"canceled"`) {
			t.Errorf("the oldest task was not canceled: %s", got)
		}
		for id, known := range map[string]bool{"t1": false, "t2": false, "t3": true, "t4": true} {
			if got := post(t, a, t.Context(), request("tasks/get", id, "")); strings.Contains(got, "result") != known {
				t.Errorf("%s: %s", id, got)
			}
		}
		if len(a.tasks) != 2 || len(a.ring) != 2 {
			t.Errorf("%d tasks in the map, %d in the ring", len(a.tasks), len(a.ring))
		}
	})
}

func TestClose(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a := New(Options{})
		done := make(chan string)
		go func() { done <- post(t, a, t.Context(), request("tasks/send", "t", "slow 100")) }()
		synctest.Wait()
		a.Close()
		if got := <-done; !strings.Contains(got, `"canceled"`) {
			t.Errorf("got %s", got)
		}
		if got := post(t, a, t.Context(), request("tasks/send", "t2", "x")); !strings.Contains(got, `"code":-32603`) {
			t.Errorf("a closed agent answers %s", got)
		}
	})
}

func TestCard(t *testing.T) {
	a := New(Options{})
	defer a.Close()
	srv := httptest.NewServer(a)
	defer srv.Close()
	for _, tc := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/.well-known/agent.json", 200}, {http.MethodGet, "/.well-known/agent-card.json", 404},
		{http.MethodPut, "/", 405},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, srv.URL+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(bufio.NewReader(res.Body))
		res.Body.Close()
		if err != nil || res.StatusCode != tc.status {
			t.Errorf("%s %s: %v, %v", tc.method, tc.path, res.Status, err)
		}
		if tc.status == 200 && !strings.Contains(string(body), `"url":"`+srv.URL+`/"`) {
			t.Errorf("the card is %s", body)
		}
	}
}

func BenchmarkEcho(b *testing.B) {
	a := New(Options{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		post(b, a, b.Context(), request("tasks/send", fmt.Sprint(i), "hello"))
	}
}
