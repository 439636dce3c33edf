// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// Reader reads a caller's body, and keeps the first error. It reads a null or missing value as the zero value. Its
// strings are views of the body until Own or Owned has copied them.
//
// A method takes a value and the path of its field behind the Prefix: "taskId", or nothing if the Prefix is all of it.
type Reader struct {
	Prefix string      // the beginning of each path in an error, such as "params."
	Err    *task.Error // the first error; its field is the whole path
}

// Fail records the error of an invalid field, unless there is an error already.
func (r *Reader) Fail(field, format string, args ...any) {
	if r.Err == nil {
		r.Err = task.Errorf(task.InvalidParams, format, args...).WithField(r.path(field))
	}
}

func (r *Reader) path(field string) string { return strings.TrimSuffix(r.Prefix+field, ".") }

// name returns the name of a field for a sentence: the last name of its path.
func (r *Reader) name(field string) string {
	path := r.path(field)
	if path == "" {
		return "an entry"
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// Text reads a string.
func (r *Reader) Text(v gjson.Result, field string) string {
	if !Absent(v) && v.Type != gjson.String {
		r.Fail(field, "%s must be a string", r.name(field))
	}
	return v.Str
}

// Bounded reads a string of at most so many bytes, fit for logs, keys and header fields.
func (r *Reader) Bounded(v gjson.Result, field string, most int) string {
	s := r.Text(v, field)
	if len(s) > most || strings.ContainsFunc(s, unicode.IsControl) {
		r.Fail(field, "%s must be at most %d bytes long and have no control characters", r.name(field), most)
	}
	return s
}

// Required reads a required string, as Bounded does.
func (r *Reader) Required(v gjson.Result, field string, most int) string {
	if Absent(v) {
		r.Fail(field, "%s is missing; it must be a string of 1 to %d bytes", r.name(field), most)
	}
	s := r.Bounded(v, field, most)
	if s == "" {
		r.Fail(field, "%s must be a string of 1 to %d bytes", r.name(field), most)
	}
	return s
}

// ID reads an id.
func (r *Reader) ID(v gjson.Result, field string) string { return r.Bounded(v, field, MaxID) }

// RequiredID reads a required id.
func (r *Reader) RequiredID(v gjson.Result, field string) string { return r.Required(v, field, MaxID) }

// PresentID reads a required id. It may be empty: then its sender leaves it to the reader.
func (r *Reader) PresentID(v gjson.Result, field string) string {
	if Absent(v) {
		return r.RequiredID(v, field)
	}
	return r.ID(v, field)
}

// Word reads a string. It must be the given one, unless it is missing.
func (r *Reader) Word(v gjson.Result, field, want string) {
	if s := r.Text(v, field); s != want && !Absent(v) {
		r.Fail(field, "%s must be %q", r.name(field), want)
	}
}

// Count reads a non-negative integer. One too large is read as the largest int64.
func (r *Reader) Count(v gjson.Result, field string) int64 {
	if Absent(v) {
		return 0
	}
	n, ok := jsonrpc.Int(v)
	if !ok || n < 0 {
		r.Fail(field, "%s must be an integer that is not negative", r.name(field))
		return 0
	}
	return n
}

// Flag reads a boolean.
func (r *Reader) Flag(v gjson.Result, field string) bool {
	if !Absent(v) && !v.IsBool() {
		r.Fail(field, "%s must be true or false", r.name(field))
	}
	return v.Type == gjson.True
}

// Base64 reads the standard base64 of RFC 4648 §4 with its padding: the form read by all agents.
func (r *Reader) Base64(v gjson.Result, field string) string {
	s := r.Text(v, field)
	if !IsBase64(s) {
		r.Fail(field, "%s must be standard base64 with padding", r.name(field))
	}
	return s
}

// Object reports whether v is an object, as it must be.
func (r *Reader) Object(v gjson.Result, field string) bool {
	switch {
	case Absent(v):
		r.Fail(field, "%s is missing; it must be an object", r.name(field))
	case !v.IsObject():
		r.Fail(field, "%s must be an object", r.name(field))
	}
	return v.IsObject()
}

// JSON returns a copy of the JSON of an object on one line.
func (r *Reader) JSON(v gjson.Result, field string) json.RawMessage {
	if Absent(v) || !r.Object(v, field) {
		return nil
	}
	return Line(v)
}

// Each calls f with the entries of an array, at most so many, until there is an error. While f is called, paths begin
// at the entry: the path of the entry itself is empty, the path of its member text is ".text".
func (r *Reader) Each(v gjson.Result, field string, most int, f func(entry gjson.Result)) {
	if !v.IsArray() {
		r.Fail(field, "%s must be an array", r.name(field))
	}
	if r.Err != nil {
		return
	}
	outer, n := r.Prefix, 0
	r.Prefix = ""
	jsonrpc.ForEach(v, func(_, entry gjson.Result) bool {
		if n == most {
			r.Prefix = outer
			r.Fail(field, "%s must have at most %d entries", r.name(field), most)
			r.Err.WithData("limit", r.name(field)).WithData("max", most)
			return false
		}
		if f(entry); r.Err != nil {
			r.Err.Field = fmt.Sprintf("%s%s[%d]%s", outer, field, n, r.Err.Field)
		}
		n++
		return r.Err == nil
	})
	r.Prefix = outer
}

// IsBase64 reports whether s is the standard base64 of RFC 4648 §4 with its padding.
func IsBase64(s string) bool {
	digits := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for i := 0; i < len(digits); i++ {
		if !base64Digits[digits[i]] {
			return false
		}
	}
	return len(s)%4 == 0
}

var base64Digits = func() (set [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		set[c] = true
	}
	return set
}()

// Own replaces views of a body by copies, all of them in one piece of memory. It is for short strings, since
// each of them keeps the others alive.
func Own(views ...*string) {
	n := 0
	for _, v := range views {
		n += len(*v)
	}
	var b strings.Builder
	b.Grow(n)
	for _, v := range views {
		b.WriteString(*v)
	}
	all := b.String()
	for _, v := range views {
		*v, all = all[:len(*v)], all[len(*v):]
	}
}

// Owned returns a copy of s, the string of v. A string with escapes is no view of the body any more.
func Owned(v gjson.Result, s string) string {
	if len(v.Raw) > len(s)+len(`""`) {
		return s
	}
	return strings.Clone(s)
}
