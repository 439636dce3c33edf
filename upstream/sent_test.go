// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// TestSent: Sent is called when the message was sent, if the agent reports nothing before its answer, and its result
// when the answer has come, before it is reported.
func TestSent(t *testing.T) {
	for _, tc := range []struct {
		name    string
		stream  bool
		answers answers
		want    string
	}{
		{"one answer", false, answers{translate.Send: {answered("awaiting-completion")}},
			"sent answered awaiting-completion"},
		{"a stream", true, answers{translate.SendStream: {streamed("working", "awaiting-completion")}},
			"working awaiting-completion"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			over(t, plain{}, &wire{answers: tc.answers}, func(t *testing.T, a *upstream.Agent) {
				var seen []string
				turn := turn("x")
				turn.Sent = func() func() {
					seen = append(seen, "sent")
					return func() { seen = append(seen, "answered") }
				}
				for rep, err := range a.Run(t.Context(), turn, tc.stream) {
					if err != nil {
						t.Fatal(err)
					}
					seen = append(seen, string(rep.State))
				}
				if got := strings.Join(seen, " "); got != tc.want {
					t.Errorf("it is %q, want %q", got, tc.want)
				}
			})
		})
	}
}
