// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// hurry is the time after which the Leader of the tests gives an answer up that is not to come, or not to go on.
// Another one has patience.
const hurry, patience = 500 * time.Millisecond, 2 * time.Minute

// command is a request of v01.00 for task t.
func command(method, id, name, params, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":%q,"params":{"message":{"type":"message","id":%q,`+
		`"sentAt":"2026-01-01T00:00:00Z","senderRole":"leader","senderId":"L","command":%q,"commandParams":%s,`+
		`"taskId":"t","sessionId":"s","dataItems":[{"type":"text","text":%q}]}}}`, id, method, "m-"+id, name, params, text)
}

// call sends a request, and returns what came: the status, and the answer's beginning or how it ended. It hurries where
// nothing more is to come.
func call(t *testing.T, url, body, want string) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	limit := time.AfterFunc(patience, cancel)
	defer limit.Stop()
	if want == "silence" {
		limit.Reset(hurry)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if ctx.Err() != nil {
		return "silence"
	} else if err != nil {
		return "no answer"
	}
	defer answer.Body.Close()
	if strings.HasSuffix(want, " incomplete") || strings.HasPrefix(want, "0 events, ") {
		limit.Reset(hurry)
	}
	if answer.Header.Get("Content-Type") == "text/event-stream" {
		events := 0
		err := wire.ReadEvents(answer.Body, func(wire.Event) error {
			if events++; events > 1000 {
				return context.Canceled
			}
			if want == fmt.Sprintf("%d events, open", events) {
				limit.Reset(hurry)
			}
			return nil
		})
		end := "cut"
		switch {
		case err == io.EOF:
			end = "ended"
		case events > 1000:
			return "a flood"
		case ctx.Err() != nil:
			end = "open"
		}
		return fmt.Sprintf("%d events, %s", events, end)
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, 128<<20))
	if err != nil {
		return fmt.Sprint(answer.StatusCode, " incomplete")
	}
	for _, known := range []string{`"error"`, "<!doctype", `"awaiting-completion"`, `"completed"`, `"canceled"`,
		`"working"`} {
		if strings.Contains(string(content), known) {
			return fmt.Sprint(answer.StatusCode, " ", known)
		}
	}
	return fmt.Sprint(answer.StatusCode)
}

// TestFaults sends a start, and where it matters what comes behind it, to the Partner with each Fault.
func TestFaults(t *testing.T) {
	const null = "null"
	start := command("rpc", "1", "start", null, "hello")
	stream := command("stream", "1", "start", null, "stream 4 1")
	again := command("stream", "2", "re-stream", `{"lastEventSeq":2}`, "")
	long := command("rpc", "1", "start", null, "slow 60")
	for _, tc := range []struct {
		fault string
		sends []string
		want  []string
	}{
		{"right", []string{start}, []string{`200 "awaiting-completion"`}},
		{"lost-request", []string{command("rpc", "2", "get", null, ""), start, command("rpc", "2", "get", null, ""), start},
			[]string{`200 "error"`, "no answer", `200 "error"`, `200 "awaiting-completion"`}},
		{"lost-answer", []string{start, command("rpc", "2", "get", null, "")}, []string{"no answer",
			`200 "awaiting-completion"`}},
		{"502", []string{start, command("rpc", "2", "get", null, "")}, []string{"502", `200 "awaiting-completion"`}},
		{"503", []string{start, command("rpc", "2", "get", null, "")}, []string{"503", `200 "error"`}},
		{"cut-at-header", []string{stream, again}, []string{"0 events, cut", "5 events, open"}},
		{"cut-between-events", []string{stream, again}, []string{"2 events, cut", "5 events, open"}},
		{"cut-in-event", []string{stream, again}, []string{"2 events, cut", "5 events, open"}},
		{"cut-as-an-end", []string{stream, again}, []string{"2 events, ended", "5 events, open"}},
		{"cut-in-silence", []string{stream, again}, []string{"2 events, open", "5 events, open"}},
		{"cut-before-the-last", []string{stream, again}, []string{"6 events, cut", "5 events, open"}},
		{"completes", []string{stream}, []string{"8 events, ended"}},
		{"cancels", []string{strings.Replace(stream, "stream 4 1", "slow 60", 1)}, []string{"3 events, ended"}},
		{"forgets", []string{start, command("rpc", "2", "get", null, "")}, []string{`200 "awaiting-completion"`,
			`200 "error"`}},
		{"endless", []string{start}, []string{"200 incomplete"}},
		{"silence", []string{start}, []string{"silence"}},
		{"trickle", []string{start}, []string{"200 incomplete"}},
		{"wrong-order", []string{stream}, []string{"7 events, open"}},
		{"garbage", []string{start}, []string{"200 <!doctype"}},
		{"foreign-events", []string{stream}, []string{"14 events, open"}},
		{"refused", []string{start}, []string{`200 "error"`}},
		{"unknown-caller", []string{start}, []string{`200 "error"`}},
		{"v2-only", []string{start}, []string{`200 "error"`}},
		{"huge", []string{strings.Replace(start, "hello", "huge", 1)}, []string{`200 "awaiting-completion"`}},
		{"deep", []string{start}, []string{`200 "awaiting-completion"`}},
		{"flood", []string{stream}, []string{"a flood"}},
		{"slow-cancel", []string{long, command("rpc", "2", "cancel", null, "")}, []string{`200 "working"`, "silence"}},
		{"refused-cancel", []string{long, command("rpc", "2", "cancel", null, "")}, []string{`200 "working"`,
			`200 "error"`}},
	} {
		t.Run(tc.fault, func(t *testing.T) {
			t.Parallel()
			s := New()
			server := httptest.NewServer(s)
			defer s.Close()
			defer server.Close()
			var got []string
			for i, body := range tc.sends {
				path := "rpc"
				if strings.Contains(body, `"method":"stream"`) {
					path = "stream"
				}
				got = append(got, call(t, server.URL+"/"+tc.fault+"/"+path, body, tc.want[i]))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWakes waits for the work of a completed task.
func TestWakes(t *testing.T) {
	t.Parallel()
	s := New()
	server := httptest.NewServer(s)
	defer s.Close()
	defer server.Close()
	url := server.URL + "/wakes/rpc"
	call(t, url, command("rpc", "1", "start", "null", "hello"), "")
	// Without histories, an answer has the present state alone.
	const alone = `{"lastMessageSentAt":"2099-01-01T00:00:00Z","lastStateChangedAt":"2099-01-01T00:00:00Z"}`
	get := command("rpc", "2", "get", alone, "")
	got := call(t, url, get, "")
	if got != `200 "awaiting-completion"` {
		t.Errorf("it rests as %s", got)
	}
	got = call(t, url, command("rpc", "3", "complete", alone, ""), "")
	seen := []string{got}
	for range 100_000 { // a Partner that never wakes must not hang the test
		if got == `200 "working"` || len(seen) == 3 {
			break
		}
		if got = call(t, url, get, ""); seen[len(seen)-1] != got {
			seen = append(seen, got)
		}
	}
	if diff := cmp.Diff([]string{`200 "completed"`, `200 "working"`}, seen); diff != "" {
		t.Errorf("its states behind the complete (-want +got):\n%s", diff)
	}
}

// TestReport looks at what the Partner says of a Leader that repeats too much.
func TestReport(t *testing.T) {
	s := New()
	server := httptest.NewServer(s)
	defer s.Close()
	defer server.Close()
	url := server.URL + "/right/"
	first := command("stream", "1", "start", "null", "stream 4 1")
	for _, sends := range []struct{ body, want string }{
		{first, "7 events, open"},
		{first, "7 events, open"},
		{strings.Replace(first, `"taskId":"t"`, `"taskId":"u"`, 1), "7 events, open"},
		{command("stream", "2", "re-stream", `{"lastEventSeq":2}`, ""), "5 events, open"},
	} {
		if got := call(t, url+"stream", sends.body, sends.want); got != sends.want {
			t.Errorf("a stream is %s, want %s", got, sends.want)
		}
	}
	want := Report{Fault: "right", Does: "nothing is wrong", Wants: "it gets the products", Requests: 4,
		Commands: map[string]int{"start": 3, "re-stream": 1}, RepeatedIDs: []string{`"1"`}, MessageIDs: []string{"m-1"},
		RepeatedStarts: []string{"t"}, StartedTwice: []string{"u"},
		Resumed: []Resumed{{"t", float64(2), 7}}}
	if diff := cmp.Diff(want, s.Reports()[0]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
