// SPDX-License-Identifier: Apache-2.0

// Package webhook is the PushNotificationConfig of the versions before 1.0.
package webhook

import (
	"strings"

	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/rpc"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/value"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// A PushNotificationConfig of the versions before 1.0 is the canon's Webhook. It names any number of schemes for
// one credential, of which the first is used: there is no telling what the others would want.

// Limits of what a config may hold, in bytes. What else its URL must be is not the dialect's business.
const (
	maxURL    = 2048
	maxSecret = 4096
	maxScheme = 64
)

// legacyTokenHeader carries a webhook's token.
const tokenHeader = "X-A2A-Notification-Token"

// legacyNotificationHeader returns the header fields that go with what a webhook is told.
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

// appendLegacyConfig appends a PushNotificationConfig. Its id is new in 0.2.5, and is left out where there is none.
func Append(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"url":`...)
	dst = task.AppendString(dst, w.URL)
	dst = value.AppendOptional(dst, `,"id":`, w.ID)
	dst = value.AppendOptional(dst, `,"token":`, w.Token)
	if w.Scheme != "" || w.Credentials != "" {
		dst = append(dst, `,"authentication":{"schemes":[`...)
		if w.Scheme != "" {
			dst = task.AppendString(dst, w.Scheme)
		}
		dst = append(dst, ']')
		dst = value.AppendOptional(dst, `,"credentials":`, w.Credentials)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// legacyReadConfig reads a PushNotificationConfig into w.
func Read(r *rpc.Reader, v gjson.Result, field string, w *task.Webhook) {
	if !v.IsObject() {
		r.Fail(field, "%s must be an object with the member url", rpc.Last(field))
		return
	}
	value.Members(v, func(key string, v gjson.Result) {
		switch key {
		case "id":
			w.ID = r.ID(v, field+".id")
		case "url":
			w.URL = r.Bounded(v, field+".url", maxURL)
		case "token":
			w.Token = r.Bounded(v, field+".token", maxSecret)
		case "authentication":
			if !v.IsObject() {
				r.Fail(field+".authentication", "authentication must be an object")
			}
			value.Members(v, func(key string, v gjson.Result) {
				switch key {
				case "schemes":
					w.Scheme = readScheme(r, v, field+".authentication.schemes")
				case "credentials":
					w.Credentials = r.Bounded(v, field+".authentication.credentials", maxSecret)
				}
			})
		}
	})
	if w.URL == "" {
		r.Fail(field+".url", "url is missing; it must be a string of 1 to %d bytes", maxURL)
	}
}

// legacyReadScheme reads the first of a list of schemes.
func readScheme(r *rpc.Reader, v gjson.Result, field string) (first string) {
	if !v.IsArray() {
		r.Fail(field, "schemes must be an array of strings")
		return ""
	}
	v.ForEach(func(_, one gjson.Result) bool {
		first = r.Bounded(one, field+"[0]", maxScheme)
		if strings.ContainsAny(first, " ,;=\"") {
			r.Fail(field+"[0]", "a scheme must be one word, such as Bearer")
		}
		return false
	})
	return first
}
