// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/uuid"
)

// legacyWrites answers a message in a form of its own: answer is what it writes to tasks/send, and events, each in a
// line of data, to tasks/sendSubscribe. In all of them, ID is the id of the task, and RPC that of the request. It knows
// the task as get, where there is such a one.
func legacyWrites(answer, get string, events ...string) func(http.ResponseWriter, *http.Request, site.Heard) {
	return func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		filled := func(form string) string {
			return strings.NewReplacer(`"ID"`, `"`+h.Params.ID+`"`, ":RPC", ":"+string(h.ID)).Replace(form)
		}
		switch {
		case h.Method == "tasks/sendSubscribe" && len(events) > 0:
			w.Header().Set("Content-Type", "text/event-stream")
			for _, event := range events {
				fmt.Fprintf(w, "data: %s\n\n", filled(event))
			}
		case h.Method == "tasks/send" || h.Method == "tasks/sendSubscribe":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, filled(answer))
		case h.Method == "tasks/get" && get != "":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, filled(get))
		default:
			site.WriteError(w, h, -32001, "Task not found")
		}
	}
}

// legacyResponse is a response with a result.
func legacyResponse(result string) string {
	return `{"jsonrpc":"2.0","id":RPC,"result":` + result + `}`
}

// oddLegacy is a row of an agent that completes its task in forms which only its own clients read. They are those of
// its events, and the last one is that of its answer, too.
func oddLegacy(name string, forms ...string) wildRow {
	answer := legacyWrites(forms[len(forms)-1], "", forms...)
	return legacyRow{name: name, odd: true, answer: answer, want: legacyDone}.row()
}

var legacyNoModel = wildEnd{Settled: []string{"failed"}, Said: []string{"the agent reports an error: no model"},
	Told: helloTold}

// wildLegacyForms are agents of A2A v0.1 that write what it has in forms of their own.
var wildLegacyForms = []wildRow{
	oddLegacy("writes states in capitals", legacyResponse(
		`{"id":"ID","status":{"state":"COMPLETED"},"artifacts":[`+doneArtifact+`]}`)),
	oddLegacy("has other words for states", legacyResponse(`{"id":"ID","status":{"state":"queued"}}`),
		legacyResponse(`{"id":"ID","status":{"state":"in_progress"}}`),
		legacyResponse(`{"id":"ID","status":{"state":"done"},"artifacts":[`+doneArtifact+`]}`)),
	oddLegacy("has a status that is a word", legacyResponse(
		`{"id":"ID","status":"completed","artifacts":[`+doneArtifact+`]}`)),
	oddLegacy("has its state beside the artifacts", legacyResponse(
		`{"id":"ID","state":"completed","artifacts":[`+doneArtifact+`]}`)),
	legacyRow{
		name: "streams a state that means nothing",
		answer: legacyAnswers(func(id string) []string {
			return []string{`{"id":"` + id + `","status":{"state":"dancing"},"final":false}`,
				`{"id":"` + id + `","artifact":` + doneArtifact + `}`,
				`{"id":"` + id + `","status":{"state":"completed"},"final":true}`,
				`{"id":"` + id + `","status":{"state":"completed"},"artifacts":[` + doneArtifact + `]}`}
		}),
		want: legacyDone,
	}.row(),
	oddLegacy("has a message that is a string", legacyResponse(
		`{"id":"ID","status":{"state":"completed","message":"done"}}`)),
	oddLegacy("has `content` in place of `parts`", legacyResponse(
		`{"id":"ID","status":{"state":"completed","message":{"role":"agent","content":"done"}}}`)),
	oddLegacy("has its answer in the history alone", legacyResponse(
		`{"id":"ID","status":{"state":"completed"},"history":[{"role":"user","parts":[{"text":"hello"}]},`+
			`{"role":"agent","parts":[{"type":"text","text":"done"}]}]}`)),
	legacyRow{
		name: "answers by the id alone, and is asked for the task", odd: true,
		answer: legacyWrites(legacyResponse(`{"id":"ID"}`),
			legacyResponse(`{"id":"ID","status":{"state":"completed"},"artifacts":[`+doneArtifact+`]}`)),
		want: legacyDone,
	}.row(),
	legacyRow{
		name: "answers by a Message", odd: true,
		answer: legacyWrites(legacyResponse(`{"message":{"role":"agent","parts":[{"type":"text","text":"done"}]}}`), ""),
		want:   legacyDone,
	}.row(),
	oddLegacy("has its Task in `task`", legacyResponse(
		`{"task":{"id":"ID","status":{"state":"completed"},"artifacts":[`+doneArtifact+`]}}`)),
	oddLegacy("sends Tasks and events without an envelope", `{"id":"ID","artifact":`+doneArtifact+`}`,
		`{"id":"ID","status":{"state":"completed"},"artifacts":[`+doneArtifact+`]}`),
	oddLegacy("sends Tasks and events as notifications",
		`{"jsonrpc":"2.0","method":"task/update","params":{"id":"ID","status":{"state":"completed"},"artifacts":[`+
			doneArtifact+`]}}`),
	oddLegacy("sends signs of life as events", `ping`, `{"type":"ping"}`,
		legacyResponse(`{"id":"ID","status":{"state":"completed"},"artifacts":[`+doneArtifact+`]}`)),
	oddLegacy("has one artifact in place of a list, and an index that is a string", legacyResponse(
		`{"id":"ID","status":{"state":"completed"},"artifacts":{"index":"0","parts":{"type":"text","text":"done"}}}`)),
	oddLegacy("has artifacts that are strings", legacyResponse(
		`{"id":"ID","status":{"state":"completed"},"artifacts":["done"]}`)),
	oddLegacy("has other words for the type of a text", legacyResponse(
		`{"id":"ID","status":{"state":"completed"},"artifacts":[{"parts":[{"type":"text/plain","text":"done"}]}]}`)),
	oddLegacy("writes NaN, behind a byte order mark", "\ufeff"+legacyResponse(
		`{"id":"ID","status":{"state":"completed"},"metadata":{"score":NaN},"artifacts":[`+doneArtifact+`]}`)),
	legacyRow{
		name: "cuts a character in halves, and sends one of them",
		answer: legacyAnswers(func(id string) []string {
			task := `{"id":"` + id + `","status":{"state":"completed"},"final":true,"artifacts":[` +
				`{"parts":[{"type":"text","text":"done \ud83d"}]}]}`
			return []string{task, task}
		}),
		want: wildEnd{Settled: []string{"completed"}, Products: []string{"done \ufffd"}, Told: helloTold},
	}.row(),
	oddLegacy("has an empty error beside each result",
		`{"jsonrpc":"2.0","id":RPC,"error":{},"result":{"id":"ID","status":{"state":"completed"},"artifacts":[`+
			doneArtifact+`]}}`),
	oddLegacy("answers with an id that is null",
		`{"jsonrpc":"2.0","id":null,"result":{"id":"ID","status":{"state":"completed"},"artifacts":[`+doneArtifact+`]}}`),
	legacyRow{
		name: "says in `detail` why it fails", odd: true, unary: true,
		answer: legacyWrites(`{"detail":"no model"}`, ""), want: legacyNoModel,
	}.row(),
	legacyRow{
		name: "has an error that is a string", odd: true, unary: true,
		answer: legacyWrites(`{"jsonrpc":"2.0","id":RPC,"error":"no model"}`, ""), want: legacyNoModel,
	}.row(),
	legacyRow{
		name: "has an error whose code is a word", odd: true, unary: true,
		answer: legacyWrites(`{"jsonrpc":"2.0","id":RPC,"error":{"code":"MODEL_AWAY","message":"no model"}}`, ""),
		want: wildEnd{Settled: []string{"failed"}, Said: []string{"the agent reports an error: MODEL_AWAY: no model"},
			Told: helloTold},
	}.row(),
	legacyRow{
		name: "has an error without a code", odd: true, unary: true,
		answer: legacyWrites(`{"jsonrpc":"2.0","id":RPC,"error":{"message":"no model"}}`, ""), want: legacyNoModel,
	}.row(),
	wantsLogin("wants a login by `auth_required`", "auth_required"),
	wantsLogin("wants a login by `requires-auth`", "requires-auth"),
	legacyRow{
		name: "answers with HTTP 202",
		answer: func(w http.ResponseWriter, r *http.Request, h site.Heard) {
			legacyAnswers(artifactAtEnd)(accepting{w}, r, h)
		},
		want: legacyDone,
	}.row(),
	legacyRow{
		name: "has its card at its endpoint only", card: true,
		notYet: "it looks for no card there",
		answer: func(w http.ResponseWriter, r *http.Request, h site.Heard) {
			if h.Method == "tasks/get" || strings.HasPrefix(h.Method, "tasks/send") {
				legacyAnswers(artifactAtEnd)(w, r, h)
				return
			}
			site.WriteError(w, h, -32601, "Method not found")
		},
		want: legacyDone,
	}.row(),
	legacyRow{
		name: "refuses ids of tasks and sessions that are no UUIDs", odd: true,
		answer: func(w http.ResponseWriter, r *http.Request, h site.Heard) {
			if uuid.Validate(h.Params.ID) != nil || uuid.Validate(h.Params.Session) != nil {
				site.WriteError(w, h, -32602, "Invalid params: id and sessionId must be UUIDs")
				return
			}
			legacyAnswers(artifactAtEnd)(w, r, h)
		},
		want: legacyDone,
	}.row(),
	legacyRow{
		name: "stores a task at its end only, and is cut while it works", odd: true, unary: true,
		set: "agent {\nresend after 200ms\n}",
		answer: func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
			switch h.Method {
			case "tasks/send":
				panic(http.ErrAbortHandler)
			case "tasks/get":
				site.WriteError(w, h, -32001, "Task not found")
			default:
				site.WriteError(w, h, -32601, "Method not found")
			}
		},
		want: wildEnd{Settled: []string{"failed"}, Said: []string{"the connection to the agent broke, and the agent says " +
			"that it does not have the message; it may have done the work all the same, so the message is not sent again; " +
			"a new start does the work again"}, Told: helloTold},
	}.row(),
}

// artifactAtEnd is a stream of a whole task.
func artifactAtEnd(id string) []string {
	task := `{"id":"` + id + `","status":{"state":"completed"},"final":true,"artifacts":[` + doneArtifact + `]}`
	return []string{task, task}
}

// wantsLogin is a row of an agent that has a word of its own for a state which A2A v0.1 does not have.
func wantsLogin(name, word string) wildRow {
	answer := legacyResponse(`{"id":"ID","status":{"state":"` + word + `",` +
		`"message":{"role":"agent","parts":[{"type":"text","text":"Log in."}]}}}`)
	return legacyRow{name: name, odd: true, answer: legacyWrites(answer, answer, answer),
		want: wildEnd{Settled: []string{"input-required"}, Said: []string{"Log in."}, Told: helloTold}}.row()
}

// accepting answers with HTTP 202.
type accepting struct{ http.ResponseWriter }

func (w accepting) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusAccepted)
	return w.ResponseWriter.Write(data)
}

// behindCard serves an agent whose card is at its endpoint, and nowhere else.
func behindCard(t *testing.T, agent string) string {
	to, err := url.Parse(agent)
	site.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet:
			proxy.ServeHTTP(w, r)
		case r.URL.Path == "/":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"name":"n","url":"http://%s/","version":"1","capabilities":{"streaming":true},"skills":[]}`, r.Host)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
