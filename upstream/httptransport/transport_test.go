// SPDX-License-Identifier: Apache-2.0

package httptransport

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

func TestNew(t *testing.T) {
	for _, tc := range []struct{ url, want string }{
		{"http://a/", ""}, {"https://a:1/b", ""},
		{"", "the agent's URL must begin with http:// or https:// and a host"},
		{"ftp://a/", "the agent's URL must begin with http:// or https:// and a host"},
		{"http:///x", "the agent's URL must begin with http:// or https:// and a host"},
		{"http://u:secret@a/", "the agent's URL must not hold credentials"},
		{"http://u:secret@a\x7f/", "the agent's URL cannot be read"},
	} {
		_, err := New(Config{URL: tc.url, Codec: a2a.Legacy()})
		if got := fmt.Sprint(err); got != tc.want && (err != nil || tc.want != "") {
			t.Errorf("%q: %v, want %q", tc.url, err, tc.want)
		}
	}
	if _, err := New(Config{URL: "http://a/"}); err == nil {
		t.Error("a dialect is not needed")
	}
	_, err := New(Config{URL: "http://a/", Codec: a2a.Legacy(), Header: http.Header{"X-Key": {"secret\nX: y"}}})
	if want := `the header field "X-Key" has a name or a value that HTTP does not allow`; fmt.Sprint(err) != want {
		t.Errorf("%v, want %v", err, want)
	}
}
