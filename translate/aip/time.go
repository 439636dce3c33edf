// SPDX-License-Identifier: Apache-2.0

package aip

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate/internal/wire"
)

// time reads a date and time. A missing one is zero.
func (r *reader) time(v gjson.Result, field string) time.Time {
	if wire.Absent(v) {
		return time.Time{}
	}
	t, ok := parseTime(v.Str)
	if !ok {
		r.Fail(field, "%s must be a date and time in ISO 8601, such as 2025-09-01T14:30:00+08:00", field)
	}
	return t
}

// beijing is the zone of times without one (§4.3).
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
