// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/task"
)

// reader reads values of JSON that is known to be valid, and keeps the first error. A value that is null or
// absent reads as the zero value. Strings are views of the body until own or owned has copied them.
type reader struct{ err *task.Error }

func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = task.Errorf(task.InvalidParams, format, args...).WithField(field)
	}
}

func (r *reader) tooMany(field string, most int) {
	if r.err == nil {
		r.fail(field, "%s must have at most %d entries", last(field), most)
		r.err.WithData("limit", last(field)).WithData("max", most)
	}
}

// last returns the last name of a path.
func last(field string) string { return field[strings.LastIndexByte(field, '.')+1:] }

func absent(v gjson.Result) bool { return v.Type == gjson.Null }

// member returns the member of an object that has exactly this name.
func member(object gjson.Result, name string) (found gjson.Result) {
	object.ForEach(func(key, v gjson.Result) bool {
		if key.Str == name {
			found = v
		}
		return true
	})
	return found
}

func (r *reader) text(v gjson.Result, field string) string {
	if !absent(v) && v.Type != gjson.String {
		r.fail(field, "%s must be a string", last(field))
	}
	return v.Str
}

// id reads a name that goes into logs, keys and other protocols.
func (r *reader) id(v gjson.Result, field string) string {
	s := r.text(v, field)
	if len(s) > maxID || strings.ContainsFunc(s, unicode.IsControl) {
		r.fail(field, "%s must be at most %d bytes long and have no control characters", last(field), maxID)
	}
	return s
}

func (r *reader) requiredID(v gjson.Result, field string) string {
	if absent(v) {
		r.fail(field, "%s is missing; it must be a string of 1 to %d bytes", last(field), maxID)
	}
	s := r.id(v, field)
	if s == "" {
		r.fail(field, "%s must be a string of 1 to %d bytes", last(field), maxID)
	}
	return s
}

// count reads an integer that is not negative.
func (r *reader) count(v gjson.Result, field string) int64 {
	if absent(v) {
		return 0
	}
	n, ok := jsonrpc.Int(v)
	if !ok || n < 0 {
		r.fail(field, "%s must be an integer that is not negative", last(field))
		return 0
	}
	return n
}

func (r *reader) time(v gjson.Result, field string) time.Time {
	if absent(v) {
		return time.Time{}
	}
	t, ok := parseTime(v.Str)
	if !ok {
		r.fail(field, "%s must be a date and time in ISO 8601, such as 2025-09-01T14:30:00+08:00", last(field))
	}
	return t
}

// base64 reads the standard base64 of RFC 4648 §4, with its padding: the one that agents take.
func (r *reader) base64(v gjson.Result, field string) string {
	s := r.text(v, field)
	ok := len(s)%4 == 0
	digits := strings.TrimSuffix(strings.TrimSuffix(s, "="), "=")
	for i := 0; ok && i < len(digits); i++ {
		ok = isBase64[digits[i]]
	}
	if !ok {
		r.fail(field, "%s must be standard base64 with padding", last(field))
	}
	return s
}

var isBase64 = func() (set [256]bool) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		set[c] = true
	}
	return set
}()

// object returns a copy of an object's JSON. It has no line breaks, because events go out on one line.
func (r *reader) object(v gjson.Result, field string) json.RawMessage {
	switch {
	case absent(v):
		return nil
	case !v.IsObject():
		r.fail(field, "%s must be an object", last(field))
		return nil
	}
	raw := []byte(v.Raw)
	if !strings.ContainsAny(v.Raw, "\n\r") {
		return raw
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		r.fail(field, "%s must be JSON", last(field))
		return nil
	}
	return b.Bytes()
}

// own replaces views of a body by copies, all of them in one piece of memory. It is for short strings, since
// each of them keeps the others alive.
func own(views ...*string) {
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

// owned returns a copy of s, the string that v holds. A string with escapes is no view of the body any more.
func owned(v gjson.Result, s string) string {
	if len(v.Raw) > len(s)+len(`""`) {
		return s
	}
	return strings.Clone(s)
}

// beijing is the zone of times that name none (§4.3).
var beijing = time.FixedZone("", 8*60*60)

// parseTime reads a date and time of day in ISO 8601's extended format. Seconds and their fraction may be left
// out, and so may the zone.
func parseTime(s string) (time.Time, bool) {
	const short, long = "2006-01-02T15:04", "2006-01-02T15:04:05"
	if len(s) < len(short) {
		return time.Time{}, false
	}
	zone := beijing
	if i := strings.IndexAny(s[len(short):], "Z+-"); i >= 0 {
		var ok bool
		if zone, ok = parseZone(s[len(short)+i:]); !ok {
			return time.Time{}, false
		}
		s = s[:len(short)+i]
	}
	layout := long
	if len(s) == len(short) {
		layout = short
	} else if s[len(short)] != ':' { // time.Parse would take an hour of one digit
		return time.Time{}, false
	}
	t, err := time.ParseInLocation(layout, s, zone)
	return t, err == nil
}

// parseZone reads Z, +08:00, +0800 or +08.
func parseZone(s string) (*time.Location, bool) {
	if s == "Z" {
		return time.UTC, true
	}
	sign, digits := 1, s[1:]
	if s[0] == '-' {
		sign = -1
	}
	if len(digits) == 5 && digits[2] == ':' {
		digits = digits[:2] + digits[3:]
	}
	if len(digits) == 2 {
		digits += "00"
	}
	if len(digits) != 4 {
		return nil, false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return nil, false
		}
	}
	hours := int(digits[0]-'0')*10 + int(digits[1]-'0')
	minutes := int(digits[2]-'0')*10 + int(digits[3]-'0')
	if hours > 23 || minutes > 59 {
		return nil, false
	}
	switch offset := sign * (hours*60 + minutes) * 60; offset {
	case 0:
		return time.UTC, true
	case 8 * 60 * 60:
		return beijing, true
	default:
		return time.FixedZone("", offset), true
	}
}
