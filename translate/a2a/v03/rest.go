// SPDX-License-Identifier: Apache-2.0

package v03

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/extension"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/version"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/webhook"
	v1 "github.com/aip-gateway/aip-gateway/translate/a2a/v1"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// RESTServer returns the side of A2A 0.3 over HTTP+JSON towards callers. Its methods are those of 0.3, its objects are
// not: 0.3 takes them from its schema for gRPC, as 1.0 does, so most of this is the server of 1.0. The differences are
// here: paths begin with v1, a Message has content instead of parts, files and data are nested, a status says whether
// it is final, CANCELLED has two Ls, and errors are also those of JSON-RPC. Callers writing the objects of 0.3's
// JSON-RPC are understood.
func RESTServer(confirm bool) translate.Server {
	return restServer{v1.NewBase(&restSchema, confirm), server{confirm: confirm}}
}

type restServer struct {
	v1.Base
	rpc server // it has the same notifications
}

// restSchema is that of HTTP+JSON.
var restSchema = v1.Schema{
	Lenient: true, Parts: "content", Role: "user", Canceled: "TASK_STATE_CANCELLED", Final: true,
	ReadPart:          restPart,
	ReadConfiguration: restConfiguration,
	ReadWebhook:       restWebhook,
	AppendParts:       appendRESTParts,
	AppendWebhook:     appendRESTConfig,
}

// Name implements translate.Server.
func (restServer) Name() string { return version.Name03REST }

// Route implements translate.Server.
func (restServer) Route(method, path string) (r translate.Route, ok bool) {
	path, ok = strings.CutPrefix(strings.TrimSuffix(path, "/"), "v1/")
	switch {
	case !ok, path == "extendedAgentCard":
		return r, false
	case path == "card":
		path = "extendedAgentCard"
	}
	return v1.PathRoute(method, path)
}

// appendRESTConfig appends a TaskPushNotificationConfig, with both ids in its name.
func appendRESTConfig(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"name":`...)
	dst = task.AppendString(dst, "tasks/"+w.TaskID+"/pushNotificationConfigs/"+w.ID)
	return append(webhook.Append(append(dst, `,"pushNotificationConfig":`...), w), '}')
}

// AppendError implements translate.Server. Some clients read the error object of JSON-RPC and some that of 1.0, so the
// body is both.
func (s restServer) AppendError(dst []byte, id jsonrpc.ID, err error) []byte {
	e := inWords(wire.ErrorOf(err))
	fault := &rpc.FaultsV03[e.Kind]
	begin := len(dst)
	dst = s.Base.AppendError(dst, id, e)
	inner := string(dst[begin+1:])
	dst = rpc.AppendObject(append(dst[:begin], '{'), fault, e)
	return append(append(dst, ','), inner...)
}

// Status implements translate.Statuser.
func (restServer) Status(err error) int {
	if task.KindOf(err) == task.TaskNotCancelable {
		return 409
	}
	return v1.HTTPStatus(err)
}

// AppendNotification implements translate.Server: notifications are those of 0.3 over JSON-RPC.
func (s restServer) AppendNotification(dst []byte, t *task.Task) []byte {
	return s.rpc.AppendNotification(dst, t)
}

// NotificationHeader implements translate.Server.
func (restServer) NotificationHeader(w *task.Webhook) []translate.Field {
	return webhook.Header(w)
}

// restConfiguration reads the members of a configuration different from 1.0. In the schema, blocking is false if a
// configuration leaves it out.
func restConfiguration(r *v1.Request, configuration gjson.Result, call *translate.Call) {
	call.History = 0 // as in its JSON-RPC
	if !configuration.Exists() {
		return
	}
	const at = "configuration."
	if !r.Flag(jsonrpc.Member(configuration, "blocking"), at+"blocking") {
		call.Terms.Response = task.NoWait
	}
	for _, name := range [...]string{"pushNotification", "pushNotificationConfig"} { // the latter in its JSON-RPC
		if config := jsonrpc.Member(configuration, name); !wire.Absent(config) {
			call.Webhook = &task.Webhook{TaskID: call.Message.TaskID, Dialect: version.Name03}
			webhook.Read(&r.Reader, config, at+name, call.Webhook)
		}
	}
}

// restWebhook reads a TaskPushNotificationConfig, in the member config or by itself.
func restWebhook(r *v1.Request) *task.Webhook {
	w := &task.Webhook{Dialect: version.Name03}
	at, outer := "", r.Params()
	if config := r.Optional(r.Param("config"), "config"); config.Exists() {
		at, outer = "config.", config
	}
	webhook.Read(&r.Reader, jsonrpc.Member(outer, "pushNotificationConfig"), at+"pushNotificationConfig", w)
	if w.ID == "" {
		w.ID = r.ID(r.Param("configId"), "configId")
		wire.Own(&w.ID)
	}
	return w
}

// restPart reads a part in the form of 0.3's schema or of its JSON-RPC. The latter names its kind.
func restPart(r *v1.Request, v gjson.Result) task.DataItem {
	it, ok := part.Content(v)
	if !ok || !v.IsObject() {
		r.Fail("", "a part must have a text, a file with its bytes or its place, or data")
		return task.DataItem{}
	}
	r.Optional(jsonrpc.Member(v, "metadata"), ".metadata")
	switch named := !wire.Absent(jsonrpc.Member(v, "kind")); {
	case it.Kind == task.DataKind && !named:
		if inner := jsonrpc.Member(jsonrpc.Member(v, "data"), "data"); !wire.Absent(inner) {
			wire.ReadData(&it, inner)
		}
	case it.Bytes != "":
		if it.Bytes, ok = v1.Base64(it.Bytes); !ok {
			r.Fail(".file", "the bytes of a file must be base64")
		}
		if !wire.Absent(jsonrpc.Member(jsonrpc.Member(v, "file"), "fileWithBytes")) {
			it.Bytes = inBase64(it.Bytes)
		}
	}
	return it
}

// inBase64 returns the base64 of a file. SDKs in Python and Go encode it twice, because the schema has bytes in place
// of the JSON-RPC's string; others encode it once.
func inBase64(sent string) string {
	if inner, err := base64.StdEncoding.DecodeString(sent); err == nil && len(inner) > 0 && wire.IsBase64(string(inner)) {
		return string(inner)
	}
	return sent
}

// appendRESTParts appends the parts of data items. Bytes are encoded twice: the SDKs sending them so read nothing else.
func appendRESTParts(dst []byte, items []task.DataItem) []byte {
	dst = append(dst, '[')
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		it := &items[i]
		switch it.Kind {
		case task.TextItem:
			dst = it.AppendText(append(dst, `{"text":`...))
		case task.FileItem:
			if it.Bytes != "" || it.URI == "" {
				dst = append(dst, `{"file":{"fileWithBytes":"`...)
				dst = append(base64.StdEncoding.AppendEncode(dst, []byte(it.Bytes)), '"')
			} else {
				dst = task.AppendString(append(dst, `{"file":{"fileWithUri":`...), it.URI)
			}
			dst = wire.AppendOptional(dst, `,"mimeType":`, it.MIMEType)
			dst = append(wire.AppendOptional(dst, `,"name":`, it.Name), '}')
		default:
			dst = append(dst, `{"data":{"data":`...)
			if len(it.Data) == 0 {
				dst = append(dst, '{', '}')
			}
			dst = append(append(dst, wire.OneLine(it.Data)...), '}')
		}
		dst = append(extension.AppendPart(dst, it.Metadata, extension.PartMembersV1), '}')
	}
	return append(dst, ']')
}

// Interface guards.
var (
	_ translate.Lister     = restServer{}
	_ translate.Statuser   = restServer{}
	_ translate.CardServer = restServer{}
)
