// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

const (
	setMethod    = "notification/set"
	getMethod    = "notification/get"
	deleteMethod = "notification/delete"
	startMethod  = "notification/start"
)

// method changes what a method of configurations is asked.
func method(name string, change func(params object)) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == name {
				change(c.Params)
			}
			return next()
		}
	}
}

// list changes the list of notification/get.
func list(change func(all []any, params object) any) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if all, is := v.([]any); is && c.Method == getMethod && failure == nil {
				return change(all, c.Params), nil
			}
			return v, failure
		}
	}
}

// configurations are deviations of the methods of 6.3.1 to 6.3.4.
var configurations = []Mutant{
	{"a set has no id", "6.3.1", answer(setMethod, del("id"))},
	{"a set has a number as id", "6.3.1", answer(setMethod, put(1, "id"))},
	{"a set has the same id for all", "6.3.1|6.3.3", answer(setMethod, put("notification", "id"))},
	{"a set has no url", "6.3.1", answer(setMethod, del("url"))},
	{"a set has another url", "6.3.1", answer(setMethod, put("https://leader.example", "url"))},
	{"a set has no taskId", "6.3.1", answer(setMethod, del("taskId"))},
	{"a set has another taskId", "6.3.1", answer(setMethod, put("task-0", "taskId"))},
	{"a set has another token", "6.3.1", answer(setMethod, put("***", "token"))},
	{"a set is answered with true", "6.3.1", replace(setMethod, true)},
	{"a set is answered with a list", "6.3.1", func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if c.Method == setMethod && o["result"] != nil {
				o["result"] = []any{o["result"]}
			}
		}
	}},
	{"a set with an id makes another one", "6.3.1", method(setMethod, func(params object) { delete(params, "id") })},
	{"a set with null as id is refused", "6.3.1", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if id, has := c.Params["id"]; c.Method == setMethod && has && id == nil {
				return nil, p.Failure("InvalidParams")
			}
			return next()
		}
	}},
	{"a set with an id changes nothing", "6.3.1", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == setMethod && c.Params["id"] != nil {
				return object{"id": c.Params["id"], "url": c.Params["url"], "token": c.Params["token"],
					"taskId": c.Params["taskId"]}, nil
			}
			return next()
		}
	}},
	{"a set without a url is accepted", "6.3.1", accepts("url")},
	{"a set without a token is accepted", "6.3.1", accepts("token")},
	{"a set without a taskId is accepted", "6.3.1", accepts("taskId of a configuration")},
	{"a get is answered with an object", "6.3.3", list(func(all []any, _ object) any {
		if len(all) > 0 {
			return all[0]
		}
		return object{}
	})},
	{"a get has none of the configurations", "6.3.3", list(func([]any, object) any { return []any{} })},
	{"a get has one of two configurations", "6.3.3", list(func(all []any, _ object) any {
		return all[:min(1, len(all))]
	})},
	{"a get of one has all", "6.3.3", method(getMethod, func(params object) { delete(params, "notificationConfigId") })},
	{"a get has ids alone", "6.3.3", list(func(all []any, _ object) any {
		for i := range all {
			all[i] = all[i].(object)["id"]
		}
		return all
	})},
	{"a get has no urls", "6.3.3", list(func(all []any, _ object) any {
		for _, o := range all {
			delete(o.(object), "url")
		}
		return all
	})},
	{"a get is answered with null", "6.3.3", replace(getMethod, nil)},
	{"a delete is answered with true", "6.3.2", replace(deleteMethod, true)},
	{"a delete is answered with null", "6.3.2", replace(deleteMethod, nil)},
	{"a delete has no success", "6.3.2", answer(deleteMethod, put(false, "success"))},
	{"a delete has a text as success", "6.3.2", answer(deleteMethod, put("true", "success"))},
	{"a delete deletes nothing", "6.3.2", accepts("deleted configurations")},
	{"a delete of one deletes all", "6.3.2", method(deleteMethod, func(params object) {
		delete(params, "notificationConfigId")
	})},
	{"a delete without an id is refused", "6.3.2", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == deleteMethod && c.Params["notificationConfigId"] == nil {
				return nil, p.Failure("InvalidParams")
			}
			return next()
		}
	}},
	{"a start with a configuration is answered with true", "6.3.4", replaced(startMethod, true)},
	{"a start with a configuration has no task", "6.3.4", replaced(startMethod, object{"success": true})},
	{"a start with a configuration starts nothing", "6.3.4", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			if c.Method == startMethod {
				return object{"type": "task", "id": "task-0"}, nil
			}
			return next()
		}
	}},
	{"a start needs no configuration", "6.3.4", accepts("no notificationConfigId", "configuration of a start")},
	{"a start with an unknown configuration is accepted", "6.3.4", accepts("configuration of a start")},
	{"notifyOnStates is not read", "6.3.4|6.3.5", accepts("all states")},
	{"an empty notifyOnStates means no state", "6.3.4|6.3.5", silent(func(v any, has bool) bool {
		states, is := v.([]any)
		return is && len(states) == 0
	})},
	{"null as notifyOnStates means no state", "6.3.4|6.3.5", silent(func(v any, has bool) bool {
		return has && v == nil
	})},
	{"no notifyOnStates means no state", "6.3.4|6.3.5", silent(func(_ any, has bool) bool { return !has })},
}

// replaced puts another result in place of that of a start with a configuration.
func replaced(name string, value any) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if o["result"] != nil && c.Method == name {
				o["result"] = value
			}
		}
	}
}

// silent sends no webhook for a start with such states.
func silent(is func(v any, has bool) bool) func(*partner.Partner) {
	return hook(func(w *partner.Webhook) bool {
		v, has := w.Task.Params["notifyOnStates"]
		return !is(v, has)
	})
}

// hook sees webhooks, and reports whether they are sent.
func hook(see func(w *partner.Webhook) bool) func(*partner.Partner) {
	return func(p *partner.Partner) { p.Webhook = see }
}

// said changes the Task of webhooks.
func said(change func(object)) func(*partner.Partner) {
	return hook(func(w *partner.Webhook) bool {
		change(w.Object)
		return true
	})
}

const tokenHeader = "X-Acps-Aip-Notification-Token"

// webhooks are deviations of 6.3.5.
var webhooks = []Mutant{
	{"no webhook is sent", "6.3", hook(func(*partner.Webhook) bool { return false })},
	{"a webhook is a PUT", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Method = http.MethodPut
		return true
	})},
	{"a webhook has no token", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Header.Del(tokenHeader)
		return true
	})},
	{"a webhook has another token", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Header.Set(tokenHeader, "token")
		return true
	})},
	{"a webhook has the token as Bearer", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Header.Set("Authorization", "Bearer "+w.Header.Get(tokenHeader))
		w.Header.Del(tokenHeader)
		return true
	})},
	{"a webhook has its token in quotes", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Header.Set(tokenHeader, `"`+strings.Trim(w.Header.Get(tokenHeader), `"`)+`"`)
		return true
	})},
	{"a webhook has the token before the last set", "6.3.1|6.3.5", func(p *partner.Partner) {
		first := make(map[string]string) // by configuration
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			id, again := c.Params["id"].(string)
			if again && c.Method == setMethod {
				p.Locked(func() { c.Params["token"] = first[id] })
			}
			v, failure := next()
			if o, is := v.(object); is && c.Method == setMethod && !again {
				p.Locked(func() { first[o["id"].(string)] = o["token"].(string) })
			}
			return v, failure
		}
	}},
	{"a webhook is no JSON by its content type", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Header.Set("Content-Type", "text/plain")
		return true
	})},
	{"a webhook is one of JSON-RPC", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Object = object{"jsonrpc": "2.0", "method": "notification", "params": w.Object}
		return true
	})},
	{"a webhook is an event", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Object = object{"type": "status-update", "taskId": w.Task.ID, "status": w.Object["status"]}
		return true
	})},
	{"a webhook is a list", "6.3.5", hook(func(w *partner.Webhook) bool {
		b, err := json.Marshal([]any{w.Object})
		w.Body = b
		return err == nil
	})},
	{"a webhook is empty", "6.3.5", hook(func(w *partner.Webhook) bool {
		w.Body = []byte{}
		return true
	})},
	{"a webhook has another task", "6.3.5", said(func(o object) {
		if o["taskId"] != nil {
			o["taskId"] = "task-0"
		} else {
			o["id"] = "task-0"
		}
	})},
	{"a webhook has no type", "6.3.5", said(del("type"))},
	{"a webhook has no sessionId", "6.3.5", said(del("sessionId"))},
	{"a webhook has no status", "6.3.5", said(del("status"))},
	{"a webhook has no products at the end of a turn", "6.3.5", said(func(o object) {
		if o["status"].(object)["state"] == "awaiting-completion" {
			o["products"] = []any{}
		}
	})},
	{"a webhook has the state before", "6.3.5", said(put("accepted", "status", "state"))},
	{"the end of a task is not notified", "6.3.5", hook(func(w *partner.Webhook) bool {
		return w.State != "completed" && w.State != "canceled"
	})},
	{"a failed task is not notified", "6.3.5", hook(func(w *partner.Webhook) bool { return w.State != "failed" })},
	{"a task that awaits its completion is not notified", "6.3.5|6.3.4", hook(func(w *partner.Webhook) bool {
		return w.State != "awaiting-completion"
	})},
	{"a deleted configuration is notified", "6.3.2", func(p *partner.Partner) {
		accepts("deleted configurations")(p)
		gone := make(map[string]bool)
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			task, _ := c.Params["taskId"].(string)
			p.Locked(func() {
				if c.Method == deleteMethod && failure == nil {
					gone[task] = true
				}
				if c.Method == getMethod && gone[task] {
					v = []any{}
				}
			})
			return v, failure
		}
	}},
}
