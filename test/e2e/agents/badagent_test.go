// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// inside are words that no Leader should read: those of the gateway's inside, or of an agent's.
var inside = regexp.MustCompile(`goroutine|\.go:|dial tcp|EOF|net/http|0x[0-9a-f]|<html|panic|127\.0\.0\.1`)

// TestBadAgents proves that whatever an agent does, its task fails in the end, with a reason that can be read.
//
// Promise: agent
// Promise: an agent sends malformed or huge answers, or requests to another host
func TestBadAgents(t *testing.T) {
	t.Parallel()
	silent := func(_ http.ResponseWriter, r *http.Request, _ site.Heard) { <-r.Context().Done() }
	says := func(status int, media, body string) func(http.ResponseWriter, *http.Request, site.Heard) {
		return func(w http.ResponseWriter, _ *http.Request, _ site.Heard) {
			w.Header().Set("Content-Type", media)
			w.WriteHeader(status)
			w.Write([]byte(body))
		}
	}
	ok := func(result string) func(http.ResponseWriter, *http.Request, site.Heard) {
		return func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, h.ID,
				strings.Replace(result, `"id":"x"`, `"id":"`+h.Params.ID+`"`, 1))
		}
	}
	const html = "<html><head><title>502 Bad Gateway</title></head><body><center>nginx</center></body></html>"
	var cases []badAgent
	for _, tc := range []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, site.Heard)
		reason string
	}{
		{"the head never comes", silent, `silent for 5s`},
		{"half an answer", func(w http.ResponseWriter, r *http.Request, _ site.Heard) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"x","resu`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, `silent for 5s`},
		{"a broken connection", func(http.ResponseWriter, *http.Request, site.Heard) { panic(http.ErrAbortHandler) },
			`connection to the agent broke`},
		{"cut off", func(w http.ResponseWriter, _ *http.Request, _ site.Heard) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"jsonrpc":"2.0",`)
		}, `connection to the agent broke`},
		{"HTML 502", says(502, "text/html", html), `does not reach it \(HTTP 502, text/html\)`},
		{"HTML 200", says(200, "text/html", html), `no JSON-RPC response.*HTTP 200, text/html`},
		{"HTML 503", says(503, "text/html", html), `takes no requests now \(HTTP 503\)`},
		{"429", says(429, "text/plain", "slow down"), `takes no requests now \(HTTP 429\)`},
		{"404", says(404, "text/plain", "404 page not found"), `no agent answers at the agent's URL \(HTTP 404`},
		{"a redirect", func(w http.ResponseWriter, r *http.Request, _ site.Heard) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, `redirects \(HTTP 307\)`},
		{"401", says(401, "text/plain", "Unauthorized"),
			`refuses the gateway's credentials \(HTTP 401\).*operator must check them`},
		{"403 with JSON", says(403, "application/json", `{"error":"forbidden"}`),
			`refuses the gateway's credentials \(HTTP 403\).*operator must check them`},
		{"garbage", says(200, "application/octet-stream", "\x00\xff\xfe garbage"), `no JSON-RPC response`},
		{"nothing", says(200, "application/json", ""), `no JSON-RPC response`},
		{"204", says(204, "application/json", ""), `no JSON-RPC response`},
		{"an array", says(200, "application/json", "[]"), `no JSON-RPC response`},
		{"invalid UTF-8", ok("{\"id\":\"x\",\"status\":{\"state\":\"\xff\"}}"), `UTF-8`},
		{"too deep", ok(strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), `nested more than`},
		{"the id of another request", func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":"x","status":{"state":"completed"}}}`,
				strings.TrimSuffix(string(h.ID), `"`)+`0"`)
		}, `not those to its requests`},
		{"no Task", ok(`{"hello":"world"}`), `no status`},
		{"null", ok(`null`), `.`},
		{"status is a list", ok(`{"id":"x","status":["completed"]}`), `status that is no object`},
		{"unknown state", ok(`{"id":"x","status":{"state":"dancing"}}`), `"dancing"`},
		{"artifacts are a number", ok(`{"id":"x","status":{"state":"completed"},"artifacts":7}`),
			`artifacts that are no array`},
		{"too much", func(w http.ResponseWriter, _ *http.Request, _ site.Heard) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":"x","result":"`)
			for block, err := strings.Repeat("a", 1<<20), error(nil); err == nil; {
				_, err = w.Write([]byte(block))
			}
		}, `larger than \d+ bytes`},
		{"too much, and says so", func(w http.ResponseWriter, r *http.Request, _ site.Heard) {
			w.Header().Set("Content-Length", "1000000000000")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, `larger than \d+ bytes`},
		{"an error", func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			site.WriteError(w, h, -32603, "the model is out")
		},
			`the agent failed: the model is out`},
		{"an unknown method", func(w http.ResponseWriter, _ *http.Request,
			h site.Heard) {
			site.WriteError(w, h, -32601, "Method not found")
		}, `does not speak a2a/legacy`},
		{"an error that is a page", func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			site.WriteError(w, h, -32603, "<html>goroutine 1 [running]: main.go:1 "+strings.Repeat("x", 100_000))
		}, `the agent failed$`},
		{"it forgets", func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			if h.Method == "tasks/send" {
				site.WriteTask(w, h, "working", "")
			} else {
				site.WriteError(w, h, -32001, "Task not found")
			}
		}, `does not know this task`},
		{"it works for ever and nothing changes", func(w http.ResponseWriter, _ *http.Request,
			h site.Heard) {
			site.WriteTask(w, h, "working", "")
		},
			`changed nothing for 5s`},
	} {
		cases = append(cases, badAgent{tc.name, site.NewFakeAgent(t, tc.answer).URL, tc.reason})
	}
	good := site.NewFakeAgent(t, nil)
	cases = append(cases,
		badAgent{"down", fmt.Sprintf("http://127.0.0.1:%d", freeport.Closed(t)), `cannot be reached`},
		badAgent{"no such host", "http://agent.invalid", `cannot be reached`},
		badAgent{"no TLS", strings.Replace(good.URL, "http:", "https:", 1), `does not speak TLS`},
		badAgent{"hangs up", "http://" + rawAgent(t, ""), `connection to the agent broke`},
		badAgent{"no HTTP", "http://" + rawAgent(t, "220 mail.example.com ESMTP\r\n"), `connection to the agent broke`},
	)

	var handle strings.Builder
	for i, a := range cases {
		fmt.Fprintf(&handle,
			"handle_path /%d/* {\naip_gateway {\nagent a2a/legacy %s {\ntimeout 5s\nretry_for 1s\n}\n}\n}\n", i, a.url)
	}
	s := site.Serve(t, site.Config{Store: "store memory", Handle: handle.String()})
	var all sync.WaitGroup
	for i, a := range cases {
		leader := site.LeaderOf(t, fmt.Sprintf("%s/%d", s.URL(), i))
		all.Go(func() { a.check(t, leader) })
	}
	all.Wait()

	s.Stop(t) // then all of the log is here
	logged := make(map[string]bool)
	for line := range strings.Lines(s.Out.String()) {
		var entry struct{ Level, Msg, Task, Leader, Agent, Reason string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "the agent failed" {
			logged[entry.Agent] = entry.Level == "warn" && entry.Task == "one" && entry.Reason != "" &&
				entry.Leader == string(site.Certificates(t).Leader.AIC)
		}
	}
	for _, a := range cases {
		if !logged[a.url] {
			t.Errorf("%s: the log does not show the failure", a.name)
		}
	}
	if strings.Contains(s.Out.String(), "goroutine ") {
		t.Error("the log has a stack trace")
	}
}

// badAgent is an agent whose tasks fail for a reason.
type badAgent struct{ name, url, reason string }

func (a badAgent) check(t *testing.T, leader *site.Caller) {
	fail := func(format string, args ...any) { t.Errorf(a.name+": "+format, args...) }
	first, err := leader.Try(site.StartCall("one", "hello"))
	if err != nil {
		fail("start: %v", site.Explain(err))
		return
	}
	got, err := leader.Settled("one")
	if err != nil {
		fail("%v", site.Explain(err))
		return
	}
	if s := first.Status.State; s.Settled() && s != got.Status.State {
		fail("the start was answered %s, but the task is %s", s, got.Status.State)
	}
	why := site.Says(got.Status.DataItems)
	if got.Status.State != task.Failed || !regexp.MustCompile(a.reason).MatchString(why) || inside.MatchString(why) {
		fail("the task is %s: %q, want failed and %s", got.Status.State, why, a.reason)
	}
	site.CheckHistory(t, got)
}

// TestRefusal proves that an agent which says no, and says no again when it is asked, does not keep a Leader
// waiting for as long as an agent may be silent, which is 5 minutes here.
func TestRefusal(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, *http.Request, site.Heard) {
		return func(w http.ResponseWriter, _ *http.Request, _ site.Heard) { http.Error(w, "no", code) }
	}
	cases := []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request, site.Heard)
		reason string
	}{
		{"wrong credentials", status(http.StatusUnauthorized), `refuses the gateway's credentials`},
		{"forbidden", status(http.StatusForbidden), `refuses the gateway's credentials`},
		{"another URL", status(http.StatusNotFound), `no agent answers at the agent's URL`},
		{"a web page", status(http.StatusOK), `no JSON-RPC response`},
		{"an error", func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			code := -32603
			if h.Method == "tasks/get" {
				code = -32001
			}
			site.WriteError(w, h, code, "the model is out")
		}, `the model is out`},
	}
	var handle strings.Builder
	for i, tc := range cases {
		fmt.Fprintf(&handle, "handle_path /%d/* {\naip_gateway a2a/legacy %s\n}\n", i, site.NewFakeAgent(t, tc.answer).URL)
	}
	s := site.Serve(t, site.Config{Store: "store memory", Handle: handle.String()})
	var all sync.WaitGroup
	for i, tc := range cases {
		leader := site.LeaderOf(t, fmt.Sprintf("%s/%d", s.URL(), i))
		all.Go(func() {
			call := site.StartCall("one", "hello")
			call.Terms.Response = site.Patience / 2
			got, err := leader.Try(call)
			if err != nil {
				t.Errorf("%s: %v", tc.name, site.Explain(err))
				return
			}
			if why := site.Says(got.Status.DataItems); got.Status.State != task.Failed ||
				!regexp.MustCompile(tc.reason).MatchString(why) {
				t.Errorf("%s: the start was answered %s: %q, want failed and %s", tc.name, got.Status.State, why, tc.reason)
			}
		})
	}
	all.Wait()
}

// rawAgent takes connections, answers whatever it is sent with the same, and hangs up.
func rawAgent(t testing.TB, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(site.Patience))
			conn.Read(make([]byte, 1<<16))
			conn.Write([]byte(answer))
			conn.Close()
		}
	}()
	return l.Addr().String()
}

// TestCredentials gives an agent the key that it asks for, and a wrong one. Neither is ever shown.
func TestCredentials(t *testing.T) {
	t.Parallel()
	const right, wrong = "right-key-4f9c2a", "wrong-key-83bd01"
	agent := site.TRPCAgent(t, "-api-key", right)
	s := site.New(t)
	s.Env = []string{"AGENT_KEY=" + right}
	with := func(aic, value string) string {
		return `aip_gateway {
			aic ` + aic + `
			agent a2a/legacy ` + agent + ` {
				header_up X-API-Key ` + value + `
			}
		}`
	}
	s.Start(site.Config{Options: "debug", Handle: `
	handle_path /right* {
		` + with("10001000011K912345E789ABCDEF2353", "{env.AGENT_KEY}") + `
	}
	handle_path /wrong* {
		` + with(string(site.Certificates(t).Leader.AIC), wrong) + `
	}`})
	if got := site.LeaderOf(t, s.URL()+"/right").Start("one", "hello"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("with the right key: %+v", site.AnswerOf(got))
	}
	leader := site.LeaderOf(t, s.URL()+"/wrong")
	leader.Start("one", "hello")
	got := leader.Rests("one")
	if why := site.Says(got.Status.DataItems); got.Status.State != task.Failed || !strings.Contains(why, "credentials") ||
		strings.Contains(why, wrong) {
		t.Errorf("with the wrong key: %+v", site.AnswerOf(got))
	}
	s.Stop(t) // then all of the log is here
	if !strings.Contains(s.Out.String(), `"advice":"check header_up in agent"`) {
		t.Error("the log does not name the option to check")
	}
	for _, key := range []string{right, wrong} {
		if strings.Contains(s.Out.String(), key) {
			t.Errorf("the log has the key %s", key)
		}
	}
}
