// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// wildWork is what Partners and agents by rule do. Both do the same, so that only what is between differs.
type wildWork struct {
	mu    sync.Mutex
	texts []string
	holds chan struct{} // closed when it was told "hold"
	hold  func()        // closes holds
	held  chan struct{} // closed when what was told "hold" may end
	free  func()        // closes held
}

func newWildWork() *wildWork {
	w := &wildWork{holds: make(chan struct{}), held: make(chan struct{})}
	w.hold = sync.OnceFunc(func() { close(w.holds) })
	w.free = sync.OnceFunc(func() { close(w.held) })
	return w
}

func (w *wildWork) told() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}

// wildDone is what came of a turn.
type wildDone struct{ state, product, said string }

// do carries out a turn. state is a word of AIP.
func (w *wildWork) do(text string) wildDone {
	if text == "release" { // which may come before what is to be released, since that was answered at once
		select {
		case <-w.holds:
		case <-w.held: // the test has ended
		}
	}
	w.mu.Lock()
	w.texts = append(w.texts, short(text))
	w.mu.Unlock()
	switch text {
	case "hold":
		w.hold()
		<-w.held
	case "release":
		w.free()
	case "ask":
		return wildDone{state: "awaiting-input", said: "What colour?"}
	case "fail":
		return wildDone{state: "failed", said: "the oven is broken"}
	case "reject":
		return wildDone{state: "rejected", said: "this is no work for me"}
	}
	return wildDone{state: "awaiting-completion", product: "done: " + short(text)}
}

// short makes a large text one that can be compared at a glance.
func short(text string) string {
	if len(text) > 200 {
		return fmt.Sprintf("%s… of %d bytes", text[:8], len(text))
	}
	return text
}

// payload returns the first member of that name, wherever it is.
func payload(value any) string {
	switch v := value.(type) {
	case map[string]any:
		if found, ok := v["payload"]; ok {
			text, _ := json.Marshal(found)
			return string(text)
		}
		for _, inner := range v {
			if found := payload(inner); found != "" {
				return found
			}
		}
	}
	return ""
}

// legacyWorker serves an agent of A2A v0.1 that does the work. Where says is true, its answers are in the messages of
// its statuses, and it makes no artifacts.
func legacyWorker(says bool) func(*testing.T) *wildServed {
	return func(t *testing.T) *wildServed {
		w := newWildWork()
		url := w.serve(t, nil, func(rw http.ResponseWriter, r *http.Request) { w.serveLegacy(rw, r, says) })
		return &wildServed{at: url, as: "a2a/legacy " + url, told: w.told}
	}
}

// serve serves a handler, over TLS if there is a configuration for it, and returns its URL.
func (w *wildWork) serve(t *testing.T, secure *tls.Config, handler http.HandlerFunc) string {
	server := httptest.NewUnstartedServer(handler)
	if server.TLS = secure; secure != nil {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(func() {
		w.free()
		server.CloseClientConnections()
		server.Close()
	})
	return strings.Replace(server.URL, "https://127.0.0.1", "https://localhost", 1)
}

func (w *wildWork) serveLegacy(rw http.ResponseWriter, r *http.Request, says bool) {
	rw.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodGet {
		json.NewEncoder(rw).Encode(site.Object{"name": "Worker", "description": "works", "url": "http://" + r.Host + "/",
			"version": "1", "capabilities": site.Object{"streaming": true}, "defaultInputModes": []string{"text"},
			"defaultOutputModes": []string{"text"},
			"provider":           site.Object{"organization": "Wild", "url": "https://wild.example"},
			"skills": []site.Object{{"id": "work", "name": "Work", "description": "works",
				"tags": []string{"work"}}}})
		return
	}
	var q struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ID        string
			SessionID string
			Metadata  map[string]any
			Message   struct {
				Parts    []struct{ Text string }
				Metadata map[string]any
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	answer := func(result any) []byte {
		text, _ := json.Marshal(site.Object{"jsonrpc": "2.0", "id": q.ID, "result": result})
		return text
	}
	if q.Method != "tasks/send" && q.Method != "tasks/sendSubscribe" {
		site.WriteError(rw, site.Heard{ID: q.ID}, -32001, "Task not found")
		return
	}
	text := ""
	for _, part := range q.Params.Message.Parts {
		text += part.Text
	}
	done := w.do(text + payload(any(q.Params.Metadata)) + payload(any(q.Params.Message.Metadata)))
	if says && done.product != "" {
		done.said, done.product = done.product, ""
	}
	state := map[string]string{"awaiting-input": "input-required", "awaiting-completion": "completed"}[done.state]
	if state == "" {
		state = done.state
	}
	status := site.Object{"state": state}
	if done.said != "" {
		status["message"] = site.Object{"role": "agent", "parts": []site.Object{{"type": "text", "text": done.said}}}
	}
	var artifacts []site.Object
	if done.product != "" {
		artifacts = []site.Object{{"name": "answer", "index": 0,
			"parts": []site.Object{{"type": "text", "text": done.product}}}}
	}
	if q.Method == "tasks/send" {
		rw.Write(answer(site.Object{"id": q.Params.ID, "sessionId": q.Params.SessionID, "status": status,
			"artifacts": artifacts}))
		return
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	events := []any{site.Object{"id": q.Params.ID, "status": site.Object{"state": "working"}, "final": false}}
	for _, artifact := range artifacts {
		events = append(events, site.Object{"id": q.Params.ID, "artifact": artifact})
	}
	events = append(events, site.Object{"id": q.Params.ID, "status": status, "final": true})
	for _, event := range events {
		fmt.Fprintf(rw, "data: %s\n\n", bytes.TrimSpace(answer(event)))
	}
}
