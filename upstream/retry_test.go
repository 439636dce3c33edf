// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

// showAll is show with the gateway's reports of the delivery, but for repetitions.
func showAll(h *upstream.Agent, t *agent.Turn, stream bool) (all []string) {
	for rep, err := range carryOut(context.Background(), h, t, stream) {
		s := one(rep, err)
		switch rep.Delivery {
		case agent.DeliveryQueued:
			s = "waiting"
		case agent.DeliverySending, agent.DeliveryAcknowledged:
			continue
		}
		if len(all) == 0 || all[len(all)-1] != s {
			all = append(all, s)
		}
	}
	return all
}

// TestRefusedConnections: a turn waits for its agent if nothing of it was sent, whether the agent or the gateway names
// the task.
func TestRefusedConnections(t *testing.T) {
	const unreachable = "agent-unavailable: the agent cannot be reached"
	const noFiles = "agent-unavailable: the gateway cannot reach the agent: it has no file descriptors left"
	refused, starved := errors.New("connection refused"),
		&net.OpError{Op: "dial", Err: os.NewSyscallError("socket", syscall.EMFILE)}
	working := script{
		"send": says(is("completed")), "sendSubscribe": streams(true, news("completed")),
		"message/send": says(done03rpc), "message/stream": streams(true, done03rpc),
	}
	for _, tc := range []struct {
		name        string
		why         error
		down, lasts time.Duration
		stream      bool
		names       bool
		want        []string
		least, most time.Duration
	}{
		{"down for a while", refused, 5 * time.Second, 10 * time.Second, false, false,
			[]string{"waiting", "completed"}, 5 * time.Second, 7 * time.Second},
		{"down for a while, by stream", refused, 5 * time.Second, 10 * time.Second, true, false,
			[]string{"waiting", "completed"}, 5 * time.Second, 8 * time.Second},
		{"down for a while, and it names its tasks", refused, 5 * time.Second, 10 * time.Second, false, true,
			[]string{"waiting", "completed"}, 5 * time.Second, 8 * time.Second},
		{"down for too long", refused, time.Hour, 10 * time.Second, false, false, []string{"waiting", unreachable},
			7 * time.Second, 10 * time.Second},
		{"no time to wait", refused, time.Hour, 0, false, false, []string{unreachable}, 0, 0},
		{"no file descriptors for a while", starved, time.Minute, 10 * time.Second, false, false,
			[]string{"waiting", "completed"}, time.Minute, 63 * time.Second},
		{"no file descriptors, and no time to wait", starved, time.Minute, 0, true, true,
			[]string{"waiting", "completed"}, time.Minute, 63 * time.Second},
		{"no file descriptors for too long", starved, time.Hour, 10 * time.Second, false, false,
			[]string{"waiting", noFiles}, 5 * time.Minute, 6 * time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var up time.Time
			settings := func(c *settings) {
				c.RetryFor = tc.lasts
				if tc.names {
					c.Codec = a2a.V03()
				}
				dial := c.Dial
				c.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
					if time.Now().Before(up) {
						return nil, tc.why
					}
					return dial(ctx, network, address)
				}
			}
			withAgent(t, working.handler(), settings, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				begun := time.Now()
				up = begun.Add(tc.down)
				if diff := cmp.Diff(tc.want, showAll(h, turn("x"), tc.stream)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(begun); took < tc.least || took > tc.most {
					t.Errorf("it took %v, want %v to %v", took, tc.least, tc.most)
				}
			})
		})
	}
}

const done03rpc = `{"jsonrpc":"2.0","id":"1","result":` + done03 + `}`

// goesOn returns the continue of a task after a question of the agent.
func goesOn(t *testing.T) *agent.Turn {
	t.Helper()
	before, err := a2a.Legacy().Reply([]byte(is("input-required")), nil)
	if err != nil {
		t.Fatal(err)
	}
	return then(before, "t", "x")
}

// TestBrokenConnections: after its connection breaks, a turn is sent again as long as its agent denies having it. A
// silent agent is asked again. A turn that cannot be asked for is not sent twice.
func TestBrokenConnections(t *testing.T) {
	const broke = "invalid-agent-response: the connection to the agent broke before it answered"
	unknown := says(fails(-32001, "what?"))
	for _, tc := range []struct {
		name   string
		stream bool
		names  bool
		from   task.State
		agent  script
		want   []string
	}{
		{"six times", false, false, task.None, script{"send": breaksFirst(6, says(is("completed"))), "get": unknown},
			[]string{"completed"}},
		{"six times, by stream", true, false, task.None,
			script{"sendSubscribe": breaksFirst(6, streams(true, news("completed"))), "get": unknown},
			[]string{"completed"}},
		{"and it cannot be asked at first", false, false, task.None,
			script{"send": breaksFirst(1, says(is("completed"))), "get": breaksFirst(4, unknown)},
			[]string{"completed"}},
		{"a continue, and it cannot be asked at first", false, false, task.AwaitingInput,
			script{"send": breaksFirst(2, says(is("completed"))), "get": breaksFirst(3, says(is("input-required")))},
			[]string{"completed"}},
		{"again and again", false, false, task.None, script{"send": breaksFirst(99, nil), "get": unknown},
			[]string{broke}},
		{"the agent has it", false, false, task.None, script{"send": breaksFirst(99, nil), "get": says(is("working"))},
			[]string{broke}},
		{"the agent names its tasks", false, true, task.None,
			script{"message/send": breaksFirst(1, says(done03rpc)),
				"message/stream": breaksFirst(1, streams(true, done03rpc))},
			[]string{broke}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			settings := func(c *settings) {
				c.RetryFor, c.Resend = 10*time.Second, upstream.ResendAlways
				if tc.names {
					c.Codec = a2a.V03()
				}
			}
			withAgent(t, tc.agent.handler(), settings, func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
				x := turn("x")
				if tc.from != task.None {
					x = goesOn(t)
				}
				begun := time.Now()
				if diff := cmp.Diff(tc.want, showAll(h, x, tc.stream)); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(begun); took > 11*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// TestFindingWaits: an agent yet to be found, and down, is looked for again.
func TestFindingWaits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		m := upstreamtest.NewListener()
		srv := &http.Server{Handler: &speaker{card: cardOf03, methods: map[string]string{"message/send": done03}}}
		go srv.Serve(m)
		begun := time.Now()
		dial := func(ctx context.Context, network, address string) (net.Conn, error) {
			if time.Since(begun) < 5*time.Second {
				return nil, errors.New("connection refused")
			}
			return m.Dial(ctx, network, address)
		}
		a := foundAgent(t, "http://agent/", dial)
		var got []string
		var last agent.Delivery // without Sending, the message would be sent again after a crash
		for rep, err := range carryOut(t.Context(), a, turn("x"), false) {
			if rep.Delivery == agent.DeliveryUnknown {
				got = append(got, one(rep, err))
			} else {
				last = rep.Delivery
			}
		}
		if diff := cmp.Diff([]string{"completed"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if last != agent.DeliverySending {
			t.Errorf("before it was sent, the message was said to be at %d, want %d", last, agent.DeliverySending)
		}
		a.Close()
		srv.Close()
	})
}

// TestResumeWaitsForTheAgent: a turn that may be under way does not count as unknown to its agent only because the
// agent is yet to be found, and is down.
func TestResumeWaitsForTheAgent(t *testing.T) {
	for _, tc := range []struct {
		name string
		down time.Duration
		want string
	}{
		{"for a while", 20 * time.Second, "completed"},
		{"for too long", time.Hour, "agent-timeout: the agent was not found for 5m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				m := upstreamtest.NewListener()
				srv := &http.Server{Handler: &speaker{card: cardOf03, methods: map[string]string{"tasks/get": done03}}}
				go srv.Serve(m)
				begun := time.Now()
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					if time.Since(begun) < tc.down {
						return nil, errors.New("connection refused")
					}
					return m.Dial(ctx, network, address)
				}
				a := foundAgent(t, "http://agent/", dial)
				if diff := cmp.Diff([]string{tc.want}, show(a.Resume(t.Context(), turn("x")))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				a.Close()
				srv.Close()
			})
		})
	}
}

// TestUntrustedIsFinal: an untrusted certificate is no reason to wait.
func TestUntrustedIsFinal(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, is("completed"))
	}))
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	defer srv.Close()
	transport, err := httptransport.New(httptransport.Config{URL: srv.URL, Codec: a2a.Legacy()})
	if err != nil {
		t.Fatal(err)
	}
	h := upstream.New(upstream.Config{
		Resolver: upstream.NewEndpoint(a2a.Legacy(), transport), RetryFor: time.Hour,
		Logger: slog.New(slog.DiscardHandler),
	})
	h.NumberAll("1")
	defer h.Close()
	if diff := cmp.Diff([]string{"agent-unavailable: the agent's certificate is not trusted"},
		showAll(h, turn("x"), false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNoStreamsIsRemembered: a turn asks for no stream when it is sent again after its agent has turned out to have
// none.
func TestNoStreamsIsRemembered(t *testing.T) {
	streams := 0
	steps := script{
		"sendSubscribe": func(w http.ResponseWriter, r *http.Request, n int) {
			streams = n + 1
			says(fails(-32601, "Method not found"))(w, r, n)
		},
		"send": breaksFirst(1, says(is("completed"))),
		"get":  says(fails(-32001, "Task not found")),
	}
	again := resends(time.Second, upstream.ResendAlways)
	withAgent(t, steps.handler(), again, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		if diff := cmp.Diff([]string{"completed"}, show(a.Run(t.Context(), turn("x"), true))); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	if streams != 1 {
		t.Errorf("the agent was asked for a stream %d times", streams)
	}
}
