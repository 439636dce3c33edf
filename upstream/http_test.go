// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

func TestUnreachable(t *testing.T) {
	for _, stream := range []bool{false, true} {
		withAgent(t, http.NotFoundHandler(), nil, func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
			m.Close()
			if diff := cmp.Diff([]string{"agent-unavailable: the agent cannot be reached"},
				show(carryOut(t.Context(), h, turn("x"), stream))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	slow := func(c *settings) {
		c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	}
	withAgent(t, http.NotFoundHandler(), slow, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		begun := time.Now()
		if diff := cmp.Diff([]string{"agent-unavailable: the agent cannot be reached"},
			show(carryOut(t.Context(), h, turn("x"), false))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if took := time.Since(begun); took != 10*time.Second {
			t.Errorf("it took %v, want %v", took, 10*time.Second)
		}
	})
}

// TestRequest: the requests, each with the configured header fields.
func TestRequest(t *testing.T) {
	var got []string
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var head bytes.Buffer
		r.Header.Write(&head)
		got = append(got, r.Method+" "+r.Host+r.URL.String()+"\n"+strings.ReplaceAll(head.String(), "\r\n", "\n"))
		io.WriteString(w, is("completed"))
	})
	change := func(c *settings) {
		c.URL = "http://agent/base?x=1#frag"
		c.Header = http.Header{"authorization": {"Bearer k"}, "X-Two": {"a", "b"}, "Host": {"other"},
			"Accept": {"text/html"}}
	}
	withAgent(t, handler, change, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
		show(carryOut(t.Context(), h, turn("x"), false))
		show(h.Run(t.Context(), turn("x"), true))
	})
	want := []string{
		"POST other/base?x=1\nAccept: application/json\nAuthorization: Bearer k\nContent-Length: 147\nContent-Type: " +
			"application/json\nUser-Agent: aip-gateway\nX-Two: a\nX-Two: b\n",
		"POST other/base?x=1\nAccept: text/event-stream\nAuthorization: Bearer k\nContent-Length: 156\n" +
			"Content-Type: application/json\nUser-Agent: aip-gateway\nX-Two: a\nX-Two: b\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConnectionsAreKept: the connection is used again after an answer and after a stream ended by the agent.
func TestConnectionsAreKept(t *testing.T) {
	withAgent(t, legacyagent.New(legacyagent.Options{}), nil, func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
		for range 3 {
			show(carryOut(t.Context(), h, turn("a b"), false))
			show(h.Run(t.Context(), turn("a b"), true))
			synctest.Wait()
		}
		if n := m.Dials(); n != 1 {
			t.Errorf("%d connections were opened", n)
		}
		time.Sleep(5 * time.Second)
		show(carryOut(t.Context(), h, turn("a b"), false))
		if n := m.Dials(); n != 2 {
			t.Errorf("an idle connection was kept: %d were opened", n)
		}
	})
}

// TestClosedIdleConnection: a message is sent again, whole, when the agent has closed the idle connection meant for it.
func TestClosedIdleConnection(t *testing.T) {
	for range 20 { // whether the transport has seen the close is up to the scheduler
		bubble.Test(t, func(t *testing.T) {
			m := upstreamtest.NewListener()
			var serving sync.WaitGroup
			serving.Go(func() {
				for {
					conn, err := m.Accept()
					if err != nil {
						return
					}
					req, err := http.ReadRequest(bufio.NewReader(conn))
					if err != nil {
						return
					}
					io.Copy(io.Discard, req.Body)
					fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(is("completed")),
						is("completed"))
					conn.Close()
				}
			})
			h := agentAt(t, httptransport.Config{URL: "http://agent/", Codec: a2a.Legacy(), Dial: m.Dial})
			for range 3 {
				if diff := cmp.Diff([]string{"completed"}, show(carryOut(t.Context(), h, turn("x"), false))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				synctest.Wait()
			}
			h.Close()
			m.Close()
			serving.Wait()
		})
	}
}

func TestSampleAgent(t *testing.T) {
	for _, tc := range []struct {
		text   string
		stream bool
		want   []string
	}{
		{"hello you", false, []string{"completed artifact-0-echo=echo: hello you"}},
		{"hello you", true, []string{"working", "artifact-0-echo+=echo:", "artifact-0-echo+= hello",
			"artifact-0-echo+= you", "completed"}},
		{"slow 2", true, []string{"working", "working", "working", "completed"}},
		{"slow 2", false, []string{"completed"}},
		{"ask", true, []string{"working", "input-required"}},
		{"fail", false, []string{"failed"}},
		{"fail", true, []string{"working", "failed"}},
	} {
		withAgent(t, legacyagent.New(legacyagent.Options{}), nil,
			func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				if diff := cmp.Diff(tc.want, show(carryOut(t.Context(), h, turn(tc.text), tc.stream))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tc.text, diff)
				}
			})
	}
}

func TestTLS(t *testing.T) {
	sample := legacyagent.New(legacyagent.Options{})
	defer sample.Close()
	srv := httptest.NewTLSServer(sample)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer srv.Close()
	for _, tc := range []struct {
		config *tls.Config
		want   string
	}{
		{srv.Client().Transport.(*http.Transport).TLSClientConfig, "completed artifact-0-echo=echo: a"},
		{nil, "agent-unavailable: the agent's certificate is not trusted"},
	} {
		h := agentAt(t, httptransport.Config{URL: srv.URL, Codec: a2a.Legacy(), TLS: tc.config})
		if diff := cmp.Diff([]string{tc.want}, show(carryOut(t.Context(), h, turn("a"), false))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		h.Close()
	}
}

// TestManyRuns: many runs at once share the pooled memory and get their own answers.
func TestManyRuns(t *testing.T) {
	sample := legacyagent.New(legacyagent.Options{})
	defer sample.Close()
	srv := httptest.NewServer(sample)
	defer srv.Close()
	h := agentAt(t, httptransport.Config{URL: srv.URL, Codec: a2a.Legacy()})
	var runs sync.WaitGroup
	for i := range 16 {
		runs.Go(func() {
			for j := range 20 {
				text := fmt.Sprint("n", i, "-", j)
				turn := turn(text)
				turn.Ref.Task = text
				var got string
				for rep, err := range h.Run(t.Context(), turn, j%2 == 0) {
					if err != nil {
						t.Error(err)
						return
					}
					for _, p := range rep.Products {
						got += p.DataItems[0].Text
					}
					for _, c := range chunksOf(&rep) {
						got += c.Product.DataItems[0].Text
					}
				}
				if got != "echo: "+text {
					t.Errorf("%s got %q", text, got)
				}
			}
		})
	}
	runs.Wait()
}
