// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
)

// listing is an agent with a list of the methods it is asked for.
type listing struct {
	http.Handler
	mu    sync.Mutex
	asked []string
}

func (l *listing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	l.asked = append(l.asked, strings.TrimPrefix(gjson.GetBytes(body, "method").Str, "tasks/"))
	l.mu.Unlock()
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	l.Handler.ServeHTTP(w, r)
}

// answersWith answers with a status of HTTP and a body.
func answersWith(status int, body string) step {
	return func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// TestRefusedStreams: an agent of A2A v0.1 answering a request for a stream by an error gets the message once more, for
// one answer, and is asked for no stream again while its card is the same.
func TestRefusedStreams(t *testing.T) {
	const internal = `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"Internal error"}}`
	for name, refusal := range map[string]step{
		"internal error":         answersWith(200, internal),
		"internal error, as 400": answersWith(400, internal),
		"internal error, as 500": answersWith(500, internal),
		"any code":               says(fails(-32099, "no")),
		"no such method":         says(fails(-32601, "no")),
		"not supported":          says(fails(-32004, "no")),
		"a detail":               answersWith(422, `{"detail":"no"}`),
		"not found":              answersWith(404, `Not Found`),
		"a text":                 answersWith(501, `no streams`),
		"an event":               streams(false, fails(-32603, "no")),
	} {
		since := time.Unix(1, 0)
		at := &listing{Handler: script{"sendSubscribe": refusal, "send": says(is("completed", has("a"))),
			"get": says(is("submitted"))}.handler()}
		change := func(s *settings) {
			s.Streams = func(context.Context) (bool, time.Time) { return false, since }
		}
		withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			for _, want := range [][]string{{"sendSubscribe", "send"}, {"send"}, {"sendSubscribe", "send"}, {"send"}} {
				at.asked = nil
				got := show(a.Run(t.Context(), turn("x"), true))
				if diff := cmp.Diff([]string{"completed artifact-0=a"}, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
				if diff := cmp.Diff(want, at.asked); diff != "" {
					t.Errorf("%s: what was asked (-want +got):\n%s", name, diff)
				}
				if len(want) == 1 {
					since = since.Add(time.Hour) // the card changes
				}
			}
		})
	}
}

// TestNoStreamsByCard: an agent is asked for no streams if its card denies them.
func TestNoStreamsByCard(t *testing.T) {
	at := &listing{Handler: script{"send": says(is("completed"))}.handler()}
	change := func(s *settings) {
		s.Streams = func(context.Context) (bool, time.Time) { return true, time.Unix(1, 0) }
	}
	withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
		got := show(a.Run(t.Context(), turn("x"), true))
		if diff := cmp.Diff([]string{"completed"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
	if diff := cmp.Diff([]string{"send"}, at.asked); diff != "" {
		t.Errorf("what was asked (-want +got):\n%s", diff)
	}
}

// TestWhetherToStream: an agent is asked for streams as its card says, unless the operator says otherwise. An agent
// answering a message only at the end is waited for.
func TestWhetherToStream(t *testing.T) {
	dialects := map[string]struct {
		codec        func() translate.Client
		send, stream string
		answer       string
	}{
		"a2a/legacy": {a2a.Legacy, "send", "sendSubscribe", is("completed")},
		"a2a/0.3":    {a2a.V03, "message/send", "message/stream", is("completed")},
		"a2a/1.0": {a2a.V1, "SendMessage", "SendStreamingMessage",
			`{"jsonrpc":"2.0","id":"1","result":{"task":{"id":"t","status":{"state":"TASK_STATE_COMPLETED"}}}}`},
	}
	for name, d := range dialects {
		for _, tc := range []struct {
			none    bool
			mode    upstream.Streaming
			streams bool
		}{
			{false, upstream.StreamsAuto, true}, {true, upstream.StreamsAuto, false},
			{true, upstream.StreamsOn, true}, {false, upstream.StreamsOff, false},
		} {
			late := func(w http.ResponseWriter, r *http.Request, n int) {
				pass(r, 4*time.Minute)
				says(d.answer)(w, r, n)
			}
			at := &listing{Handler: script{d.send: late, d.stream: late}.handler()}
			change := func(s *settings) {
				s.Codec, s.Streaming = d.codec(), tc.mode
				s.Streams = func(context.Context) (bool, time.Time) { return tc.none, time.Unix(1, 0) }
			}
			withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
				for _, stream := range []bool{true, false} {
					want := d.send
					if tc.streams && (stream || name != "a2a/legacy") {
						want = d.stream
					}
					at.asked = nil
					got := show(carryOut(t.Context(), a, turn("x"), stream))
					if len(got) != 1 || !strings.HasSuffix(strings.ToLower(got[0]), "completed") {
						t.Errorf("%s, %+v: %q", name, tc, got)
					}
					if diff := cmp.Diff([]string{want}, at.asked); diff != "" {
						t.Errorf("%s, %+v: what was asked (-want +got):\n%s", name, tc, diff)
					}
				}
			})
		}
	}
}

// TestFailedStreams: a message is not sent again after its stream has failed. The next ones are sent without a stream
// while the card is the same, unless one of them fails as well, or the operator wants streams.
func TestFailedStreams(t *testing.T) {
	const stream, send = "message/stream", "message/send"
	good := says(is("completed"))
	for name, tc := range map[string]struct {
		stream, send step
		mode         upstream.Streaming
		want         []string // the methods of the turns; the card changes before the last
	}{
		"internal error":  {says(fails(-32603, "no")), good, 0, []string{stream, send, send, stream}},
		"as HTTP 500":     {answersWith(500, fails(-32603, "no")), good, 0, []string{stream, send, send, stream}},
		"no JSON-RPC":     {answersWith(400, `{"error":"no"}`), good, 0, []string{stream, send, send, stream}},
		"no event":        {streams(false), good, 0, []string{stream, send, send, stream}},
		"unreadable":      {streams(false, "\x1e{"), good, 0, []string{stream, send, send, stream}},
		"both":            {says(fails(-32603, "no")), says(fails(-32603, "no")), 0, []string{stream, send, stream, stream}},
		"the message":     {says(fails(-32602, "no")), good, 0, []string{stream, stream, stream, stream}},
		"as the operator": {says(fails(-32603, "no")), good, upstream.StreamsOn, []string{stream, stream, stream, stream}},
	} {
		since := time.Unix(1, 0)
		at := &listing{Handler: script{stream: tc.stream, send: tc.send}.handler()}
		change := func(s *settings) {
			s.Codec, s.Streaming = a2a.V03(), tc.mode
			s.Streams = func(context.Context) (bool, time.Time) { return false, since }
		}
		withAgent(t, at, change, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			for i := range tc.want {
				if i == len(tc.want)-1 {
					since = since.Add(time.Hour)
				}
				show(a.Run(t.Context(), turn("x"), true))
			}
		})
		sent := slices.DeleteFunc(at.asked, func(method string) bool { return method == "get" })
		if diff := cmp.Diff(tc.want, sent); diff != "" {
			t.Errorf("%s: what was sent (-want +got):\n%s", name, diff)
		}
	}
}

// TestRefusedMessages: a message refused by the agent without a stream, too, is refused, and says nothing of its
// streams. An agent with streams seen before is believed the first time, and so is a silent one.
func TestRefusedMessages(t *testing.T) {
	refuses := says(fails(-32602, "no"))
	good := streams(false, news("working"), news("completed"))
	for name, tc := range map[string]struct {
		steps script
		asked string // by all turns
		last  string
	}{
		"refused": {script{"sendSubscribe": refuses, "send": refuses}, "sendSubscribe send sendSubscribe send",
			"invalid-params: the agent does not accept the parameters: no"},
		"refused, and nothing but streams": {script{"sendSubscribe": refuses}, "sendSubscribe send sendSubscribe send",
			"invalid-params: the agent does not accept the parameters: no"},
		"after a stream": {script{"sendSubscribe": func(w http.ResponseWriter, r *http.Request, n int) {
			if n == 0 {
				good(w, r, n)
			} else {
				refuses(w, r, n)
			}
		}, "send": says(is("completed"))}, "sendSubscribe sendSubscribe",
			"invalid-params: the agent does not accept the parameters: no"},
		"silence": {script{"sendSubscribe": streams(true), "send": says(is("completed")), "get": says(is("working"))},
			"sendSubscribe get sendSubscribe get", "agent-timeout: the agent was silent for 5m0s"},
	} {
		at := &listing{Handler: tc.steps.handler()}
		withAgent(t, at, nil, func(t *testing.T, a *upstream.Agent, _ *agentUnderTest) {
			var got []string
			for range 2 {
				got = show(a.Run(t.Context(), turn("x"), true))
			}
			if last := got[len(got)-1]; last != tc.last {
				t.Errorf("%s: the second turn ends with %q", name, last)
			}
		})
		if asked := fmt.Sprint(strings.Join(at.asked, " ")); asked != tc.asked {
			t.Errorf("%s: the agent was asked %s", name, asked)
		}
	}
}
