// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"encoding/json"
	"net/http"
)

// stream is an answer of events.
type stream struct {
	task *Task
	next int // the index of its first event
}

// stream carries out a command that is answered with events.
func (p *Partner) stream(c *Call) (any, *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch c.Command {
	case "start":
		t, _, failure := p.start(c)
		if failure != nil {
			return nil, failure
		}
		return &stream{t, 0}, nil
	case "continue":
		t, failure := p.find(c)
		if failure != nil {
			return nil, failure
		}
		next := len(t.Events)
		if !p.obey(t, c) {
			next = max(0, next-1)
		}
		return &stream{t, next}, nil
	case "re-stream":
		t, failure := p.find(c)
		if failure != nil {
			return nil, failure
		}
		params, _ := c.Message["commandParams"].(Object)
		from := 0
		for params["lastEventSeq"] != nil && from < len(t.Events) &&
			seq(t.Events[from]) <= number(params, "lastEventSeq") {
			from++
		}
		return &stream{t, from}, nil
	}
	return nil, p.invalid("command")
}

// seq is the number of an event, as far as it is one.
func seq(e *Event) int64 {
	n, _ := e.Seq.(int)
	return int64(n)
}

// serve writes the events of a task until it ends, or the Leader goes.
func (p *Partner) serve(w http.ResponseWriter, c *Call, s *stream) {
	h := w.Header()
	if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "text/event-stream")
	}
	h.Set("Cache-Control", "no-cache")
	w.WriteHeader(c.Status)
	flush := http.NewResponseController(w)
	flush.Flush()
	next, begun := s.next, false
	for {
		p.mu.Lock()
		events, changed := s.task.Events[next:], s.task.changed
		next = len(s.task.Events)
		over := final(s.task.State())
		if !begun && p.Replay != nil {
			events = p.Replay(c, events)
		}
		begun = true
		p.mu.Unlock()
		for _, e := range events {
			frame := p.frame(c, e)
			if p.Frame != nil {
				if frame = p.Frame(c, e, frame); frame == nil {
					return
				}
			}
			if _, err := w.Write(frame); err != nil || flush.Flush() != nil {
				return
			}
			if p.ends(c, e) {
				return
			}
		}
		if over && p.ends(c, nil) {
			return
		}
		select {
		case <-changed:
		case <-c.HTTP.Context().Done():
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// ends reports whether a stream ends behind an event; nil is for all that there are. Without End, it ends there alone.
func (p *Partner) ends(c *Call, e *Event) bool {
	if p.End == nil {
		return e == nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.End(c, e, e == nil || e.Final)
}

func (p *Partner) frame(c *Call, e *Event) []byte {
	p.mu.Lock()
	envelope := p.envelope(c, Object{"eventSeq": e.Seq, "eventData": e.Object}, nil)
	body, err := json.Marshal(envelope)
	p.mu.Unlock()
	if err != nil {
		return nil
	}
	return append(append([]byte("data: "), body...), "\n\n"...)
}
