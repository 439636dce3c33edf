// SPDX-License-Identifier: Apache-2.0

package run

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/conform/wire"
)

// lifecycle is the events of a task, with numbers from 1.
const lifecycle = `{result: {seq: 1, object: {id: t, status: {state: new}}}},
	{result: {seq: 2, object: {status: {state: working}}}},
	{result: {seq: 3, object: {type: chunk, product: {id: p, dataItems: [{type: text, text: "a"}]}, append: false}}},
	{result: {seq: 4, object: {type: chunk, product: {id: p, dataItems: [{type: text, text: "b"}]}, append: true}}},
	{result: {seq: 5, object: {status: {state: done}}}}`

const last = `
	{result: {seq: 4, object: {type: chunk, product: {id: p, dataItems: [{type: text, text: "b"}]}, append: true}}},
	{result: {seq: 5, object: {status: {state: done}}}}`

func TestStreams(t *testing.T) {
	all := `operation: stream, params: {events: [` + lifecycle + `]}`
	open := `operation: stream, params: {open: true, events: [` + lifecycle + `]}`
	check(t, nil, []row{
		{"all", `{id: x, ` + all + `, expect_stream: {min_count: 5, max_count: 5, ordering: protocol, ends: server,
			events: [{status: {state: new}}, {match: any_position, append: true}, {index: 1, status: {state: working}}],
			final_event: {status: {state: done}}}}`, "pass"},
		{"open-end", `{id: x, ` + open + `, expect_stream: {min_count: 5, final_event: {status: {state: done}}}}`, "pass"},
		{"no-end", `{id: x, ` + open + `, expect_stream: {ends: server}}`,
			"fail: end of the stream: want the server's, got the stream is open"},
		{"too-few", `{id: x, ` + all + `, expect_stream: {min_count: 6}}`, "fail: events: want at least 6, got 5"},
		{"open", `{id: x, ` + open + `, open: {question: "?", readings: [{id: none, expect_stream: {max_count: 0}},
			{id: all, expect_stream: {min_count: 5}}]}}`, "open all"},
		{"none", `{id: x, operation: stream, params: {open: true, events: []}, expect_stream: {max_count: 0}}`, "pass"},
		{"open-none", `{id: x, operation: stream, params: {open: true, events: []}, open: {question: "?",
			readings: [{id: none, expect_stream: {max_count: 0}}]}}`, "open none"},
		{"order", `{id: x, operation: stream, params: {events: [{result: {object: {status: {state: done}}}},
			{result: {object: {status: {state: working}}}}]}, expect_stream: {ordering: protocol}}`,
			"fail: event 2: want no state behind done, got working"},
		{"no-stream", `{id: x, operation: stream, params: {answer: 1}, expect_stream: {min_count: 1}}`,
			"fail: want a stream of events, got HTTP/1.1 200 OK, application/json\nVARIES"},
		{"error-event", `{id: x, operation: stream, params: {events: [{error: {code: -1}}]},
			expect_error: {error: NotFound}}`, "pass"},
		{"await", `{id: x, ` + open + `, open_stream: s},
			{id: y, await_event: {stream: s, match: {status: {state: working}}},
			capture: {n: sequence}}, {id: z, await_event: {stream: s, match: {status: {state: done}}}},
			{id: e, assertion: {source: "{{y.event}}", any: {path: result.seq, match: "{{y.n}}"}}}`, "pass"},
		{"await-behind", `{id: x, ` + open + `, open_stream: s},
			{id: y, await_event: {stream: s, match: {status: {state: done}}}},
			{id: z, await_event: {stream: s, match: {status: {state: working}}, within_ms: 10}}`,
			`fail: s: want an event with {"status":{"state":"working"}} within 10ms, got none of 5 events`},
		{"ended", `{id: x, ` + all + `, open_stream: s}, {id: y, await_event: {stream: s, ended: true}}`, "pass"},
		{"never-ended", `{id: x, ` + open + `, open_stream: s},
			{id: y, await_event: {stream: s, ended: true, within_ms: 10}}`,
			"fail: s: want its end within 10ms, got the stream is open"},
		{"cut", `{id: x, ` + open + `, open_stream: s}, {id: y, cut: s}`, "pass"},
		{"increasing", `{id: x, ` + all + `, open_stream: s}, {id: w, await_event: {stream: s, ended: true}},
			{id: y, increasing: {source: s, path: result.seq}}`, "pass"},
		{"same", `{id: x, ` + all + `, open_stream: s}, {id: w, await_event: {stream: s, ended: true}},
			{id: y, operation: stream, open_stream: r, params: {events: [` + last + `]}},
			{id: z, same_events: {of: s, and: r, after: 3}}`, "pass"},
		{"missing", `{id: x, ` + all + `, open_stream: s}, {id: w, await_event: {stream: s, ended: true}},
			{id: y, operation: stream, open_stream: r, params: {events: [{result: {seq: 2, object: 0}}]}},
			{id: z, same_events: {of: s, and: r, after: 4}}`,
			`fail: event 5 of s: want {"result":{"object":{"status":{"state":"done"}},"seq":5}}, ` +
				`got {"result":{"object":0,"seq":2}}`},
		{"fold", `{id: x, ` + all + `, open_stream: s}, {id: w, await_event: {stream: s, ended: true}},
			{id: y, fold: {stream: s, expect: {status: {state: done}, products: [{id: p, dataItems: [{text: ab}]}]}}}`,
			"pass"},
	})
}

func TestWebhooks(t *testing.T) {
	tests := `      - id: hook
        level: must
        receivers: {hook: {respond: [500]}}
        steps:
          - {id: x, operation: say, params: {hook: "{{hook.url}}", answer: {n: 1}}}
          - {id: y, expect_webhook: {receiver: hook, match: {method: POST, body: {n: 1}}}, capture: {n: body.n}}
          - {id: z, expect_webhook: {receiver: hook, count_lte: 1}}
      - id: no-hook
        level: must
        receivers: {hook: {}}
        steps:
          - {id: y, expect_webhook: {receiver: hook, within_ms: 10}}
`
	got := verdictsOf(t, nil, tests)
	if got["hook"] != "pass" || got["no-hook"] != "fail: hook: want at least 1 requests as null within 10ms, got 0" {
		t.Errorf("got %q", got)
	}
}

// TestLastLook has the last event and the end come between a look at a stream and the next one.
func TestLastLook(t *testing.T) {
	looked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		http.NewResponseController(w).Flush()
		<-looked
		io.WriteString(w, "data: {\"result\":1}\n\n")
	}))
	defer server.Close()
	client := wire.NewClient(&wire.Identity{}, wire.Options{})
	defer client.Close()
	e := client.Do(t.Context(), wire.Request{Method: "POST", URL: server.URL}, 10*time.Second)
	if e.Stream == nil {
		t.Fatalf("no stream: %s", e.Got())
	}
	o := &outcome{exchange: e}
	looks, seen := 0, 0
	err := changes(t.Context(), o, time.Minute, func() bool {
		if looks++; looks == 1 {
			close(looked)
			for {
				news := e.Stream.News()
				if _, end := e.Stream.Events(); end != nil {
					return false
				}
				<-news
			}
		}
		seen = len(o.events)
		return false
	})
	if err != nil || looks != 2 || seen != 1 {
		t.Errorf("%d looks, the last one at %d events, %v; want 2 looks, the last one at 1 event", looks, seen, err)
	}
}
