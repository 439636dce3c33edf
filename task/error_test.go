// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKinds(t *testing.T) {
	seen := make(map[string]Kind)
	for i, k := range Kinds() {
		if int(k) != i {
			t.Errorf("kind %d is at %d", k, i)
		}
		name := k.String()
		if other, twice := seen[name]; twice || name == "" {
			t.Errorf("kinds %d and %d are both called %q", k, other, name)
		}
		seen[name] = k
	}
	if got := Kind(200).String(); got != "kind(200)" {
		t.Errorf("a kind that is none is called %q", got)
	}
}

func TestError(t *testing.T) {
	err := Errorf(InvalidParams, "must be %d", 7).WithField("params.a").WithData("max", 7).WithData("limit",
		"x").WithCause(io.EOF)
	if got, want := err.Error(), "invalid-params at params.a: must be 7: EOF"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if d := cmp.Diff(map[string]any{"max": 7, "limit": "x"}, err.Data); d != "" {
		t.Error(d)
	}
	if !errors.Is(err, io.EOF) {
		t.Error("the cause is lost")
	}
	again := Errorf(AgentUnavailable, "it is down").WithCause(Errorf(AgentUnavailable, "it is down").WithCause(io.EOF))
	if got, want := again.Error(), "agent-unavailable: it is down: EOF"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (&Error{}).Error(); got != "internal" {
		t.Errorf("the zero error says %q", got)
	}
	for want, err := range map[Kind]error{
		InvalidParams: fmt.Errorf("wrapped: %w", err), Internal: io.EOF, AgentTimeout: &Error{Kind: AgentTimeout},
	} {
		if got := KindOf(err); got != want {
			t.Errorf("KindOf(%v) = %v, want %v", err, got, want)
		}
	}
	if KindOf(nil) != Internal {
		t.Error("no error has another kind than Internal")
	}
}
