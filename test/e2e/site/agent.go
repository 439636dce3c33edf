// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"
)

// TRPCAgent runs the agent that is built on another project's SDK for A2A v0.1, and returns its URL.
func TRPCAgent(t testing.TB, args ...string) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	path := Binary(t, "", "../../interop/bin/legacy-trpc", "make test/interop/bin/legacy-trpc")
	StartProcess(t, t.TempDir(), nil, path, append([]string{"-addr", address}, args...)...).WaitForPort(t, address)
	return "http://" + address + "/"
}

// SampleAgent runs the agent that comes with the gateway, as a process that does not share the gateway's fate,
// and returns its address.
func SampleAgent(t testing.TB) (*Process, string) {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", FreePort(t))
	return RunSampleAgent(t, address), address
}

// RunSampleAgent runs it at an address.
func RunSampleAgent(t testing.TB, address string) *Process {
	t.Helper()
	p := StartProcess(t, t.TempDir(), nil, CaddyBinary(t), "aip", "sample-agent", "--listen", address)
	p.WaitForPort(t, address)
	return p
}

// Heard is one request that an agent was sent.
type Heard struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ID      string `json:"id"`
		Session string `json:"sessionId"`
		Message struct {
			Parts []struct {
				Text string `json:"text"`
			} `json:"parts"`
		} `json:"message"`
	} `json:"params"`
	Header http.Header `json:"-"` // of the request
	Body   []byte      `json:"-"` // of the request
}

// FakeAgent is an agent that answers as the test says, and counts.
type FakeAgent struct {
	URL   string // of its endpoint
	mu    sync.Mutex
	heard []Heard
}

// NewFakeAgent serves an agent. answer is called for every request once its body is read; nil answers that the
// work is done.
func NewFakeAgent(t testing.TB, answer func(http.ResponseWriter, *http.Request, Heard)) *FakeAgent {
	t.Helper()
	a := new(FakeAgent)
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request, h Heard) { WriteTask(w, h, "completed", "done") }
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h := Heard{Header: r.Header, Body: body}
		if err == nil {
			err = json.Unmarshal(body, &h)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.mu.Lock()
		a.heard = append(a.heard, h)
		a.mu.Unlock()
		answer(w, r, h)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections() // Close waits for handlers, and some wait for their client
		server.Close()
	})
	a.URL = server.URL
	return a
}

// Requests returns what the agent was sent so far, of one method or of all.
func (a *FakeAgent) Requests(method string) []Heard {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []Heard
	for _, h := range a.heard {
		if method == "" || h.Method == method {
			out = append(out, h)
		}
	}
	return out
}

// Commanded returns how often an agent of AIP was sent a command, by one method or by all.
func (a *FakeAgent) Commanded(method, command string) (n int) {
	for _, h := range a.Requests(method) {
		of := gjson.GetManyBytes(h.Body, "params.message.command", "params.command.command") // before v02, and of it
		if of[0].Str == command || of[1].Str == command {
			n++
		}
	}
	return n
}

// Forward lets another agent answer. It has what was heard, although the gateway dies before it was sent on.
func Forward(address string) func(http.ResponseWriter, *http.Request, Heard) {
	return func(w http.ResponseWriter, r *http.Request, h Heard) {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		defer cancel()
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteRequest: func(httptrace.WroteRequestInfo) { context.AfterFunc(r.Context(), cancel) },
		})
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address, bytes.NewReader(h.Body))
		if err == nil {
			var res *http.Response
			if res, err = http.DefaultClient.Do(req); err == nil {
				defer res.Body.Close()
				w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
				w.WriteHeader(res.StatusCode)
				io.Copy(w, res.Body)
				return
			}
		}
		http.Error(w, "the agent behind is away", http.StatusBadGateway)
	}
}

// WriteTask answers with a task in a state, whose artifact says text.
func WriteTask(w http.ResponseWriter, h Heard, state, text string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":{"state":%q,"timestamp":"2026-01-02T03:04:05Z"},`+
		`"artifacts":[{"name":"result","index":0,"parts":[{"type":"text","text":%q}]}]}}`, h.ID, h.Params.ID, state, text)
}

// WriteError answers with an error.
func WriteError(w http.ResponseWriter, h Heard, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, h.ID, code, message)
}

// AskingAgent is an agent that asks for input where the text says so, and else completes.
func AskingAgent(t testing.TB) *FakeAgent {
	t.Helper()
	return NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h Heard) {
		state := "completed"
		if strings.Contains(string(h.Body), "ask me") {
			state = "input-required"
		}
		WriteTask(w, h, state, "done")
	})
}

// Sent returns how often an agent was sent a message with a text.
func (a *FakeAgent) Sent(text string) (n int) {
	for _, h := range a.Requests("") {
		if strings.HasPrefix(h.Method, "tasks/send") && len(h.Params.Message.Parts) > 0 &&
			h.Params.Message.Parts[0].Text == text {
			n++
		}
	}
	return n
}

// WaitForSent waits until an agent was sent a message with a text.
func (a *FakeAgent) WaitForSent(t testing.TB, text string) {
	t.Helper()
	Eventually(t, "the agent is sent "+text, func() bool { return a.Sent(text) > 0 })
}

// Starts returns the number of requests to the agent that begin a task.
func (a *FakeAgent) Starts() int {
	return len(a.Requests("tasks/send")) + len(a.Requests("tasks/sendSubscribe"))
}
