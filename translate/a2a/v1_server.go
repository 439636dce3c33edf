// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"slices"
	"strings"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// V1Server returns the server side of A2A 1.0 over JSON-RPC. With confirm, a task whose agent has finished asks its
// caller for more, so that a caller may go on with it; without, it is completed at once, because A2A has no
// word to complete a task. It is a translate.Lister.
func V1Server(confirm bool) translate.Server { return v1Server{confirm: confirm} }

// V1RESTServer returns what V1Server does, for A2A 1.0 over plain HTTP. It is a translate.Lister and a
// translate.Statuser.
func V1RESTServer(confirm bool) translate.Server {
	return v1RESTServer{v1Server{confirm: confirm, rest: true}}
}

// v1Server is both bindings of 1.0, and, with v03, what they share with HTTP+JSON of 0.3: see v03RESTServer.
type v1Server struct{ confirm, rest, v03 bool }

// Name implements translate.Server.
func (s v1Server) Name() string { return v1Client{rest: s.rest}.Name() }

// Route implements translate.Server. Some callers end the path with a slash.
func (v1Server) Route(method, path string) (r translate.Route, ok bool) {
	if path != "" && path != "/" {
		return r, false
	}
	if method != "POST" {
		r.Allow = "POST"
	}
	return r, true
}

// Speaks implements translate.Server: no other dialect has these methods. A caller of 1.0 that calls what no
// dialect has is told so in its own words; those before 1.0 have a slash in all of theirs.
func (v1Server) Matches(req *translate.Request) bool {
	switch req.Method {
	case v1Send, v1SendStream, v1GetTask, v1ListTasks, v1CancelTask, v1Subscribe,
		v1CreateConfig, v1GetConfig, v1ListConfigs, v1DeleteConfig, v1ExtendedCard:
		return true
	}
	return req.Version == "1.0" && !strings.Contains(req.Method, "/")
}

// begin appends what stands before a result, and end what stands behind it.
func (s v1Server) begin(dst []byte, id jsonrpc.ID) []byte {
	if s.rest {
		return dst
	}
	return jsonrpc.BeginResult(dst, id)
}

func (s v1Server) end(dst []byte) []byte {
	if s.rest {
		return dst
	}
	return jsonrpc.End(dst)
}

// StreamsErrors implements translate.ErrorStreamer: without an envelope, the status of HTTP
// says that it is refused.
func (s v1Server) StreamsErrors() bool { return !s.rest }

type v1RESTServer struct{ v1Server }

// Route implements translate.Server. Subscribing is a POST in the text of A2A, and a GET in its schema.
func (v1RESTServer) Route(method, path string) (r translate.Route, ok bool) {
	path = strings.TrimSuffix(path, "/")
	switch path {
	case "message:send":
		return v1Route(method, nil, v1Verb{"POST", v1Send}), true
	case "message:stream":
		return v1Route(method, nil, v1Verb{"POST", v1SendStream}), true
	case "tasks":
		return v1Route(method, nil, v1Verb{"GET", v1ListTasks}), true
	case "extendedAgentCard":
		return v1Route(method, nil, v1Verb{"GET", v1ExtendedCard}), true
	}
	path, ok = strings.CutPrefix(path, "tasks/")
	if !ok {
		return r, false
	}
	id, configs, ok := strings.Cut(path, "/")
	if !ok {
		if rest, ok := strings.CutSuffix(id, ":cancel"); ok {
			return v1Route(method, map[string]string{"id": rest}, v1Verb{"POST", v1CancelTask}), rest != ""
		}
		if rest, ok := strings.CutSuffix(id, ":subscribe"); ok {
			return v1Route(method, map[string]string{"id": rest}, v1Verb{"GET", v1Subscribe}, v1Verb{"POST", v1Subscribe}), rest != ""
		}
		return v1Route(method, map[string]string{"id": id}, v1Verb{"GET", v1GetTask}), id != ""
	}
	configs, config, one := strings.Cut(configs, "/")
	if id == "" || configs != "pushNotificationConfigs" || one && config == "" || strings.Contains(config, "/") {
		return r, false
	}
	if one {
		return v1Route(method, map[string]string{"taskId": id, "id": config}, v1Verb{"GET", v1GetConfig}, v1Verb{"DELETE", v1DeleteConfig}), true
	}
	return v1Route(method, map[string]string{"taskId": id}, v1Verb{"GET", v1ListConfigs}, v1Verb{"POST", v1CreateConfig}), true
}

// v1Verb is what a method of HTTP stands for on one path.
type v1Verb struct{ http, method string }

// v1Route returns the route of a path that has some verbs. The names of vars are those of the params.
func v1Route(method string, vars map[string]string, verbs ...v1Verb) translate.Route {
	r := translate.Route{Unenveloped: true, PathParams: vars}
	i := slices.IndexFunc(verbs, func(v v1Verb) bool { return v.http == method })
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

// v1ContentType is the media type of A2A 1.0 over plain HTTP.
const v1ContentType = "application/a2a+json"

var v1ContentTypes = []string{v1ContentType}

// ContentType implements translate.Typed. Errors are application/json, because clients on a2a-go read no others.
func (v1RESTServer) ContentType() []string { return v1ContentTypes }

// Status implements translate.Statuser.
func (v1RESTServer) Status(err error) int {
	_, w := v1Said(err)
	return w.http
}

// NotificationHeader implements translate.Server. The token goes under both of the names that receivers look for.
func (v1Server) NotificationHeader(w *task.Webhook) []translate.Field {
	header := []translate.Field{{Name: "Content-Type", Value: v1ContentType}}
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
func (s v1Server) NotifiedStates() []task.State { return allBut(task.AwaitingCompletion, s.confirm) }

// AppendCard implements translate.CardServer.
func (s v1Server) AppendCard(dst []byte, id jsonrpc.ID, card []byte) []byte {
	return s.end(append(s.begin(dst, id), card...))
}
