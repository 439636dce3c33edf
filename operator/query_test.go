// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestParseDuration: durations may have days.
func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour,
		"-1d":  -24 * time.Hour,
		"1d1d": 48 * time.Hour, "1h30m": 90 * time.Minute,
		"": -1, "d": -1, "10": -1, "1.2.3d": -1, "ten": -1, "1d ": -1, "1w": -1,
		strings.Repeat("1h", 60): -1,
	} {
		got, err := parseDuration(text)
		if invalid := want == -1; invalid != (err != nil) || !invalid && got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// TestReadMoment: a time is one of a clock, or how long it is ago.
func TestReadMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for text, want := range map[string]time.Time{
			"": {}, "2026-03-01T10:00:00Z": time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC), "10m": now.Add(-10 * time.Minute),
			"1d": now.Add(-24 * time.Hour),
		} {
			got, err := readMoment(url.Values{"since": {text}}, "since")
			if err != nil || !got.Equal(want) {
				t.Errorf("%q is %v, %v", text, got, err)
			}
		}
		for _, text := range []string{"yesterday", "-10m", "0s", "2026-03-01"} {
			_, err := readMoment(url.Values{"since": {text}}, "since")
			if task.KindOf(err) != task.InvalidParams || !strings.Contains(err.Error(), "since is \""+text+"\"") {
				t.Errorf("%q is refused by %v", text, err)
			}
		}
	})
}

// TestReadNumbers: the size of a page is above 0, and a cursor is a number.
func TestReadNumbers(t *testing.T) {
	for text, want := range map[string]int{"": -1, "0": -1, "-1": -1, "1": 1, "1000": 1000, "1e3": -1} {
		got, err := readLimit(url.Values{"limit": {text}})
		if (err != nil) != (want == -1) || err == nil && got != want {
			t.Errorf("the limit %q is %d, %v", text, got, err)
		}
	}
	if got, err := readLimit(nil); got != 0 || err != nil {
		t.Errorf("no limit is %d, %v", got, err)
	}
	for text, want := range map[string]uint64{"": 0, "7": 7, "18446744073709551615": 1<<64 - 1} {
		if got, err := readNumber(url.Values{"after": {text}}, "after", "a number"); got != want || err != nil {
			t.Errorf("after %q is %d, %v", text, got, err)
		}
	}
	if _, err := readNumber(url.Values{"after": {"x"}}, "after", "the number of an event"); err == nil ||
		!strings.HasSuffix(err.Error(), `after is "x", but must be the number of an event`) {
		t.Errorf("another text is refused by %v", err)
	}
}

// TestPageLimit: pages of several gateways have a usual size, and a largest one.
func TestPageLimit(t *testing.T) {
	for text, want := range map[string]int{"limit=7": 7, "limit=5000": 1000, "": 100} {
		q, _ := url.ParseQuery(text)
		if got, err := pageLimit(q, defaultPage, maxPage); got != want || err != nil {
			t.Errorf("%q has %d entries, %v", text, got, err)
		}
	}
}

// TestReadBody: a body has known members only, and those it needs, and is bounded.
func TestReadBody(t *testing.T) {
	type body struct{ A, B string }
	read := func(text string) (b body, err error) {
		err = readBody(httptest.NewRequest("POST", "/", strings.NewReader(text)), &b, `{"a": "…"}`, &b.A)
		return b, err
	}
	got, err := read(`{"a":"1","b":"2"}`)
	if diff := cmp.Diff(body{"1", "2"}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, text := range []string{``, `{}`, `[]`, `{"a":""}`, `{"a":1}`, `{"a":"1","c":"2"}`,
		`{"a":"` + strings.Repeat("x", maxBody) + `"}`} {
		if _, err := read(text); task.KindOf(err) != task.InvalidParams ||
			!strings.HasSuffix(err.Error(), `the body must be {"a": "…"}`) {
			t.Errorf("a body of %d bytes is refused by %v", len(text), err)
		}
	}
}
