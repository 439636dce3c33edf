// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// V03RESTServer returns the side of A2A 0.3 over plain HTTP towards callers. Its methods are those of 0.3, its objects
// are not: 0.3 takes them from its schema for gRPC, as 1.0 does, so that most of this is the server of 1.0. The
// differences are here: the paths begin with v1, a Message has content in the place of parts, files and data are nested,
// a status says whether it is final, CANCELLED has two Ls, and errors are JSON-RPC's as well. Callers that write the
// objects of 0.3's JSON-RPC are understood.
func V03RESTServer(confirm bool) translate.Server {
	return v03RESTServer{v1Server{confirm: confirm, rest: true, v03: true}}
}

type v03RESTServer struct{ v1Server }

// Name implements translate.Server.
func (v03RESTServer) Name() string { return name03REST }

// Route implements translate.Server.
func (v03RESTServer) Route(method, path string) (r translate.Route, ok bool) {
	path, ok = strings.CutPrefix(strings.TrimSuffix(path, "/"), "v1/")
	switch {
	case !ok, path == "extendedAgentCard":
		return r, false
	case path == "card":
		path = "extendedAgentCard"
	}
	return v1RESTServer{}.Route(method, path)
}

// AppendWebhooks implements translate.Server.
func (s v03RESTServer) AppendWebhooks(dst []byte, _ jsonrpc.ID, c *translate.Call, hooks []task.Webhook) []byte {
	switch {
	case c.Op == translate.DeleteWebhooks:
		return append(dst, '{', '}')
	case len(hooks) == 1 && (c.Op == translate.SetWebhook || c.Method == v1GetConfig):
		return appendV03RESTConfig(dst, &hooks[0])
	}
	dst = append(dst, `{"configs":[`...)
	for i := range hooks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendV03RESTConfig(dst, &hooks[i])
	}
	return append(dst, `],"nextPageToken":""}`...)
}

// appendV03RESTConfig appends a TaskPushNotificationConfig, which has the ids in a name.
func appendV03RESTConfig(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"name":`...)
	dst = task.AppendString(dst, "tasks/"+w.TaskID+"/pushNotificationConfigs/"+w.ID)
	return append(appendLegacyConfig(append(dst, `,"pushNotificationConfig":`...), w), '}')
}

// AppendError implements translate.Server. There are clients that read JSON-RPC's error object, and clients that read
// 1.0's, so the body is both.
func (s v03RESTServer) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := legacyErrorOf(err)
	fault := &v03Faults[e.Kind]
	begin := len(dst)
	dst = s.v1Server.AppendError(dst, id, err)
	inner := string(dst[begin+1:])
	dst = appendFault(append(dst[:begin], '{'), fault, e)
	return append(append(dst, ','), inner...)
}

// Status implements translate.Statuser.
func (v03RESTServer) Status(err error) int {
	if task.KindOf(err) == task.TaskNotCancelable {
		return 409
	}
	return v1RESTServer{}.Status(err)
}

// AppendNotification implements translate.Server: webhooks are told as those of 0.3 over JSON-RPC are.
func (s v03RESTServer) AppendNotification(dst []byte, t *task.Task) []byte {
	return v03Server{s.confirm}.AppendNotification(dst, t)
}

// NotificationHeader implements translate.Server.
func (v03RESTServer) NotificationHeader(w *task.Webhook) []translate.Field {
	return legacyNotificationHeader(w)
}

// v03Configuration reads what a configuration of 0.3 says in other words than 1.0. In the schema, blocking is false
// where a configuration does not say it.
func (r *v1Request) v03Configuration(configuration gjson.Result, call *translate.Call) {
	call.History = 0 // as in its JSON-RPC
	if !configuration.Exists() {
		return
	}
	const at = "configuration."
	if !r.flag(at+"blocking", memberOf(configuration, "blocking")) {
		call.Terms.Response = atOnce
	}
	for _, name := range [...]string{"pushNotification", "pushNotificationConfig"} { // the latter in its JSON-RPC
		if config := memberOf(configuration, name); config.Exists() {
			call.Webhook = &task.Webhook{TaskID: call.Message.TaskID}
			r.v03Config(at+name, config, call.Webhook)
		}
	}
}

// v03Webhook reads what sets a webhook: a TaskPushNotificationConfig, in the member config or by itself.
func (r *v1Request) v03Webhook(w *task.Webhook) {
	at, outer := "", r.req.Params
	if config := r.object("config", r.param("config")); config.Exists() {
		at, outer = "config.", config
	}
	r.v03Config(at+"pushNotificationConfig", memberOf(outer, "pushNotificationConfig"), w)
	if w.ID == "" {
		w.ID = r.id("configId", r.param("configId"), false)
	}
}

func (r *v1Request) v03Config(at string, v gjson.Result, w *task.Webhook) {
	w.Dialect = name03
	var reader legacyReader
	if legacyReadConfig(&reader, v, at, w); r.err == nil {
		r.err = reader.err
	}
}

// v03Part reads a part, in the form of 0.3's schema or in that of its JSON-RPC, which names its kind.
func (r *v1Request) v03Part(path string, v gjson.Result) task.DataItem {
	it, ok := legacyContent(v)
	if !ok || !v.IsObject() {
		r.fail(path, "a part must have a text, a file with its bytes or its place, or data")
		return task.DataItem{}
	}
	if metadata := memberOf(v, "metadata"); metadata.Exists() {
		r.object(path+".metadata", metadata)
	}
	switch named := memberOf(v, "kind").Exists(); {
	case it.Kind == task.DataKind && !named:
		if inner := memberOf(memberOf(v, "data"), "data"); inner.Exists() {
			it.Data = object(inner)
		}
	case it.Bytes != "":
		if it.Bytes, ok = v1Base64(it.Bytes); !ok {
			r.fail(path+".file", "the bytes of a file must be base64")
		}
		if memberOf(memberOf(v, "file"), "fileWithBytes").Exists() {
			it.Bytes = v03Bytes(it.Bytes)
		}
	}
	for _, s := range [...]*string{&it.Text, &it.Name, &it.MIMEType, &it.URI, &it.Bytes} {
		*s = strings.Clone(*s)
	}
	return it
}

// v03Bytes returns the base64 of a file. SDKs in Python and Go send the base64 of that, because the schema has bytes
// where the JSON-RPC has a string; others do not.
func v03Bytes(sent string) string {
	if inner, err := base64.StdEncoding.DecodeString(sent); err == nil && len(inner) > 0 && legacyBase64(string(inner)) {
		return string(inner)
	}
	return sent
}

// appendV03RESTParts appends the parts that data items make. Bytes are encoded twice: the SDKs that send them so
// understand nothing else.
func appendV03RESTParts(dst []byte, items []task.DataItem) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		it := &items[i]
		switch it.Kind {
		case task.TextItem:
			dst = task.AppendString(append(dst, `{"text":`...), it.Text)
		case task.FileItem:
			if it.Bytes != "" || it.URI == "" {
				dst = append(dst, `{"file":{"fileWithBytes":"`...)
				dst = append(base64.StdEncoding.AppendEncode(dst, []byte(it.Bytes)), '"')
			} else {
				dst = task.AppendString(append(dst, `{"file":{"fileWithUri":`...), it.URI)
			}
			dst = legacyOptional(dst, `,"mimeType":`, it.MIMEType)
			dst = append(legacyOptional(dst, `,"name":`, it.Name), '}')
		default:
			dst = append(dst, `{"data":{"data":`...)
			if len(it.Data) == 0 {
				dst = append(dst, '{', '}')
			}
			dst = append(append(dst, v1Line(it.Data)...), '}')
		}
		dst = append(appendPartRest(dst, it.Metadata, v1PartWords), '}')
	}
	return append(dst, ']')
}

// Interface guards.
var (
	_ translate.Lister     = v03RESTServer{}
	_ translate.Statuser   = v03RESTServer{}
	_ translate.CardServer = v03RESTServer{}
)
