// SPDX-License-Identifier: Apache-2.0

package legacyagent

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// incoming is the part of a message that the agent uses.
type incoming struct{ id, session, text string }

func message(req *jsonrpc.Request) (incoming, *failure) {
	id := req.Params.Get("id").Str
	if id == "" || len(id) > 256 {
		return incoming{}, errID
	}
	var text string
	found := false
	for _, part := range req.Params.Get("message.parts").Array() {
		if part.Get("type").Str == "text" {
			text += part.Get("text").Str
			found = true
		}
	}
	if !found {
		return incoming{}, errParts
	}
	// The request is a view of a buffer to be reused.
	return incoming{strings.Clone(id), strings.Clone(req.Params.Get("sessionId").Str), strings.Clone(text)}, nil
}

// step is one action of a turn: a new state, or a chunk of an artifact.
type step struct {
	wait  time.Duration // before it
	state string
	say   string

	name         string // of the artifact; empty if the step is a state
	part         string // JSON of a part other than text; otherwise empty
	text         string
	clock        bool // the text is the time of sending, in nanoseconds since 1970
	append, last bool
}

// The largest numbers in commands.
const (
	maxChunks  = 20_000
	maxMillis  = 60_000
	maxSeconds = 3600
)

const maxArtifacts = 1000 // of one task

// plan returns the steps for a message. isAnswer is set if the agent had asked for it.
func plan(text string, isAnswer, streamed bool, pace time.Duration) []step {
	if isAnswer {
		return []step{{name: "answer", text: "you said: " + text, last: true}, {state: "completed", say: "done"}}
	}
	words := strings.Fields(text)
	number := func(i, otherwise, most int) int {
		if i < len(words) {
			if n, err := strconv.Atoi(words[i]); err == nil && n >= 0 {
				return min(n, most)
			}
		}
		return otherwise
	}
	// chunks returns the steps of an artifact in several chunks. Without text, each chunk is the time of its sending.
	chunks := func(name string, text func(i int) string) []step {
		n := max(1, number(1, 3, maxChunks))
		wait := time.Duration(number(2, 100, maxMillis)) * time.Millisecond
		steps := make([]step, 0, n+1)
		for i := range n {
			s := step{wait: wait, name: name, clock: text == nil, append: i > 0, last: i == n-1}
			if text != nil {
				s.text = text(i)
			}
			steps = append(steps, s)
		}
		return steps
	}
	command := ""
	if len(words) > 0 {
		command = words[0]
	}
	switch command {
	case "stream":
		steps := chunks("out", func(i int) string { return "chunk-" + strconv.Itoa(i) + " " })
		return append(steps, step{state: "completed", say: "streamed"})
	case "clock":
		return append(chunks("clock", nil), step{state: "completed", say: "ok"})
	case "slow":
		n := max(1, number(1, 10, maxSeconds))
		steps := make([]step, 0, n+1)
		for i := range n {
			steps = append(steps, step{wait: time.Second, state: "working", say: "tick " + strconv.Itoa(i)})
		}
		return append(steps, step{state: "completed", say: "slow done"})
	case "ask":
		return []step{{state: "input-required", say: "which colour?"}}
	case "fail":
		return []step{{state: "failed", say: "agent broke"}}
	case "reject":
		return []step{{state: "rejected", say: "not my job"}}
	case "two":
		return []step{{name: "one", text: "one", last: true}, {name: "two", text: "two", last: true},
			{state: "completed", say: "ok"}}
	case "file":
		const part = `{"type":"file","file":{"name":"hello.txt","mimeType":"text/plain","bytes":"aGVsbG8K"}}`
		return []step{{name: "file", part: part, last: true}, {state: "completed", say: "ok"}}
	case "data":
		const part = `{"type":"data","data":{"colour":"blue","parts":[1,2,3]}}`
		return []step{{name: "data", part: part, last: true}, {state: "completed", say: "ok"}}
	}
	if !streamed {
		return []step{{name: "echo", text: "echo: " + text, last: true}, {state: "completed", say: "ok"}}
	}
	steps := []step{{name: "echo", text: "echo:"}}
	for _, word := range words[:min(len(words), maxChunks)] {
		steps = append(steps, step{wait: pace, name: "echo", text: " " + word, append: true})
	}
	steps[len(steps)-1].last = true
	return append(steps, step{state: "completed", say: "ok"})
}

// record is one task.
type record struct {
	id, session string

	mu        sync.Mutex
	state     string
	say       string
	changed   time.Time
	artifacts []artifact
	turn      *turn // the running one, or nil
}

type artifact struct {
	name string
	part string
	text []byte
	last bool
}

// turn is the execution of one message. The mutex of its record guards its fields.
type turn struct {
	record *record
	listen bool          // events are kept, because a client may follow the turn
	events [][]byte      // results of JSON-RPC
	news   chan struct{} // closed when there is more; nil while no client waits
	ended  bool
	stop   chan struct{} // closed to cancel
}

// begin starts a turn.
func (r *record) begin(text string, streamed bool, pace time.Duration) (*turn, []step, *failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.turn != nil:
		return nil, nil, errBusy
	case len(r.artifacts) >= maxArtifacts:
		return nil, nil, errFull
	}
	steps := plan(text, r.state == "input-required", streamed, pace)
	r.turn = &turn{record: r, listen: streamed, stop: make(chan struct{})}
	t := r.turn
	if steps[0].state == "rejected" {
		r.state, r.changed = "submitted", time.Now() // it never works
	} else {
		r.apply(&step{state: "working"})
	}
	return t, steps, nil
}

// execute takes the steps of a turn, until its end or a cancel.
func (t *turn) execute(steps []step) {
	r := t.record
	for i := range steps {
		if steps[i].wait > 0 {
			timer := time.NewTimer(steps[i].wait)
			select {
			case <-timer.C:
			case <-t.stop:
				timer.Stop()
				return
			}
		}
		r.mu.Lock()
		ended := t.ended
		if !ended {
			r.apply(&steps[i])
		}
		r.mu.Unlock()
		if ended {
			return
		}
	}
}

// apply takes one step, as a part of the running turn if there is one. r.mu is held.
func (r *record) apply(s *step) {
	t := r.turn
	if s.name == "" {
		r.state, r.say, r.changed = s.state, s.say, time.Now()
	} else {
		if s.clock {
			s.text = strconv.FormatInt(time.Now().UnixNano(), 10) + " "
		}
		if !s.append {
			r.artifacts = append(r.artifacts, artifact{name: s.name, part: s.part})
		}
		a := &r.artifacts[len(r.artifacts)-1]
		a.text = append(a.text, s.text...)
		a.last = s.last
	}
	if t == nil {
		return
	}
	if t.listen {
		t.events = append(t.events, r.event(s))
	}
	if s.name == "" && s.state != "working" {
		t.ended, r.turn = true, nil
	}
	if t.news != nil {
		close(t.news)
		t.news = nil
	}
}

// event returns the event of a step just taken.
func (r *record) event(s *step) []byte {
	if s.name == "" {
		return r.statusEvent()
	}
	b := append(r.beginEvent(), `,"artifact":`...)
	chunk := artifact{name: s.name, part: s.part, text: []byte(s.text), last: s.last}
	return append(appendArtifact(b, &chunk, len(r.artifacts)-1, s.append), '}')
}

// cancel ends the task. It reports false for an ended one.
func (r *record) cancel() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == nil && r.state != "input-required" {
		return false
	}
	if r.turn != nil {
		r.turn.listen = true // for clients about to resubscribe
		close(r.turn.stop)
	}
	r.apply(&step{state: "canceled", say: "canceled"})
	return true
}

// join returns the running turn, the number of its past events, and the task's status.
func (r *record) join() (t *turn, past int, status []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turn == nil {
		return &turn{record: r, ended: true}, 0, r.statusEvent()
	}
	r.turn.listen = true
	return r.turn, len(r.turn.events), r.statusEvent()
}

// follow calls f with every event of the turn after the first seen ones, until the turn ends, f fails or ctx is done.
func (t *turn) follow(ctx context.Context, seen int, f func([]byte) error) {
	r := t.record
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		for ; seen < len(t.events); seen++ {
			event := t.events[seen]
			r.mu.Unlock()
			err := f(event)
			r.mu.Lock()
			if err != nil {
				return
			}
		}
		if t.ended {
			return
		}
		if t.news == nil {
			t.news = make(chan struct{})
		}
		news := t.news
		r.mu.Unlock()
		select {
		case <-news:
			r.mu.Lock()
		case <-ctx.Done():
			r.mu.Lock()
			return
		}
	}
}

func (r *record) beginEvent() []byte {
	return task.AppendString(append(make([]byte, 0, 192), `{"id":`...), r.id)
}

func (r *record) statusEvent() []byte {
	b := append(r.beginEvent(), `,"status":`...)
	b = r.appendStatus(b)
	b = append(b, `,"final":`...)
	b = strconv.AppendBool(b, r.state != "working")
	return append(b, '}')
}

func isArtifact(event []byte) bool { return bytes.Contains(event, []byte(`,"artifact":{`)) }

func (r *record) appendStatus(b []byte) []byte {
	b = append(b, `{"state":"`...)
	b = append(b, r.state...)
	if r.say != "" {
		b = append(b, `","message":{"role":"agent","parts":[{"type":"text","text":`...)
		b = task.AppendString(b, r.say)
		b = append(b, `}]},"timestamp":`...)
	} else {
		b = append(b, `","timestamp":`...)
	}
	b = task.AppendTime(b, r.changed.UTC())
	return append(b, '}')
}

// appendTask appends the Task.
func (r *record) appendTask(b []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	b = append(b, `{"id":`...)
	b = task.AppendString(b, r.id)
	if r.session != "" {
		b = append(b, `,"sessionId":`...)
		b = task.AppendString(b, r.session)
	}
	b = append(b, `,"status":`...)
	b = r.appendStatus(b)
	for i := range r.artifacts {
		if i == 0 {
			b = append(b, `,"artifacts":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendArtifact(b, &r.artifacts[i], i, false)
	}
	if len(r.artifacts) > 0 {
		b = append(b, ']')
	}
	return append(b, '}')
}

func appendArtifact(b []byte, a *artifact, index int, adds bool) []byte {
	b = append(b, `{"name":`...)
	b = task.AppendString(b, a.name)
	b = append(b, `,"parts":[`...)
	if a.part != "" {
		b = append(b, a.part...)
	} else {
		b = append(b, `{"type":"text","text":`...)
		b = task.AppendString(b, string(a.text))
		b = append(b, '}')
	}
	b = append(b, `],"index":`...)
	b = strconv.AppendInt(b, int64(index), 10)
	b = append(b, `,"append":`...)
	b = strconv.AppendBool(b, adds)
	b = append(b, `,"lastChunk":`...)
	b = strconv.AppendBool(b, a.last)
	return append(b, '}')
}
