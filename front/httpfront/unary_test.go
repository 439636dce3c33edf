// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// prompt is a Transport to an agent answering every message at once.
type prompt struct{ answer []byte }

func (p *prompt) Routes(translate.Operation) []upstream.Route { return []upstream.Route{p} }
func (p *prompt) Close()                                      {}
func (p *prompt) Confirm()                                    {}
func (p *prompt) Open(_ context.Context, r *upstream.Request) (upstream.Exchange, error) {
	_, id, _ := bytes.Cut(r.Payload(), []byte(`"id":`))
	id, _, _ = bytes.Cut(id, []byte{','})
	p.answer = append(append(p.answer[:0], `{"jsonrpc":"2.0","id":`...), id...)
	p.answer = append(append(p.answer, `,"result":{"id":"`...), r.Ref.Task...)
	p.answer = append(p.answer, `","sessionId":"s","status":{"state":"completed","message":{"role":"agent","parts":`+
		`[{"type":"text","text":"done"}]}},"artifacts":[{"index":0,"parts":[{"type":"text","text":"echo: hello"}]}]}}`...)
	return promptExchange{p}, nil
}

type promptExchange struct{ *prompt }

func (x promptExchange) Begin() error  { return nil }
func (x promptExchange) Streams() bool { return false }
func (x promptExchange) Next() (upstream.Message, error) {
	return upstream.Message{Data: x.answer}, nil
}
func (x promptExchange) Ready() bool                  { return false }
func (x promptExchange) SetIdleTimeout(time.Duration) {}
func (x promptExchange) Explain(err error) error      { return err }
func (x promptExchange) Close(error)                  {}

// void is a store keeping nothing.
type void struct{ replay.Store }

func (void) Append(context.Context, replay.Append) error { return nil }
func (void) Head(context.Context, string) (replay.Head, error) {
	return replay.Head{}, replay.ErrNotFound
}

func (void) Load(context.Context, string) (replay.Head, []byte, []replay.Record, error) {
	return replay.Head{}, nil, nil, replay.ErrNotFound
}

// unary returns a function for one call: a start with an immediate answer of its agent, from the request to the answer,
// without the server, the connection to the agent, and the store.
func unary(t testing.TB, change ...func(*setup)) (call func()) {
	agent := upstream.New(upstream.Config{Resolver: upstream.NewEndpoint(a2a.Legacy(), new(prompt))})
	t.Cleanup(agent.Close)
	tasks, err := gateway.OpenTasks(shard.One(void{replay.NewMemory(replay.Settings{})}), nil,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tasks.Close() })
	h := openSite(t, append(change, func(s *setup) { s.Partner.Agent, s.Partner.MaxTasks = agent, 0 })...)
	f := h.setup.compose(t, tasks)
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set("Content-Type", "application/json")
	var body bytes.Reader
	r.Body = io.NopCloser(&body)
	w := &counted{header: make(http.Header)}
	start := []byte(message("rpc", "start", "t-00000000", "hello"))
	r.ContentLength = int64(len(start))
	last := bytes.Index(start, []byte("t-00000000")) + len("t-00000000") - 1
	ids := 0
	return func() {
		ids++
		for n, at := ids, last; n > 0; n, at = n/10, at-1 {
			start[at] = byte('0' + n%10)
		}
		body.Reset(start)
		clear(w.header)
		w.bytes = 0
		f.ServeHTTP(w, r)
		if w.bytes < 290 {
			t.Fatalf("the answer has %d bytes", w.bytes)
		}
	}
}

// BenchmarkUnary measures the gateway's own part of a unary call. Its budget is TestUnaryBudget's; if nothing else
// runs, it takes less than 20 µs.
func BenchmarkUnary(b *testing.B) {
	call := unary(b)
	b.ReportAllocs()
	for b.Loop() {
		call()
	}
}

// tenRules are a policy as a Partner with many kinds of callers has it.
func tenRules(t testing.TB) func(*setup) {
	c := policy.Config{Quotas: []policy.Quota{
		{Name: "calls", Calls: policy.Rate{N: 1e9, Per: time.Second, Burst: 1e9}, Starts: 1 << 40, Bytes: 1 << 50},
		{Name: "all", Of: policy.OfAgent, Calls: policy.Rate{N: 1e9, Per: time.Second, Burst: 1e9}},
	}}
	for range 9 {
		c.Rules = append(c.Rules, policy.Rule{Deny: true, Match: policy.Match{
			Vendor: []string{"1.2.156.3088.1.1.34C2"}, Command: []string{"start"}}})
	}
	c.Rules = append(c.Rules, policy.Rule{Match: policy.Match{Command: []string{"get", "start"}}})
	return under(t, c)
}

// BenchmarkUnaryUnderPolicy is BenchmarkUnary with and without a policy, one call of each after the other, so other
// events on the machine happen to both. It reports the difference of the medians, in percent.
func BenchmarkUnaryUnderPolicy(b *testing.B) {
	calls := []func(){unary(b), unary(b, tenRules(b))}
	var took [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range calls {
			i = (i + n) % len(calls)
			began := time.Now()
			calls[i]()
			took[i] = append(took[i], time.Since(began))
		}
	}
	var median [2]float64
	for i := range took {
		slices.Sort(took[i])
		median[i] = float64(took[i][len(took[i])/2])
	}
	b.ReportMetric(median[0], "ns/without")
	b.ReportMetric(median[1], "ns/with")
	b.ReportMetric(100*(median[1]/median[0]-1), "%more")
}

// TestPolicyAllocatesNothing: a call makes about as many allocations with a policy as without. The race detector drops
// some of the pooled objects; the tests of package policy prove that it allocates nothing at all.
func TestPolicyAllocatesNothing(t *testing.T) {
	without, with := testing.AllocsPerRun(500, unary(t)), testing.AllocsPerRun(500, unary(t, tenRules(t)))
	if with > without+5 {
		t.Errorf("a call makes %v allocations with a policy, and %v without", with, without)
	}
}

// TestUnaryBudget: a unary call makes no more than a given number of allocations between the server, the connection to
// the agent, and the store: about 56, six of them for the task's lists, and some more under the race detector, since it
// drops pooled objects.
func TestUnaryBudget(t *testing.T) {
	const budget = 70
	if n := testing.AllocsPerRun(500, unary(t)); n > budget {
		t.Errorf("a call makes %v allocations, want at most %d", n, budget)
	}
}
