// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// Readings returns Partners with other readings of what the specification leaves open. No check may fail one.
func Readings() []Mutant { return readings }

// over answers commands to a task that has ended.
func over(command, name string) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if failure != nil || c.Task == nil || c.Command != command || c.Method != "rpc" {
				return v, failure
			}
			ignored := false
			p.Locked(func() {
				kept := c.Task.Messages[len(c.Task.Messages)-1]
				ignored = kept["id"] != c.Message["id"]
			})
			if ignored {
				return nil, p.Failure(name)
			}
			return v, failure
		}
	}
}

// statuses answers errors with a status of HTTP.
func statuses(of func(code int) int) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if failure, is := o["error"].(object); is {
				c.Status = of(failure["code"].(int))
			}
		}
	}
}

var readings = []Mutant{
	{"a cancel that is ignored is answered with -32002", "", over("cancel", "TaskNotCancelableError")},
	{"a stream begins with a task that works", "", func(p *partner.Partner) {
		p.Pieces = func(t *partner.Task, steps []partner.Step) []partner.Step {
			if len(steps) > 2 && len(t.Messages) == 1 {
				return steps[1:]
			}
			return steps
		}
	}},
	{"a start says accepted, and the work comes later", "", func(p *partner.Partner) {
		p.Pieces = func(t *partner.Task, steps []partner.Step) []partner.Step {
			if len(steps) > 1 && len(t.Messages) == 1 {
				steps[1].Wait += 20 * time.Millisecond
			}
			return steps
		}
	}},
	{"a start says working, and the rest comes later", "", func(p *partner.Partner) {
		p.Pieces = func(t *partner.Task, steps []partner.Step) []partner.Step {
			if len(steps) > 2 && len(t.Messages) == 1 {
				steps[2].Wait += 20 * time.Millisecond
			}
			return steps
		}
	}},
	{"a continue says working, and the rest comes later", "", func(p *partner.Partner) {
		p.Pieces = func(t *partner.Task, steps []partner.Step) []partner.Step {
			if len(steps) > 1 && len(t.Messages) > 1 {
				steps[1].Wait += 20 * time.Millisecond
			}
			return steps
		}
	}},
	{"the histories are in each answer", "", func(p *partner.Partner) {
		p.Result = func(t *partner.Task, o object) {
			if o["statusHistory"] == nil {
				o["statusHistory"] = statusesOf(t)
			}
		}
	}},
	{"times in UTC", "", changed("", shift(func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }))},
	{"errors have a status of HTTP", "", statuses(func(code int) int {
		switch code {
		case -32001:
			return http.StatusNotFound
		case -32009:
			return http.StatusForbidden
		case -32603:
			return http.StatusInternalServerError
		}
		return http.StatusBadRequest
	})},
	{"a request that is none of JSON-RPC gets -32700", "", code("InvalidRequest", -32700)},
	{"a task belongs to all Leaders", "", accepts("owner")},
	{"set with an unknown id makes a configuration", "", accepts("unknown configuration")},
	{"a webhook is sent again for all but 200", "", func(p *partner.Partner) {
		p.Again = func(_ *partner.Webhook, status int, retry bool) bool { return retry || status == http.StatusAccepted }
	}},
	{"a webhook is sent once", "", func(p *partner.Partner) {
		p.Again = func(*partner.Webhook, int, bool) bool { return false }
	}},
	{"a stream closes at complete and cancel without an event", "", func(p *partner.Partner) {
		p.Frame = func(_ *partner.Call, e *partner.Event, b []byte) []byte {
			if e.State == "completed" || e.State == "canceled" {
				return nil
			}
			return b
		}
	}},
	{"a lastEventSeq beyond the end is an error", "", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			params, _ := c.Message["commandParams"].(object)
			if c.Command == "re-stream" && failure == nil && beyond(p, c, params) {
				return nil, p.Failure("TaskNotFoundError")
			}
			return v, failure
		}
	}},
	{"one URL for all methods", "", func(p *partner.Partner) {
		p.HTTP = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/rpc" || r.Method == http.MethodGet {
				return false
			}
			http.NotFound(w, r)
			return true
		}
	}},
	{"no ACS is served", "", func(p *partner.Partner) { p.Card = nil }},
	{"an invitation is an unknown method", "", code("GroupNotSupportedError", -32601)},
	{"one of two configurations is notified", "", func(p *partner.Partner) {
		tasks := make(map[string]string) // the configuration, by task
		p.Webhook = func(w *partner.Webhook) bool {
			var only string
			p.Locked(func() {
				if tasks[w.Task.ID] == "" {
					tasks[w.Task.ID] = w.Config.ID
				}
				only = tasks[w.Task.ID]
			})
			return only == w.Config.ID
		}
	}},
	{"a rejected task does not say why", "", changed("rejected", put([]any{}, "dataItems"))},
	{"products stay at a continue", "", func(p *partner.Partner) {
		kept := make(map[*partner.Task][]any)
		p.Change = func(t *partner.Task, from, next string, _ object) string {
			if from == "awaiting-completion" && next == "working" {
				kept[t] = t.Products
			}
			return next
		}
		p.Result = func(t *partner.Task, o object) {
			if t.State() == "working" && len(t.Products) == 0 && kept[t] != nil {
				o["products"] = kept[t]
			}
		}
	}},
}

func statusesOf(t *partner.Task) []any {
	all := []any{}
	for _, s := range t.Statuses {
		all = append(all, s)
	}
	return all
}

// beyond reports whether a stream should begin behind the last event.
func beyond(p *partner.Partner, c *partner.Call, params object) (is bool) {
	n, _ := params["lastEventSeq"].(json.Number)
	seq, err := n.Int64()
	p.Locked(func() { is = err == nil && int(seq) > len(c.Task.Events) })
	return is
}
