// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bufio"
	"bytes"
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
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/jsonrpc"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// setup is what a front and its gateway are made of.
type setup struct {
	gateway.Config
	front    Config
	webhooks notify.Config
}

// site is a front with its gateway, over a memory store.
type site struct {
	*Front
	setup setup
	tasks *gateway.Tasks
}

// openSite composes a gateway over a memory store. By default, callers of AIP are believed to be whom they name.
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
			Memory:    quota.Limits{Total: 1 << 30, PerLeader: 1 << 30},
			Streaming: gateway.Streaming{Max: 100, MaxPerLeader: 50, Drain: t.Context()},
			Log:       logger,
		},
		front: Config{BodyTimeout: 10 * time.Second, Heartbeat: time.Minute, WriteTimeout: 10 * time.Second,
			Log: logger},
	}
	for _, f := range change {
		f(&s)
	}
	store := replay.NewMemory(replay.Settings{})
	tasks, err := gateway.OpenTasks(t.Context(), store, nil, s.Log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	tasks.Webhooks.Configure(s.webhooks)
	return &site{Front: s.compose(t, tasks), setup: s, tasks: tasks}
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

// streams returns how many streams are open.
func (s *site) streams() int64 { return s.setup.Process.Streams.Total() }

// memory returns what counts the memory that callers hold.
func (s *site) memory() quota.Budget {
	return quota.Budget{Counter: &s.setup.Process.Memory, Limits: s.setup.Memory}
}

// gate is a site that is served over TLS, in front of a real agent.
type gate struct {
	*site
	t        *testing.T
	server   *httptest.Server
	serving  atomic.Pointer[Front]
	requests atomic.Int64 // that reached the agent
	drain    context.CancelFunc
	log      *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func open(t *testing.T, change ...func(*setup)) *gate {
	t.Helper()
	g := &gate{t: t, log: new(lockedBuffer)}
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
	g.server.EnableHTTP2 = true
	g.server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		// Small, so that a caller that reads nothing is soon felt.
		if err := c.(*tls.Conn).NetConn().(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			t.Error(err)
		}
		return ctx
	}
	g.server.StartTLS()
	t.Cleanup(func() {
		g.drain()
		g.server.Close()
	})
	return g
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

func TestPathsAndMethods(t *testing.T) {
	g := open(t)
	start := func(id string) string { return message("rpc", "start", id, "hello") }
	for _, c := range []struct {
		path, body string
		status     int
		contains   string
	}{
		{"/agents/one/rpc", start("a"), 200, `"awaiting-completion"`},
		{"/agents/one/rpc/", start("b"), 200, `"awaiting-completion"`},
		{"/agents/one", start("c"), 200, `"awaiting-completion"`},
		{"/agents/one/", start("d"), 200, `"awaiting-completion"`},
		{"/agents/one/stream", start("e"), 200, `"field":"method"`},
		{"/agents/one/group", `{"jsonrpc":"2.0","id":1,"method":"group"}`, 200, `-32007`},
		{"/agents/one/notification/set", `{"jsonrpc":"2.0","id":1,"method":"notification/set","params":{}}`, 200,
			`"field":"params.taskId"`},
		{"/agents/one", `{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{}}`, 200, `-32601`},
		{"/agents/one/rpc", `{"jsonrpc":"2.0","id":1,"method":`, 200, `-32700`},
		{"/agents/one/rpc", `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"x":"` + strings.Repeat("y", 20<<10) +
			`"}}`, 200, `"limit":"bytes"`},
		{"/agents/one/other", start("f"), 404,
			"nothing is served at this path; the Partner is mounted at /agents/one/ " +
				"and takes POST requests there (aip); by GET it serves .well-known/acs.json below it\n"},
		{"/agents/onemore/rpc", start("g"), 404, ""},
		{"/rpc", start("h"), 404, ""},
	} {
		res, body := g.post(c.path, c.body)
		if res.StatusCode != c.status || !strings.Contains(body, c.contains) {
			t.Errorf("POST %s: got %d %s, want %d with %s", c.path, res.StatusCode, body, c.status, c.contains)
		}
		if c.status == 200 && res.Header.Get("Content-Type") != "application/json" {
			t.Errorf("POST %s: content type %q", c.path, res.Header.Get("Content-Type"))
		}
	}
	res, err := g.server.Client().Get(g.server.URL + "/agents/one/rpc")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST" {
		t.Errorf("GET: got %d, Allow %q", res.StatusCode, res.Header.Get("Allow"))
	}
	if n := g.requests.Load(); n != 4 {
		t.Errorf("the agent was asked %d times, want 4", n)
	}
}

func TestNothingOfACallReachesTheLog(t *testing.T) {
	g := open(t)
	g.post("/agents/one/rpc", message("rpc", "start", "t1", "fail with the words of the payload"))
	g.post("/agents/one/rpc", message("rpc", "start", "t2", "the words of the payload", `,"token":"s3cret"`))
	g.post("/agents/one/rpc", message("rpc", "nonsense", "t3", "the words of the payload"))
	log := g.log.String()
	if strings.Contains(log, "words of the payload") || strings.Contains(log, "s3cret") {
		t.Errorf("the log shows the content of messages:\n%s", log)
	}
	if !strings.Contains(log, "task=t1 leader=leader agent=agent") {
		t.Errorf("the log does not name the task that failed:\n%s", log)
	}
}

// frame is one event of a stream, as a Leader reads it.
type frame struct {
	id    string
	data  string
	seq   uint64
	kind  string
	state string
}

// openStream begins a stream; next reads its events.
func (g *gate) openStream(ctx context.Context, body string) (*http.Response, func() (frame, error)) {
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

func TestStreamOfAWholeLife(t *testing.T) {
	g := open(t)
	res, next := g.openStream(t.Context(), message("stream", "start", "t1", "stream 3 5"))
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type") + " " +
		res.Header.Get("X-Accel-Buffering"); got != "text/event-stream no" || res.ProtoMajor != 2 {
		t.Errorf("the stream began with %s over %s", got, res.Proto)
	}
	frames := until(t, next, "awaiting-completion")
	if frames[0].kind != "task" {
		t.Errorf("the first event is a %s", frames[0].kind)
	}

	again, nextAgain := g.openStream(t.Context(), message("stream", "continue", "t1", "ask"))
	defer again.Body.Close()
	second := until(t, nextAgain, "awaiting-input")
	dense(t, second, uint64(len(frames)+1))
	if second[0].state != "working" {
		t.Errorf("a continue by stream begins with %+v", second[0])
	}
	frames = append(frames, until(t, next, "awaiting-input")...)
	g.post("/agents/one/rpc", message("rpc", "continue", "t1", "blue"))
	frames = append(frames, until(t, next, "awaiting-completion")...)
	g.post("/agents/one/rpc", message("rpc", "complete", "t1", ""))
	frames = append(frames, all(t, next)...)
	dense(t, frames, 1)
	if last := frames[len(frames)-1]; last.state != "completed" {
		t.Errorf("the stream ended with %+v", last)
	}

	for after := range len(frames) + 1 {
		res, next := g.openStream(t.Context(), message("stream", "re-stream", "t1", "",
			fmt.Sprintf(`,"commandParams":{"lastEventSeq":%d}`, after)))
		if diff := cmp.Diff(frames[after:], append([]frame{}, all(t, next)...),
			cmp.AllowUnexported(frame{})); diff != "" {
			t.Errorf("re-stream after %d (-live +replayed):\n%s", after, diff)
		}
		res.Body.Close()
	}
	for _, more := range []string{"", `,"commandParams":{}`, `,"commandParams":{"lastEventSeq":null}`} {
		res, next := g.openStream(t.Context(), message("stream", "re-stream", "t1", "", more))
		if got := all(t, next); len(got) != len(frames) {
			t.Errorf("re-stream with %q gave %d events, want %d", more, len(got), len(frames))
		}
		res.Body.Close()
	}
	res, next = g.openStream(t.Context(), message("stream", "start", "t1", "again"))
	defer res.Body.Close()
	if got := all(t, next); len(got) != len(frames) {
		t.Errorf("a repeated start gave %d events, want %d", len(got), len(frames))
	}
}

func TestStreamIsRefused(t *testing.T) {
	g := open(t)
	g.post("/agents/one/rpc", message("rpc", "start", "t1", "hello"))
	for _, c := range []struct{ body, contains string }{
		{message("stream", "re-stream", "none", ""), `"code":-32001`},
		{message("stream", "continue", "none", ""), `"code":-32001`},
		{message("stream", "re-stream", "t1", "", `,"commandParams":{"lastEventSeq":99}`), `"code":-32602`},
		{message("stream", "re-stream", "t1", "", `,"commandParams":{"lastEventSeq":-1}`), `"code":-32602`},
		{message("stream", "re-stream", "t1", "", `,"commandParams":{"lastEventSeq":"1"}`), `"code":-32602`},
		{strings.Replace(message("stream", "re-stream", "t1", ""), `"senderId":"leader"`, `"senderId":"other"`, 1),
			`"code":-32001`},
		{message("stream", "get", "t1", ""), `"code":-32602`},
	} {
		res, body := g.post("/agents/one/stream", c.body)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" ||
			!strings.Contains(body, c.contains) {
			t.Errorf("%s: got %d %s", c.body, res.StatusCode, body)
		}
	}
	if n := g.streams(); n != 0 {
		t.Errorf("%d streams are counted as open", n)
	}
}

func TestExpiredEventsAreToldByAFrame(t *testing.T) {
	g := open(t)
	res, _ := g.openStream(t.Context(), message("stream", "start", "t1", "stream 1500 0"))
	res.Body.Close()
	waitFor(t, func() bool {
		_, got := g.post("/agents/one/rpc", message("rpc", "get", "t1", ""))
		return strings.Contains(got, `"status":{"state":"awaiting-completion"`)
	})
	late, body := g.post("/agents/one/stream", message("stream", "re-stream", "t1", "",
		`,"commandParams":{"lastEventSeq":3}`))
	if late.Header.Get("Content-Type") != "text/event-stream" || strings.Count(body, "data:") != 1 ||
		!strings.Contains(body, `"code":-32001`) || !strings.Contains(body, `"reason":"EVENTS_EXPIRED"`) ||
		!strings.Contains(body, `"firstEventSeq":`) || !strings.Contains(body, `"lastEventSeq":`) {
		t.Errorf("got %s %s", late.Header.Get("Content-Type"), body)
	}
}

func TestStreamLimits(t *testing.T) {
	g := open(t, func(h *setup) { h.Streaming.Max, h.Streaming.MaxPerLeader = 3, 2 })
	start := func(leader, id string) string {
		return strings.Replace(message("stream", "start", id, "hello"), `"senderId":"leader"`,
			fmt.Sprintf(`"senderId":%q`, leader), 1)
	}
	var close []func() error
	for _, c := range []struct{ leader, id, contains string }{
		{"a", "t1", ""}, {"a", "t2", ""}, {"a", "t3", `"limit":"streams_per_leader"`},
		{"b", "t1", ""}, {"c", "t1", `"limit":"streams"`},
	} {
		if c.contains != "" {
			if _, body := g.post("/agents/one/stream", start(c.leader, c.id)); !strings.Contains(body,
				`"code":-32050`) || !strings.Contains(body, c.contains) {
				t.Errorf("%s's %s got %s", c.leader, c.id, body)
			}
			continue
		}
		res, next := g.openStream(t.Context(), start(c.leader, c.id))
		until(t, next, "awaiting-completion")
		close = append(close, res.Body.Close)
	}
	for _, f := range close {
		f()
	}
	waitFor(t, func() bool { return g.streams() == 0 })
}

// TestStreamsOfUnverified proves that callers without a certificate have the limit of one Leader together, by whatever
// names, and leave half of all streams to the others.
func TestStreamsOfUnverified(t *testing.T) {
	for name, c := range map[string]struct {
		max, perLeader int
		limit          string
	}{
		"as one Leader": {100, 2, `"limit":"streams_per_leader","max":2`},
		"half of all":   {4, 4, `"limit":"streams","max":2`},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, func(h *setup) {
				h.Guard = &identity.Guard{Mode: identity.Optional}
				h.Streaming.Max, h.Streaming.MaxPerLeader = c.max, c.perLeader
			})
			start := func(leader string) string {
				return strings.Replace(message("stream", "start", "t1", "ask"), `"senderId":"leader"`,
					fmt.Sprintf(`"senderId":%q`, leader), 1)
			}
			for _, leader := range []string{"a", "b"} {
				res, next := g.openStream(t.Context(), start(leader))
				defer res.Body.Close()
				until(t, next, "awaiting-input")
			}
			if _, body := g.post("/agents/one/stream", start("c")); !strings.Contains(body, `"code":-32050`) ||
				!strings.Contains(body, c.limit) {
				t.Errorf("the third name got %s", body)
			}
			counter, limits := &g.setup.Process.Streams, quota.Limits{Total: int64(c.max),
				PerLeader: int64(c.perLeader)}
			if err := counter.Take("verified", 1, limits); err != nil {
				t.Errorf("a verified Leader got %v", err)
			} else {
				counter.Give("verified", 1)
			}
		})
	}
}

func TestSilentStreamsBeat(t *testing.T) {
	g := open(t, func(h *setup) { h.front.Heartbeat = 10 * time.Millisecond })
	res, _ := g.openStream(t.Context(), message("stream", "start", "t1", "hello"))
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for beats := 0; beats < 3; {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %d comments: %v", beats, lines.Err())
		}
		if lines.Text() == ":" {
			beats++
		}
	}
}

func TestSlowReaderIsCutAndHoldsNobodyUp(t *testing.T) {
	g := open(t, func(h *setup) { h.front.WriteTimeout = 2 * time.Second })
	// The slow one opens a stream of more than its connection holds, over HTTP/1.1, and does not read.
	addr := strings.TrimPrefix(g.server.URL, "https://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	slow := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	body := message("stream", "start", "t1", "stream 900 0", `,"mentions":[]`)
	fmt.Fprintf(slow, "POST /agents/one/stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	res, next := g.openStream(t.Context(), message("stream", "start", "t2", "hello"))
	defer res.Body.Close()
	until(t, next, "awaiting-completion")
	waitFor(t, func() bool { // the slow one's request was received
		_, got := g.post("/agents/one/rpc", message("rpc", "get", "t1", ""))
		return strings.Contains(got, `"result"`)
	})
	again, nextAgain := g.openStream(t.Context(), message("stream", "re-stream", "t1", ""))
	defer again.Body.Close()
	if first, err := nextAgain(); err != nil || first.seq != 1 {
		t.Errorf("the slow one's task begins with %+v, %v", first, err)
	}
	waitFor(t, func() bool { return g.streams() == 2 })
}

func TestDrainedStreamsLoseNothing(t *testing.T) {
	g := open(t)
	res, next := g.openStream(t.Context(), message("stream", "start", "t1", "stream 200 2"))
	defer res.Body.Close()
	first, err := next()
	if err != nil {
		t.Fatal(err)
	}
	g.drain()
	frames := append([]frame{first}, all(t, next)...)
	if last := frames[len(frames)-1]; last.state == "awaiting-completion" {
		t.Fatal("the task ended before the stream was drained")
	}
	g.setup.Streaming.Drain = t.Context()
	g.serving.Store(g.setup.compose(t, g.tasks)) // as a new configuration does
	res, next = g.openStream(t.Context(), message("stream", "re-stream", "t1", "",
		fmt.Sprintf(`,"commandParams":{"lastEventSeq":%d}`, len(frames))))
	defer res.Body.Close()
	frames = append(frames, until(t, next, "awaiting-completion")...)
	dense(t, frames, 1)
	if len(frames) != 203 {
		t.Errorf("got %d events, want 203", len(frames))
	}
}

func TestManyFollowersAreToldTheSame(t *testing.T) {
	g := open(t)
	res, next := g.openStream(t.Context(), message("stream", "start", "t1", "stream 50 5"))
	defer res.Body.Close()
	var group sync.WaitGroup
	others := make([][]frame, 20)
	for i := range others {
		res, next := g.openStream(t.Context(), message("stream", "re-stream", "t1", ""))
		group.Go(func() {
			defer res.Body.Close()
			others[i] = until(t, next, "awaiting-completion")
		})
	}
	frames := until(t, next, "awaiting-completion")
	group.Wait()
	for i := range others {
		if diff := cmp.Diff(frames, others[i], cmp.AllowUnexported(frame{})); diff != "" {
			t.Errorf("follower %d got other events (-first +other):\n%s", i, diff)
		}
	}
}

// waitFor looks again and again until another goroutine has brought something about.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatal("it did not come about")
		}
	}
}
