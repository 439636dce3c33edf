// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/baggage"

	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/upstream/callerinfo"
)

// TestForeignBaggage: a caller's own baggage about itself does not get to the agent under the names of the gateway,
// whether the agent learns the caller's identity or not. The rest of its baggage does.
//
// Promise: a caller forges [what the agent is told](#what-the-agent-learns) about it
func TestForeignBaggage(t *testing.T) {
	for name, tc := range map[string]struct {
		introducer *callerinfo.Introducer
		want       []string
	}{
		"not told": {nil, []string{"a=b"}},
		"told":     {callerinfo.New(callerinfo.Config{Fields: true}), []string{"a=b"}},
	} {
		var got []string
		legacy := legacyagent.New(legacyagent.Options{})
		behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = slices.Sorted(strings.SplitSeq(r.Header.Get("Baggage"), ","))
			legacy.ServeHTTP(w, r)
		}))
		g := open(t, func(s *setup) {
			s.Agent.HTTP.URL = behind.URL
			if tc.introducer != nil {
				s.Agent.HTTP.Introducer = tc.introducer
			}
		})
		had, err := baggage.Parse("aip.leader=x,a=b,aip%2Eleader=y,%61ip.proof=certificate,aip.subject=human%3Aceo")
		if err != nil {
			t.Fatal(err)
		}
		g.post("/agents/one/rpc", message("rpc", "start", "t1", "ask"))
		// The cancel is sent with the context of the call.
		r := httptest.NewRequestWithContext(baggage.ContextWithBaggage(context.Background(), had), http.MethodPost,
			"/agents/one/rpc", strings.NewReader(message("rpc", "cancel", "t1", "")))
		w := httptest.NewRecorder()
		g.Front.ServeHTTP(w, r)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: the agent gets the baggage (-want +got):\n%s\n%s", name, diff, w.Body)
		}
		behind.Close()
		legacy.Close()
	}
}
