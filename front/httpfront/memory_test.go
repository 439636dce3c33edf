// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/limit"
)

// TestMemoryIsGivenBack ends calls with large requests or answers in every possible way, and finds nothing held after
// them.
func TestMemoryIsGivenBack(t *testing.T) {
	g := open(t, everyCaller, func(h *setup) {
		h.Limits.Bytes = 1 << 20
		h.Memory = limit.Limits{Total: 4 << 20, PerLeader: 2 << 20}
	})
	text := strings.Repeat("x", 100<<10)
	for _, c := range []struct{ name, path, body, contains string }{
		{"start", "rpc", message("rpc", "start", "t1", text), `"state":"awaiting-completion"`},
		{"get", "rpc", message("rpc", "get", "t1", ""), `"state":"awaiting-completion"`},
		{"stream", "stream", message("stream", "start", "t2", text), ""},
		{"list", "", `{"jsonrpc":"2.0","id":1,"method":"ListTasks","params":{}}`, `"tasks":[]`},
		{"not JSON", "rpc", message("rpc", "start", "t3", text) + "}", `"code":-32700`},
		{"refused", "rpc", message("rpc", "get", "none", text), `"code":-32001`},
		{"too large", "rpc", message("rpc", "start", "t4", strings.Repeat("x", 1<<20)), `"limit":"bytes"`},
	} {
		if c.path == "stream" {
			res, _ := g.openStream(t.Context(), c.body)
			res.Body.Close()
		} else if _, got := g.post("/agents/one/"+c.path, c.body); !strings.Contains(got, c.contains) {
			t.Errorf("%s: got %.300s", c.name, got)
		}
		asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })
	}
}

// TestMemoryLimits proves two things: a call with a request or answer beyond the budget is refused with the limit, and
// others continue.
func TestMemoryLimits(t *testing.T) {
	limits := limit.Limits{Total: 2 << 20, PerLeader: 1 << 20}
	g := open(t, func(h *setup) {
		h.Limits.Bytes = 1 << 20
		h.Memory = limits
	})
	large := message("rpc", "start", "t1", strings.Repeat("x", 100<<10))
	if _, got := g.post("/agents/one/rpc", large); !strings.Contains(got, `"state":"awaiting-completion"`) {
		t.Fatalf("got %.300s", got)
	}
	asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })
	hold := func(leader string, n int64) *limit.Lease {
		l := g.memory().Lease(leader)
		if err := l.Hold(n); err != nil {
			t.Fatal(err)
		}
		return &l
	}
	for name, c := range map[string]struct {
		leader, body, limit string
	}{
		// Off believes senderId, unknown before the request is decoded.
		"request": {limit.Unverified, large, fmt.Sprintf(`"limit":"memory_per_leader","max":%d`, 1<<20)},
		"answer": {"leader", message("rpc", "get", "t1", ""), fmt.Sprintf(`"limit":"memory_per_leader","max":%d`,
			1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			other := hold(c.leader, 1<<20-40<<10)
			res, got := g.post("/agents/one/rpc", c.body)
			if res.StatusCode != 200 || !strings.Contains(got, `"code":-32050`) || !strings.Contains(got, c.limit) {
				t.Errorf("got %d %.300s", res.StatusCode, got)
			}
			if _, got := g.post("/agents/one/rpc", message("rpc", "start", "small", "hello")); !strings.Contains(got,
				`"result"`) {
				t.Errorf("a small request got %.300s", got)
			}
			other.Release()
			if _, got := g.post("/agents/one/rpc", c.body); !strings.Contains(got, `"result"`) {
				t.Errorf("with memory again: %.300s", got)
			}
			asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })
		})
	}
	t.Run("of all", func(t *testing.T) {
		one, two := hold("a", 1<<20), hold("b", 1<<20-40<<10)
		if _, got := g.post("/agents/one/rpc", message("rpc", "get", "t1", "")); !strings.Contains(got,
			fmt.Sprintf(`"limit":"memory","max":%d`, 2<<20)) {
			t.Errorf("got %.300s", got)
		}
		one.Release()
		two.Release()
	})
}

// TestLargeAnswersInPieces proves: a large answer is written whole, and no piece is large.
func TestLargeAnswersInPieces(t *testing.T) {
	for _, size := range []int{0, 1, pieceSize, pieceSize + 1, 10*pieceSize - 1} {
		body := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		w := &pieces{ResponseWriter: httptest.NewRecorder()}
		if err := writePieces(t.Context(), w, body, 0, new(gateway.Request)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(body), w.all.String()); diff != "" || w.largest > pieceSize {
			t.Errorf("of %d bytes, in pieces of up to %d: %s", size, w.largest, diff)
		}
	}
}

// pieces remembers the bytes written, and the largest piece.
type pieces struct {
	http.ResponseWriter
	all     bytes.Buffer
	largest int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.largest = max(p.largest, len(b))
	return p.all.Write(b)
}

// TestMemoryOfStreams proves: a frame without memory is refused by a frame, the stream can be continued, and a resting
// stream holds nothing.
func TestMemoryOfStreams(t *testing.T) {
	g := open(t, func(h *setup) {
		h.Limits.Bytes = 1 << 20
		h.Memory = limit.Limits{Total: 2 << 20, PerLeader: 1 << 20}
	})
	g.post("/agents/one/rpc", message("rpc", "start", "t1", strings.Repeat("x", 100<<10)))
	again := message("stream", "re-stream", "t1", "")
	asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })

	other := g.memory().Lease("leader")
	if err := other.Hold(1 << 20); err != nil {
		t.Fatal(err)
	}
	_, got := g.post("/agents/one/stream", again)
	if !strings.Contains(got, `"code":-32050`) || !strings.Contains(got, `"limit":"memory_per_leader"`) {
		t.Errorf("without memory: %.300s", got)
	}
	other.Release()

	res, next := g.openStream(t.Context(), again)
	defer res.Body.Close()
	until(t, next, "awaiting-completion")
	asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })
}

// TestMemoryIsWaitedFor proves: an answer, and a stream, in want of memory come as soon as there is some, and a caller
// waits no longer once it has left.
func TestMemoryIsWaitedFor(t *testing.T) {
	g := open(t, func(h *setup) {
		h.Limits.Bytes = 1 << 20
		h.Streaming.Patience = time.Minute
		h.Memory, h.MemoryPatience = limit.Limits{Total: 2 << 20, PerLeader: 1 << 20}, time.Minute
	})
	g.post("/agents/one/rpc", message("rpc", "start", "t1", strings.Repeat("x", 100<<10)))
	asynctest.Eventually(t, "the memory is given back", func() bool { return g.setup.Process.Memory.Total() == 0 })
	other := g.memory().Lease("leader")
	if err := other.Hold(1 << 20); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "POST", g.server.URL+"/agents/one/rpc",
		strings.NewReader(message("rpc", "get", "t1", "")))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error)
	go func() {
		_, err := g.server.Client().Do(request)
		left <- err
	}()
	asynctest.Eventually(t, "a stream waits for memory", func() bool { return g.setup.Process.Memory.Waiting() == 1 })
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that left got %v", err)
	}
	asynctest.Eventually(t, "no stream waits for memory", func() bool { return g.setup.Process.Memory.Waiting() == 0 })

	answers := make(chan string)
	for _, c := range [][2]string{{"rpc", "get"}, {"stream", "re-stream"}} {
		go func() {
			_, got := g.post("/agents/one/"+c[0], message(c[0], c[1], "t1", ""))
			answers <- got
		}()
	}
	asynctest.Eventually(t, "two streams wait for memory", func() bool { return g.setup.Process.Memory.Waiting() == 2 })
	other.Release()
	for range 2 {
		if got := <-answers; !strings.Contains(got, `"awaiting-completion"`) {
			t.Errorf("got %.300s", got)
		}
		g.post("/agents/one/rpc", message("rpc", "complete", "t1", "")) // the stream ends
	}
	asynctest.Eventually(t, "no stream holds memory or waits for it", func() bool {
		return g.setup.Process.Memory.Total() == 0 && g.setup.Process.Memory.Waiting() == 0
	})
}
