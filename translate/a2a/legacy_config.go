// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// A PushNotificationConfig of the versions before 1.0 is the canon's Webhook. It names any number of schemes for
// one credential, of which the first is used: there is no telling what the others would want.

// Limits of what a config may hold, in bytes. What else its URL must be is not the dialect's business.
const (
	maxLegacyURL    = 2048
	maxLegacySecret = 4096
	maxLegacyScheme = 64
)

// legacyTokenHeader carries a webhook's token.
const legacyTokenHeader = "X-A2A-Notification-Token"

// legacyNotificationHeader returns the header fields that go with what a webhook is told.
func legacyNotificationHeader(w *task.Webhook) []translate.Field {
	fields := []translate.Field{{Name: "Content-Type", Value: "application/json"}}
	if w.Token != "" {
		fields = append(fields, translate.Field{Name: legacyTokenHeader, Value: w.Token})
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
func appendLegacyConfig(dst []byte, w *task.Webhook) []byte {
	dst = append(dst, `{"url":`...)
	dst = task.AppendString(dst, w.URL)
	dst = legacyOptional(dst, `,"id":`, w.ID)
	dst = legacyOptional(dst, `,"token":`, w.Token)
	if w.Scheme != "" || w.Credentials != "" {
		dst = append(dst, `,"authentication":{"schemes":[`...)
		if w.Scheme != "" {
			dst = task.AppendString(dst, w.Scheme)
		}
		dst = append(dst, ']')
		dst = legacyOptional(dst, `,"credentials":`, w.Credentials)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// legacyReadConfig reads a PushNotificationConfig into w.
func legacyReadConfig(r *legacyReader, v gjson.Result, field string, w *task.Webhook) {
	if !v.IsObject() {
		r.fail(field, "%s must be an object with the member url", legacyLast(field))
		return
	}
	members(v, func(key string, v gjson.Result) {
		switch key {
		case "id":
			w.ID = r.id(v, field+".id")
		case "url":
			w.URL = r.bounded(v, field+".url", maxLegacyURL)
		case "token":
			w.Token = r.bounded(v, field+".token", maxLegacySecret)
		case "authentication":
			if !v.IsObject() {
				r.fail(field+".authentication", "authentication must be an object")
			}
			members(v, func(key string, v gjson.Result) {
				switch key {
				case "schemes":
					w.Scheme = legacyReadScheme(r, v, field+".authentication.schemes")
				case "credentials":
					w.Credentials = r.bounded(v, field+".authentication.credentials", maxLegacySecret)
				}
			})
		}
	})
	if w.URL == "" {
		r.fail(field+".url", "url is missing; it must be a string of 1 to %d bytes", maxLegacyURL)
	}
}

// legacyReadScheme reads the first of a list of schemes.
func legacyReadScheme(r *legacyReader, v gjson.Result, field string) (first string) {
	if !v.IsArray() {
		r.fail(field, "schemes must be an array of strings")
		return ""
	}
	v.ForEach(func(_, one gjson.Result) bool {
		first = r.bounded(one, field+"[0]", maxLegacyScheme)
		if strings.ContainsAny(first, " ,;=\"") {
			r.fail(field+"[0]", "a scheme must be one word, such as Bearer")
		}
		return false
	})
	return first
}
