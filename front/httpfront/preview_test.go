// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/protobuf/proto"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/translate/agentapi"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// everyHTTP makes a gateway serve all dialects over HTTP, at the root.
func everyHTTP(h *setup) {
	overGRPC(h)
	h.Callers = []translate.Server{aip.ServerV2(""), aip.Server(), a2a.V1Server(false), a2a.V1RESTServer(false),
		a2a.V1GRPCServer(false), a2a.V03Server(false), a2a.V03RESTServer(false), a2a.LegacyServer(false),
		agentapi.Server(false)}
}

// verified is a caller with a proof of its identity.
var verified = identity.Peer{
	Proof: identity.ByCertificate, Kind: identity.AICKind, ID: "10001000011K912345E789ABCDEF2353",
}

// previewer returns a Previewer for the requests of a caller for a site.
func (s *site) previewer(peer identity.Peer) *Previewer {
	c := s.setup.Config
	c.Guard = &identity.Guard{Mode: identity.Optional}
	return &Previewer{
		Reader: gateway.NewReader(c), Base: c.Base, BodyTimeout: s.setup.front.BodyTimeout,
		Authenticate: func(*http.Request) (identity.Peer, error) { return peer, nil },
	}
}

// previewing has every request to a gate previewed, and asked for its purpose, and returns the answer.
func (g *gate) previewing(peer identity.Peer) (asked func() string) {
	last := make(chan string, 100)
	p := g.previewer(peer)
	g.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, next := p.Begin(w, r)
		defer v.End()
		a, err := v.Asked()
		if err != nil {
			last <- err.Error()
		} else {
			last <- fmt.Sprintf("%s %s", a.Method, a.Command)
		}
		g.serving.Load().ServeHTTP(w, next)
	})
	return func() string { return <-last }
}

// TestPreview: the purposes of requests are known in every dialect before the Front has them, and the Front gets all of
// them.
func TestPreview(t *testing.T) {
	g := open(t, everyHTTP)
	asked := g.previewing(identity.Peer{})
	send := func(method, path, body string, header ...string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, g.server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := g.server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	said := `{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]`
	call := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	}
	id := ""
	for _, tc := range []struct {
		name, method, path, body, want, answer string
		header                                 []string
	}{
		{"AIP start", "POST", "/rpc", message("rpc", "start", "t1", "hello"), "rpc start", `"awaiting-completion"`, nil},
		{"AIP get", "POST", "/rpc", message("rpc", "get", "t1", ""), "rpc get", `"awaiting-completion"`, nil},
		{"AIP complete", "POST", "/rpc", message("rpc", "complete", "t1", ""), "rpc complete", `"completed"`, nil},
		{"AIP stream", "POST", "/stream", message("stream", "re-stream", "t1", ""), "stream re-stream", "eventSeq", nil},
		{"not JSON", "POST", "/rpc", message("rpc", "get", "t1", "") + "}", "rpc unknown", "-32700", nil},
		{"unknown command", "POST", "/rpc", message("rpc", "dance", "t1", ""), "rpc unknown", "error", nil},
		{"A2A 1.0", "POST", "/", call("SendMessage", `{"message":`+said+`}}`), "SendMessage start",
			"TASK_STATE_COMPLETED", []string{"A2A-Version", "1.0"}},
		{"A2A 1.0 list", "POST", "/", call("ListTasks", `{}`), "ListTasks list", `"tasks"`, []string{"A2A-Version", "1.0"}},
		{"REST", "POST", "/message:send", `{"message":` + said + `}}`, "SendMessage start", "TASK_STATE_COMPLETED",
			[]string{"A2A-Version", "1.0"}},
		{"REST get", "GET", "/tasks/{id}", "", "GetTask get", "TASK_STATE_COMPLETED", []string{"A2A-Version", "1.0"}},
		{"REST cancel", "POST", "/tasks/{id}:cancel", "{}", "CancelTask cancel", "TASK_NOT_CANCELABLE",
			[]string{"A2A-Version", "1.0"}},
		{"A2A 0.3", "POST", "/", call("message/send", `{"message":{"kind":"message","messageId":"m","role":"user",`+
			`"parts":[{"kind":"text","text":"hello"}]}}`), "message/send start", `"completed"`, nil},
		{"A2A 0.3 REST", "POST", "/v1/message:send", `{"message":` + strings.Replace(said, "parts", "content", 1) + `}}`,
			"SendMessage start", "TASK_STATE_COMPLETED", nil},
		{"legacy", "POST", "/", call("tasks/get", `{"id":"none"}`), "tasks/get get", "-32001", nil},
		{"Agent API", "POST", "/process", `{"input":[{"role":"user","content":[{"type":"text","text":"hello"}]}]}`,
			"process start", "response", nil},
		{"another path", "POST", "/else", "{}", " ", "nothing is served", nil},
		{"a method of HTTP that the path has not", "GET", "/rpc", "", " ", "by POST", nil},
	} {
		answer := send(tc.method, strings.Replace(tc.path, "{id}", id, 1), tc.body, tc.header...)
		if got := asked(); got != tc.want || !strings.Contains(answer, tc.answer) {
			t.Errorf("%s: %q, want %q; answered %.300s", tc.name, got, tc.want, answer)
		}
		if tc.name == "REST" {
			_, id, _ = strings.Cut(answer, `"id":"`)
			id, _, _ = strings.Cut(id, `"`)
		}
	}
	c := g.grpcClient()
	for _, compress := range []bool{false, true} {
		var options []grpc.CallOption
		if compress {
			options = append(options, grpc.UseCompressor(gzip.Name))
		}
		sent, err := c.SendMessage(t.Context(), says("hello"), options...)
		if got := asked(); err != nil || got != "SendMessage start" {
			t.Errorf("gRPC, compressed %v: %q, %v", compress, got, err)
		}
		next := says("hello")
		next.Message.TaskId = sent.GetTask().GetId()
		_, err = c.SendMessage(t.Context(), next, options...)
		if got := asked(); err != nil || got != "SendMessage continue" {
			t.Errorf("gRPC, compressed %v: %q, %v", compress, got, err)
		}
	}
	stream, err := c.SendStreamingMessage(t.Context(), says("stream 3 1"))
	if err != nil {
		t.Fatal(err)
	}
	events, err := grpcEvents(stream)
	if got := asked(); err != nil || got != "SendStreamingMessage start" || len(events) == 0 {
		t.Errorf("a stream of gRPC: %q, %d events, %v", got, len(events), err)
	}
}

// TestPreviewOfLargeBodies: a body counts as long as it is kept, and once only while the Front waits for memory. A
// stranger's may have 64 KiB, and then no handler can read the body.
func TestPreviewOfLargeBodies(t *testing.T) {
	const size = 300 << 10
	open := func(t *testing.T, peer identity.Peer) (*gate, func() string) {
		g := open(t, everyHTTP, func(h *setup) {
			h.Limits.Bytes = 1 << 20
			h.Memory = limit.Limits{Total: 8 << 20, PerLeader: 2*size + 20<<10} // for one request at a time
			h.MemoryPatience = 10 * time.Second
		})
		return g, g.previewing(peer)
	}
	large := message("rpc", "start", "t1", strings.Repeat("x", size-1000))
	t.Run("verified", func(t *testing.T) {
		g, asked := open(t, verified)
		for range 3 {
			_, got := g.post("/rpc", large)
			if a := asked(); a != "rpc start" || !strings.Contains(got, `"awaiting-completion"`) {
				t.Errorf("%s: %.300s", a, got)
			}
			asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })
		}
		_, got := g.post("/rpc", message("rpc", "start", "t2", strings.Repeat("x", 1<<20)))
		if a := asked(); !strings.Contains(a, "more than the 1048576 bytes") || !strings.Contains(got, `"max":1048576`) {
			t.Errorf("%s: %.300s", a, got)
		}
	})
	t.Run("stranger", func(t *testing.T) {
		g, asked := open(t, identity.Peer{})
		for _, length := range []bool{true, false} {
			var body io.Reader = strings.NewReader(large)
			if !length {
				body = io.MultiReader(body)
			}
			res, err := g.server.Client().Post(g.server.URL+"/rpc", "application/json", body)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(res.Body)
			res.Body.Close()
			const want = "has not proven who it is"
			if a := asked(); !strings.Contains(a, want) || !strings.Contains(string(got), `"max":65536`) {
				t.Errorf("%s: %.300s", a, got)
			}
		}
		inflated := says(strings.Repeat("x", 100<<10))
		_, err := g.grpcClient().SendMessage(t.Context(), inflated, grpc.UseCompressor(gzip.Name))
		if a := asked(); !strings.Contains(a, "more than the 65536 bytes") || err == nil ||
			!strings.Contains(err.Error(), "65536") {
			t.Errorf("%s: %v", a, err)
		}
		asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })
	})
}

// TestPreviewOfStreams: a stream is sent in every way after a question about it, and keeps nothing of its request.
func TestPreviewOfStreams(t *testing.T) {
	eachWay(t, func(t *testing.T, way func(*setup)) {
		g := open(t, way, func(h *setup) { h.Limits.Bytes = 1 << 20 })
		asked := g.previewing(verified)
		res, next := g.openStream(t.Context(), message("stream", "start", "t1", "ask"+strings.Repeat(" ", 200<<10)))
		defer res.Body.Close()
		frames := until(t, next, "awaiting-input")
		if got := asked(); got != "stream start" {
			t.Error(got)
		}
		asynctest.Eventually(t, "the memory of the request is given back", func() bool {
			return g.setup.Process.Memory.Total() < 300<<10
		})
		g.post("/agents/one/rpc", message("rpc", "continue", "t1", "blue"))
		frames = append(frames, until(t, next, "awaiting-completion")...)
		g.post("/agents/one/rpc", message("rpc", "complete", "t1", ""))
		frames = append(frames, all(t, next)...)
		dense(t, frames, 1)
	})
}

// TestPreviewOfARevokedCaller: a revoked caller has proven nothing, and is a stranger.
func TestPreviewOfARevokedCaller(t *testing.T) {
	s := openSite(t, func(h *setup) { h.Partner.Agent = busyAgent{}; h.Limits.Bytes = 1 << 20 })
	peer := verified
	peer.Chains = [][]*x509.Certificate{{{}}}
	for _, revoked := range []bool{false, true} {
		s.setup.Revocation = revocation{all: revoked}
		body := strings.NewReader(message("rpc", "start", "t1", strings.Repeat("x", 70<<10)))
		v, _ := s.previewer(peer).Begin(httptest.NewRecorder(), httptest.NewRequest("POST", "/rpc", body))
		asked, err := v.Asked()
		got := v.Accepted()
		if got.Verified() == revoked || (err != nil) != revoked || (asked.Command == "start") == revoked {
			t.Errorf("revoked %t: %+v, %+v, %v", revoked, got, asked, err)
		}
		v.End()
	}
}

// revocation revokes all certificates, or none.
type revocation struct {
	gateway.Revocation
	all bool
}

func (r revocation) Check(context.Context, [][]*x509.Certificate, []byte) error {
	if r.all {
		return task.Errorf(task.AuthenticationRequired, "it is revoked")
	}
	return nil
}

// TestPreviewOfAnotherCall: a call read otherwise before than by the gateway is refused.
func TestPreviewOfAnotherCall(t *testing.T) {
	g := open(t, func(h *setup) { h.Base = "" })
	asked := g.previewing(verified)
	if _, got := g.post("/rpc", message("rpc", "start", "t1", "hello")); !strings.Contains(got, `"result"`) {
		t.Errorf("the same: %s", got)
	}
	if got := asked(); got != "rpc start" {
		t.Error(got)
	}
	g.setup.Callers = []translate.Server{a2a.V1Server(false)}
	asked = g.previewing(verified)
	_, got := g.post("/rpc", message("rpc", "start", "t2", "hello"))
	if a := asked(); a != " " || !strings.Contains(got, `"code":-32603`) || !strings.Contains(got, "read otherwise") {
		t.Errorf("%s: %s", a, got)
	}
	if _, got := g.post("/rpc", message("rpc", "get", "t2", "")); !strings.Contains(got, "read otherwise") {
		t.Errorf("%s", got)
	}
}

// TestPreviewOfAnotherTask: a call about another task or session than the one that was shown is refused, in every
// dialect.
func TestPreviewOfAnotherTask(t *testing.T) {
	g := open(t, everyHTTP)
	p := g.previewer(verified)
	call := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	}
	const said = `"message":{"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}],`
	const process = `{"input":[{"role":"user","content":[{"type":"text","text":"hello"}]}],`
	for _, tc := range []struct {
		name, method, path, body, version string // ONE stands for the name that is shown
	}{
		{"AIP", "POST", "/rpc", message("rpc", "get", "ONE", ""), ""},
		{"AIP, a stream", "POST", "/stream", message("stream", "re-stream", "ONE", ""), ""},
		{"A2A 1.0", "POST", "/", call("GetTask", `{"id":"ONE"}`), "1.0"},
		{"A2A 1.0, a webhook", "POST", "/", call("CreateTaskPushNotificationConfig",
			`{"taskId":"ONE","url":"https://hook.example.com/"}`), "1.0"},
		{"A2A 1.0, a list", "POST", "/", call("ListTasks", `{"contextId":"ONE"}`), "1.0"},
		{"REST", "GET", "/tasks/ONE", "", "1.0"},
		{"REST, a cancel", "POST", "/tasks/ONE:cancel", "{}", "1.0"},
		{"A2A 0.3", "POST", "/", call("message/send", `{`+said+`"taskId":"ONE"}}`), ""},
		{"A2A 0.3, a session", "POST", "/", call("message/send", `{`+said+`"contextId":"ONE"}}`), ""},
		{"legacy", "POST", "/", call("tasks/get", `{"id":"ONE"}`), ""},
		{"Agent API", "POST", "/process", process + `"session_id":"ONE"}`, ""},
	} {
		for _, other := range []bool{false, true} {
			g.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				v, next := p.Begin(w, r)
				defer v.End()
				if asked, err := v.Asked(); err != nil || asked.Command == gateway.Unread || asked.Command == "" {
					t.Errorf("%s: %+v, %v", tc.name, asked, err)
				}
				if other { // as a handler in between may do
					if _, err := io.Copy(io.Discard, next.Body); err != nil {
						t.Error(err)
					}
					next = next.Clone(next.Context())
					next.URL.Path = strings.Replace(tc.path, "ONE", "two", 1)
					next.Body = io.NopCloser(strings.NewReader(strings.Replace(tc.body, "ONE", "two", 1)))
				}
				g.serving.Load().ServeHTTP(w, next)
			})
			req, err := http.NewRequestWithContext(t.Context(), tc.method, g.server.URL+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if tc.version != "" {
				req.Header.Set("A2A-Version", tc.version)
			}
			res, err := g.server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := io.ReadAll(res.Body)
			res.Body.Close()
			if refused := strings.Contains(string(answer), "read otherwise"); err != nil || refused != other {
				t.Errorf("%s, about another one: %t: %.300s, %v", tc.name, other, answer, err)
			}
		}
	}
}

// FuzzPreview: whatever a request is, the next handler reads the same body as without a preview, or an error, and knows
// a command only if the request has one.
func FuzzPreview(f *testing.F) {
	frame := func(message []byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	}
	sent, err := proto.Marshal(says("hello"))
	if err != nil {
		f.Fatal(err)
	}
	grpcPath := "/" + a2apb.A2AService_SendMessage_FullMethodName[1:]
	f.Add("POST", "/rpc", "application/json", []byte(message("rpc", "start", "t1", "hello")), 7)
	f.Add("POST", "/", "application/json", []byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"x"}}`), 1)
	f.Add("GET", "/tasks/x", "", []byte(nil), 1)
	f.Add("POST", "/tasks/x:cancel", "application/a2a+json", []byte(`{}`), 2)
	f.Add("POST", grpcPath, "application/grpc", frame(sent), 3)
	f.Add("POST", grpcPath, "application/grpc", append(frame(sent), frame(sent)...), 100)
	f.Add("POST", grpcPath, "application/grpc", []byte{1, 0, 0, 0, 2, 'x', 'y'}, 100)
	f.Add("POST", "/rpc", "application/json", bytes.Repeat([]byte("x"), 70<<10), 1000)
	site := openSite(f, everyHTTP, func(h *setup) {
		h.Partner.Agent = busyAgent{}
		h.Limits.Bytes = 1 << 20
	})
	p := site.previewer(identity.Peer{})
	f.Fuzz(func(t *testing.T, method, path, content string, body []byte, piece int) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://gateway/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Method, r.URL.Path = method, path
		r.Header.Set("Content-Type", content)
		r.Header.Set("Grpc-Encoding", "gzip")
		r.Body, r.ContentLength = io.NopCloser(&inPieces{body, piece}), -1
		v, next := p.Begin(httptest.NewRecorder(), r)
		asked, failed := v.Asked()
		got, err := io.ReadAll(next.Body)
		if (failed == nil) != (err == nil) {
			t.Fatalf("it failed with %v, and the body with %v", failed, err)
		}
		if failed == nil && !bytes.Equal(got, body) {
			t.Fatalf("the body is %q, want %q", got, body)
		}
		if failed != nil && asked.Command != gateway.Unread {
			t.Fatalf("of a body that was not read: %+v", asked)
		}
		if diff := cmp.Diff(&asked, v.pass()); diff != "" {
			t.Fatal(diff)
		}
		v.End()
		if n := site.setup.Process.Memory.Total(); n != 0 {
			t.Fatalf("%d bytes are held", n)
		}
	})
}

// inPieces reads bytes in pieces of a size.
type inPieces struct {
	rest  []byte
	piece int
}

func (r *inPieces) Read(dst []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(dst[:min(len(dst), max(1, r.piece))], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// BenchmarkPreview is the cost of a preview for a small call, with a question of the next handler for its purpose.
func BenchmarkPreview(b *testing.B) {
	site := openSite(b, everyHTTP, func(h *setup) { h.Partner.Agent = busyAgent{} })
	p := site.previewer(verified)
	body := message("rpc", "start", "t1", "hello")
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		r, _ := http.NewRequestWithContext(context.Background(), "POST", "http://gateway/rpc", strings.NewReader(body))
		v, next := p.Begin(w, r)
		if a, err := v.Asked(); err != nil || a.Command != "start" {
			b.Fatal(a, err)
		}
		_, _ = io.Copy(io.Discard, next.Body)
		v.End()
	}
}
