// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// trpcAgent runs the agent that is built on another project's SDK for A2A v0.1, and returns its URL.
func trpcAgent(t testing.TB, args ...string) string {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	path := binary(t, "", "../interop/bin/legacy-trpc", "make interop/bin/legacy-trpc")
	startProcess(t, t.TempDir(), nil, path, append([]string{"-addr", address}, args...)...).waitForPort(t, address)
	return "http://" + address + "/"
}

// sampleAgent runs the agent that comes with the gateway, as a process that does not share the gateway's fate,
// and returns its address.
func sampleAgent(t testing.TB) (*process, string) {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	return runSampleAgent(t, address), address
}

func runSampleAgent(t testing.TB, address string) *process {
	t.Helper()
	p := startProcess(t, t.TempDir(), nil, caddyBinary(t), "aip", "sample-agent", "--listen", address)
	p.waitForPort(t, address)
	return p
}

// heard is one request that an agent was sent.
type heard struct {
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
	header http.Header
	body   []byte
}

// fakeAgent is an agent that answers as the test says, and counts.
type fakeAgent struct {
	url   string
	mu    sync.Mutex
	heard []heard
}

// newFakeAgent serves an agent. answer is called for every request once its body is read; nil answers that the
// work is done.
func newFakeAgent(t testing.TB, answer func(http.ResponseWriter, *http.Request, heard)) *fakeAgent {
	t.Helper()
	a := new(fakeAgent)
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request, h heard) { writeTask(w, h, "completed", "done") }
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h := heard{header: r.Header, body: body}
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
	a.url = server.URL
	return a
}

// requests returns what the agent was sent so far, of one method or of all.
func (a *fakeAgent) requests(method string) []heard {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []heard
	for _, h := range a.heard {
		if method == "" || h.Method == method {
			out = append(out, h)
		}
	}
	return out
}

// forward lets another agent answer.
func forward(address string) func(http.ResponseWriter, *http.Request, heard) {
	return func(w http.ResponseWriter, r *http.Request, h heard) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://"+address, bytes.NewReader(h.body))
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

// writeTask answers with a task in a state, whose artifact says text.
func writeTask(w http.ResponseWriter, h heard, state, text string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"id":%q,"status":{"state":%q,"timestamp":"2026-01-02T03:04:05Z"},`+
		`"artifacts":[{"name":"result","index":0,"parts":[{"type":"text","text":%q}]}]}}`, h.ID, h.Params.ID, state, text)
}

// writeError answers with an error.
func writeError(w http.ResponseWriter, h heard, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, h.ID, code, message)
}
