// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
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
	synctest.Test(t, func(t *testing.T) {
		const leader = "1.2.156.3088.1.1.34C2.478BDF.3GF546.0JU4"
		store := replay.NewMemory(replay.Settings{})
		defer store.Close()
		engine, err := partner.Open(t.Context(), store, partner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		p := engine.Register(partner.Config{Name: "agent", Agent: busyAgent{}, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 1000,
			Log:   slog.New(slog.DiscardHandler),
			Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour}})
		defer p.Unregister()
		h := &Handler{
			Callers: []translate.Server{aip.Server()}, Guard: new(identity.Guard),
			Partner: func(context.Context) (*partner.Partner, error) { return p, nil },
			Limits:  jsonrpc.Limits{Bytes: 16 << 10, Depth: 16}, BodyTimeout: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
			Streaming: Streaming{Heartbeat: 20 * time.Second, WriteTimeout: 10 * time.Second, Max: 100, MaxPerLeader: 50,
				Open: new(OpenStreams), Drain: t.Context()},
		}
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
			return strings.Replace(message(method, command, "t1", "hello"), `"senderId":"leader"`, `"senderId":"`+leader+`"`, 1)
		}
		got := post("/stream", call("stream", "start"))
		if at := time.Now(); !at.Equal(expires) {
			t.Errorf("the stream ended at %s, want %s", at, expires)
		}
		if !strings.Contains(got, `"working"`) || !strings.Contains(got, "\n\n:\n\n") {
			t.Errorf("before its end the stream had no event and no comment:\n%s", got)
		}
		last := strings.TrimSpace(got)
		last = last[strings.LastIndex(last, "\n\n")+2:]
		if !strings.HasPrefix(last, "data: ") || !strings.Contains(last, "-32008") || !strings.Contains(last, "has expired") {
			t.Errorf("the stream ends with %q, want one frame with error -32008", last)
		}
		time.Sleep(time.Second)
		if got := post("/rpc", call("rpc", "get")); !strings.Contains(got, "-32008") || !strings.Contains(got, "has expired") {
			t.Errorf("a call over the same connection: %s", got)
		}
		if n := h.Streaming.Open.Count(); n != 0 {
			t.Errorf("%d streams are still counted", n)
		}
	})
}
