// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

// busyAgent works on a turn until it is canceled.
type busyAgent struct{ partner.Agent }

func (busyAgent) Run(ctx context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		<-ctx.Done()
		yield(agent.Report{}, ctx.Err())
	}
}

// TestStreamEndsWithItsCertificate keeps a connection for longer than its certificate is valid.
func TestStreamEndsWithItsCertificate(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const leader = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
		h := openSite(t, func(h *setup) {
			h.Guard, h.Partner.Agent, h.front.Heartbeat = new(identity.Guard), busyAgent{}, 20*time.Second
			h.Partner.Terms.Response = time.Minute
		})
		expires := time.Now().Add(90 * time.Second)
		cert := &x509.Certificate{NotAfter: expires, Subject: pkix.Name{CommonName: leader}}
		connection := &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}}
		post := func(path, body string) string {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
			r.TLS = connection
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Body.String()
		}
		call := func(method, command string) string {
			return strings.Replace(message(method, command, "t1", "hello"), `"senderId":"leader"`,
				`"senderId":"`+leader+`"`, 1)
		}
		got := post("/stream", call("stream", "start"))
		if at := time.Now(); !at.Equal(expires) {
			t.Errorf("the stream ended at %s, want %s", at, expires)
		}
		if !strings.Contains(got, `"working"`) || !strings.Contains(got, "\n\n:\n") {
			t.Errorf("before its end the stream had no event and no comment:\n%s", got)
		}
		last := strings.TrimSpace(got)
		last = strings.TrimLeft(last[strings.LastIndex(last, "\n\n")+2:], ":\n") // without comments
		if !strings.HasPrefix(last, "data: ") || !strings.Contains(last, "-32008") ||
			!strings.Contains(last, "has expired") {
			t.Errorf("the stream ends with %q, want one frame with error -32008", last)
		}
		bubble.Pass(time.Second)
		if got := post("/rpc", call("rpc", "get")); !strings.Contains(got, "-32008") ||
			!strings.Contains(got, "has expired") {
			t.Errorf("a call over the same connection: %s", got)
		}
		if n := h.streams(); n != 0 {
			t.Errorf("%d streams are still counted", n)
		}
	})
}
