// SPDX-License-Identifier: Apache-2.0

// Package conftest reads settings in tests, as they stand in a Caddyfile.
package conftest

import (
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf"
)

// Parser returns a parser that has read the first word of a text, the name of its option.
func Parser(text string) *conf.Parser {
	p := conf.NewParser(caddyfile.NewTestDispenser(text))
	p.Next()
	return p
}

// Reads holds that read reads each text as the value that stands there.
func Reads[T any](t *testing.T, texts map[string]T, read func(text string) (T, error)) {
	t.Helper()
	for text, want := range texts {
		got, err := read(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// Refuses holds that read refuses each text of mistakes, and that its error is the one that stands there.
func Refuses(t *testing.T, mistakes map[string]string, read func(text string) error) {
	t.Helper()
	for text, want := range mistakes {
		err := read(text)
		if err == nil {
			t.Errorf("%q is accepted", text)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
