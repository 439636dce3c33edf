// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// setup has the parts of a front and its gateway.
type setup struct {
	gateway.Config
	front    Config
	webhooks notify.Config
	http1    bool // the served version of HTTP; else 2
}

// takeOver makes resting streams outlive their requests.
func (s *setup) takeOver(begin func() (end func())) {
	s.http1 = true
	s.front.TakeOver = TakeOver{
		After: time.Nanosecond, Passes: func(http.ResponseWriter) bool { return true }, Begin: begin,
	}
}

// eachWay runs a test for each way of sending streams.
func eachWay(t *testing.T, test func(t *testing.T, way func(*setup))) {
	t.Run("HTTP/2", func(t *testing.T) { test(t, func(*setup) {}) })
	t.Run("HTTP/1.1", func(t *testing.T) { test(t, func(h *setup) { h.http1 = true }) })
	t.Run("taken over", func(t *testing.T) {
		var takenOver, ended atomic.Int64
		test(t, func(h *setup) {
			h.takeOver(func() func() {
				takenOver.Add(1)
				return func() { ended.Add(1) }
			})
		})
		if takenOver.Load() == 0 && runtime.GOOS == "linux" {
			t.Error("no stream has outlived its request")
		}
		t.Cleanup(func() {
			asynctest.Eventually(t, "every stream that outlived its request has ended", func() bool {
				return takenOver.Load() == ended.Load()
			})
		})
	})
}

// site is a front with its gateway, over a memory store.
type site struct {
	*Front
	setup setup
	tasks *gateway.Tasks
	store replay.Store
}

// openSite composes a gateway over a memory store. By default, callers of AIP are believed under the names they give.
func openSite(t testing.TB, change ...func(*setup)) *site {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	s := setup{
		Config: gateway.Config{
			Process: new(gateway.Process), Callers: []translate.Server{aip.Server()},
			Guard: &identity.Guard{Mode: identity.Off},
			Partner: partner.Config{
				Name: "agent", MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 1000,
				Terms: task.Terms{Response: 25 * time.Second, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour},
			},
			Limits:    jsonrpc.Limits{Bytes: 16 << 10, Depth: 16},
			Memory:    limit.Limits{Total: 1 << 30, PerLeader: 1 << 30},
			Streaming: gateway.Streaming{Max: 100, MaxPerLeader: 50, Drain: t.Context(), Exit: t.Context()},
			Log:       logger,
		},
		front: Config{BodyTimeout: 10 * time.Second, Heartbeat: time.Minute, WriteTimeout: 10 * time.Second,
			Log: logger},
	}
	for _, f := range change {
		f(&s)
	}
	store := replay.NewMemory(replay.Settings{})
	tasks, err := gateway.OpenTasks(shard.One(store), nil, s.Log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	tasks.Configure(s.webhooks)
	return &site{Front: s.compose(t, tasks), setup: s, tasks: tasks, store: store}
}

// compose makes a front with its gateway, over tasks.
func (s *setup) compose(t testing.TB, tasks *gateway.Tasks) *Front {
	t.Helper()
	g, err := gateway.New(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	g.Register(tasks)
	t.Cleanup(func() {
		g.Unregister()
		g.Close()
	})
	return New(g, s.front)
}

// streams returns the number of open streams.
func (s *site) streams() int64 { return s.setup.Process.Streams.Total() }

// memory returns the budget of the memory held by callers.
func (s *site) memory() limit.Budget {
	return limit.Budget{Counter: &s.setup.Process.Memory, Limits: s.setup.Memory}
}

// gate is a site served over TLS, in front of a real agent.
type gate struct {
	*site
	t        *testing.T
	server   *httptest.Server
	serving  atomic.Pointer[Front]
	requests atomic.Int64 // received by the agent
	drain    context.CancelFunc
	log      *asynctest.Buffer
}

func open(t *testing.T, change ...func(*setup)) *gate {
	t.Helper()
	g := &gate{t: t, log: new(asynctest.Buffer)}
	agent := legacyagent.New(legacyagent.Options{})
	t.Cleanup(func() { agent.Close() })
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.requests.Add(1)
		agent.ServeHTTP(w, r)
	}))
	t.Cleanup(behind.Close)
	draining, drain := context.WithCancel(context.Background())
	g.drain = drain
	logger := slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	g.site = openSite(t, append([]func(*setup){func(h *setup) {
		h.Base, h.Log, h.front.Log = "/agents/one", logger, logger
		h.Agent = gateway.AgentConfig{
			Dialect: "a2a/legacy", MaxRequests: 1024,
			HTTP: httptransport.Config{URL: behind.URL}, Turns: upstream.Config{Logger: logger},
		}
		h.Streaming.Drain, h.Streaming.DrainFor = draining, 50*time.Millisecond
	}}, change...)...)
	g.serving.Store(g.Front)
	g.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.serving.Load().ServeHTTP(w, r)
	}))
	g.server.EnableHTTP2 = !g.setup.http1
	g.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		// Small, so a caller reading nothing is soon felt.
		if err := c.(*tls.Conn).NetConn().(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			t.Error(err)
		}
		return WithConnection(ctx, c)
	}
	g.server.StartTLS()
	t.Cleanup(func() {
		g.drain()
		closeServer(g.server)
	})
	return g
}

// closeServer closes a server. A resting connection comes back to it as a new one when its client closes it. Close has
// the client do so, and then waits for all it has counted: the server takes none back from before.
func closeServer(s *httptest.Server) {
	_ = s.Config.Close() // of the listener; Close closes it, too
	s.Close()
}

func (g *gate) post(path, body string) (*http.Response, string) {
	g.t.Helper()
	res, err := g.server.Client().Post(g.server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res, string(content)
}

func message(method, command, id, text string, more ...string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","method":%q,"params":{"message":{"type":"message","id":%q,`+
		`"senderRole":"leader",`+
		`"senderId":"leader","sessionId":"s","command":%q,"taskId":%q,"dataItems":[{"type":"text","text":%q}]%s}}}`,
		method, rand.Text(), command, id, text, strings.Join(more, ""))
}

// frame is one event of a stream, as a Leader reads it.
type frame struct {
	id    string
	data  string
	seq   uint64
	kind  string
	state string
}

// postStream begins a stream.
func (g *gate) postStream(ctx context.Context, body string) *http.Response {
	g.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.server.URL+"/agents/one/stream",
		strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	res, err := g.server.Client().Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	return res
}

// openStream begins a stream; next reads its events.
func (g *gate) openStream(ctx context.Context, body string) (*http.Response, func() (frame, error)) {
	g.t.Helper()
	res := g.postStream(ctx, body)
	reader := sseproxy.NewReader(res.Body, sseproxy.Limits{})
	return res, func() (frame, error) {
		ev, err := reader.Next()
		if err != nil {
			return frame{}, err
		}
		var r struct {
			Result struct {
				EventSeq  uint64
				EventData struct {
					Type   string
					Status struct{ State string }
				}
			}
		}
		if err := json.Unmarshal(ev.Data, &r); err != nil {
			return frame{}, err
		}
		return frame{string(ev.ID), string(ev.Data), r.Result.EventSeq, r.Result.EventData.Type,
			r.Result.EventData.Status.State}, nil
	}
}

// all reads a stream to its end.
func all(t *testing.T, next func() (frame, error)) []frame {
	t.Helper()
	var out []frame
	for {
		f, err := next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, f)
	}
}

func until(t *testing.T, next func() (frame, error), state string) []frame {
	t.Helper()
	var out []frame
	for {
		f, err := next()
		if err != nil {
			t.Fatalf("after %d events: %v", len(out), err)
		}
		out = append(out, f)
		if f.state == state {
			return out
		}
	}
}

func dense(t *testing.T, frames []frame, from uint64) {
	t.Helper()
	for i, f := range frames {
		if f.seq != from+uint64(i) || f.id != fmt.Sprint(f.seq) {
			t.Fatalf("event %d has the number %d and the id %q, want %d", i, f.seq, f.id, from+uint64(i))
		}
	}
}
