// SPDX-License-Identifier: Apache-2.0

package rpc

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/part"

	"github.com/aip-gateway/aip-gateway/translate/a2a/internal/value"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Limits of what one message of a caller may hold.
const (
	maxID    = 256  // bytes of an id
	maxParts = 1000 // parts
)

// legacyReader reads what callers of the versions before 1.0 send, from JSON that is known to be valid, and keeps
// the first error. A value that is null or absent reads as the zero value, because early callers write null for
// what they have not. All that it returns are copies.
type Reader struct{ Err *task.Error }

func (r *Reader) Fail(field, format string, args ...any) {
	if r.Err == nil {
		r.Err = task.Errorf(task.InvalidParams, format, args...).WithField(field)
	}
}

// legacyLast returns the last name of a path.
func Last(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

// object reports whether params are the object that they must be.
func (r *Reader) Object(v gjson.Result, field string) bool {
	if !v.IsObject() {
		r.Fail(field, "%s must be an object", Last(field))
	}
	return v.IsObject()
}

func (r *Reader) text(v gjson.Result, field string) string {
	if v.Type != gjson.Null && v.Type != gjson.String {
		r.Fail(field, "%s must be a string", Last(field))
	}
	return strings.Clone(v.Str)
}

// bounded reads a string that may stand in a header field.
func (r *Reader) Bounded(v gjson.Result, field string, most int) string {
	s := r.text(v, field)
	if len(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
		r.Fail(field, "%s must be at most %d bytes long and have no control characters", Last(field), most)
	}
	return s
}

// id reads a name that goes into logs, keys and other protocols.
func (r *Reader) ID(v gjson.Result, field string) string {
	return r.Bounded(v, field, maxID)
}

// required fails unless an id that was read is there.
func (r *Reader) Required(id, field string) {
	if id == "" {
		r.Fail(field, "%s is missing; it must be a string of 1 to %d bytes", Last(field), maxID)
	}
}

// word reads a string that must be the given one, where it is there at all.
func (r *Reader) Word(v gjson.Result, field, want string) {
	if s := r.text(v, field); s != want {
		r.Fail(field, "%s must be %q", Last(field), want)
	}
}

// count reads an integer that is not negative.
func (r *Reader) Count(v gjson.Result, field string) int {
	n, ok := jsonrpc.Int(v)
	if !ok || n < 0 {
		r.Fail(field, "%s must be an integer that is not negative", Last(field))
		return 0
	}
	return int(min(n, 1<<30))
}

// flag reads a boolean.
func (r *Reader) Flag(v gjson.Result, field string) bool {
	if !v.IsBool() {
		r.Fail(field, "%s must be true or false", Last(field))
	}
	return v.Bool()
}

// items reads parts, which must be there.
func (r *Reader) Items(v gjson.Result, field string) (items []task.DataItem) {
	if !v.IsArray() {
		r.Fail(field, "%s must be an array of parts", Last(field))
		return nil
	}
	v.ForEach(func(_, part gjson.Result) bool {
		if len(items) == maxParts {
			r.Fail(field, "%s must have at most %d entries", Last(field), maxParts)
			r.Err.WithData("limit", Last(field)).WithData("max", maxParts)
			return false
		}
		it := r.item(part, field, len(items))
		items = append(items, it)
		return r.Err == nil
	})
	return items
}

// item reads one part. What it is may be left out where it shows; where it is said, it must be so.
func (r *Reader) item(v gjson.Result, field string, n int) task.DataItem {
	wrong := func(at, format string, args ...any) task.DataItem {
		r.Fail(fmt.Sprintf("%s[%d]%s", field, n, at), format, args...)
		return task.DataItem{}
	}
	if !v.IsObject() {
		return wrong("", "a part must be an object")
	}
	var metadata gjson.Result
	value.Members(v, func(key string, v gjson.Result) {
		if key == "metadata" {
			metadata = v
		}
	})
	if metadata.Exists() && !metadata.IsObject() {
		return wrong(".metadata", "metadata must be an object")
	}
	it, ok := part.Content(v)
	if !ok {
		return wrong("", "a part must have a text, a file with either bytes or uri, or data, and say so")
	}
	if it.Bytes != "" && !part.IsBase64(it.Bytes) {
		return wrong(".file.bytes", "bytes must be standard base64 with padding")
	}
	for _, s := range [...]*string{&it.Text, &it.Name, &it.MIMEType, &it.URI, &it.Bytes} {
		*s = strings.Clone(*s)
	}
	return it
}

// About reads the params of methods that are about one task that exists: {id, historyLength}.
func (r *Reader) About(params gjson.Result, command task.Command, call *translate.Call) {
	m := &call.Message
	m.Command = command
	value.Members(params, func(key string, v gjson.Result) {
		switch key {
		case "id":
			m.TaskID = r.ID(v, "params.id")
		case "historyLength":
			call.History = r.Count(v, "params.historyLength")
		}
	})
	r.Required(m.TaskID, "params.id")
	switch command {
	case task.Cancel:
		call.Strict = true
	case task.ReStream:
		call.Stream, call.Snapshot = true, true
	}
}
