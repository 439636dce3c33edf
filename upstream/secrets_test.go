// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/upstream"
)

func TestSecrets(t *testing.T) {
	s := upstream.NewSecrets(map[string][]string{"Authorization": {"Bearer tok-123456"}, "X-Key": {"tok-123456-long"},
		"Host": {"agent.example"}, "X-On": {"yes"}, "Cookie": {"sid=c00kie; on=1"},
		"Proxy-Authorization": {"Basic dXNlcjpwYXNzd29yZA=="}})
	for in, want := range map[string]string{
		"invalid token tok-123456":            "invalid token REDACTED",
		"got Bearer tok-123456, want another": "got REDACTED, want another",
		"the key tok-123456-long is unknown":  "the key REDACTED is unknown",
		"the key tok-12345…":                  "the key REDACTED…",
		"the key tok-…":                       "the key tok-…",
		"the key tok-12345…: no tok-12…: no…": "the key REDACTED…: no REDACTED…: no…",
		"the session c00kie has ended":        "the session REDACTED has ended",
		"user may not use password":           "user may not use REDACTED",
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

// TestSecretsInEnds: what an agent says of a task that has failed shows no secret, wherever it says that.
func TestSecretsInEnds(t *testing.T) {
	s := upstream.NewSecrets(map[string][]string{"X-Key": {`tok"123456`}, "X-Number": {"123456"}})
	for state, hides := range map[task.State]bool{task.Failed: true, task.Rejected: true, task.Canceled: true,
		task.AwaitingCompletion: false} {
		said := []byte(`{"n":123456,"tok\"123456":["bad \u0074ok\"123456","a\n"],"e":{}}`)
		want := string(said)
		if hides {
			want = `{"n":123456,"REDACTED":["bad REDACTED","a\n"],"e":{}}`
		}
		rep := agent.Report{State: state, Extensions: said, Items: []task.DataItem{
			{Kind: task.DataKind, Data: said}, {Kind: task.TextItem, Text: "123456", Metadata: said}}}
		items := rep.Items
		s.HideInEnd(&rep)
		got := []string{string(rep.Extensions), string(rep.Items[0].Data), string(rep.Items[1].Metadata)}
		if d := cmp.Diff([]string{want, want, want}, got); d != "" || (rep.Items[1].Text == "123456") == hides {
			t.Errorf("%s: the text is %q (-want +got):\n%s", state, rep.Items[1].Text, d)
		}
		if string(items[0].Data) != string(said) || items[1].Text != "123456" || rep.TaskExtensions != nil {
			t.Errorf("%s: what the agent has sent was changed", state)
		}
	}
}
