// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/conform/acts"
)

// parrot is a Partner that answers with the text in params.answer: JSON behind the id of the request, or for "sse"
// events, one in each line of params.events. It knows no task.
func parrot(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Params struct {
			Answer json.RawMessage   `json:"answer"`
			Events []json.RawMessage `json:"events"`
			Open   bool              `json:"open"`
			None   bool              `json:"none"`
			Hook   string            `json:"hook"`
		} `json:"params"`
	}
	body, _ := io.ReadAll(r.Body)
	json.Unmarshal(body, &request)
	p := request.Params
	if p.Hook != "" {
		if answer, err := http.Post(p.Hook, "application/json", strings.NewReader(string(p.Answer))); err == nil {
			answer.Body.Close()
		}
	}
	if p.Events != nil {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range p.Events {
			io.WriteString(w, "data: "+string(event)+"\n\n")
		}
		http.NewResponseController(w).Flush()
		if p.Open {
			<-r.Context().Done()
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if p.None {
		io.WriteString(w, `{"jsonrpc":"2.0"}`)
		return
	}
	if p.Answer == nil {
		p.Answer = json.RawMessage(`"error":{"code":-32001}`)
	} else {
		p.Answer = append([]byte(`"result":`), p.Answer...)
		if strings.Contains(string(p.Answer), "code") {
			p.Answer = append([]byte(`"error":`), p.Answer[len(`"result":`):]...)
		}
	}
	io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(request.ID)+`,`+string(p.Answer)+`}`)
}

const protocolFile = `
extension: "aipconform/1"
protocol:
  id: parrot
  operations:
    say: {method: say, url: rpc, params: {answer: {a: 1, b: {c: 2}}}}
    stream: {method: stream, url: rpc, stream: true}
    get: {method: get, url: rpc}
  errors: {NotFound: -1, InvalidParams: -32602}
  events: {root: result.object, sequence: result.seq, state: status.state}
  final: [done]
  transitions: [{from: new, to: working}, {from: working, to: done}]
  names: {thing: a, chunk_event: chunk}
`

// verdictsOf runs tests whose steps are given, and returns the verdict of each, with its reason.
func verdictsOf(t *testing.T, edit func(*Profile), tests string) map[string]string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(parrot))
	defer server.Close()
	files := fstest.MapFS{"p.yaml": {Data: []byte(protocolFile)}, "s.yaml": {Data: []byte(
		"acts_version: \"1.0\"\nvariables: {greeting: \"hi {{$session}}\"}\nsuites:\n  - id: s\n    tests:\n" + tests)}}
	protocol, err := acts.LoadProtocol(files, "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents, err := acts.Load(files, "s.yaml")
	if err != nil {
		t.Fatal(err)
	}
	profile := DefaultProfile()
	profile.URL, profile.Protocols = server.URL, []string{"parrot"}
	profile.Bounds = Bounds{AnswerMS: 60_000, StreamMS: 2000, SettleMS: 200, WaitMS: 2000, TestMS: 200_000}
	if edit != nil {
		edit(profile)
	}
	runner, err := New(Options{Profile: profile, Documents: documents, Protocols: []*acts.Protocol{protocol}})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	report, err := runner.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, result := range report.All() {
		text := string(result.Verdict)
		switch {
		case result.Failure != nil:
			text += ": " + result.Failure.Message
		case result.Reason != "":
			text += ": " + result.Reason
		}
		for _, reading := range result.Readings {
			text += " " + reading.ID
		}
		got[result.Test.ID] = varying.ReplaceAllString(text, "VARIES")
	}
	return got
}

// varying is the part of a text that is another one in each run.
var varying = regexp.MustCompile(`\{"jsonrpc".*|\["[0-9a-f-]{36}.*`)

// row is a test of one or more steps, and its verdict.
type row struct{ id, steps, want string }

func check(t *testing.T, edit func(*Profile), rows []row) {
	t.Helper()
	var tests strings.Builder
	want := make(map[string]string)
	for _, r := range rows {
		tests.WriteString("      - {id: " + r.id + ", level: must, steps: [" + r.steps + "]}\n")
		want[r.id] = r.want
	}
	if diff := cmp.Diff(want, verdictsOf(t, edit, tests.String())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnswers(t *testing.T) {
	check(t, nil, []row{
		{"body", `{id: x, operation: say, expect: {body: {a: 1, b: {c: 2}}}}`, "pass"},
		{"merge", `{id: x, operation: say, params: {answer: {a: "{{$absent}}", b: {d: 3}}}, expect:
			{body: {a: {absent: true}, b: {c: 2, d: 3}}}}`, "pass"},
		{"name", `{id: x, operation: say, params: {answer: {"{{name.thing}}": 7}}, expect: {body: {"{{name.thing}}": 7}}}`,
			"pass"},
		{"other-body", `{id: x, operation: say, expect: {body: {a: 2}}}`, "fail: a: want 2, got 1"},
		{"other-status", `{id: x, operation: say, expect: {status: 201}}`, "fail: HTTP status: want 201, got 200"},
		{"header", `{id: x, operation: say, expect: {headers: {content-type: {contains: json}}}}`, "pass"},
		{"envelope", `{id: x, operation: say, expect: {envelope: {jsonrpc: "2.0", id: {type: string}}}}`, "pass"},
		{"no-error", `{id: x, operation: say, expect_error: {code: -1}}`,
			"fail: error: want an error, got HTTP/1.1 200 OK, application/json\nVARIES"},
		{"error", `{id: x, operation: say, params: {answer: {code: -1}}, expect_error: {error: NotFound}}`, "pass"},
		{"other-error", `{id: x, operation: say, params: {answer: {code: -2}}, expect_error: {error: NotFound}}`,
			"fail: error.code: want -1 (NotFound), got -2"},
		{"unknown-error", `{id: x, operation: say, expect_error: {error: Nothing}}`,
			"error: step x: the protocol parrot has no error Nothing"},
		{"bare", `{id: x, operation: say, params: {answer: {code: -2}}}`,
			`fail: error: want no error, got {"a":1,"b":{"c":2},"code":-2}`},
		{"no-result", `{id: x, operation: say, envelope: {id: null, method: "{{$absent}}"}, params: {none: true}}`,
			"fail: result: want a value, got HTTP/1.1 200 OK, application/json\nVARIES"},
		{"any", `{id: x, operation: say, expect_any: [{expect: {body: {a: 2}}}, {expect: {body: {a: 1}}}]}`, "pass"},
		{"none-of-any", `{id: x, operation: say, expect_any: [{expect: {body: {a: 2}}}, {expect: {body: {a: 3}}}]}`,
			"fail: a: want (one of) 2, got 1; a: want (one of) 3, got 1"},
		{"lexical", `{id: x, operation: say, params: {answer: {n: [1]}}, lexical: [{path: "result.n[0]", matches: "^1$"}]}`,
			"pass"},
		{"open", `{id: x, operation: say, open: {question: "?", readings: [{id: one, expect: {body: {a: 1}}}]}}`,
			"open one"},
		{"another", `{id: x, operation: say, open: {question: "?", readings: [{id: one, expect: {body: {a: 2}}}]}},
			{id: y, operation: say, params: {answer: {a: "{{x.nothing}}"}}}`, "open another"},
		{"capture", `{id: x, operation: say, capture: {v: b.c, s: status}},
			{id: y, operation: say, params: {answer: {v: "{{x.v}}"}}, expect: {body: {v: 2}}}`, "pass"},
		{"no-capture", `{id: x, operation: say, params: {answer: 1}, capture: {v: b.c}}`,
			"fail: b.c: want a value, got HTTP/1.1 200 OK, application/json\nVARIES"},
		{"until", `{id: x, operation: say, repeat: {until: "a in [2, 3]", max_attempts: 2, delay_ms: 1}}`,
			"fail: want a in [2, 3], got it did not hold in 2 attempts"},
		{"assertion", `{id: x, operation: say},
			{id: y, assertion: {source: "{{x.response}}", any: {path: "b.c", match: 3}}}`,
			"fail: x.response.b.c: want any of the elements as 3, got [2]"},
		{"raw", `{id: x, raw: {method: POST, path: rpc, body_raw: "{{$repeat}}", repeat: {of: "[", times: 9}},
			expect: {status: 200}}`, "pass"},
		{"parallel", `{id: x, parallel: {count: 5, step: {operation: say, expect: {status: 200}},
			count_distinct: {path: a, equals: 1}}}`, "pass"},
		{"distinct", `{id: x, parallel: {count: 3, step: {operation: say, params: {answer: {u: "{{$uuid}}"}}},
			count_distinct: {path: u, equals: {gte: 4}}}}`, "fail: u: want different values: {\"gte\":4}, got VARIES"},
		{"handshake", `{id: x, operation: say, expect_handshake: accepted}`, "pass"},
		{"no-behavior", `{id: x, operation: say, params: {answer: "{{behavior.dance}}"}}`,
			"skip: there is no value for {{behavior.dance}}"},
		{"no-value", `{id: x, operation: say, params: {answer: "{{y.z}}"}}`,
			"error: step x: there is no value for {{y.z}}"},
		{"no-identity", `{id: x, operation: say, as: foreign}`, "skip: the profile has no identity foreign"},
		{"no-operation", `{id: x, operation: dance}`, "skip: parrot has no operation dance"},
		{"no-procedure", `{id: x, procedure: dance}`, "error: step x: this runner has no procedure dance"},
		{"variable", `{id: x, operation: say, params: {answer: {g: "{{greeting}}"}},
			expect: {body: {g: {starts_with: "hi s"}}}}`, "pass"},
	})
}
