// SPDX-License-Identifier: Apache-2.0

package a2a

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Limits of what one message of a caller may hold.
const (
	maxLegacyID    = 256  // bytes of an id
	maxLegacyItems = 1000 // parts
)

// legacyReader reads what callers of the versions before 1.0 send, from JSON that is known to be valid, and keeps
// the first error. A value that is null or absent reads as the zero value, because early callers write null for
// what they have not. All that it returns are copies.
type legacyReader struct{ err *task.Error }

func (r *legacyReader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = task.Errorf(task.InvalidParams, format, args...).WithField(field)
	}
}

// legacyLast returns the last name of a path.
func legacyLast(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

// object reports whether params are the object that they must be.
func (r *legacyReader) object(v gjson.Result, field string) bool {
	if !v.IsObject() {
		r.fail(field, "%s must be an object", legacyLast(field))
	}
	return v.IsObject()
}

func (r *legacyReader) text(v gjson.Result, field string) string {
	if v.Type != gjson.Null && v.Type != gjson.String {
		r.fail(field, "%s must be a string", legacyLast(field))
	}
	return strings.Clone(v.Str)
}

// bounded reads a string that may stand in a header field.
func (r *legacyReader) bounded(v gjson.Result, field string, most int) string {
	s := r.text(v, field)
	if len(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
		r.fail(field, "%s must be at most %d bytes long and have no control characters", legacyLast(field), most)
	}
	return s
}

// id reads a name that goes into logs, keys and other protocols.
func (r *legacyReader) id(v gjson.Result, field string) string {
	return r.bounded(v, field, maxLegacyID)
}

// required fails unless an id that was read is there.
func (r *legacyReader) required(id, field string) {
	if id == "" {
		r.fail(field, "%s is missing; it must be a string of 1 to %d bytes", legacyLast(field), maxLegacyID)
	}
}

// word reads a string that must be the given one, where it is there at all.
func (r *legacyReader) word(v gjson.Result, field, want string) {
	if s := r.text(v, field); s != want {
		r.fail(field, "%s must be %q", legacyLast(field), want)
	}
}

// count reads an integer that is not negative.
func (r *legacyReader) count(v gjson.Result, field string) int {
	n, ok := jsonrpc.Int(v)
	if !ok || n < 0 {
		r.fail(field, "%s must be an integer that is not negative", legacyLast(field))
		return 0
	}
	return int(min(n, 1<<30))
}

// flag reads a boolean.
func (r *legacyReader) flag(v gjson.Result, field string) bool {
	if !v.IsBool() {
		r.fail(field, "%s must be true or false", legacyLast(field))
	}
	return v.Bool()
}

// items reads parts, which must be there.
func (r *legacyReader) items(v gjson.Result, field string) (items []task.DataItem) {
	if !v.IsArray() {
		r.fail(field, "%s must be an array of parts", legacyLast(field))
		return nil
	}
	v.ForEach(func(_, part gjson.Result) bool {
		if len(items) == maxLegacyItems {
			r.fail(field, "%s must have at most %d entries", legacyLast(field), maxLegacyItems)
			r.err.WithData("limit", legacyLast(field)).WithData("max", maxLegacyItems)
			return false
		}
		it := r.item(part, field, len(items))
		items = append(items, it)
		return r.err == nil
	})
	return items
}

// item reads one part. What it is may be left out where it shows; where it is said, it must be so.
func (r *legacyReader) item(part gjson.Result, field string, n int) task.DataItem {
	wrong := func(at, format string, args ...any) task.DataItem {
		r.fail(fmt.Sprintf("%s[%d]%s", field, n, at), format, args...)
		return task.DataItem{}
	}
	if !part.IsObject() {
		return wrong("", "a part must be an object")
	}
	var metadata gjson.Result
	members(part, func(key string, v gjson.Result) {
		if key == "metadata" {
			metadata = v
		}
	})
	if metadata.Exists() && !metadata.IsObject() {
		return wrong(".metadata", "metadata must be an object")
	}
	it, ok := legacyContent(part)
	if !ok {
		return wrong("", "a part must have a text, a file with either bytes or uri, or data, and say so")
	}
	if it.Bytes != "" && !legacyBase64(it.Bytes) {
		return wrong(".file.bytes", "bytes must be standard base64 with padding")
	}
	for _, s := range [...]*string{&it.Text, &it.Name, &it.MIMEType, &it.URI, &it.Bytes} {
		*s = strings.Clone(*s)
	}
	return it
}
