// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// event changes each event before it is in the log.
func event(change func(e *partner.Event)) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Event = func(_ *partner.Task, e *partner.Event) []*partner.Event {
			change(e)
			return []*partner.Event{e}
		}
	}
}

// update changes the events with a status; piece those with a piece of a product.
func update(change func(object)) func(*partner.Partner) {
	return event(func(e *partner.Event) {
		if e.State != "" && e.Object["products"] == nil {
			change(e.Object)
		}
	})
}

func piece(change func(object)) func(*partner.Partner) {
	return event(func(e *partner.Event) {
		if e.State == "" {
			change(e.Object)
		}
	})
}

// sends replaces an event by others. Their numbers follow from the places in the log.
func sends(others func(t *partner.Task, e *partner.Event) []*partner.Event) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Event = func(t *partner.Task, e *partner.Event) []*partner.Event {
			all := others(t, e)
			for i := range all {
				copied := *all[i]
				copied.Seq = len(t.Events) + 1 + i
				all[i] = &copied
			}
			return all
		}
	}
}

// frame changes the bytes of an event.
func frame(change func([]byte) []byte) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Frame = func(_ *partner.Call, _ *partner.Event, b []byte) []byte { return change(b) }
	}
}

// stays keeps a stream open behind the states.
func stays(states ...string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.End = func(c *partner.Call, e *partner.Event, last bool) bool {
			return last && !slices.Contains(states, c.Task.State())
		}
	}
}

// ends ends a stream behind the state.
func ends(state string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.End = func(_ *partner.Call, e *partner.Event, last bool) bool { return last || e != nil && e.State == state }
	}
}

// streams are deviations of the events.
var streams = []Mutant{
	{"an event has no number", "6.2", event(func(e *partner.Event) { e.Seq = nil })},
	{"an event has a text as number", "6.2", event(func(e *partner.Event) { e.Seq = fmt.Sprint(e.Seq) })},
	{"all events have the same number", "6.2", event(func(e *partner.Event) { e.Seq = 1 })},
	{"the numbers of events fall", "6.2", event(func(e *partner.Event) { e.Seq = 1000 - e.Seq.(int) })},
	{"the numbers of events begin again with the second turn", "6.2", event(func(e *partner.Event) {
		e.Seq = (e.Seq.(int)-1)%3 + 1
	})},
	{"each second number comes twice", "6.2", event(func(e *partner.Event) { e.Seq = (e.Seq.(int) + 1) / 2 })},
	{"an event has no type", "6.2", event(func(e *partner.Event) { delete(e.Object, "type") })},
	{"an event with a status has another type", "6.2.3|6.2", update(put("status", "type"))},
	{"an event with a status has no taskId", "6.2.3|6.2", update(del("taskId"))},
	{"an event with a status has the id of another task", "6.2.3|6.2", update(put("task-0", "taskId"))},
	{"an event with a status has no sessionId", "6.2.3|6.2", update(del("sessionId"))},
	{"an event with a status has another sessionId", "6.2.3|6.2", update(put("session-0", "sessionId"))},
	{"an event with a status has no status", "6.2.3|6.2", update(del("status"))},
	{"an event with a status has the state alone", "6.2.3|6.2", update(func(o object) {
		o["status"] = o["status"].(object)["state"]
	})},
	{"an event with a status has no time", "6.2.3|6.2", update(del("status", "stateChangedAt"))},
	{"a piece has another type", "6.2.4|6.2", piece(put("artifact", "type"))},
	{"a piece has no taskId", "6.2.4|6.2", piece(del("taskId"))},
	{"a piece has the id of another task", "6.2.4|6.2", piece(put("task-0", "taskId"))},
	{"a piece has no sessionId", "6.2.4|6.2", piece(del("sessionId"))},
	{"a piece has no product", "6.2.4|6.2", piece(del("product"))},
	{"a piece has a text as product", "6.2.4|6.2", piece(put("text", "product"))},
	{"a piece of a product has no id of it", "6.2.4|6.2|4.4", piece(del("product", "id"))},
	{"a piece of a product has no data items", "6.2.4|6.2|4.4", piece(del("product", "dataItems"))},
	{"the append of a piece is missing", "6.2.4|6.2", piece(del("append"))},
	{"the append of a piece is a text", "6.2.4|6.2", piece(put("true", "append"))},
	{"no piece is appended", "6.2.4|6.2", piece(put(false, "append"))},
	{"the first piece is appended", "6.2.4|6.2", piece(put(true, "append"))},
	{"the lastChunk of a piece is missing", "6.2.4|6.2", piece(del("lastChunk"))},
	{"no piece is the last one", "6.2.4|6.2", piece(put(false, "lastChunk"))},
	{"each piece is the last one", "6.2.4|6.2", piece(put(true, "lastChunk"))},
	{"each piece has another product", "6.2.4|6.2", event(func(e *partner.Event) {
		if e.State == "" {
			put(fmt.Sprint("product-", e.Seq), "product", "id")(e.Object)
		}
	})},
	{"a piece is lost", "6.2.4|6.2", sends(func(t *partner.Task, e *partner.Event) []*partner.Event {
		if e.State == "" && e.Object["append"] == true && e.Object["lastChunk"] == false {
			return nil
		}
		return []*partner.Event{e}
	})},
	{"a piece comes twice", "6.2.4|6.2", sends(func(t *partner.Task, e *partner.Event) []*partner.Event {
		if e.State == "" && e.Object["append"] == true {
			return []*partner.Event{e, e}
		}
		return []*partner.Event{e}
	})},
	{"a product comes behind the end of its turn", "6.2|6.2.4", func(p *partner.Partner) {
		p.Pieces = func(_ *partner.Task, steps []partner.Step) []partner.Step {
			if n := len(steps); n > 3 {
				steps[n-1], steps[n-2] = steps[n-2], steps[n-1]
				steps[n-2].Wait, steps[n-1].Wait = steps[n-1].Wait, steps[n-2].Wait
			}
			return steps
		}
	}},
	{"a stream has no status at the end of the turn", "6.2", sends(
		func(t *partner.Task, e *partner.Event) []*partner.Event {
			if e.State == "awaiting-completion" {
				return nil
			}
			return []*partner.Event{e}
		})},
	{"a stream has no status at all", "6.2", sends(func(t *partner.Task, e *partner.Event) []*partner.Event {
		if e.State != "" {
			return nil
		}
		return []*partner.Event{e}
	})},
	{"a stream has the pieces alone of the product, and none", "6.2", sends(
		func(t *partner.Task, e *partner.Event) []*partner.Event {
			if e.State == "" {
				return nil
			}
			return []*partner.Event{e}
		})},
	{"a stream says rejected without closing", "6.2.6|6.2", stays("rejected")},
	{"a stream says failed without closing", "6.2.6|6.2", stays("failed")},
	{"a stream stays open behind complete", "6.2.6|6.2", stays("completed")},
	{"a stream stays open behind cancel", "6.2.6|6.2", stays("canceled")},
	{"a stream ends while the task awaits its completion", "6.2.6|6.2", ends("awaiting-completion")},
	{"a stream ends while the task awaits input", "6.2.6|6.2", ends("awaiting-input")},
	{"a stream ends behind its first event", "6.2.6|6.2", func(p *partner.Partner) {
		p.End = func(_ *partner.Call, e *partner.Event, last bool) bool { return true }
	}},
	{"a stream closes without saying failed", "6.2.6|6.2", hides("failed")},
	{"a stream closes without saying rejected", "6.2.6|6.2", hides("rejected")},
	{"a stream is a JSON answer", "6.2", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == "stream" {
				c.Method = "rpc"
				if message := c.Params["message"]; message != nil {
					if m, is := message.(object); is && m["type"] == "task-command" {
						c.Params["command"] = message
					}
				}
			}
			return next()
		}
	}},
	{"a stream of an unknown task begins", "6.2|5", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if failure != nil && failure.Name == "TaskNotFoundError" && c.Command == "re-stream" {
				c.Message["command"] = "start"
				return next()
			}
			return v, failure
		}
	}},
	{"a second start by stream begins anew", "4.2|6.2", accepts("second start")},
}

// hides leaves the event with the state out.
func hides(state string) func(*partner.Partner) {
	return sends(func(t *partner.Task, e *partner.Event) []*partner.Event {
		if e.State == state {
			return nil
		}
		return []*partner.Event{e}
	})
}

// frames are deviations of what stands around the events.
var frames = []Mutant{
	{"a stream has the content type application/json", "6.2", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == "stream" {
				c.Header.Set("Content-Type", "application/json")
			}
			return next()
		}
	}},
	{"a stream has the content type text/plain", "6.2", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == "stream" {
				c.Header.Set("Content-Type", "text/plain")
			}
			return next()
		}
	}},
	{"an event has no empty line behind it", "6.2", frame(func(b []byte) []byte { return b[:len(b)-1] })},
	{"an event is not behind data:", "6.2", frame(func(b []byte) []byte {
		return bytes.TrimPrefix(b, []byte("data: "))
	})},
	{"an event has its end only", "6.2", frame(func(b []byte) []byte {
		return append([]byte("data: "), b[len(b)/2:]...)
	})},
	{"an event is its object alone", "6.2", frame(func(b []byte) []byte {
		_, inner, _ := bytes.Cut(b, []byte(`"eventData":`))
		inner, _, _ = bytes.Cut(inner, []byte(`,"eventSeq"`))
		return append(append([]byte("data: "), inner...), "\n\n"...)
	})},
	{"an event has no id of the request", "6.2|5", frame(func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"id":"rpc-`), []byte(`"x":"rpc-`), 1)
	})},
	{"an event has another id", "6.2|5", frame(func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"id":"rpc-`), []byte(`"id":"r-`), 1)
	})},
	{"an event has no version of JSON-RPC", "6.2|5", frame(func(b []byte) []byte {
		return bytes.Replace(b, []byte(`"jsonrpc"`), []byte(`"version"`), 1)
	})},
	{"a stream has the status 500", "6.2", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == "stream" {
				c.Status = 500
			}
			return next()
		}
	}},
	{"a stream is silent while the task works", "6.2", func(p *partner.Partner) {
		held := newHeld()
		p.Frame = held.frame
	}},
}
