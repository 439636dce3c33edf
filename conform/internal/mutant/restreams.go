// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"slices"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// anew are the sections of streams that begin again.
const anew = "6.2.5|6.2.6|6.2"

type events = []*partner.Event

// reStreams are deviations of a stream that begins again.
var reStreams = []Mutant{
	{"lastEventSeq is not read", anew, start("lastEventSeq")},
	{"a stream begins with the last event again", anew, replay(func(t *partner.Task, e events) events {
		if n := len(t.Events) - len(e); n > 0 {
			return t.Events[n-1:]
		}
		return e
	})},
	{"a stream that begins again skips an event", anew, replay(func(t *partner.Task, e events) events {
		return e[min(1, len(e)):]
	})},
	{"a stream that begins again has new events alone", anew, replay(
		func(*partner.Task, events) events { return nil })},
	{"a stream that begins again has the last event alone", anew, replay(
		func(_ *partner.Task, e events) events { return e[max(0, len(e)-1):] })},
	{"a stream that begins again counts anew", anew, replay(func(_ *partner.Task, e events) events {
		return copies(e, func(i int, e *partner.Event) { e.Seq = i + 1 })
	})},
	{"a stream that begins again counts on", anew, replay(func(t *partner.Task, e events) events {
		return copies(e, func(i int, e *partner.Event) { e.Seq = len(t.Events) + i + 1 })
	})},
	{"a stream that begins again is backwards", anew, replay(func(_ *partner.Task, e events) events {
		turned := slices.Clone(e)
		slices.Reverse(turned)
		return turned
	})},
	{"a stream that begins again has other times", anew, replay(func(_ *partner.Task, e events) events {
		return copies(e, func(_ int, e *partner.Event) {
			if status, is := e.Object["status"].(object); is {
				changed := object{}
				for name, v := range status {
					changed[name] = v
				}
				changed["stateChangedAt"] = "2020-01-01T00:00:00+08:00"
				e.Object = with(e.Object, "status", changed)
			}
		})
	})},
	{"a stream that begins again lacks the pieces", anew, replay(func(_ *partner.Task, e events) events {
		return slices.DeleteFunc(slices.Clone(e), func(e *partner.Event) bool { return e.State == "" })
	})},
	{"a stream that begins again ends at once", anew, func(p *partner.Partner) {
		p.End = func(c *partner.Call, e *partner.Event, last bool) bool {
			return last || c.Command == "re-stream" && e == c.Task.Events[len(c.Task.Events)-1]
		}
	}},
	{"a stream of an ended task stays open", anew, func(p *partner.Partner) {
		p.End = func(c *partner.Call, e *partner.Event, last bool) bool { return last && c.Command != "re-stream" }
	}},
	{"a stream cannot begin again", anew, func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if message, is := c.Params["message"].(object); is && message["command"] == "re-stream" {
				return nil, p.Failure("UnsupportedOperationError")
			}
			return next()
		}
	}},
	{"a stream that begins again begins the work again", anew, func(p *partner.Partner) {
		accepts("second start", "second message")(p)
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if message, is := c.Params["message"].(object); is && message["command"] == "re-stream" {
				message["command"] = "start"
			}
			return next()
		}
	}},
	{"null as lastEventSeq is refused", anew, func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			message, _ := c.Params["message"].(object)
			params, _ := message["commandParams"].(object)
			if v, has := params["lastEventSeq"]; has && v == nil {
				return nil, p.Failure("InvalidParams")
			}
			return next()
		}
	}},
	{"a lastEventSeq that is no number is accepted", anew, accepts("lastEventSeq")},
	{"a stream that begins again has the id of the first request", anew + "|5", func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if c.Command == "re-stream" && o["result"] != nil {
				o["id"] = "1"
			}
		}
	}},
}

// replay changes the events with which a stream begins again.
func replay(change func(t *partner.Task, e events) events) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Replay = func(c *partner.Call, e []*partner.Event) []*partner.Event {
			if c.Command != "re-stream" {
				return e
			}
			return change(c.Task, e)
		}
	}
}

func copies(events []*partner.Event, change func(int, *partner.Event)) []*partner.Event {
	var all []*partner.Event
	for i, e := range events {
		copied := *e
		change(i, &copied)
		all = append(all, &copied)
	}
	return all
}

func with(o object, name string, value any) object {
	copied := object{name: value}
	for member, v := range o {
		if member != name {
			copied[member] = v
		}
	}
	return copied
}
