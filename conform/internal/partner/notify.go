// SPDX-License-Identifier: Apache-2.0

package partner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// Config is where the notifications of a task go.
type Config struct {
	ID, URL, Token, TaskID, Owner string
}

// notify is what a start says of its notifications.
type notify struct {
	config string
	states []any // none for all
}

// Webhook is a request of a notification.
type Webhook struct {
	Method, URL string
	Header      http.Header
	Object      Object // its body
	Body        []byte // in place of the object
	Task        *Task
	State       string
	Config      *Config
	Attempt     int // from 1
}

func states(params Object) []any {
	all, _ := params["notifyOnStates"].([]any)
	return all
}

func (f *Config) object() Object {
	return Object{"id": f.ID, "url": f.URL, "token": f.Token, "taskId": f.TaskID}
}

// set registers a configuration, or changes one.
func (p *Partner) set(c *Call) (any, *Error) {
	address, token := text(c.Params, "url"), text(c.Params, "token")
	u, err := url.Parse(address)
	if p.wrong(err != nil || u != nil && u.Scheme != "http" && u.Scheme != "https", "url") {
		return nil, p.invalid("url")
	}
	if p.wrong(token == "", "token") {
		return nil, p.invalid("token")
	}
	id, isText := c.Params["id"].(string)
	if p.wrong(c.Params["id"] != nil && !isText, "id of a configuration") {
		return nil, p.invalid("id")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == "" {
		p.serial++
		f := &Config{fmt.Sprintf("notification-%d", p.serial), address, token, text(c.Params, "taskId"), c.Caller}
		p.configs = append(p.configs, f)
		return f.object(), nil
	}
	for _, f := range p.configs {
		if f.ID == id && f.TaskID == text(c.Params, "taskId") && f.Owner == c.Caller {
			f.URL, f.Token = address, token
			return f.object(), nil
		}
	}
	if p.Accepts["unknown configuration"] {
		f := &Config{id, address, token, text(c.Params, "taskId"), c.Caller}
		p.configs = append(p.configs, f)
		return f.object(), nil
	}
	return nil, p.invalid("id")
}

// named returns the configurations that a request is about. The caller has the lock.
func (p *Partner) named(c *Call) (named []*Config, failure *Error) {
	id := text(c.Params, "notificationConfigId")
	for _, f := range p.configs {
		if f.TaskID == text(c.Params, "taskId") && (id == "" || f.ID == id) &&
			(f.Owner == c.Caller || p.Accepts["owner of a configuration"]) {
			named = append(named, f)
		}
	}
	if id != "" && len(named) == 0 {
		return nil, p.failure("TaskNotFoundError", Object{"notificationConfigId": id})
	}
	return named, nil
}

func (p *Partner) get(c *Call) (any, *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	named, failure := p.named(c)
	all := []any{}
	for _, f := range named {
		all = append(all, f.object())
	}
	return all, failure
}

func (p *Partner) remove(c *Call) (any, *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	named, failure := p.named(c)
	if failure != nil {
		return nil, failure
	}
	if !p.Accepts["deleted configurations"] {
		p.configs = slices.DeleteFunc(p.configs, func(f *Config) bool { return slices.Contains(named, f) })
	}
	return Object{"success": true}, nil
}

// notified carries out notification/start.
func (p *Partner) notified(c *Call) (any, *Error) {
	if p.wrong(c.Command != "start", "command of notification/start") {
		return nil, p.invalid("command")
	}
	params, _ := c.Message["commandParams"].(Object)
	id := text(params, "notificationConfigId")
	if p.wrong(id == "", "no notificationConfigId") {
		return nil, p.invalid("notificationConfigId")
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := slices.ContainsFunc(p.configs, func(f *Config) bool {
		return f.ID == id && f.TaskID == c.Text("taskId") && f.Owner == c.Caller
	})
	if p.wrong(!known, "configuration of a start") {
		return nil, p.invalid("notificationConfigId")
	}
	t, _, failure := p.start(c)
	if failure != nil {
		return nil, failure
	}
	return p.object(t, false), nil
}

// fire sends notifications of a state. The caller has the lock.
func (p *Partner) fire(t *Task, state string) {
	for _, f := range p.configs {
		if f.TaskID != t.ID || f.Owner != "" && f.Owner != t.Owner {
			continue
		}
		i := slices.IndexFunc(t.notify, func(n notify) bool { return n.config == f.ID })
		if i >= 0 && len(t.notify[i].states) > 0 && !slices.Contains(t.notify[i].states, any(state)) &&
			!p.Accepts["all states"] {
			continue
		}
		copied := *f
		t.queue = append(t.queue, &Webhook{Method: http.MethodPost, URL: f.URL, Object: p.object(t, false), Task: t,
			State: state, Config: &copied, Header: http.Header{"Content-Type": {"application/json"},
				"X-Acps-Aip-Notification-Token": {f.Token}}})
	}
	if !t.sending && len(t.queue) > 0 {
		t.sending = true
		p.begins(func() { p.send(t) })
	}
}

// send sends the notifications of a task, one behind the other.
func (p *Partner) send(t *Task) {
	for {
		p.mu.Lock()
		if len(t.queue) == 0 {
			t.sending = false
			p.mu.Unlock()
			return
		}
		w := t.queue[0]
		t.queue = t.queue[1:]
		p.mu.Unlock()
		pause := firstPause
		for w.Attempt = 1; w.Attempt <= maxTries; w.Attempt++ {
			retry := w.Attempt < maxTries
			if p.Webhook == nil || p.Webhook(w) {
				status := p.post(w)
				retry = retry && status/100 != 2
				if p.Again != nil {
					retry = p.Again(w, status, retry)
				}
			} else {
				retry = false
			}
			if !retry || !p.pause(pause) {
				break
			}
			pause *= 2
		}
	}
}

// post sends one request, and returns the status of the answer; 0 without one.
func (p *Partner) post(w *Webhook) int {
	body := w.Body
	if body == nil {
		var err error
		p.mu.Lock()
		body, err = json.Marshal(w.Object)
		p.mu.Unlock()
		if err != nil {
			return 0
		}
	}
	r, err := http.NewRequestWithContext(p.ctx, w.Method, w.URL, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	r.Header = w.Header
	answer, err := hooks.Do(r)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

var hooks = &http.Client{Timeout: hookTime, Transport: &http.Transport{DisableKeepAlives: true,
	TLSHandshakeTimeout: hookTime, ResponseHeaderTimeout: hookTime - time.Second}}
