// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

func TestRun(t *testing.T) {
	const wrongDialect = "invalid-agent-response: the agent does not speak a2a/legacy; " +
		"the operator must check its dialect"
	const down = `HTTP/1.1 502 Bad Gateway` + "\r\n" + `Content-Type: text/html` + "\r\n\r\n" + `<html>secret</html>`
	status := func(code int, media, body string) step {
		return func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	sse := func(body string) step { return status(200, "text/event-stream", body) }
	for _, tc := range []struct {
		name   string
		stream bool
		agent  script
		want   []string
		took   time.Duration
	}{
		{"at once", false, script{"send": says(is("completed", has("a")))}, []string{"completed artifact-0=a"}, 0},
		{"later", false, script{"send": says(is("submitted")),
			"get": says(is("submitted"), is("working"), is("working", has("a")), is("working", has("a")),
				is("completed", has("a", "b")))},
			[]string{"submitted", "working", "working artifact-0=a", "completed artifact-0=ab"},
			700 * time.Millisecond},
		{"unknown", false, script{"send": says(is("unknown")), "get": says(is("input-required"))},
			[]string{"unknown", "input-required"}, 100 * time.Millisecond},
		{"working for ever", false, script{"send": says(is("working")), "get": says(is("working"))},
			[]string{"working", "agent-timeout: the agent has changed nothing for 1m0s"}, 61100 * time.Millisecond},
		{"an error", false, script{"send": says(fails(-32602, "no text"))},
			[]string{"invalid-params: the agent does not accept the parameters: no text"}, 0},
		{"an error that is stored", false,
			script{"send": status(500, "application/json", fails(-32603, "oops")), "get": says(is("failed"))},
			[]string{"failed"}, 0},
		{"an error and the last turn's state", false,
			script{"send": status(500, "application/json", fails(-32603, "oops")), "get": says(is("completed"))},
			[]string{"internal: the agent failed: oops"}, 0},
		{"an error of which nothing is known", false, script{"send": says(fails(-32603, "oops"))},
			[]string{"internal: the agent failed: oops"}, 0},
		{"another dialect", false, script{},
			[]string{wrongDialect}, 0},
		{"a proxy's page", false, script{"send": raw(down)},
			[]string{"invalid-agent-response: a proxy in front of the agent does not reach it (HTTP 502, text/html)"},
			0},
		{"nothing", false, script{"send": status(200, "", "")},
			[]string{"invalid-agent-response: the agent's answer is no JSON-RPC response: the body is empty (HTTP " +
				"200, no media type)"}, 0},
		{"another shape", false, script{"send": status(200, "application/json", `{"id":"1","result":{"message":{}}}`)},
			[]string{"invalid-agent-response: the agent's answer has no status, so it is no Task (HTTP 200, " +
				"application/json)"}, 0},
		{"an error without a code", false, script{"send": says(`{"error":"no model"}`)},
			[]string{"internal: the agent reports an error: no model"}, 0},
		{"an error without a code, and a status", false,
			script{"send": status(422, "application/json", `{"detail":"no model"}`)},
			[]string{"invalid-agent-response: the agent reports an error: no model (HTTP 422, application/json)"}, 0},
		{"an error without a code, and no agent", false,
			script{"send": status(404, "application/json", `{"detail":"Not Found"}`)},
			[]string{"invalid-agent-response: no agent answers at the agent's URL (HTTP 404, application/json)"}, 0},
		{"an error without a code, and overloaded", false,
			script{"send": status(503, "application/json", `{"error":"later"}`)},
			[]string{"agent-unavailable: the agent takes no requests now (HTTP 503)"}, 3500 * time.Millisecond},
		{"an id alone", false, script{"send": says(`{"id":"1","result":{"id":"t"}}`), "get": says(is("completed", has("a")))},
			[]string{"submitted", "completed artifact-0=a"}, 100 * time.Millisecond},
		{"a message", false, script{"send": says(`{"message":{"role":"agent","parts":[{"text":"a"}]}}`)},
			[]string{"message message=a"}, 0},
		{"a long media type", false, script{"send": status(200, "a/"+strings.Repeat("b", 100), "x")},
			[]string{"invalid-agent-response: the agent's answer is no JSON-RPC response: a JSON value is expected " +
				"(HTTP 200, no media type)"}, 0},
		{"refused", false, script{"send": status(401, "text/plain", "who?")},
			[]string{"invalid-agent-response: the agent refuses the gateway's credentials (HTTP 401); the operator " +
				"must check them"}, 0},
		{"refused in JSON", false, script{"send": status(403, "application/json", fails(-31401, "who?"))},
			[]string{"invalid-agent-response: the agent refuses the gateway's credentials (HTTP 403); the operator " +
				"must check them"}, 0},
		{"no agent", false, script{"send": status(404, "text/plain", "what?")},
			[]string{"invalid-agent-response: no agent answers at the agent's URL (HTTP 404, text/plain)"}, 0},
		{"an error of the agent with 404", false,
			script{"send": status(404, "application/json", fails(-32001, "what?"))},
			[]string{"task-not-found: the agent does not know this task: what?"}, 0},
		{"a redirect", false, script{"send": func(w http.ResponseWriter, r *http.Request, n int) {
			if n > 0 {
				panic("followed")
			}
			http.Redirect(w, r, "http://other/", http.StatusTemporaryRedirect)
		}}, []string{"invalid-agent-response: the agent redirects (HTTP 307), which is not followed; the operator " +
			"must give its final URL"}, 0},
		{"overloaded", false, script{"send": status(503, "text/plain", "later")},
			[]string{"agent-unavailable: the agent takes no requests now (HTTP 503)"}, 3500 * time.Millisecond},
		{"overloaded for a while", false, script{"send": busyFor(2, "", says(is("completed", has("a"))))},
			[]string{"completed artifact-0=a"}, 1500 * time.Millisecond},
		{"asks for time", true, script{"sendSubscribe": busyFor(1, "20", streams(false, news("completed")))},
			[]string{"completed"}, 20 * time.Second},
		{"asks for time until a date", false,
			script{"send": busyFor(1, "Sat, 01 Jan 2000 00:00:20 GMT", says(is("completed")))},
			// the bubble's clock begins with 2000
			[]string{"completed"}, 20 * time.Second},
		{"asks for too much time", false, script{"send": busyFor(9, "31", says(is("completed")))},
			[]string{"agent-unavailable: the agent takes no requests for 31s"}, 0},
		{"throttled", true, script{"sendSubscribe": status(429, "text/plain", "later")},
			[]string{"agent-unavailable: the agent takes no requests now (HTTP 429)"}, 3500 * time.Millisecond},
		{"never received it, as it says", false, script{"send": breaksFirst(1, says(is("completed", has("a")))),
			"get": says(fails(-32001, "what?"))}, []string{notProven}, 0},
		{"never received it, as it says, by stream", true,
			script{"sendSubscribe": breaksFirst(2, streams(true, news("completed"))),
				"get": says(fails(-32001, "what?"))}, []string{notProven}, 0},
		{"received it, and the answer was lost", false,
			script{"send": breaksFirst(9, nil), "get": says(is("working"), is("completed"))},
			[]string{"invalid-agent-response: the connection to the agent broke before it answered"}, 0},
		{"huge", false, script{"send": func(w http.ResponseWriter, _ *http.Request, _ int) {
			for range 100 {
				if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}}, []string{"invalid-agent-response: the agent's answer is larger than 4096 bytes"}, 0},
		{"huge and says so", false, script{"send": raw("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n")},
			[]string{"invalid-agent-response: the agent's answer is larger than 4096 bytes"}, 0},
		{"endless headers", false, script{"send": func(w http.ResponseWriter, _ *http.Request, _ int) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for i := 0; ; i++ {
				if _, err := fmt.Fprintf(conn, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
					return
				}
			}
		}}, []string{"invalid-agent-response: the connection to the agent broke before it answered"}, 0},
		{"no HTTP", false, script{"send": raw("hello\r\n")},
			[]string{"invalid-agent-response: the connection to the agent broke before it answered"}, 0},
		{"cut before the answer", false, script{"send": raw("")},
			[]string{"invalid-agent-response: the connection to the agent broke before it answered"}, 0},
		{"cut in the answer", false, script{"send": raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")},
			[]string{"invalid-agent-response: the connection to the agent broke in the middle of its answer"}, 0},
		{"silent", false, script{"send": hangs}, []string{"agent-timeout: the agent was silent for 1m0s"}, time.Minute},
		{"silent, but it failed", false, script{"send": hangs, "get": says(is("failed"))}, []string{"failed"},
			time.Minute},
		{"silent in the answer", false, script{"send": func(w http.ResponseWriter, r *http.Request, n int) {
			io.WriteString(w, "{")
			w.(http.Flusher).Flush()
			hangs(w, r, n)
		}}, []string{"agent-timeout: the agent was silent for 1m0s"}, time.Minute},
		{"slow", false, script{"send": drips(700 * time.Millisecond)}, []string{"completed"},
			time.Duration(len(is("completed"))) * 700 * time.Millisecond},
		{"too slow, but never silent", false, script{"send": drips(50 * time.Second)},
			[]string{"agent-timeout: the agent has begun an answer and not ended it within 1m0s"}, 110 * time.Second},

		{"stream", true, script{"sendSubscribe": streams(false, news("working"), chunk("a", false), chunk("b", true),
			news("completed"))},
			[]string{"working", "artifact-0+=a", "artifact-0+=b", "completed"}, 0},
		{"a stream that never ends", true,
			script{"sendSubscribe": streams(true, news("working"), chunk("a", false), news("input-required"))},
			[]string{"working", "artifact-0+=a", "input-required"}, 20 * time.Millisecond},
		{"a whole task in a stream", true,
			script{"sendSubscribe": streams(true, is("working", has("a")), is("completed", has("a", "b")))},
			[]string{"working artifact-0=a", "completed artifact-0=ab"}, 2020 * time.Millisecond},
		{"what means nothing", true,
			script{"sendSubscribe": sse(": hello\n\nevent: close\ndata: {}\n\ndata: {\"id\":\"1\",\"result\":{}}\n\ndata: " +
				news("completed") + "\n\n")}, []string{"completed"}, 0},
		{"one answer", true, script{"sendSubscribe": says(is("completed", has("a")))},
			[]string{"completed artifact-0=a"}, 0},
		{"one answer that is not the end", true,
			script{"sendSubscribe": says(is("working")), "get": says(is("completed"))},
			[]string{"working", "completed"}, 100 * time.Millisecond},
		{"it cannot stream", true, script{"send": says(is("completed"))}, []string{"completed"}, 0},
		{"it cannot stream, it says in a stream", true,
			script{"sendSubscribe": streams(false, fails(-32004, "no")), "send": says(is("completed"))},
			[]string{"completed"}, 0},
		{"neither nor", true, script{},
			[]string{wrongDialect}, 0},
		{"an error in place of a stream", true,
			script{"sendSubscribe": status(400, "application/json", fails(-32602, "no"))},
			[]string{"invalid-params: the agent does not accept the parameters: no"}, 0},
		{"an error in a stream", true, script{"sendSubscribe": streams(false, news("working"), fails(-32005, "no"))},
			[]string{"working", "content-type-not-supported: the agent does not take this kind of content: no"}, 0},
		{"an error in a stream that is stored", true,
			script{"sendSubscribe": streams(false, news("working"), fails(-32603, "oops")), "get": says(is("failed"))},
			[]string{"working", "failed"}, 0},
		{"nonsense in a stream", true, script{"sendSubscribe": streams(false, news("working"), "hello")},
			[]string{"working", "invalid-agent-response: the agent's answer is no JSON-RPC response: a JSON value " +
				"is expected"}, 0},
		{"a huge event", true, script{"sendSubscribe": sse("data: " + strings.Repeat("x", 4097) + "\n\n")},
			[]string{"invalid-agent-response: an event of the agent is larger than 4096 bytes"}, 0},
		{"a stream cut before the answer", true, script{"sendSubscribe": raw("")},
			[]string{"invalid-agent-response: the connection to the agent broke before it answered"}, 0},
		{"a silent stream", true, script{"sendSubscribe": streams(true, news("working"))},
			[]string{"working", "agent-timeout: the agent was silent for 1m0s"}, time.Minute},
		{"a silent stream that has ended", true,
			script{"sendSubscribe": streams(true, news("working")), "get": says(is("completed", has("a")))},
			[]string{"working", "completed artifact-0=a"}, time.Minute},
		{"a stream of comments", true, script{"sendSubscribe": func(w http.ResponseWriter, r *http.Request, _ int) {
			w.Header().Set("Content-Type", "text/event-stream")
			for range 10 {
				io.WriteString(w, ": still here\n\n")
				w.(http.Flusher).Flush()
				pass(r, 50*time.Second)
			}
			io.WriteString(w, "data: "+news("completed")+"\n\n")
		}}, []string{"completed"}, 500 * time.Second},

		{"final before the final status, then an end", true,
			script{"sendSubscribe": streams(false, news("working"), chunk("a", false)),
				"get": says(is("completed", has("a")))},
			[]string{"working", "artifact-0+=a", "completed artifact-0=a"}, 0},
		{"cut, then on", true, script{"sendSubscribe": streams(false, chunk("a", false)),
			"get": says(is("working", has("a")), is("working", has("a", "b")), is("completed", has("a", "b")))},
			[]string{"artifact-0+=a", "working artifact-0=a", "working artifact-0=ab", "completed artifact-0=ab"},
			200 * time.Millisecond},
		{"the new stream says when to ask", true, script{
			"sendSubscribe": streams(false, chunk("a", false)),
			"resubscribe": func(w http.ResponseWriter, r *http.Request, n int) {
				pass(r, 10*time.Second)
				streams(true, news("completed"))(w, r, n)
			},
			"get": func(w http.ResponseWriter, r *http.Request, n int) {
				if n == 9 { // the one before is at 9.1 s, and the next in turn would be at 11.1 s
					io.WriteString(w, is("completed"))
					return
				}
				io.WriteString(w, is("working"))
			}}, []string{"artifact-0+=a", "working", "completed"}, 10 * time.Second},
		{"the new stream loses the end", true,
			script{"sendSubscribe": streams(false, news("working")), "resubscribe": streams(true, news("working")),
				"get": says(is("working"), is("working"), is("completed"))},
			[]string{"working", "working", "completed"}, 200 * time.Millisecond},
		{"still", true, script{"sendSubscribe": streams(false, news("working")),
			"resubscribe": streams(true, news("working")), "get": says(is("working"))},
			[]string{"working", "working",
				"agent-timeout: the agent has changed nothing for 1m0s"},
			61 * time.Second},
		{"forgotten", true, script{"sendSubscribe": streams(false, news("working")),
			"get": says(fails(-32001, "what?"))},
			[]string{"working", "task-not-found: the agent does not know this task: what?"}, 0},
		{"cut, and it cannot be asked", true, script{"sendSubscribe": streams(false, news("working"))},
			[]string{"working", "invalid-agent-response: the agent has answered and not ended the turn, and it has no " +
				"method to ask how the task stands"}, 0},
		{"restarting", true, script{"sendSubscribe": streams(false, news("working")),
			"get": func(w http.ResponseWriter, r *http.Request, n int) {
				if n < 20 {
					raw(down)(w, r, n)
					return
				}
				io.WriteString(w, is("completed"))
			}}, []string{"working", "completed"}, 35 * time.Second},
		{"gone", true, script{"sendSubscribe": streams(false, news("working")), "get": raw(down)},
			[]string{"working", "agent-timeout: the agent has not reported on the task for 1m0s: a proxy in front " +
				"of the agent does not reach it (HTTP 502, text/html)"}, 61 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limits := func(c *settings) { c.IdleTimeout, c.MaxReply = time.Minute, 4096 }
			for _, way := range ways(tc.stream) {
				withAgent(t, tc.agent.handler(), limits, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
					begun := time.Now()
					if diff := cmp.Diff(tc.want, show(way.run(t.Context(), h, turn("x")))); diff != "" {
						t.Errorf("%s: (-want +got):\n%s", way.name, diff)
					}
					if took := time.Since(begun); took != tc.took {
						t.Errorf("%s: it took %v, want %v", way.name, took, tc.took)
					}
				})
			}
		})
	}
}

func TestResume(t *testing.T) {
	a := script{"get": says(is("working", has("a")), is("completed", has("a", "b")))}
	withAgent(t, a.handler(), nil, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		want := []string{"working artifact-0=a", "completed artifact-0=ab"}
		if diff := cmp.Diff(want, show(h.Resume(t.Context(), turn("x")))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestCancel(t *testing.T) {
	for _, tc := range []struct {
		name  string
		agent script
		want  string
		took  time.Duration
	}{
		{"at once", script{"cancel": says(is("canceled"))}, "canceled", 0},
		{"later", script{"cancel": says(is("working")),
			"get": says(is("working"), fails(-32603, "?"), is("canceled"))}, "canceled", 700 * time.Millisecond},
		{"too late", script{"cancel": says(is("completed"))}, "completed", 0},
		{"never", script{"cancel": says(is("working")), "get": says(is("working", has("a")))}, "working artifact-0=a",
			2 * time.Second},
		{"never, and nothing can be asked", script{"cancel": says(is("working")), "get": hangs}, "working",
			2 * time.Second},
		{"refused", script{"cancel": says(fails(-32002, "final"))},
			"task-not-cancelable: the agent refuses to cancel this task: final", 0},
		{"unknown", script{"cancel": says(fails(-32001, "what?"))},
			"task-not-found: the agent does not know this task: what?", 0},
		{"no such method", script{},
			"invalid-agent-response: the agent does not speak a2a/legacy; the operator must check its dialect", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withAgent(t, tc.agent.handler(), nil, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				begun := time.Now()
				if diff := cmp.Diff(tc.want, one(h.Cancel(t.Context(), turn("x")))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(begun); took != tc.took {
					t.Errorf("it took %v, want %v", took, tc.took)
				}
			})
		})
	}
}

// TestEnd: the end of the context, or of the caller's interest, ends the run in any state, and no goroutine is left.
func TestEnd(t *testing.T) {
	agents := map[string]script{
		"answer": {"send": hangs, "sendSubscribe": hangs},
		"stream": {"send": says(is("working")), "get": says(is("working")),
			"sendSubscribe": streams(true, news("working"))},
		"resume": {"send": says(is("working")), "get": hangs, "sendSubscribe": streams(false, news("working")),
			"resubscribe": streams(true, news("working"))},
		"polls": {"send": says(is("working")), "get": says(is("working")),
			"sendSubscribe": streams(false, news("working"))},
	}
	for name, a := range agents {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(name, stream), func(t *testing.T) {
				withAgent(t, a.handler(), nil, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
					why := errors.New("enough")
					ctx, cancel := context.WithCancelCause(t.Context())
					time.AfterFunc(5*time.Second, func() { cancel(why) })
					var last error
					for _, err := range carryOut(ctx, h, turn("x"), stream) {
						last = err
					}
					if !errors.Is(last, why) || task.KindOf(last) != task.Internal {
						t.Errorf("canceled: %v", last)
					}
					short, cancelShort := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancelShort()
					for _, err := range carryOut(short, h, turn("x"), stream) {
						last = err
					}
					if task.KindOf(last) != task.AgentTimeout {
						t.Errorf("out of time: %v", last)
					}
					if name == "answer" {
						return // there is nothing to break at
					}
					for range carryOut(t.Context(), h, turn("x"), stream) {
						break
					}
				})
			})
		}
	}
}

// drips answers byte by byte, with a pause before each.
func drips(pause time.Duration) step {
	return func(w http.ResponseWriter, r *http.Request, _ int) {
		for _, c := range is("completed") {
			pass(r, pause)
			io.WriteString(w, string(c))
			w.(http.Flusher).Flush()
		}
	}
}

// TestCancelTaken: an agent may answer a cancel by a receipt only. Then the task is asked for.
func TestCancelTaken(t *testing.T) {
	const taken = `{"jsonrpc":"2.0","id":"1","result":null}`
	for _, tc := range []struct {
		name  string
		agent script
		want  string
	}{
		{"it says what became of the task",
			script{"cancel": says(taken), "get": says(is("working"), is("failed"))}, "failed (failed)"},
		{"it works on", script{"cancel": says(taken), "get": says(is("working"))}, "working (working)"},
		{"it forgets the task", script{"cancel": says(taken), "get": says(fails(-32001, "what?"))}, "canceled ()"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			withAgent(t, tc.agent.handler(), nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				rep, err := a.Cancel(t.Context(), turn("x"))
				if err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprintf("%s (%s)", rep.State, rep.NativeState); got != tc.want {
					t.Errorf("the task is %s, want %s", got, tc.want)
				}
				if remark := len(rep.Items) > 0; remark != (rep.NativeState == "") {
					t.Errorf("the task says %v", rep.Items)
				}
			})
		})
	}
}
