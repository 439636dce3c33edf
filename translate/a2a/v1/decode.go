// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/value"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Limits of what one request may hold.
const (
	maxID     = 256  // bytes of an id
	maxParts  = 1000 // parts of a message
	maxURL    = 2048 // bytes of a webhook's URL
	maxSecret = 4096 // bytes of what a webhook's owner wants to be authenticated by
	maxPage   = 100  // tasks on a page
)

// v1AtOnce is a timeout for the answer to callers that do not wait for their task to get anywhere.
const atOnce = time.Nanosecond

// Decode implements translate.Server.
func (s Base) Decode(req *translate.Request) (translate.Call, error) {
	if v := strings.TrimSpace(req.Version); v != "" && v != "1.0" && !strings.HasPrefix(v, "1.0.") && !strings.HasPrefix(v, "0.") {
		// Callers that name an older version, but call by these names, are understood.
		return translate.Call{}, task.Errorf(task.UnsupportedOperation, "this version is not spoken here; speak 1.0").
			WithField("A2A-Version").WithCause(errVersion)
	}
	switch req.Content { // what callers send without saying what it is can only be JSON
	case "", "application/json", contentType:
	default:
		if s.schema.Lenient {
			break
		}
		return translate.Call{}, task.Errorf(task.ContentTypeNotSupported,
			"the Content-Type must be application/json or %s", contentType).WithField("Content-Type")
	}
	r := Request{req: req, root: "params", schema: s.schema}
	if s.rest {
		r.root = "body"
	}
	if req.Params.Exists() && !req.Params.IsObject() {
		r.Fail("", "%s must be an object", r.root)
		return translate.Call{}, r.err
	}
	call := translate.Call{History: -1}
	call.Message.SenderRole = task.Leader
	call.Message.Command = task.Get
	switch req.Method {
	case send, sendStream:
		r.send(&call, !s.confirm)
	case getTask:
		call.Message.TaskID = r.ID("id", r.Param("id"), true)
		call.History = r.history(r.Param("historyLength"), "historyLength")
	case cancelTask:
		call.Message.Command = task.Cancel
		call.Message.TaskID = r.ID("id", r.Param("id"), true)
		call.Strict = true
	case subscribe:
		call.Message.Command = task.ReStream
		call.Message.TaskID = r.ID("id", r.Param("id"), true)
		call.Stream, call.Snapshot = true, true
		call.Strict, call.Finished = !s.schema.Lenient, !s.schema.Lenient && !s.confirm
	case listTasks:
		call.Op = translate.ListTasks
		r.list(&call, s)
	case createConfig:
		call.Op = translate.SetWebhook
		call.Webhook = s.schema.ReadWebhook(&r)
		call.Webhook.TaskID = r.ID("taskId", r.Param("taskId"), true)
	case getConfig, deleteConfig, listConfigs:
		r.webhooks(&call)
	case extendedCard:
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
type Request struct {
	req    *translate.Request
	root   string // what the params are called in the request
	schema *Schema
	err    *task.Error
}

// fail notes an error at a path under the params.
func (r *Request) Fail(path, format string, args ...any) {
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

// refuse notes an error that was found by another reader.
func (r *Request) Refuse(err *task.Error) {
	if r.err == nil {
		r.err = err
	}
}

// params returns the params, which may be missing.
func (r *Request) Params() gjson.Result { return r.req.Params }

// v1Last returns the last name of a path.
func last(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// param returns one of the params. Those in the path come first, since it is they that the request was routed by.
func (r *Request) Param(name string) (v gjson.Result) {
	if text, ok := r.req.PathParams[name]; ok {
		return gjson.Result{Type: gjson.String, Str: text}
	}
	if v = value.Member(r.req.Params, name); v.Type == gjson.Null && r.req.Query.Has(name) {
		return gjson.Result{Type: gjson.String, Str: r.req.Query.Get(name)}
	}
	return v
}

func (r *Request) text(path string, v gjson.Result, most int) string {
	switch {
	case v.Type == gjson.Null:
		return ""
	case v.Type != gjson.String:
		r.Fail(path, "%s must be a string", last(path))
		return ""
	case len(v.Str) > most:
		r.Fail(path, "%s must be at most %d bytes long", last(path), most)
		return ""
	}
	return strings.Clone(v.Str)
}

// word reads a name that goes into logs, keys and header fields.
func (r *Request) word(path string, v gjson.Result, most int, required bool) string {
	s := r.text(path, v, most)
	switch {
	case strings.ContainsFunc(s, unicode.IsControl):
		r.Fail(path, "%s must have no control characters", last(path))
	case required && s == "":
		r.Fail(path, "%s is missing; it must be a string of 1 to %d bytes", last(path), most)
	}
	return s
}

func (r *Request) ID(path string, v gjson.Result, required bool) string {
	return r.word(path, v, maxID, required)
}

// count reads an integer that is not negative. ProtoJSON allows it to be a string, and a query has no other. ok
// is false where there is none.
func (r *Request) count(path string, v gjson.Result) (n int, ok bool) {
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
		r.Fail(path, "%s must be an integer that is not negative", last(path))
		return 0, false
	}
	return int(min(long, math.MaxInt32)), true
}

// history reads how many messages are wanted: all, where it is not said.
func (r *Request) history(v gjson.Result, path string) int {
	if n, ok := r.count(path, v); ok {
		return n
	}
	return -1
}

func (r *Request) Flag(path string, v gjson.Result) bool {
	switch {
	case v.Type == gjson.True, v.Type == gjson.String && v.Str == "true":
		return true
	case v.Type == gjson.False, v.Type == gjson.Null, v.Type == gjson.String && v.Str == "false":
	default:
		r.Fail(path, "%s must be true or false", last(path))
	}
	return false
}

// object returns a member of an object that is one itself, or nothing.
func (r *Request) Object(path string, v gjson.Result) gjson.Result {
	if v.Type != gjson.Null && !v.IsObject() {
		r.Fail(path, "%s must be an object", last(path))
	}
	return v
}

// send reads a SendMessageRequest. A task that a message names goes on, and must be there: callers of A2A do not
// name tasks.
func (r *Request) send(call *translate.Call, complete bool) {
	message := r.Object("message", r.Param("message"))
	if !message.Exists() {
		r.Fail("message", "message is missing; it must be an object")
		return
	}
	var id, taskID, contextID, role, parts gjson.Result
	var rest extension.Request
	value.Members(message, func(key string, v gjson.Result) {
		switch key {
		case "messageId":
			id = v
		case "taskId":
			taskID = v
		case "contextId":
			contextID = v
		case "role":
			role = v
		case r.schema.Parts, "parts":
			parts = v
		case "kind", "type", "content": // of other versions
		default:
			rest.Message.Add(key, v)
		}
	})
	m := &call.Message
	m.ID = r.ID("message.messageId", id, true)
	m.TaskID = r.ID("message.taskId", taskID, false)
	m.SessionID = r.ID("message.contextId", contextID, false)
	switch r.text("message.role", role, maxID) {
	case "ROLE_USER", "ROLE_UNSPECIFIED", "", r.schema.Role:
	default:
		r.Fail("message.role", "role must be ROLE_USER: an agent does not send messages here")
	}
	m.DataItems = r.parts(parts)

	const at = "configuration."
	configuration := r.Object("configuration", r.Param("configuration"))
	r.schema.ReadConfiguration(r, configuration, call)
	value.Members(configuration, func(key string, v gjson.Result) {
		switch key {
		case "historyLength":
			call.History = r.history(v, at+key)
		case "returnImmediately", "taskPushNotificationConfig", // which the schema reads
			"blocking", "pushNotificationConfig", "pushNotification": // likewise
		default:
			rest.Configuration.Add(key, v)
		}
	})
	value.Members(r.req.Params, func(key string, v gjson.Result) {
		switch key {
		case "message", "configuration", "tenant":
		default:
			rest.Params.Add(key, v)
		}
	})
	m.Extensions = rest.Extensions()
	call.Stream = r.req.Method == sendStream
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
func (r *Request) parts(v gjson.Result) []task.DataItem {
	const path = "message.parts"
	if !v.IsArray() {
		r.Fail(path, "parts is missing; it must be an array of parts, at least one")
		return nil
	}
	var items []task.DataItem
	v.ForEach(func(_, part gjson.Result) bool {
		if len(items) == maxParts {
			r.Fail(path, "parts must have at most %d entries", maxParts)
			r.err.WithData("limit", "parts").WithData("max", maxParts)
			return false
		}
		at := path + "[" + strconv.Itoa(len(items)) + "]"
		items = append(items, r.schema.ReadPart(r, at, part))
		return r.err == nil
	})
	if len(items) == 0 {
		r.Fail(path, "parts must have at least one entry")
	}
	return items
}

// part reads one part. It is strict where the reader of agents' parts is not: a caller can be told.
func (r *Request) part(path string, v gjson.Result) task.DataItem {
	p := contentOf(v)
	for _, m := range [...]struct {
		name string
		v    gjson.Result
	}{{"text", p.text}, {"raw", p.raw}, {"url", p.url}, {"filename", p.filename}, {"mediaType", p.mediaType}} {
		if m.v.Type != gjson.Null && m.v.Type != gjson.String {
			r.Fail(path+"."+m.name, "%s must be a string", m.name)
		}
	}
	r.Object(path+".metadata", p.metadata)
	if _, ok := part.Base64(p.raw.Str); !ok {
		r.Fail(path+".raw", "raw must be base64")
	}
	if p.contents() > 1 {
		r.Fail(path, "a part must have only one of text, raw, url and data")
	}
	it, ok := p.item(false)
	if !ok {
		r.Fail(path, "a part must be an object with one of text, raw, url and data, which is not empty")
	}
	for _, s := range [...]*string{&it.Text, &it.Name, &it.MIMEType, &it.URI, &it.Bytes} {
		*s = strings.Clone(*s)
	}
	return it
}

// configuration reads what a configuration says in words of 1.0.
func (r *Request) configuration(configuration gjson.Result, call *translate.Call) {
	const at = "configuration."
	if r.Flag(at+"returnImmediately", value.Member(configuration, "returnImmediately")) {
		call.Terms.Response = atOnce
	}
	const name = "taskPushNotificationConfig"
	if config := r.Object(at+name, value.Member(configuration, name)); config.Exists() {
		call.Webhook = r.webhook(at+name+".", func(name string) gjson.Result { return value.Member(config, name) })
		call.Webhook.TaskID = call.Message.TaskID
	}
}

// webhook reads a TaskPushNotificationConfig, whose members member returns.
func (r *Request) webhook(at string, member func(name string) gjson.Result) *task.Webhook {
	w := &task.Webhook{Dialect: version.Name10}
	w.ID = r.ID(at+"id", member("id"), false)
	w.URL = r.word(at+"url", member("url"), maxURL, true)
	w.Token = r.word(at+"token", member("token"), maxSecret, false)
	auth := r.Object(at+"authentication", member("authentication"))
	w.Scheme = r.word(at+"authentication.scheme", value.Member(auth, "scheme"), maxID, auth.Exists())
	w.Credentials = r.word(at+"authentication.credentials", value.Member(auth, "credentials"), maxSecret, false)
	return w
}

// webhooks reads what is asked about the webhooks that a task has. There are few, so that all are on one page.
func (r *Request) webhooks(call *translate.Call) {
	w := &task.Webhook{Dialect: version.Name10}
	w.TaskID = r.ID("taskId", r.Param("taskId"), true)
	call.Webhook, call.Op = w, translate.GetWebhooks
	switch r.req.Method {
	case getConfig:
		call.Method = getConfig
	case deleteConfig:
		call.Op = translate.DeleteWebhooks
	default:
		return
	}
	w.ID = r.ID("id", r.Param("id"), true)
}

// list reads a ListTasksRequest.
func (r *Request) list(call *translate.Call, s Base) {
	l := new(task.List)
	call.List = l
	l.SessionID = r.ID("contextId", r.Param("contextId"), false)
	l.Token = r.text("pageToken", r.Param("pageToken"), maxURL)
	l.Size, _ = r.count("pageSize", r.Param("pageSize"))
	if l.Size > maxPage {
		r.Fail("pageSize", "pageSize must be at most %d", maxPage)
	}
	l.Products = r.Flag("includeArtifacts", r.Param("includeArtifacts"))
	call.History = r.history(r.Param("historyLength"), "historyLength")
	if after := r.text("statusTimestampAfter", r.Param("statusTimestampAfter"), maxID); after != "" {
		var err error
		if l.After, err = time.Parse(time.RFC3339, after); err != nil {
			r.Fail("statusTimestampAfter", "statusTimestampAfter must be a time in ISO 8601, such as 2025-09-01T06:30:00.000Z")
		}
	}
	switch word := r.text("status", r.Param("status"), maxID); word {
	case "", "TASK_STATE_UNSPECIFIED":
	case "TASK_STATE_AUTH_REQUIRED": // which is never shown
		l.States = []task.State{"auth-required"}
	default:
		l.States = slices.DeleteFunc(task.States(), func(state task.State) bool { return s.state(state) != word })
		if len(l.States) == 0 {
			r.Fail("status", "status must be a state, such as TASK_STATE_WORKING")
		}
	}
}
