// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// TestLines: handlers that say the same are told apart by their order, and the last reading of a file counts.
func TestLines(t *testing.T) {
	type handler struct{ Name string }
	for _, line := range []int{1, 2, 11, 12} { // the file was read twice
		NoteLine(handler{"same"}, caddyfile.Token{File: "Caddyfile", Line: line})
	}
	NoteLine(handler{"other"}, caddyfile.Token{File: "Caddyfile", Line: 5})
	for _, tt := range []struct {
		name string
		i, n int
		want string
	}{
		{"same", 0, 2, "Caddyfile:11"},
		{"same", 1, 2, "Caddyfile:12"},
		{"same", 0, 1, "Caddyfile:12"},
		{"same", 0, 5, ""},
		{"other", 0, 1, "Caddyfile:5"},
		{"none", 0, 1, ""},
	} {
		if got := LineOf(FingerprintOf(handler{tt.name}), tt.i, tt.n); got != tt.want {
			t.Errorf("%s, %d of %d: %q, want %q", tt.name, tt.i, tt.n, got, tt.want)
		}
	}
	if type2 := FingerprintOf(struct{ Name string }{"same"}); LineOf(type2, 0, 1) != "" {
		t.Error("handlers of two kinds say the same")
	}
}
