// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// prompt is a Transport to an agent that answers every message at once.
type prompt struct{ answer []byte }

func (p *prompt) Routes(translate.Operation) []upstream.Route { return []upstream.Route{p} }
func (p *prompt) Close()                                      {}
func (p *prompt) Confirm()                                    {}
func (p *prompt) Open(context.Context, *upstream.Request) (upstream.Exchange, error) {
	return promptExchange{p.answer}, nil
}

type promptExchange struct{ answer []byte }

func (x promptExchange) Begin() error  { return nil }
func (x promptExchange) Streams() bool { return false }
func (x promptExchange) Next() (upstream.Message, error) {
	return upstream.Message{Data: x.answer}, nil
}
func (x promptExchange) Ready() bool                  { return false }
func (x promptExchange) SetIdleTimeout(time.Duration) {}
func (x promptExchange) Explain(err error) error      { return err }
func (x promptExchange) Close(error)                  {}

// void is a store that keeps nothing.
type void struct{ replay.Store }

func (void) Append(context.Context, replay.Append) error { return nil }
func (void) Head(context.Context, string) (replay.Head, error) {
	return replay.Head{}, replay.ErrNotFound
}

func (void) Load(context.Context, string) (replay.Head, []byte, []replay.Record, error) {
	return replay.Head{}, nil, nil, replay.ErrNotFound
}

// BenchmarkUnary measures a start that its agent answers at once, from the request to the answer, without the server,
// the connection to the agent, and the store.
func BenchmarkUnary(b *testing.B) {
	agent := upstream.New(upstream.Config{Resolver: upstream.NewEndpoint(a2a.Legacy(), &prompt{[]byte(
		`{"jsonrpc":"2.0","id":1,"result":{"id":"t","sessionId":"s","status":{"state":"completed","message":` +
			`{"role":"agent","parts":[{"type":"text","text":"done"}]}},"artifacts":[{"index":0,"parts":` +
			`[{"type":"text","text":"echo: hello"}]}]}}`)})})
	defer agent.Close()
	tasks, err := gateway.OpenTasks(b.Context(), void{replay.NewMemory(replay.Settings{})}, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer tasks.Close()
	h := openSite(b, func(s *setup) { s.Partner.Agent, s.Partner.MaxTasks = agent, 0 })
	f := h.setup.compose(b, tasks)
	var ids int
	body := strings.NewReader("")
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Content-Type", "application/json")
	r.Body = io.NopCloser(body)
	w := &counted{header: make(http.Header)}
	start := message("rpc", "start", "t-00000000", "hello")
	at := strings.Index(start, "t-00000000")
	buf := []byte(start)
	b.ReportAllocs()
	for b.Loop() {
		ids++
		for n, i := ids, at+9; n > 0; n, i = n/10, i-1 {
			buf[i] = byte('0' + n%10)
		}
		body.Reset(string(buf))
		r.ContentLength = int64(len(buf))
		clear(w.header)
		w.bytes = 0
		f.ServeHTTP(w, r)
		if w.bytes < 290 {
			b.Fatalf("the answer has %d bytes", w.bytes)
		}
	}
}
