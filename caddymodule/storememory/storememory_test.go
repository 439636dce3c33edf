// SPDX-License-Identifier: Apache-2.0

package storememory

import (
	"errors"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/conf/conftest"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/replay"
)

// TestCapacity: a store in memory is bounded: by max_size, or by a default that one task fits into.
func TestCapacity(t *testing.T) {
	for _, tt := range []struct{ size, bytes, want int64 }{
		{0, 0, replay.DefaultCapacity},
		{0, replay.DefaultCapacity + 1, replay.DefaultCapacity + 1},
		{1 << 20, 1 << 19, 1 << 20},
	} {
		s := &Store{store.Limits{MaxSize: tt.size, MaxBytes: tt.bytes}}
		if err := s.Provision(caddy.Context{}); err != nil {
			t.Fatal(err)
		}
		if got := s.Settings().Capacity; got != tt.want {
			t.Errorf("max_size %d, max_bytes %d: the capacity is %d, want %d", tt.size, tt.bytes, got, tt.want)
		}
	}
}

// TestOpen: each open store has logs of its own, though all are at one place.
func TestOpen(t *testing.T) {
	s := new(Store)
	if s.Location() != new(Store).Location() {
		t.Error("a process has two memories")
	}
	one, err := s.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	if err := one.Append(t.Context(), replay.Append{Log: "a", Records: [][]byte{[]byte("one")}}); err != nil {
		t.Fatal(err)
	}
	two, err := s.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	if _, err := two.Head(t.Context(), "a"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("a second store has the log of the first: %v", err)
	}
}

// TestRead: in a Caddyfile, the driver has the settings of all drivers alone.
func TestRead(t *testing.T) {
	for text, want := range map[string]struct {
		limits store.Limits
		err    string
	}{
		"memory":                       {},
		"memory {\nmax_size 1MiB\n}":   {limits: store.Limits{MaxSize: 1 << 20}},
		"memory /dir":                  {err: `store memory takes no argument "/dir", at Testfile:1`},
		"memory {\nmax_size enough\n}": {err: `max_size is "enough", but must be a size, such as 64MiB, at Testfile:2`},
	} {
		p, s, said := conftest.Parser(text), new(Store), ""
		s.Read(p)
		if err := p.Failed(); err != nil {
			said = err.Error()
		}
		if diff := cmp.Diff([]any{want.limits, want.err}, []any{s.Limits, said}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
