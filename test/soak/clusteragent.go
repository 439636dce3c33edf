// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/task"
)

// countingAgent is the sample agent, which counts how often it receives each message.
type countingAgent struct {
	inner *legacyagent.Agent

	mu       sync.Mutex
	received map[string]int // by the id of the message
}

func newCountingAgent() *countingAgent {
	return &countingAgent{inner: legacyagent.New(legacyagent.Options{Tasks: 1_000_000}), received: make(map[string]int)}
}

// marked finds in a request the id of the Leader's message, which stands in its text: this dialect has no ids.
var marked = regexp.MustCompile(`\[m ([^\]]+)\]`)

// mark returns a text with the id of its message.
func mark(text, message string) string { return fmt.Sprintf("%s [m %s]", text, message) }

// ServeHTTP implements http.Handler.
func (a *countingAgent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if found := marked.FindSubmatch(body); found != nil && bytes.Contains(body, []byte(`"tasks/send`)) {
		a.mu.Lock()
		a.received[string(found[1])]++
		a.mu.Unlock()
	}
	a.inner.ServeHTTP(w, r)
}

// times returns how often the agent has received a message.
func (a *countingAgent) times(message string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.received[message]
}

func (a *countingAgent) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.received)
}

// hooks receives webhooks, each at a path of its own.
type hooks struct {
	addr string

	mu    sync.Mutex
	taken int
	got   map[string][]notified // by path
}

// notified is a notification that was received.
type notified struct {
	id, state string
	body      [sha256.Size]byte
}

func newHooks() *hooks { return &hooks{got: make(map[string][]notified)} }

// ServeHTTP implements http.Handler.
func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	var t struct{ Status struct{ State string } }
	if err != nil || json.Unmarshal(body, &t) != nil {
		http.Error(w, "no task", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken++
	n := notified{r.Header.Get("webhook-id"), t.Status.State, sha256.Sum256(body)}
	h.got[r.URL.Path] = append(h.got[r.URL.Path], n)
	w.WriteHeader(http.StatusNoContent)
}

func (h *hooks) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.taken
}

// missing compares what has come to a path with the states of its task. It returns what is missing still, or what is
// wrong: each state is notified once or more, in order, and repetitions have the same id and body.
func (h *hooks) missing(path string, states []task.Status) (missing int, err error) {
	h.mu.Lock()
	got := slices.Clone(h.got[path])
	h.mu.Unlock()
	first := make(map[string]notified)
	var order []string
	for _, n := range got {
		before, repeated := first[n.id]
		if repeated && before != n {
			return 0, fmt.Errorf("the notification %s came with two bodies, of %s and %s", n.id, before.state, n.state)
		}
		if !repeated {
			first[n.id] = n
			order = append(order, n.state)
		}
	}
	var want []string
	for _, s := range states {
		want = append(want, string(s.State))
	}
	if len(order) > len(want) || !slices.Equal(order, want[:len(order)]) {
		return 0, fmt.Errorf("the notifications are %s, and the states %s", strings.Join(order, " "), strings.Join(want, " "))
	}
	return len(want) - len(order), nil
}
