// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// TestBothWaysSendTheSame follows one task by a stream outliving its request, by one ending with its request, and by
// one opened at the end. Their callers read the same bytes.
func TestBothWaysSendTheSame(t *testing.T) {
	var takenOver atomic.Int64
	g := open(t, func(h *setup) {
		h.takeOver(func() func() { takenOver.Add(1); return func() {} })
	})
	g.post("/agents/one/rpc", message("rpc", "start", "t1", "ask"))
	follow := func() (body func() string) {
		t.Helper()
		res, err := g.server.Client().Post(g.server.URL+"/agents/one/stream", "application/json",
			strings.NewReader(message("stream", "re-stream", "t1", "")))
		if err != nil {
			t.Fatal(err)
		}
		read := make(chan string, 1)
		go func() {
			defer res.Body.Close()
			content, err := io.ReadAll(res.Body)
			if err != nil {
				t.Error(err)
			}
			read <- string(content)
		}()
		return func() string { return <-read }
	}
	taken := follow()
	asynctest.Eventually(t, "the stream has outlived its request", func() bool { return takenOver.Load() == 1 })
	same := g.setup
	same.front.TakeOver = TakeOver{}
	g.serving.Store(same.compose(t, g.tasks))
	ordinary := follow()
	g.post("/agents/one/rpc", message("rpc", "continue", "t1", "blue"))
	g.post("/agents/one/rpc", message("rpc", "continue", "t1", "stream 30 1"))
	asynctest.Eventually(t, "the turn is over", func() bool {
		_, got := g.post("/agents/one/rpc", message("rpc", "get", "t1", ""))
		return strings.Contains(got, `"status":{"state":"awaiting-completion"`) && strings.Contains(got, "chunk-29")
	})
	g.post("/agents/one/rpc", message("rpc", "complete", "t1", ""))
	want := follow()()
	for name, body := range map[string]func() string{"taken over": taken, "ordinary": ordinary} {
		if got := body(); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
		}
	}
	if n := takenOver.Load(); n != 1 {
		t.Errorf("%d streams have outlived their requests, want 1", n)
	}
}

// TestHowStreamsEnd ends streams after the end of their requests, and reads the log.
func TestHowStreamsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(g *gate, res *http.Response)
		reason string
		cut    bool // the caller reads no proper end
	}{
		"complete": {func(g *gate, _ *http.Response) {
			g.post("/agents/one/rpc", message("rpc", "cancel", "t1", ""))
		}, "the stream is complete", false},
		"drained": {func(g *gate, _ *http.Response) { g.drain() }, "gateway: the stream was drained", false},
		"left":    {func(_ *gate, res *http.Response) { res.Body.Close() }, "httpfront: the caller has left", true},
	} {
		t.Run(name, func(t *testing.T) {
			begun, ended := make(chan struct{}), make(chan struct{})
			g := open(t, func(h *setup) {
				h.takeOver(func() func() {
					close(begun)
					return func() { close(ended) }
				})
			})
			res, next := g.openStream(t.Context(), message("stream", "start", "t1", "ask"))
			until(t, next, "awaiting-input")
			<-begun
			c.end(g, res)
			if _, err := io.ReadAll(res.Body); (err != nil) != c.cut {
				t.Errorf("the end is read as %v", err)
			}
			<-ended
			var line string
			for each := range strings.Lines(g.log.String()) {
				if strings.Contains(each, `msg="a stream has ended"`) {
					line = each
				}
			}
			for _, want := range []string{"leader=leader", "address=127.0.0.1:", "task=t1", "events=", "bytes=", "duration=",
				`reason="` + c.reason + `"`} {
				if !strings.Contains(line, want) {
					t.Errorf("the log says %q, and not %s", line, want)
				}
			}
			if n := g.streams(); n != 0 {
				t.Errorf("%d streams are counted as open", n)
			}
		})
	}
}
