// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/url"
	"testing"
)

// TestServer: a server is the same however its URL is written.
func TestServer(t *testing.T) {
	for s, want := range map[string]Server{
		"hooks.example.com":      "hooks.example.com:443",
		"Hooks.Example.com.":     "hooks.example.com:443",
		"hooks.example.com:8443": "hooks.example.com:8443",
		"192.0.2.1":              "192.0.2.1:443",
		"[2001:db8::1]:8443":     "[2001:db8::1]:8443",
	} {
		if got, err := ParseServer(s); err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", s, got, err, want)
		}
		u, err := url.Parse("https://" + s + "/hook?x=1")
		if err != nil {
			t.Fatal(err)
		}
		if got := ServerOf(u); got != want {
			t.Errorf("%s is at %q, want %q", u, got, want)
		}
		u.Scheme = "http"
		if got := ServerOf(u); got != "" {
			t.Errorf("%s is at %q, and shows no certificate", u, got)
		}
	}
	for _, s := range []string{"", "https://hooks.example.com", "hooks.example.com/x", "*.example.com", "a b", "user@host",
		"host:0", "host:65536", "host:x", "2001:db8::1"} {
		if got, err := ParseServer(s); err == nil {
			t.Errorf("%q is taken as %q", s, got)
		}
	}
}
