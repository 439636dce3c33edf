// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// outcome is what came of a step.
type outcome struct {
	exchange *wire.Exchange
	raw      bool   // it is one of a raw step
	path     string // of the domain object in the answer
	body     any    // the answer's JSON; nil if it is none
	isJSON   bool
	root     any // the domain object
	hasRoot  bool
	failure  any    // the error of JSON-RPC
	event    *event // that an await_event found
	events   []event
	form     acts.EventForm
	parallel []*outcome
}

// exchanged returns what was sent and got; nothing for a step without an exchange.
func (o *outcome) exchanged() (sent, got string) {
	if o == nil || o.exchange == nil {
		return "", ""
	}
	return o.exchange.Sent(), o.exchange.Got()
}

// event is one of a stream, decoded.
type event struct {
	wire     wire.Event
	data     any // its JSON; nil if it is none
	object   any // the domain object
	has      bool
	sequence any
	state    string
}

// decode returns the JSON of the bytes, or nil.
func decode(b []byte) any {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return nil
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil
	}
	return v
}

// settle reads what the exchange has left so far.
func (o *outcome) settle() {
	e := o.exchange
	if e == nil {
		return
	}
	if e.Stream == nil {
		o.body = decode(e.Body)
		o.isJSON = o.body != nil || string(bytes.TrimSpace(e.Body)) == "null"
		if o.isJSON && e.Err == nil {
			o.root, o.hasRoot = at(o.body, o.path)
		}
	} else {
		frames, _ := e.Stream.Events()
		for _, frame := range frames[len(o.events):] {
			o.events = append(o.events, newEvent(frame, o.form))
		}
		if len(o.events) > 0 {
			o.body = o.events[0].data
		}
	}
	if object, ok := o.body.(map[string]any); ok {
		o.failure = object["error"]
	}
}

func newEvent(frame wire.Event, form acts.EventForm) event {
	e := event{wire: frame, data: decode(frame.Data)}
	if e.object, e.has = at(e.data, form.Root); e.has && form.State != "" {
		if state, ok := at(view(e.object, form.Kinds), form.State); ok {
			e.state, _ = state.(string)
		}
	}
	if form.Sequence != "" {
		e.sequence, _ = at(e.data, form.Sequence)
	}
	return e
}

// objects returns the domain objects of the events.
func (o *outcome) objects() []any {
	objects := []any{}
	for _, e := range o.events {
		objects = append(objects, e.object)
	}
	return objects
}

// lexeme returns the bytes of the member at the path, from the top of the answer or of the first event.
func (o *outcome) lexeme(path string) (string, bool) {
	raw := o.exchange.Body
	if o.exchange.Stream != nil {
		if len(o.events) == 0 {
			return "", false
		}
		raw = o.events[0].wire.Data
		if o.event != nil {
			raw = o.event.wire.Data
		}
	}
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case json.Unmarshal(raw, &object) == nil:
			if object[part] == nil {
				return "", false
			}
			raw = object[part]
		case json.Unmarshal(raw, &array) == nil:
			index, err := json.Number(part).Int64()
			if err != nil || index < 0 || int(index) >= len(array) {
				return "", false
			}
			raw = array[index]
		default:
			return "", false
		}
	}
	return string(bytes.TrimSpace(raw)), json.Valid(raw)
}
