// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Limits of what one request may hold.
const (
	v1MaxID     = 256  // bytes of an id
	v1MaxParts  = 1000 // parts of a message
	v1MaxURL    = 2048 // bytes of a webhook's URL
	v1MaxSecret = 4096 // bytes of what a webhook's owner wants to be authenticated by
	v1MaxPage   = 100  // tasks on a page
)

// Decode implements translate.Server.
func (s v1Server) Decode(req *translate.Request) (translate.Call, error) {
	if v := strings.TrimSpace(req.Version); v != "" && v != "1.0" && !strings.HasPrefix(v, "1.0.") && !strings.HasPrefix(v, "0.") {
		// Callers that name an older version, but call by these names, are understood.
		return translate.Call{}, task.Errorf(task.UnsupportedOperation, "this version is not spoken here; speak 1.0").
			WithField("A2A-Version").WithCause(errV1Version)
	}
	switch req.Content { // what callers send without saying what it is can only be JSON
	case "", "application/json", v1ContentType:
	default:
		if s.v03 {
			break // which has no rule for it
		}
		return translate.Call{}, task.Errorf(task.ContentTypeNotSupported,
			"the Content-Type must be application/json or %s", v1ContentType).WithField("Content-Type")
	}
	r := v1Request{req: req, root: "params", v03: s.v03}
	if s.rest {
		r.root = "body"
	}
	if req.Params.Exists() && !req.Params.IsObject() {
		r.fail("", "%s must be an object", r.root)
		return translate.Call{}, r.err
	}
	call := translate.Call{History: -1}
	call.Message.SenderRole = task.Leader
	call.Message.Command = task.Get
	switch req.Method {
	case v1Send, v1SendStream:
		r.send(&call, !s.confirm)
	case v1GetTask:
		call.Message.TaskID = r.id("id", r.param("id"), true)
		call.History = r.history(r.param("historyLength"), "historyLength")
	case v1CancelTask:
		call.Message.Command = task.Cancel
		call.Message.TaskID = r.id("id", r.param("id"), true)
		call.Strict = true
	case v1Subscribe:
		call.Message.Command = task.ReStream
		call.Message.TaskID = r.id("id", r.param("id"), true)
		call.Stream, call.Snapshot = true, true
		call.Strict, call.Finished = !s.v03, !s.v03 && !s.confirm
	case v1ListTasks:
		call.Op = translate.ListTasks
		r.list(&call, s)
	case v1CreateConfig:
		call.Op = translate.SetWebhook
		if call.Webhook = new(task.Webhook); s.v03 {
			r.v03Webhook(call.Webhook)
		} else {
			call.Webhook = r.webhook("", r.param)
		}
		call.Webhook.TaskID = r.id("taskId", r.param("taskId"), true)
	case v1GetConfig, v1DeleteConfig, v1ListConfigs:
		r.webhooks(&call)
	case v1ExtendedCard:
		call.Op = translate.ExtendedCard
	default:
		return translate.Call{}, task.Errorf(task.MethodNotFound, "A2A 1.0 has no such method")
	}
	if r.err != nil {
		return translate.Call{}, r.err
	}
	if call.Op != translate.Command && call.Webhook != nil {
		call.TaskExists = true
		call.Message.TaskID = call.Webhook.TaskID
	}
	return call, nil
}

// v1Request reads the values of a request, and keeps the first error. What it returns are copies.
type v1Request struct {
	req  *translate.Request
	root string // what the params are called in the request
	v03  bool   // it is HTTP+JSON of 0.3
	err  *task.Error
}

// fail notes an error at a path under the params.
func (r *v1Request) fail(path, format string, args ...any) {
	if r.err != nil {
		return
	}
	field := r.root
	if path != "" {
		field = path
		if r.root == "params" {
			field = "params." + path
		}
	}
	r.err = task.Errorf(task.InvalidParams, format, args...).WithField(field)
}

// v1Last returns the last name of a path.
func v1Last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// param returns one of the params. Those in the path come first, since it is they that the request was routed by.
func (r *v1Request) param(name string) (v gjson.Result) {
	if text, ok := r.req.PathParams[name]; ok {
		return gjson.Result{Type: gjson.String, Str: text}
	}
	if v = memberOf(r.req.Params, name); v.Type == gjson.Null && r.req.Query.Has(name) {
		return gjson.Result{Type: gjson.String, Str: r.req.Query.Get(name)}
	}
	return v
}

func (r *v1Request) text(path string, v gjson.Result, most int) string {
	switch {
	case v.Type == gjson.Null:
		return ""
	case v.Type != gjson.String:
		r.fail(path, "%s must be a string", v1Last(path))
		return ""
	case len(v.Str) > most:
		r.fail(path, "%s must be at most %d bytes long", v1Last(path), most)
		return ""
	}
	return strings.Clone(v.Str)
}

// word reads a name that goes into logs, keys and header fields.
func (r *v1Request) word(path string, v gjson.Result, most int, required bool) string {
	s := r.text(path, v, most)
	switch {
	case strings.ContainsFunc(s, unicode.IsControl):
		r.fail(path, "%s must have no control characters", v1Last(path))
	case required && s == "":
		r.fail(path, "%s is missing; it must be a string of 1 to %d bytes", v1Last(path), most)
	}
	return s
}

func (r *v1Request) id(path string, v gjson.Result, required bool) string {
	return r.word(path, v, v1MaxID, required)
}

// count reads an integer that is not negative. ProtoJSON allows it to be a string, and a query has no other. ok
// is false where there is none.
func (r *v1Request) count(path string, v gjson.Result) (n int, ok bool) {
	var long int64
	switch v.Type {
	case gjson.Null:
		return 0, false
	case gjson.String:
		parsed, err := strconv.ParseInt(v.Str, 10, 64)
		long, ok = parsed, err == nil
	default:
		long, ok = jsonrpc.Int(v)
	}
	if !ok || long < 0 {
		r.fail(path, "%s must be an integer that is not negative", v1Last(path))
		return 0, false
	}
	return int(min(long, math.MaxInt32)), true
}

// history reads how many messages are wanted: all, where it is not said.
func (r *v1Request) history(v gjson.Result, path string) int {
	if n, ok := r.count(path, v); ok {
		return n
	}
	return -1
}

func (r *v1Request) flag(path string, v gjson.Result) bool {
	switch {
	case v.Type == gjson.True, v.Type == gjson.String && v.Str == "true":
		return true
	case v.Type == gjson.False, v.Type == gjson.Null, v.Type == gjson.String && v.Str == "false":
	default:
		r.fail(path, "%s must be true or false", v1Last(path))
	}
	return false
}

// object returns a member of an object that is one itself, or nothing.
func (r *v1Request) object(path string, v gjson.Result) gjson.Result {
	if v.Type != gjson.Null && !v.IsObject() {
		r.fail(path, "%s must be an object", v1Last(path))
	}
	return v
}

// send reads a SendMessageRequest. A task that a message names goes on, and must be there: callers of A2A do not
// name tasks.
func (r *v1Request) send(call *translate.Call, complete bool) {
	message := r.object("message", r.param("message"))
	if !message.Exists() {
		r.fail("message", "message is missing; it must be an object")
		return
	}
	var id, taskID, contextID, role, parts gjson.Result
	var rest callRest
	members(message, func(key string, v gjson.Result) {
		switch key {
		case "messageId":
			id = v
		case "taskId":
			taskID = v
		case "contextId":
			contextID = v
		case "role":
			role = v
		case "parts":
			parts = v
		case "kind", "type": // of other versions
		case "content":
			if r.v03 {
				parts = v
			}
		default:
			rest.message.Add(key, v)
		}
	})
	m := &call.Message
	m.ID = r.id("message.messageId", id, true)
	m.TaskID = r.id("message.taskId", taskID, false)
	m.SessionID = r.id("message.contextId", contextID, false)
	switch r.text("message.role", role, v1MaxID) {
	case "ROLE_USER", "ROLE_UNSPECIFIED", "":
	case "user":
		if r.v03 { // the word of its JSON-RPC
			break
		}
		fallthrough
	default:
		r.fail("message.role", "role must be ROLE_USER: an agent does not send messages here")
	}
	m.DataItems = r.parts(parts)

	const at = "configuration."
	configuration := r.object("configuration", r.param("configuration"))
	if r.v03 {
		r.v03Configuration(configuration, call)
	}
	members(configuration, func(key string, v gjson.Result) {
		switch key {
		case "historyLength":
			call.History = r.history(v, at+key)
		case "returnImmediately":
			if !r.v03 && r.flag(at+key, v) {
				call.Terms.Response = atOnce
			}
		case "taskPushNotificationConfig":
			if r.v03 {
				break
			}
			config := r.object(at+key, v)
			call.Webhook = r.webhook(at+key+".", func(name string) gjson.Result { return memberOf(config, name) })
			call.Webhook.TaskID = m.TaskID
		case "blocking", "pushNotificationConfig", "pushNotification": // of other versions
		default:
			rest.configuration.Add(key, v)
		}
	})
	members(r.req.Params, func(key string, v gjson.Result) {
		switch key {
		case "message", "configuration", "tenant":
		default:
			rest.params.Add(key, v)
		}
	})
	m.Extensions = rest.extra()
	call.Stream = r.req.Method == v1SendStream
	call.Blocking = !call.Stream && call.Terms.Response == 0
	if m.TaskID == "" {
		m.Command = task.Start
		call.AutoComplete = complete
		return
	}
	m.Command = task.Continue
	call.Strict = true
	call.Snapshot = call.Stream // the first frame of a stream is a task
}

// parts reads the parts of a message.
func (r *v1Request) parts(v gjson.Result) []task.DataItem {
	const path = "message.parts"
	if !v.IsArray() {
		r.fail(path, "parts is missing; it must be an array of parts, at least one")
		return nil
	}
	var items []task.DataItem
	v.ForEach(func(_, part gjson.Result) bool {
		if len(items) == v1MaxParts {
			r.fail(path, "parts must have at most %d entries", v1MaxParts)
			r.err.WithData("limit", "parts").WithData("max", v1MaxParts)
			return false
		}
		at := path + "[" + strconv.Itoa(len(items)) + "]"
		if r.v03 {
			items = append(items, r.v03Part(at, part))
		} else {
			items = append(items, r.part(at, part))
		}
		return r.err == nil
	})
	if len(items) == 0 {
		r.fail(path, "parts must have at least one entry")
	}
	return items
}

// part reads one part. It is strict where the reader of agents' parts is not: a caller can be told.
func (r *v1Request) part(path string, v gjson.Result) task.DataItem {
	p := v1PartOf(v)
	for _, m := range [...]struct {
		name string
		v    gjson.Result
	}{{"text", p.text}, {"raw", p.raw}, {"url", p.url}, {"filename", p.filename}, {"mediaType", p.mediaType}} {
		if m.v.Type != gjson.Null && m.v.Type != gjson.String {
			r.fail(path+"."+m.name, "%s must be a string", m.name)
		}
	}
	r.object(path+".metadata", p.metadata)
	if _, ok := v1Base64(p.raw.Str); !ok {
		r.fail(path+".raw", "raw must be base64")
	}
	if p.contents() > 1 {
		r.fail(path, "a part must have only one of text, raw, url and data")
	}
	it, ok := p.item(false)
	if !ok {
		r.fail(path, "a part must be an object with one of text, raw, url and data, which is not empty")
	}
	for _, s := range [...]*string{&it.Text, &it.Name, &it.MIMEType, &it.URI, &it.Bytes} {
		*s = strings.Clone(*s)
	}
	return it
}

// webhook reads a TaskPushNotificationConfig, whose members member returns.
func (r *v1Request) webhook(at string, member func(name string) gjson.Result) *task.Webhook {
	w := &task.Webhook{Dialect: name10}
	w.ID = r.id(at+"id", member("id"), false)
	w.URL = r.word(at+"url", member("url"), v1MaxURL, true)
	w.Token = r.word(at+"token", member("token"), v1MaxSecret, false)
	auth := r.object(at+"authentication", member("authentication"))
	w.Scheme = r.word(at+"authentication.scheme", memberOf(auth, "scheme"), v1MaxID, auth.Exists())
	w.Credentials = r.word(at+"authentication.credentials", memberOf(auth, "credentials"), v1MaxSecret, false)
	return w
}

// webhooks reads what is asked about the webhooks that a task has. There are few, so that all are on one page.
func (r *v1Request) webhooks(call *translate.Call) {
	w := &task.Webhook{Dialect: name10}
	w.TaskID = r.id("taskId", r.param("taskId"), true)
	call.Webhook, call.Op = w, translate.GetWebhooks
	switch r.req.Method {
	case v1GetConfig:
		call.Method = v1GetConfig
	case v1DeleteConfig:
		call.Op = translate.DeleteWebhooks
	default:
		return
	}
	w.ID = r.id("id", r.param("id"), true)
}

// list reads a ListTasksRequest.
func (r *v1Request) list(call *translate.Call, s v1Server) {
	l := new(task.List)
	call.List = l
	l.SessionID = r.id("contextId", r.param("contextId"), false)
	l.Token = r.text("pageToken", r.param("pageToken"), v1MaxURL)
	l.Size, _ = r.count("pageSize", r.param("pageSize"))
	if l.Size > v1MaxPage {
		r.fail("pageSize", "pageSize must be at most %d", v1MaxPage)
	}
	l.Products = r.flag("includeArtifacts", r.param("includeArtifacts"))
	call.History = r.history(r.param("historyLength"), "historyLength")
	if after := r.text("statusTimestampAfter", r.param("statusTimestampAfter"), v1MaxID); after != "" {
		var err error
		if l.After, err = time.Parse(time.RFC3339, after); err != nil {
			r.fail("statusTimestampAfter", "statusTimestampAfter must be a time in ISO 8601, such as 2025-09-01T06:30:00.000Z")
		}
	}
	switch word := r.text("status", r.param("status"), v1MaxID); word {
	case "", "TASK_STATE_UNSPECIFIED":
	case "TASK_STATE_AUTH_REQUIRED": // which is never shown
		l.States = []task.State{"auth-required"}
	default:
		l.States = slices.DeleteFunc(task.States(), func(state task.State) bool { return s.state(state) != word })
		if len(l.States) == 0 {
			r.fail("status", "status must be a state, such as TASK_STATE_WORKING")
		}
	}
}
