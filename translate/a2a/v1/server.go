// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"net/url"
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/status"
)

// Server returns the side of A2A 1.0 over JSON-RPC towards callers. With confirm, a task awaiting completion is
// input-required to them; without, it is completed at once, because A2A has no command for it. It is a
// translate.Lister.
func Server(confirm bool) translate.Server { return Base{confirm: confirm, schema: &ownSchema} }

// RESTServer returns Server over HTTP+JSON. It is a translate.Lister and a translate.Statuser.
func RESTServer(confirm bool) translate.Server {
	s := restServer{NewBase(&ownSchema, confirm)}
	s.interrupts = true
	return s
}

// Base is the common server of both bindings of 1.0 and of HTTP+JSON of 0.3.
type Base struct {
	confirm, rest bool
	interrupts    bool // a stream of a task ends when the task begins to wait for its caller
	schema        *Schema
}

// Name implements translate.Server.
func (s Base) Name() string { return client{rest: s.rest}.Name() }

// Route implements translate.Server. Some callers end the path with a slash.
func (Base) Route(method, path string) (r translate.Route, ok bool) {
	if path != "" && path != "/" {
		return r, false
	}
	if method != "POST" {
		r.Allow = "POST"
	}
	return r, true
}

// Matches implements translate.Server: no other dialect has these methods. A caller of 1.0 with a method of no dialect
// is answered in 1.0; all methods before 1.0 have a slash.
func (Base) Matches(req *translate.Request) bool {
	switch req.Method {
	case send, sendStream, getTask, listTasks, cancelTask, subscribe,
		createConfig, getConfig, listConfigs, deleteConfig, extendedCard:
		return true
	}
	return req.Version == "1.0" && !strings.Contains(req.Method, "/")
}

// begin appends the bytes before a result, and end those after it.
func (s Base) begin(dst []byte, id jsonrpc.ID) []byte {
	if s.rest {
		return dst
	}
	return jsonrpc.BeginResult(dst, id)
}

func (s Base) end(dst []byte) []byte {
	if s.rest {
		return dst
	}
	return jsonrpc.End(dst)
}

// StreamsErrors implements translate.ErrorStreamer: without an envelope, a stream is refused by the status of HTTP.
func (s Base) StreamsErrors(r *translate.Refused) bool { return r.OnlyEvents && !s.rest }

// Numbered implements translate.Unresumer: a client could subscribe to the task again, but none does so by itself.
func (Base) Numbered() bool { return true }

// Status implements translate.Statuser for JSON-RPC: the status is for a caller without valid credentials, or with a
// body too large to be parsed. All other errors are known by their codes.
func (Base) Status(err error) int {
	if s := HTTPStatus(err); s == 401 || s == 413 {
		return s
	}
	return 200
}

type restServer struct{ Base }

// Route implements translate.Server.
func (restServer) Route(method, path string) (r translate.Route, ok bool) {
	return PathRoute(method, path)
}

// PathRoute returns the route of a path of HTTP+JSON. Subscribing is a POST in the text of A2A and a GET in its schema;
// both are served.
func PathRoute(method, path string) (r translate.Route, ok bool) {
	path = strings.TrimSuffix(path, "/")
	word, err := url.PathUnescape(path)
	if err != nil {
		return r, false
	}
	switch word {
	case "message:send":
		return route(method, nil, verb{"POST", send}), true
	case "message:stream":
		return route(method, nil, verb{"POST", sendStream}), true
	case "tasks":
		return route(method, nil, verb{"GET", listTasks}), true
	case "extendedAgentCard":
		return route(method, nil, verb{"GET", extendedCard}), true
	}
	path, ok = strings.CutPrefix(path, "tasks/")
	if !ok {
		return r, false
	}
	id, configs, ok := strings.Cut(path, "/")
	if !ok {
		if rest, ok := cutVerb(method, id, "cancel"); ok {
			return route(method, vars("id", rest), verb{"POST", cancelTask}), rest != ""
		}
		if rest, ok := cutVerb(method, id, "subscribe"); ok {
			return route(method, vars("id", rest), verb{"GET", subscribe}, verb{"POST", subscribe}), rest != ""
		}
		return route(method, vars("id", id), verb{"GET", getTask}), id != ""
	}
	configs, config, one := strings.Cut(configs, "/")
	if id == "" || configs != "pushNotificationConfigs" || one && config == "" || strings.Contains(config, "/") {
		return r, false
	}
	if one {
		return route(method, vars("taskId", id, "id", config), verb{"GET", getConfig}, verb{"DELETE", deleteConfig}), true
	}
	return route(method, vars("taskId", id), verb{"GET", listConfigs}, verb{"POST", createConfig}), true
}

// cutVerb returns the id before a verb. An escaped colon belongs to the id, unless the request is a POST: there it
// always begins a verb.
func cutVerb(method, segment, verb string) (id string, ok bool) {
	if id, ok = strings.CutSuffix(segment, ":"+verb); ok || method != "POST" {
		return id, ok
	}
	if id, ok = strings.CutSuffix(segment, "%3A"+verb); ok {
		return id, ok
	}
	return strings.CutSuffix(segment, "%3a"+verb)
}

// vars returns path parameters, by names and segments of a path with valid escapes.
func vars(named ...string) map[string]string {
	all := make(map[string]string, len(named)/2)
	for i := 0; i < len(named); i += 2 {
		all[named[i]], _ = url.PathUnescape(named[i+1])
	}
	return all
}

// verb is a method of HTTP on one path, with the method of A2A for it.
type verb struct{ http, method string }

// route returns the route of a path with some verbs. The names of vars are those of the params.
func route(method string, vars map[string]string, verbs ...verb) translate.Route {
	r := translate.Route{Unenveloped: true, PathParams: vars}
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.http == method })
	if i >= 0 {
		r.Method = verbs[i].method
		return r
	}
	for _, v := range verbs {
		if r.Allow != "" {
			r.Allow += ", "
		}
		r.Allow += v.http
	}
	return r
}

// contentType is the media type of A2A 1.0 over HTTP+JSON.
const contentType = "application/a2a+json"

var contentTypes = []string{contentType}

// ContentType implements translate.ContentTyper. Errors are application/json, because clients on a2a-go read no others.
func (restServer) ContentType() []string { return contentTypes }

// Status implements translate.Statuser.
func (restServer) Status(err error) int { return HTTPStatus(err) }

// HTTPStatus returns the status of HTTP of an error.
func HTTPStatus(err error) int {
	if task.IsBodyTooLarge(err) {
		return 413
	}
	_, w := publicErrorOf(err)
	return w.http
}

// NotificationHeader implements translate.Server. The token has two header fields, because receivers read either.
func (Base) NotificationHeader(w *task.Webhook) []translate.Field {
	header := []translate.Field{{Name: "Content-Type", Value: contentType}}
	if w.Token != "" {
		header = append(header,
			translate.Field{Name: "X-A2A-Notification-Token", Value: w.Token},
			translate.Field{Name: "A2A-Notification-Token", Value: w.Token})
	}
	if w.Scheme != "" && w.Credentials != "" {
		header = append(header, translate.Field{Name: "Authorization", Value: w.Scheme + " " + w.Credentials})
	}
	return header
}

// NotifiedStates implements translate.StateFilter.
func (s Base) NotifiedStates() []task.State {
	return status.AllExcept(task.AwaitingCompletion, s.confirm)
}

// AppendCard implements translate.CardServer.
func (s Base) AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte {
	return s.end(append(s.begin(dst, id), card...))
}

// Interface guards.
var (
	_ translate.Server       = Base{}
	_ translate.Lister       = Base{}
	_ translate.StateFilter  = Base{}
	_ translate.Unresumer    = Base{}
	_ translate.CardServer   = Base{}
	_ translate.ContentTyper = restServer{}
	_ translate.Statuser     = restServer{}
)
