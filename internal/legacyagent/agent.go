// SPDX-License-Identifier: Apache-2.0

// Package legacyagent is a small A2A v0.1 agent for demonstrations, tests and benchmarks of the gateway. The first word
// of a message is its command:
//
//	stream N [MS]   an artifact in N chunks, one every MS milliseconds (default 100)
//	clock N [MS]    the same, but each chunk is the time at which it is sent, in nanoseconds since 1970
//	slow SECONDS    works for this time and reports every second
//	ask             asks for a colour, and repeats the next message
//	fail            fails
//	reject          rejects the task, which v0.1 has no state for; the gateway knows it
//	two             two artifacts
//	file            an artifact with a file
//	data            an artifact with structured data
//
// Anything else is echoed; in a stream, word by word.
//
// Errors have HTTP status 200, a stream ends with its turn, and work continues when the client disconnects.
package legacyagent

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bufpool"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Options are an agent's settings. The zero value is valid.
type Options struct {
	URL   string        // the endpoint in the card. Default: the host of the request for the card
	Tasks int           // the most tasks kept; beyond it, the oldest is dropped. Default: 10,000
	Pace  time.Duration // pause between two words of a streamed echo. Default: none
}

const (
	defaultTasks = 10_000
	maxBody      = 32 << 20 // bytes of one request
)

// Agent is the agent. It serves its card at /.well-known/agent.json and JSON-RPC everywhere else.
type Agent struct {
	options Options

	mu    sync.Mutex
	tasks map[string]*record
	ring  []*record // all tasks in the order of their creation, as a ring
	next  int       // the index in ring of the next task

	work   sync.WaitGroup // running turns
	closed bool           // guarded by mu
}

// New returns an agent. The caller must close it.
func New(o Options) *Agent {
	if o.Tasks <= 0 {
		o.Tasks = defaultTasks
	}
	return &Agent{options: o, tasks: make(map[string]*record)}
}

// Close cancels all turns and waits for their end. Later messages are refused.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.closed = true
	all := a.ring
	a.mu.Unlock()
	for _, r := range all {
		r.cancel()
	}
	a.work.Wait()
	return nil
}

// ServeHTTP implements http.Handler.
func (a *Agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/.well-known/agent.json":
		a.card(w, r)
	case r.Method == http.MethodPost:
		a.rpc(w, r)
	case r.Method == http.MethodGet:
		http.NotFound(w, r)
	default:
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "this agent accepts POST only", http.StatusMethodNotAllowed)
	}
}

func (a *Agent) card(w http.ResponseWriter, r *http.Request) {
	url := a.options.URL
	if url == "" {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		url = scheme + "://" + r.Host + "/"
	}
	b := []byte(`{"name":"Echo","description":"A sample agent that speaks A2A v0.1","url":`)
	b = append(task.AppendString(b, url), `,"version":"1.0.0",`+
		`"capabilities":{"streaming":true,"pushNotifications":false,"stateTransitionHistory":false},`+
		`"authentication":{"schemes":[]},"defaultInputModes":["text"],"defaultOutputModes":["text","file","data"],`+
		`"skills":[{"id":"echo","name":"Echo","description":"Repeats what you say","tags":["sample"],`+
		`"examples":["hello","stream 5 200","slow 3","ask","fail","reject","file","data","two"]}]}`...)
	answer(w, b)
}

func answer(w http.ResponseWriter, body []byte) {
	h := w.Header()
	h["Content-Type"] = jsonType
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.Write(body)
}

var jsonType = []string{"application/json"}

var buffers = bufpool.Pool{Largest: 256 << 10}

func (a *Agent) rpc(w http.ResponseWriter, r *http.Request) {
	in, out := buffers.Get(), buffers.Get()
	defer buffers.Put(in)
	defer buffers.Put(out)
	var err error
	if *in, err = bufpool.ReadAll(*in, io.LimitReader(r.Body, maxBody+1)); err != nil {
		http.Error(w, "the request is incomplete", http.StatusBadRequest)
		return
	}
	req, bad := jsonrpc.Parse(*in, jsonrpc.Limits{Bytes: maxBody})
	if bad == nil {
		bad = req.Check()
	}
	if bad != nil {
		answer(w, jsonrpc.AppendError(*out, bad.ID, bad.Code, bad.Detail, nil))
		return
	}
	if req.Method == "tasks/sendSubscribe" || req.Method == "tasks/resubscribe" {
		a.stream(w, r, &req)
		return
	}
	result, failure := a.call(r.Context(), &req, jsonrpc.BeginResult(*out, req.ID))
	if failure != nil {
		*out = jsonrpc.AppendError(*out, req.ID, failure.code, failure.message, nil)
	} else {
		*out = jsonrpc.End(result)
	}
	answer(w, *out)
}

// failure is an error of A2A v0.1.
type failure struct {
	code    int
	message string
}

var (
	errMethod   = &failure{-32601, "Method not found"}
	errID       = &failure{-32602, "params.id must be a string of 1 to 256 bytes"}
	errParts    = &failure{-32602, "params.message.parts must have a part of type text"}
	errNotFound = &failure{-32001, "Task not found"}
	errFinal    = &failure{-32002, "Task cannot be canceled"}
	errPush     = &failure{-32003, "Push Notification is not supported"}
	errBusy     = &failure{-32600, "The task is running"}
	errFull     = &failure{-32603, "The task has too many artifacts"}
	errClosed   = &failure{-32603, "The agent is shutting down"}
)

// call executes a method with one Task as its answer, and appends the Task.
func (a *Agent) call(ctx context.Context, req *jsonrpc.Request, dst []byte) ([]byte, *failure) {
	switch req.Method {
	case "tasks/send":
		m, bad := message(req)
		if bad != nil {
			return nil, bad
		}
		t, bad := a.begin(m, false)
		if bad != nil {
			return nil, bad
		}
		t.follow(ctx, 0, func([]byte) error { return nil })
		return t.record.appendTask(dst), nil
	case "tasks/get", "tasks/cancel":
		r, bad := a.find(req)
		if bad != nil {
			return nil, bad
		}
		if req.Method == "tasks/cancel" && !r.cancel() {
			return nil, errFinal
		}
		return r.appendTask(dst), nil
	case "tasks/pushNotification/set", "tasks/pushNotification/get":
		return nil, errPush
	}
	return nil, errMethod
}

func (a *Agent) find(req *jsonrpc.Request) (*record, *failure) {
	id := req.Params.Get("id").Str
	if id == "" {
		return nil, errID
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r := a.tasks[id]; r != nil {
		return r, nil
	}
	return nil, errNotFound
}

// begin starts the turn of a message. streamed reports whether a stream follows it.
func (a *Agent) begin(m incoming, streamed bool) (*turn, *failure) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, errClosed
	}
	r := a.tasks[m.id]
	if r == nil {
		r = &record{id: m.id, session: m.session}
		a.add(r)
	}
	t, steps, bad := r.begin(m.text, streamed, a.options.Pace)
	if bad != nil {
		a.mu.Unlock()
		return nil, bad
	}
	atOnce := !streamed && steps[0].wait == 0 // a goroutine would cost more than the work
	if !atOnce {
		a.work.Go(func() { t.execute(steps) })
	}
	a.mu.Unlock()
	if atOnce {
		t.execute(steps)
	}
	return t, nil
}

// add stores a task, and drops the oldest one if there are too many.
func (a *Agent) add(r *record) {
	a.tasks[r.id] = r
	if len(a.ring) < a.options.Tasks {
		a.ring = append(a.ring, r)
		return
	}
	old := a.ring[a.next]
	old.cancel()
	delete(a.tasks, old.id)
	a.ring[a.next] = r
	a.next = (a.next + 1) % len(a.ring)
}

// stream answers with the events of a turn.
func (a *Agent) stream(w http.ResponseWriter, r *http.Request, req *jsonrpc.Request) {
	var t *turn
	var bad *failure
	var event []byte // the first one for a resubscriber
	var from int
	if req.Method == "tasks/sendSubscribe" {
		var m incoming
		if m, bad = message(req); bad == nil {
			t, bad = a.begin(m, true)
		}
	} else {
		var rec *record
		if rec, bad = a.find(req); bad == nil {
			t, from, event = rec.join()
		}
	}
	if bad != nil {
		answer(w, jsonrpc.AppendError(nil, req.ID, bad.code, bad.message, nil))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	var frame []byte
	write := func(event []byte) error {
		frame = append(frame[:0], "event: task_status_update\ndata: "...)
		if isArtifact(event) {
			frame = append(frame[:0], "event: task_artifact_update\ndata: "...)
		}
		frame = jsonrpc.End(append(jsonrpc.BeginResult(frame, req.ID), event...))
		frame = append(frame, "\n\n"...)
		if _, err := w.Write(frame); err != nil {
			return err
		}
		return flush.Flush()
	}
	if event != nil && write(event) != nil {
		return
	}
	t.follow(r.Context(), from, write)
}
