// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// Limits of a request for a list.
const (
	maxPage  = 100  // tasks on a page
	maxToken = 2048 // bytes of the token of a page
)

// Decode implements translate.Server.
func (s Base) Decode(req *translate.Request) (translate.Call, error) {
	switch v := strings.TrimSpace(req.Version); {
	case v == "", v == "1.0", strings.HasPrefix(v, "1.0."), strings.HasPrefix(v, "0."):
	default:
		// A caller naming an older version but using these methods is understood.
		return translate.Call{}, task.Errorf(task.UnsupportedOperation, "this version is not supported; use 1.0").
			WithField("A2A-Version").WithCause(errVersion)
	}
	if err := s.CheckContent(req.Content); err != nil {
		return translate.Call{}, err
	}
	root := "params"
	r := Request{req: req, schema: s.schema}
	if r.Prefix = "params."; s.rest {
		root, r.Prefix = "body", ""
	}
	if req.Params.Exists() && !req.Params.IsObject() {
		return translate.Call{}, task.Errorf(task.InvalidParams, "%s must be an object", root).WithField(root)
	}
	if params, twice := respell(req.Params); twice != "" {
		r.Fail(twice, "%s is there twice, by its two names", twice[strings.LastIndexByte(twice, '.')+1:])
	} else if params.Raw != req.Params.Raw {
		respelled := *req
		respelled.Params = params
		req, r.req = &respelled, &respelled
	}
	call := translate.Call{History: -1}
	call.Message.SenderRole = task.Leader
	call.Message.Command = task.Get
	switch req.Method {
	case send, sendStream:
		r.send(&call, !s.confirm)
	case getTask:
		call.Message.TaskID = r.RequiredID(r.Param("id"), "id")
		call.History = r.history(r.Param("historyLength"), "historyLength")
	case cancelTask:
		call.Message.Command = task.Cancel
		call.Message.TaskID = r.RequiredID(r.Param("id"), "id")
		call.Strict = true
	case subscribe:
		call.Message.Command = task.ReStream
		call.Message.TaskID = r.RequiredID(r.Param("id"), "id")
		call.Stream, call.Snapshot = true, true
		call.Strict, call.Finished = !s.schema.Lenient, !s.schema.Lenient && !s.confirm
	case listTasks:
		call.Op = translate.ListTasks
		r.list(&call, s)
	case createConfig:
		call.Op = translate.SetWebhook
		call.Webhook = s.schema.ReadWebhook(&r)
		call.Webhook.TaskID = r.RequiredID(r.Param("taskId"), "taskId")
		wire.Own(&call.Webhook.TaskID)
	case getConfig, deleteConfig, listConfigs:
		r.webhooks(&call)
	case extendedCard:
		call.Op = translate.ExtendedCard
	default:
		return translate.Call{}, task.Errorf(task.MethodNotFound, "A2A 1.0 has no such method")
	}
	if r.Err != nil {
		return translate.Call{}, r.Err
	}
	wire.Own(&call.Message.TaskID)
	if call.Op != translate.Command && call.Webhook != nil {
		call.TaskExists = true
		call.Message.TaskID = call.Webhook.TaskID
	}
	return call, nil
}

// CheckContent implements translate.ContentChecker.
func (s Base) CheckContent(media string) error {
	switch media { // a body without a media type can only be JSON
	case "", "application/json", contentType:
		return nil
	}
	if s.schema.Lenient {
		return nil
	}
	return task.Errorf(task.ContentTypeNotSupported,
		"the Content-Type must be application/json or %s", contentType).WithField("Content-Type")
}

// Request reads the values of a request, and keeps the first error. Without an envelope they may be in the path, in the
// query or in the body.
type Request struct {
	wire.Reader
	req    *translate.Request
	schema *Schema
}

// Params returns the params. They may be missing.
func (r *Request) Params() gjson.Result { return r.req.Params }

// Param returns one of the params. Those in the path come first, since the request was routed by them.
func (r *Request) Param(name string) (v gjson.Result) {
	if text, ok := r.req.PathParams[name]; ok {
		return gjson.Result{Type: gjson.String, Str: text}
	}
	if v = jsonrpc.Member(r.req.Params, name); !wire.Absent(v) || len(r.req.Query) == 0 {
		return v
	}
	other := snake(name)
	switch has := r.req.Query.Has(name); {
	case other == "" || !r.req.Query.Has(other):
		other = name
		if !has {
			return v
		}
	case has:
		r.Fail(name, "%s is there twice, by its two names", name)
	}
	return gjson.Result{Type: gjson.String, Str: r.req.Query.Get(other)}
}

// count reads a non-negative integer. In ProtoJSON and in a query it may be a string. ok is false if there is none.
func (r *Request) count(v gjson.Result, field string) (n int, ok bool) {
	if wire.Absent(v) {
		return 0, false
	}
	if long, err := strconv.ParseInt(v.Str, 10, 64); v.Type == gjson.String && err == nil && long >= 0 {
		return int(min(long, math.MaxInt32)), true
	}
	n = int(min(r.Count(v, field), math.MaxInt32))
	return n, r.Err == nil
}

// history reads the number of messages wanted by the caller: all of them by default.
func (r *Request) history(v gjson.Result, field string) int {
	if n, ok := r.count(v, field); ok {
		return n
	}
	return -1
}

// Flag reads a boolean. In a query it is a string.
func (r *Request) Flag(v gjson.Result, field string) bool {
	if v.Type == gjson.String && (v.Str == "true" || v.Str == "false") {
		return v.Str == "true"
	}
	return r.Reader.Flag(v, field)
}

// Optional returns v. It must be an object unless it is missing.
func (r *Request) Optional(v gjson.Result, field string) gjson.Result {
	if wire.Absent(v) || !r.Object(v, field) {
		return gjson.Result{}
	}
	return v
}

// send reads a SendMessageRequest. A message naming a task continues it, and the task must exist: callers of A2A do not
// name new tasks.
func (r *Request) send(call *translate.Call, complete bool) {
	message := r.Param("message")
	if !r.Object(message, "message") {
		return
	}
	var id, taskID, contextID, references, role, parts gjson.Result
	var rest extension.Request
	wire.Members(message, func(key string, v gjson.Result) {
		switch key {
		case "messageId":
			id = v
		case "taskId":
			taskID = v
		case "contextId":
			contextID = v
		case "referenceTaskIds":
			references = v
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
	m.ID = r.PresentID(id, "message.messageId")
	m.TaskID = r.ID(taskID, "message.taskId")
	m.SessionID = r.ID(contextID, "message.contextId")
	wire.Own(&m.ID, &m.TaskID, &m.SessionID)
	switch r.Text(wire.Enum(role), "message.role") {
	case "ROLE_USER", "ROLE_UNSPECIFIED", "", r.schema.Role:
	default:
		r.Fail("message.role", "role must be ROLE_USER: callers are users here")
	}
	m.DataItems = r.parts(parts)
	m.References = extension.References(&r.Reader, references)

	const at = "configuration."
	configuration := r.Optional(r.Param("configuration"), "configuration")
	r.schema.ReadConfiguration(r, configuration, call)
	wire.Members(configuration, func(key string, v gjson.Result) {
		switch key {
		case "historyLength":
			call.History = r.history(v, at+key)
		case "returnImmediately", "taskPushNotificationConfig",
			"blocking", "pushNotificationConfig", "pushNotification": // read by the schema
		default:
			rest.Configuration.Add(key, v)
		}
	})
	wire.Members(r.req.Params, func(key string, v gjson.Result) {
		switch key {
		case "message", "configuration", "tenant":
		default:
			rest.Params.Add(key, v)
		}
	})
	rest.Activate(r.req.Activated)
	m.Extensions = rest.Extensions()
	call.Stream = r.req.Method == sendStream
	call.Blocking = !call.Stream && call.Terms.Response == 0
	if m.TaskID == "" {
		m.Command = task.Start
		call.AutoComplete, call.Refusable, call.Begun = complete, true, true
		return
	}
	m.Command = task.Continue
	call.Strict, call.SameSession = true, true
	call.Snapshot = call.Stream // the first frame of a stream is a task
}

// parts reads the parts of a message.
func (r *Request) parts(v gjson.Result) (items []task.DataItem) {
	const field = "message.parts"
	r.Each(v, field, wire.MaxItems, func(v gjson.Result) {
		it := r.schema.ReadPart(r, v)
		part.Own(&it)
		items = append(items, it)
	})
	if len(items) == 0 {
		r.Fail(field, "parts must have at least one entry")
	}
	return items
}

// part reads one part. It is stricter than the reader of agents' parts, because a caller can correct its request.
func (r *Request) part(v gjson.Result) task.DataItem {
	p := contentOf(v)
	r.Text(p.text, ".text")
	r.Text(p.raw, ".raw")
	r.Text(p.url, ".url")
	r.Text(p.filename, ".filename")
	r.Text(p.mediaType, ".mediaType")
	r.Optional(p.metadata, ".metadata")
	if _, ok := Base64(p.raw.Str); !ok {
		r.Fail(".raw", "raw must be base64")
	}
	if p.contents() > 1 {
		r.Fail("", "a part must have only one of text, raw, url and data")
	}
	it, ok := p.item(false)
	if !ok {
		r.Fail("", "a part must be an object with one of text, raw, url and data, which is not empty")
	}
	return it
}

// configuration reads the members of a configuration in 1.0 only.
func (r *Request) configuration(configuration gjson.Result, call *translate.Call) {
	const at = "configuration."
	if r.Flag(jsonrpc.Member(configuration, "returnImmediately"), at+"returnImmediately") {
		call.Terms.Response = task.NoWait
	}
	const name = "taskPushNotificationConfig"
	if config := r.Optional(jsonrpc.Member(configuration, name), at+name); config.Exists() {
		call.Webhook = r.webhook(func(name string) gjson.Result { return jsonrpc.Member(config, name) }, at+name+".")
		call.Webhook.TaskID = call.Message.TaskID
	}
}

// webhook reads a TaskPushNotificationConfig. member returns its members.
func (r *Request) webhook(member func(name string) gjson.Result, at string) *task.Webhook {
	w := &task.Webhook{Dialect: version.Name10}
	w.ID = r.ID(member("id"), at+"id")
	w.URL = r.Required(member("url"), at+"url", wire.MaxURL)
	w.Token = r.Bounded(member("token"), at+"token", wire.MaxSecret)
	if auth := r.Optional(member("authentication"), at+"authentication"); auth.Exists() {
		at += "authentication."
		w.Scheme = r.RequiredID(jsonrpc.Member(auth, "scheme"), at+"scheme")
		w.Credentials = r.Bounded(jsonrpc.Member(auth, "credentials"), at+"credentials", wire.MaxSecret)
	}
	wire.Own(&w.ID, &w.URL, &w.Token, &w.Scheme, &w.Credentials)
	return w
}

// webhooks reads the params of the methods about existing webhooks. A task has few, so all are on one page.
func (r *Request) webhooks(call *translate.Call) {
	w := &task.Webhook{Dialect: version.Name10}
	w.TaskID = r.RequiredID(r.Param("taskId"), "taskId")
	wire.Own(&w.TaskID)
	call.Webhook, call.Op = w, translate.GetWebhooks
	switch r.req.Method {
	case getConfig:
		call.Method = getConfig
	case deleteConfig:
		call.Op = translate.DeleteWebhooks
	default:
		return
	}
	w.ID = r.RequiredID(r.Param("id"), "id")
	wire.Own(&w.ID)
}

// list reads a ListTasksRequest.
func (r *Request) list(call *translate.Call, s Base) {
	l := &task.List{Count: true}
	call.List = l
	l.SessionID = r.ID(r.Param("contextId"), "contextId")
	l.Token = r.Bounded(r.Param("pageToken"), "pageToken", maxToken)
	wire.Own(&l.SessionID, &l.Token)
	l.Size, _ = r.count(r.Param("pageSize"), "pageSize")
	if l.Size > maxPage {
		r.Fail("pageSize", "pageSize must be at most %d", maxPage)
	}
	l.Products = r.Flag(r.Param("includeArtifacts"), "includeArtifacts")
	call.History = r.history(r.Param("historyLength"), "historyLength")
	if after := r.ID(r.Param("statusTimestampAfter"), "statusTimestampAfter"); after != "" {
		var err error
		if l.After, err = time.Parse(time.RFC3339, after); err != nil {
			r.Fail("statusTimestampAfter", "statusTimestampAfter must be a time in ISO 8601, such as 2025-09-01T06:30:00.000Z")
		}
	}
	switch word := r.ID(wire.Enum(r.Param("status")), "status"); word {
	case "", "TASK_STATE_UNSPECIFIED":
	case authRequired:
		l.States, l.SelfResuming = []task.State{task.AwaitingInput}, true
	default:
		l.NotSelfResuming = word == s.stateName(task.AwaitingInput)
		l.States = slices.DeleteFunc(task.States(), func(state task.State) bool { return s.stateName(state) != word })
		if len(l.States) == 0 {
			r.Fail("status", "status must be a state, such as TASK_STATE_WORKING")
		}
	}
}
