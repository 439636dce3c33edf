// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/acts"
	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// scope has the variables of a test.
type scope struct {
	runner   *Runner
	protocol *acts.Protocol
	document *acts.Document
	session  string
	tasks    map[string]string // ids by name; guarded by mu

	mu       sync.Mutex
	captured map[string]map[string]any // by step
	steps    map[string]*outcome
	hooks    map[string]*wire.Receiver
}

func newScope(r *Runner, p *acts.Protocol, d *acts.Document) *scope {
	return &scope{runner: r, protocol: p, document: d, session: "session-" + uuid(),
		tasks: make(map[string]string), captured: make(map[string]map[string]any), steps: make(map[string]*outcome),
		hooks: make(map[string]*wire.Receiver)}
}

// vars finds variables for a step with the identity.
func (s *scope) vars(as *wire.Identity) acts.Vars {
	return func(expression string) (any, bool) {
		switch expression {
		case "$uuid":
			return uuid(), true
		case "$session":
			return s.session, true
		case "$repeat", "$absent":
			return "{{" + expression + "}}", true // the sender of a raw step replaces it
		}
		if more, is := strings.CutPrefix(expression, "$now"); is {
			return now(more)
		}
		head, rest, dotted := strings.Cut(expression, ".")
		if head == "$task" {
			return s.task(rest), true
		}
		if !dotted {
			return s.variable(expression)
		}
		switch head {
		case "env":
			return os.LookupEnv(rest)
		case "behavior":
			return text(s.runner.profile.Behaviors, rest)
		case "name":
			v, ok := s.protocol.Names[rest]
			return v, ok
		case "as":
			return as.AIC, rest == "aic"
		case "partner":
			return s.runner.partner, rest == "aic" && s.runner.partner != ""
		case "url":
			url, err := s.runner.url(rest)
			return url, err == nil
		case "identity":
			name, what, _ := strings.Cut(rest, ".")
			id := s.runner.identities[name]
			if id == nil || what != "aic" {
				return nil, false
			}
			return s.runner.aic(id), true
		}
		return s.left(head, rest)
	}
}

// now returns the time, so much from now, and in a zone: "-1h +08:00".
func now(shift string) (any, bool) {
	at := time.Now().UTC()
	for _, word := range strings.Fields(shift) {
		if d, err := time.ParseDuration(word); err == nil {
			at = at.Add(d)
			continue
		}
		zone, err := time.Parse("Z07:00", word)
		if err != nil {
			return nil, false
		}
		_, offset := zone.Zone()
		at = at.In(time.FixedZone("", offset))
	}
	return at.Format("2006-01-02T15:04:05.000Z07:00"), true
}

// task returns the id of the test's task with the name.
func (s *scope) task(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tasks[name] == "" {
		s.tasks[name] = "task-" + uuid()
	}
	return s.tasks[name]
}

func text(m map[string]string, name string) (any, bool) {
	v, ok := m[name]
	return v, ok
}

// variable finds one of the document or of the profile.
func (s *scope) variable(name string) (any, bool) {
	if v, ok := s.runner.profile.Variables[name]; ok {
		return v, true
	}
	if v, ok := s.document.Variables[name]; ok {
		resolved, err := acts.Vars(func(inner string) (any, bool) {
			if inner == name || s.document.Variables[inner] != "" {
				return nil, false
			}
			return s.vars(s.runner.identities["leader"])(inner)
		}).Resolve(v)
		return resolved, err == nil
	}
	return nil, false
}

// left finds what an earlier step has left: a captured value, or a part of its answer.
func (s *scope) left(step, rest string) (any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if hook := s.hooks[step]; hook != nil && rest == "url" {
		return hook.URL, true
	}
	if v, ok := s.captured[step][rest]; ok {
		return v, true
	}
	o := s.steps[step]
	if o == nil {
		return nil, false
	}
	return o.part(rest)
}

// part finds what is at a path whose first name is response, envelope, request, error, events, event, sequence, status
// or headers.
func (o *outcome) part(path string) (any, bool) {
	head, rest, _ := strings.Cut(path, ".")
	name, index, indexed := strings.Cut(head, "[")
	if indexed {
		rest = strings.TrimSuffix("["+index+"."+rest, ".")
	}
	var value any
	switch name {
	case "response", "result":
		if value = o.root; !o.hasRoot {
			value = o.body
		}
	case "envelope":
		value = o.body
	case "request":
		value = decode(o.exchange.Request.Body)
	case "error":
		value = o.failure
	case "events":
		value = o.objects()
	case "event":
		if o.event == nil {
			return nil, false
		}
		value = o.event.data
	case "sequence":
		if o.event == nil {
			return nil, false
		}
		value = o.event.sequence
	case "status":
		value = json.Number(fmt.Sprint(o.exchange.Status))
	case "headers":
		return o.exchange.Headers.Get(rest), true
	default:
		return nil, false
	}
	return at(value, rest)
}

// at returns the first value at the path.
func at(value any, path string) (any, bool) {
	parsed, err := acts.ParsePath(path)
	if err != nil {
		return nil, false
	}
	values := parsed.Of(value)
	if len(values) == 0 {
		return nil, false
	}
	return values[0], true
}

func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
