// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"errors"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/upstream"
)

func TestSecrets(t *testing.T) {
	s := upstream.NewSecrets(map[string][]string{"Authorization": {"Bearer tok-123456"}, "X-Key": {"tok-123456-long"},
		"Host": {"agent.example"}, "X-On": {"yes"}})
	for in, want := range map[string]string{
		"invalid token tok-123456":            "invalid token REDACTED",
		"got Bearer tok-123456, want another": "got REDACTED, want another",
		"the key tok-123456-long is unknown":  "the key REDACTED is unknown",
		"the key tok-12345…":                  "the key REDACTED…",
		"the key tok-…":                       "the key tok-…",
		"bearer, agent.example, yes":          "bearer, agent.example, yes",
	} {
		if got := s.Hide(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	none := upstream.NewSecrets(map[string][]string{"X-On": {"yes"}})
	if got := none.Hide("yes"); none != nil || got != "yes" {
		t.Errorf("no secrets hide %q", got)
	}
}

// TestSecretsInErrors: neither an error nor its cause shows a secret, and both stay what they are.
func TestSecretsInErrors(t *testing.T) {
	s := upstream.NewSecrets(map[string][]string{"X-Key": {"tok-123456"}})
	cause := errors.New("trace of tok-123456")
	in := task.Errorf(task.Internal, "bad key tok-123456").WithCause(cause)
	got := s.HideIn(in)
	if e, ok := errors.AsType[*task.Error](got); !ok || e.Detail != "bad key REDACTED" || e.Err.Error() !=
		"trace of REDACTED" || !errors.Is(got, cause) || e.Kind != task.Internal {
		t.Errorf("it is %v", got)
	}
	if in.Detail != "bad key tok-123456" {
		t.Error("the error itself was changed")
	}
	if plain := errors.New("x"); s.HideIn(plain) != plain {
		t.Error("another error was changed")
	}
}
