// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
)

// The faults that a message can ask for, once for each name that follows.
const (
	cutBefore = "cut-before" // the connection breaks before the agent has the message
	cutAfter  = "cut-after"  // it breaks when the agent has done its work
	cutWithin = "cut-within" // it breaks after the first bytes of the answer
	late      = "late"       // the answer comes a second later
)

var agentFaults = []string{cutBefore, cutAfter, cutWithin, late}

// fault finds in a request what its message asks for.
var fault = regexp.MustCompile(`\[([a-z-]+) ([0-9]+)\]`)

// agent is the sample agent behind a network that fails when a message asks for it.
type agent struct {
	inner *legacyagent.Agent

	mu   sync.Mutex
	done map[string]bool // names whose fault has been
}

// runAgent is the part of the agent. It serves until its standard input ends.
func runAgent(s *fixture, in *json.Decoder, out *json.Encoder) error {
	a := &agent{inner: legacyagent.New(legacyagent.Options{Tasks: 200_000}), done: make(map[string]bool)}
	defer a.inner.Close()
	server, _, err := serve(s.Agent, a)
	if err != nil {
		return err
	}
	defer server.Close()
	if err := out.Encode(true); err != nil {
		return err
	}
	_ = in.Decode(new(any)) // there is nothing to come
	return nil
}

// ServeHTTP implements http.Handler.
func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	switch a.fault(body) {
	case cutBefore:
		panic(http.ErrAbortHandler)
	case cutAfter:
		a.inner.ServeHTTP(&cutter{ResponseWriter: w}, r)
		panic(http.ErrAbortHandler)
	case cutWithin:
		a.inner.ServeHTTP(&cutter{w, 60}, r)
		panic(http.ErrAbortHandler)
	case late:
		time.Sleep(time.Second)
	}
	a.inner.ServeHTTP(w, r)
}

// fault returns the fault that a request asks for, the first time.
func (a *agent) fault(body []byte) string {
	found := fault.FindSubmatch(body[:min(len(body), 4<<10)])
	if found == nil {
		return ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	name := string(found[2])
	if a.done[name] {
		return ""
	}
	a.done[name] = true
	return string(found[1])
}

// cutter lets so many bytes of an answer through.
type cutter struct {
	http.ResponseWriter
	left int
}

// Unwrap is for http.ResponseController.
func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *cutter) Write(p []byte) (int, error) {
	n := min(c.left, len(p))
	c.left -= n
	if n > 0 {
		if _, err := c.ResponseWriter.Write(p[:n]); err != nil {
			return 0, err
		}
	}
	return len(p), nil // the agent takes a long time to notice
}

// receiver takes the honest Leaders' notifications.
type receiver struct {
	server *http.Server
	addr   string

	mu    sync.Mutex
	ended map[string]bool // tasks whose end has been notified
	count int
}

func newReceiver() (*receiver, error) {
	r := &receiver{ended: make(map[string]bool)}
	var err error
	r.server, r.addr, err = serve("127.0.0.1:0", r)
	return r, err
}

func (r *receiver) close() { _ = r.server.Close() }

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var t struct {
		ID     string
		Status struct{ State string }
	}
	if err := json.NewDecoder(req.Body).Decode(&t); err != nil {
		http.Error(w, "no task", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if t.Status.State == "completed" {
		r.ended[t.ID] = true
	}
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) has(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[id]
}
