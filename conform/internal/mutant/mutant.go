// SPDX-License-Identifier: Apache-2.0

// Package mutant has Partners with a deviation from AIP at one place, to test the checks: a check must fail each
// Mutant, and no check may fail one of the Innocents or of the Readings.
package mutant

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// Mutant is a deviation of the small Partner.
type Mutant struct {
	Name string
	// Section is the beginning of the section that the check names; "|" is between several.
	Section string
	Change  func(p *partner.Partner)
}

// All returns the deviations that a check must find.
func All() []Mutant {
	var all []Mutant
	for _, some := range [][]Mutant{envelopes, requests, states, histories, tasks, products, streams, frames, reStreams,
		configurations, webhooks, identities, cards, groups} {
		all = append(all, some...)
	}
	return all
}

// Covers reports whether a check of the section is one for the Mutant.
func (m Mutant) Covers(section string) bool {
	for one := range strings.SplitSeq(m.Section, "|") {
		rest, is := strings.CutPrefix(section, one)
		if is && (rest == "" || strings.ContainsAny(rest[:1], ". (,")) {
			return true
		}
	}
	return false
}

type object = partner.Object

// accepts leaves checks of the Partner out.
func accepts(names ...string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		for _, name := range names {
			p.Accepts[name] = true
		}
	}
}

// code gives an error another code.
func code(name string, number int) func(*partner.Partner) {
	return func(p *partner.Partner) { p.Codes[name] = number }
}

// envelope changes each answer and each event.
func envelope(change func(object)) func(*partner.Partner) {
	return func(p *partner.Partner) { p.Envelope = func(_ *partner.Call, o object) { change(o) } }
}

// failed changes the errors of answers.
func failed(change func(object)) func(*partner.Partner) {
	return envelope(func(o object) {
		if failure, is := o["error"].(object); is {
			change(failure)
		}
	})
}

// answer changes the result of a command of rpc, or of a method of configurations.
func answer(command string, change func(object)) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			result, is := o["result"].(object)
			if is && (c.Command == command && c.Method != "stream" || c.Method == command) {
				change(result)
			}
		}
	}
}

// replace puts another result in place of that of a command, or of a method.
func replace(command string, value any) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if _, is := o["result"]; is && (c.Command == command && c.Method != "stream" || c.Method == command) {
				o["result"] = value
			}
		}
	}
}

// result changes each Task: in answers, events and webhooks.
func result(change func(object)) func(*partner.Partner) {
	return func(p *partner.Partner) { p.Result = func(_ *partner.Task, o object) { change(o) } }
}

// changed changes the status at a change to the state; "" for each.
func changed(to string, change func(object)) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Change = func(_ *partner.Task, _, next string, status object) string {
			if to == "" || next == to {
				change(status)
			}
			return next
		}
	}
}

// becomes puts a state in place of another one.
func becomes(from, to, instead string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Change = func(_ *partner.Task, before, next string, _ object) string {
			if (from == "" || before == from) && next == to {
				return instead
			}
			return next
		}
	}
}

// body changes the bytes of answers.
func body(change func([]byte) []byte) func(*partner.Partner) {
	return func(p *partner.Partner) { p.Body = func(_ *partner.Call, b []byte) []byte { return change(b) } }
}

// del removes a member at a path of names.
func del(path ...string) func(object) {
	return func(o object) {
		if o = inner(o, path); o != nil {
			delete(o, path[len(path)-1])
		}
	}
}

// put sets a member at a path of names.
func put(value any, path ...string) func(object) {
	return func(o object) {
		if o = inner(o, path); o != nil {
			o[path[len(path)-1]] = value
		}
	}
}

func inner(o object, path []string) object {
	for _, name := range path[:len(path)-1] {
		next, is := o[name].(object)
		if !is {
			return nil
		}
		o = next
	}
	return o
}
