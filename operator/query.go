// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/shown"
	"github.com/aip-gateway/aip-gateway/task"
)

// maxBody is the largest size of a request's body, in bytes.
const maxBody = 1 << 20

// checkQuery refuses parameters that a route does not have.
func checkQuery(q url.Values, names ...string) error {
	for name := range q {
		if len(names) == 0 {
			return task.Errorf(task.InvalidParams, "there is no %q: the route takes no parameters", name)
		}
		if !slices.Contains(names, name) {
			return task.Errorf(task.InvalidParams, "there is no %q; use %s", name, shown.OneOf(names))
		}
	}
	return nil
}

// readBody decodes the body of a request, in which some members must not be empty. form says what a body must be.
func readBody(r *http.Request, into any, form string, needed ...*string) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	d.DisallowUnknownFields()
	bad := d.Decode(into) != nil
	for _, member := range needed {
		bad = bad || *member == ""
	}
	if bad {
		return errBody(form)
	}
	return nil
}

// errBody refuses a body that is not of a form.
func errBody(form string) error { return task.Errorf(task.InvalidParams, "the body must be %s", form) }

// readLimit reads the size of a page from a query; 0 if there is none.
func readLimit(q url.Values) (int, error) {
	if !q.Has("limit") {
		return 0, nil
	}
	text := q.Get("limit")
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, task.Errorf(task.InvalidParams, "limit is %q, but must be a whole number above 0", text)
	}
	return n, nil
}

// readNumber reads the number of something from a query; 0 if there is none.
func readNumber(q url.Values, name, of string) (uint64, error) {
	text := q.Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, task.Errorf(task.InvalidParams, "%s is %q, but must be %s", name, text, of)
	}
	return n, nil
}

// readMoment reads a time, or how long it is ago, from a query; the zero time if there is none.
func readMoment(q url.Values, name string) (at time.Time, err error) {
	text := q.Get(name)
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := parseDuration(text)
	if err != nil || ago <= 0 {
		return at, task.Errorf(task.InvalidParams,
			"%s is %q, but must be a time such as 2026-03-01T10:00:00Z, or how long it is ago, such as 10m", name, text)
	}
	return time.Now().Add(-ago), nil
}

// days is a number of days in a duration.
var days = regexp.MustCompile(`([0-9.]+)d`)

// parseDuration reads a duration, which may have days, as 2d or 1d12h: those of a Caddyfile have them, too, but the
// package knows no Caddy.
func parseDuration(text string) (time.Duration, error) {
	if len(text) > 100 {
		text = "" // it is none
	}
	return time.ParseDuration(days.ReplaceAllStringFunc(text, func(of string) string {
		n, err := strconv.ParseFloat(strings.TrimSuffix(of, "d"), 64)
		if err != nil {
			return of
		}
		return strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	}))
}
