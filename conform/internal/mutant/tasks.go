// SPDX-License-Identifier: Apache-2.0

package mutant

import (
	"time"

	"github.com/aip-gateway/aip-gateway/conform/internal/partner"
)

// ident changes the member of a Task with its id.
func ident(change func(o object, name string)) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Result = func(t *partner.Task, o object) { change(o, t.Version.TaskID) }
	}
}

// forms changes Tasks of one version.
func forms(second bool, change func(object)) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Result = func(t *partner.Task, o object) {
			if t.Version.V2 == second {
				change(o)
			}
		}
	}
}

// tasks are deviations of a Task's form, and of the answers of rpc.
var tasks = []Mutant{
	{"a task has no type", "4.2|6.1", result(del("type"))},
	{"a task has another type", "4.2|6.1", result(put("Task", "type"))},
	{"a task has the type of a message", "4.2|6.1", result(put("message", "type"))},
	{"a task has the type of the other version", "4.2|6.1", func(p *partner.Partner) {
		p.Result = func(t *partner.Task, o object) {
			o["type"] = map[bool]string{true: "task", false: "task-result"}[t.Version.V2]
		}
	}},
	{"a task has no id", "4.2|6.1", ident(func(o object, name string) { delete(o, name) })},
	{"a task has an id of the Partner's", "4.2|6.1", ident(func(o object, name string) { o[name] = "task-0" })},
	{"a task has a number as id", "4.2|6.1", ident(func(o object, name string) { o[name] = 7 })},
	{"a task has no sessionId", "4.2|6.1|4.1", result(del("sessionId"))},
	{"a task has another sessionId", "4.2|6.1|4.1", result(put("session-0", "sessionId"))},
	{"a task has no status", "4.2|6.1", result(del("status"))},
	{"a task has a text as status", "4.2|6.1", result(put("working", "status"))},
	{"a status has no state", "4.2|6.1", result(del("status", "state"))},
	{"a status has no time", "4.2|6.1", result(del("status", "stateChangedAt"))},
	{"a status has a time in milliseconds", "4.2|6.1", result(put(1_767_225_600_000, "status", "stateChangedAt"))},
	{"a status has a time without a zone", "4.2|6.1", result(put("2026-01-01T00:00:00", "status", "stateChangedAt"))},
	{"a status has a time in words", "4.2|6.1", result(put("Thu Jan 1 2026", "status", "stateChangedAt"))},
	{"a status has a text as data items", "4.2|6.1|4.5", result(put("text", "status", "dataItems"))},
	{"the time of a status moves with each answer", "4.2", result(func(o object) {
		put(time.Now().Format(time.RFC3339Nano), "status", "stateChangedAt")(o)
	})},
	{"the times of states do not rise", "4.2|4.3", changed("working", func(status object) {
		status["stateChangedAt"] = "2020-01-01T00:00:00+08:00"
	})},
	{"a result of v02 has no senderId", "4.2|6.1|4.3|6.0", forms(true, del("senderId"))},
	{"a result of v02 has another senderId", "4.2|6.1|4.3|6.0", forms(true, put("other", "senderId"))},
	{"a result of v02 has the role of the Leader", "4.2|6.1|4.3", forms(true, put("leader", "senderRole"))},
	{"a result of v02 has no sentAt", "4.2|6.1|4.3", forms(true, del("sentAt"))},
	{"a result of v02 has no id", "4.2|6.1|4.3", forms(true, del("id"))},
	{"a result of v01 has a taskId in place of an id", "4.2|6.1", forms(false, func(o object) {
		o["taskId"] = o["id"]
		delete(o, "id")
	})},
	{"a start is answered with null", "6.1", replace("start", nil)},
	{"a start is answered with true", "6.1", replace("start", true)},
	{"a start is answered with the state alone", "6.1", answer("start", func(o object) {
		o["state"] = o["status"].(object)["state"]
		delete(o, "status")
	})},
	{"a start is answered with a list of tasks", "6.1", func(p *partner.Partner) {
		p.Envelope = func(c *partner.Call, o object) {
			if c.Command == "start" && c.Method == "rpc" && o["result"] != nil {
				o["result"] = []any{o["result"]}
			}
		}
	}},
	{"a get is answered with null", "6.1", replace("get", nil)},
	{"a get is answered with another task", "6.1|4.2", answer("get", func(o object) {
		if o["type"] == "task" {
			o["id"] = "task-0"
		}
		if o["taskId"] != nil {
			o["taskId"] = "task-0"
		}
	})},
	{"a get knows nothing of a task's end", "6.1|4.2", answer("get", func(o object) {
		if s := o["status"].(object); s["state"] != "accepted" {
			s["state"] = "working"
		}
	})},
	{"a get of an unknown task makes it", "5|6.1", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if failure != nil && failure.Name == "TaskNotFoundError" && c.Command == "get" {
				c.Message["command"] = "start"
				return next()
			}
			return v, failure
		}
	}},
	{"a complete is answered with the state before", "6.1|4.2", answer("complete", put("awaiting-completion", "status",
		"state"))},
	{"a cancel is answered with the state before", "6.1|4.2", answer("cancel", put("working", "status", "state"))},
	{"a continue is answered with the state before", "6.1|4.2", answer("continue", put("awaiting-input", "status",
		"state"))},
	{"a start waits for the end of the work", "4.3|6.1", func(p *partner.Partner) {
		p.Handle = func(c *partner.Call, next func() (any, *partner.Error)) (any, *partner.Error) {
			v, failure := next()
			if o, is := v.(object); is && c.Command == "start" && c.Method == "rpc" {
				if s, is := o["status"].(object); is && s["state"] == "working" {
					select {
					case <-c.HTTP.Context().Done():
					case <-time.After(20 * time.Second):
					}
				}
			}
			return v, failure
		}
	}},
}

// product changes each product of a Task, and of an event.
func product(change func(object)) func(*partner.Partner) {
	return func(p *partner.Partner) {
		p.Result = func(_ *partner.Task, o object) {
			all, _ := o["products"].([]any)
			for _, one := range all {
				change(one.(object))
			}
		}
		p.Event = func(_ *partner.Task, e *partner.Event) []*partner.Event {
			if one, is := e.Object["product"].(object); is {
				change(one)
			}
			return []*partner.Event{e}
		}
	}
}

// item changes the data items of a kind in products.
func item(kind string, change func(object)) func(*partner.Partner) {
	return product(func(o object) {
		items, _ := o["dataItems"].([]any)
		for _, one := range items {
			if o := one.(object); o["type"] == kind {
				change(o)
			}
		}
	})
}

// products are deviations of products and their data items.
var products = []Mutant{
	{"a task that awaits its completion has no products", "4.4|6.1|4.2", result(del("products"))},
	{"a task that awaits its completion has an empty list of products", "4.4|6.1|4.2", result(put([]any{}, "products"))},
	{"the products are an object", "4.4|6.1|4.2", result(put(object{}, "products"))},
	{"the products are texts", "4.4|6.1|4.2", result(put([]any{"text"}, "products"))},
	{"the second product is lost", "4.4|6.1", result(func(o object) {
		if all, is := o["products"].([]any); is && len(all) > 1 {
			o["products"] = all[:1]
		}
	})},
	{"two products have the same id", "4.4", product(put("product", "id"))},
	{"a product has no id", "4.4", product(del("id"))},
	{"a product has a number as id", "4.4", product(put(1, "id"))},
	{"a product has a number as name", "4.4", product(put(1, "name"))},
	{"a product has a list as description", "4.4", product(put([]any{}, "description"))},
	{"a product has no data items", "4.4", product(del("dataItems"))},
	{"a product has a text as data items", "4.4", product(put("text", "dataItems"))},
	{"a product has its text beside the data items", "4.4|4.5", product(func(o object) {
		o["text"] = "text"
		delete(o, "dataItems")
	})},
	{"a text item has no text", "4.5", item("text", del("text"))},
	{"a text item has a number as text", "4.5", item("text", put(1, "text"))},
	{"a text item has its text in content", "4.5", item("text", func(o object) {
		o["content"] = o["text"]
		delete(o, "text")
	})},
	{"a data item has no type", "4.5", item("text", del("type"))},
	{"a data item has an unknown type", "4.5", item("text", put("markdown", "type"))},
	{"a text item has its type in capitals", "4.5", item("text", put("TEXT", "type"))},
	{"a file has neither uri nor bytes", "4.5", item("file", del("bytes"))},
	{"a file has uri and bytes", "4.5", item("file", put("https://partner.example/file", "uri"))},
	{"a file has bytes that are no base64", "4.5", item("file", put("hello!", "bytes"))},
	{"a file has a url in place of a uri", "4.5", item("file", func(o object) {
		o["url"] = "https://partner.example/file"
		delete(o, "bytes")
	})},
	{"a file has a number as type", "4.5", item("file", put(1, "mimeType"))},
	{"a file has a list as name", "4.5", item("file", put([]any{}, "name"))},
	{"structured data is a text", "4.5", item("data", put(`{"answer":42}`, "data"))},
	{"structured data is a list", "4.5", item("data", put([]any{42}, "data"))},
	{"structured data is lost", "4.5", item("data", del("data"))},
	{"metadata is a text", "4.5", item("text", put("text", "metadata"))},
}
