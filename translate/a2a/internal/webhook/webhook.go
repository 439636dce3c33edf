// SPDX-License-Identifier: Apache-2.0

// Package webhook is the PushNotificationConfig of the versions before 1.0.
package webhook

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// A PushNotificationConfig is the canon's Webhook. It may name several schemes for one credential; the first one is
// used.

// maxScheme is the longest name of a scheme, in bytes.
const maxScheme = 64

// tokenHeader carries a webhook's token.
const tokenHeader = "X-A2A-Notification-Token"

// Header returns the header fields of the request to a webhook.
func Header(w *task.Webhook) []translate.Field {
	fields := []translate.Field{{Name: "Content-Type", Value: "application/json"}}
	if w.Token != "" {
		fields = append(fields, translate.Field{Name: tokenHeader, Value: w.Token})
	}
	if w.Credentials != "" {
		scheme := w.Scheme
		if scheme == "" {
			scheme = "Bearer"
		}
		fields = append(fields, translate.Field{Name: "Authorization", Value: scheme + " " + w.Credentials})
	}
	return fields
}

// Append appends a PushNotificationConfig. Its id exists since 0.2.5, and is left out if it is empty.
func Append(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"url":`...)
	dst = task.AppendString(dst, w.URL)
	dst = wire.AppendOptional(dst, `,"id":`, w.ID)
	dst = wire.AppendOptional(dst, `,"token":`, w.Token)
	if w.Scheme != "" || w.Credentials != "" {
		dst = append(dst, `,"authentication":{"schemes":[`...)
		if w.Scheme != "" {
			dst = task.AppendString(dst, w.Scheme)
		}
		dst = append(dst, ']')
		dst = wire.AppendOptional(dst, `,"credentials":`, w.Credentials)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// NotFound is the error for a caller asking for the webhook of a task without one.
var NotFound = task.Errorf(task.TaskNotFound, "this task has no push notification configuration")

// ReadParams reads the params to set a webhook: {id, pushNotificationConfig}. taskID is the name of the first.
func ReadParams(r *wire.Reader, params gjson.Result, taskID, dialect string) *task.Webhook {
	w := &task.Webhook{Dialect: dialect}
	w.TaskID = r.RequiredID(jsonrpc.Member(params, taskID), taskID)
	wire.Own(&w.TaskID)
	Read(r, jsonrpc.Member(params, "pushNotificationConfig"), "pushNotificationConfig", w)
	return w
}

// Read reads a PushNotificationConfig into w.
func Read(r *wire.Reader, v gjson.Result, field string, w *task.Webhook) {
	if !v.IsObject() {
		r.Fail(field, "%s must be an object with the member url", field[strings.LastIndexByte(field, '.')+1:])
		return
	}
	w.ID = r.ID(jsonrpc.Member(v, "id"), field+".id")
	w.URL = r.Required(jsonrpc.Member(v, "url"), field+".url", wire.MaxURL)
	w.Token = r.Bounded(jsonrpc.Member(v, "token"), field+".token", wire.MaxSecret)
	if auth := jsonrpc.Member(v, "authentication"); !wire.Absent(auth) && r.Object(auth, field+".authentication") {
		field += ".authentication"
		w.Scheme = readScheme(r, jsonrpc.Member(auth, "schemes"), field+".schemes")
		w.Credentials = r.Bounded(jsonrpc.Member(auth, "credentials"), field+".credentials", wire.MaxSecret)
	}
	wire.Own(&w.ID, &w.URL, &w.Token, &w.Scheme, &w.Credentials)
}

// readScheme reads the first of a list of schemes.
func readScheme(r *wire.Reader, v gjson.Result, field string) (first string) {
	if wire.Absent(v) {
		return ""
	}
	if !v.IsArray() {
		r.Fail(field, "schemes must be an array of strings")
		return ""
	}
	jsonrpc.ForEach(v, func(_, one gjson.Result) bool {
		first = r.Bounded(one, field+"[0]", maxScheme)
		if strings.ContainsAny(first, " ,;=\"") {
			r.Fail(field+"[0]", "a scheme must be one word, such as Bearer")
		}
		return false
	})
	return first
}
