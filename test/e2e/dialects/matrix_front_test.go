// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/tidwall/gjson"
)

// front is a dialect of callers: how its client drives a task.
type front struct {
	name string
	// done is the state in which a task is shown that its agent has finished.
	done   string
	driver func(t *testing.T, mount string) driver
	// begin and again are the requests, as bytes, by which a stream is begun, and taken up again behind an event.
	begin func(mount, id, text string) *http.Request
	again func(mount, id, last string) *http.Request
	// push is how a webhook is notified.
	push pushed
	slow bool // its programs are slow to start, so that they do no more than they must
	// asks is the state in which a question is shown; empty for the dialect's own state for that.
	asks string
	// lacks are operations that the dialect has no request for.
	lacks []string
	root  bool // its clients know no path
	// results says that a stream has the whole task wherever it settles.
	results bool
	// mute says that its SDK does not pass on whether a piece is added to the one before.
	mute bool
}

// driver is a caller at work on one mount point. A method whose request fails fails the test.
type driver interface {
	// send says something, to the task if it is not empty, and returns what is answered when the task rests.
	send(text, task string) view
	// stream does so by a stream, up to the stream's end, for which AIP's Leaders say complete.
	stream(text string) []view
	// start begins a task without waiting for it, and returns its id once it is at work. wait returns the state in
	// which the task ends.
	start(text string) (id string, wait func() string)
	get(id string) view
	cancel(id string) view
	// finish ends a task that its agent has finished, where the dialect has a word for it.
	finish(id string) view
	// hooked says something with a webhook registered for the task.
	hooked(text, url, token string) view
}

// fronts are those of the matrix.
func fronts() []front {
	return []front{
		{name: "aip", done: "awaiting-completion", driver: newLeader, begin: aipBegin, again: aipAgain, push: aipPush},
		{name: "aun", done: "completed", driver: newAUNDriver, lacks: []string{"cut", "push"}}, // TestAUNCrash cuts
		{name: "agentapi", done: "completed", driver: newAgentAPI, asks: "completed", lacks: []string{"cut", "push"}},
		{name: "aip-2", done: "awaiting-completion", driver: newLeaderV2, begin: aip2Begin, again: aip2Again, push: aip2Push,
			results: true},
		{
			name:   "legacy-trpc",
			done:   "completed",
			driver: sdkDriver(false, "legacy-trpc-client"),
			begin:  legacyBegin,
			again:  legacyAgain,
			push:   legacyPush,
		},
		{
			name:   "go-03",
			done:   "completed",
			driver: sdkDriver(true, "a2a-go-03", "client"),
			begin:  v03Begin,
			again:  v03Again,
			push:   v03Push,
		},
		{
			name:   "go-10",
			done:   "completed",
			driver: sdkDriver(true, "a2a-go-10", "client"),
			begin:  v1Begin,
			again:  v1Again,
			push:   v1Push,
		},
		{
			name:   "rest-10",
			done:   "completed",
			driver: sdkDriver(true, "a2a-go-10", "client", "-rest"),
			begin:  restBegin,
			again:  restAgain,
			push:   v1Push,
		},
		{
			name:   "grpc-10",
			done:   "completed",
			driver: sdkDriver(true, "a2a-go-10", "client", "-grpc"),
			push:   v1Push,
			root:   true,
			lacks:  []string{"cut"}, // its events have no numbers: TestGRPCCrash
		},
		{
			name:   "rest-03",
			done:   "completed",
			driver: sdkDriver(true, "a2a-go-10", "client", "-compat", "-rest"),
			begin:  rest03Begin,
			again:  rest03Again,
			push:   v03Push,
		},
		{name: "js-03", done: "completed", driver: sdkDriver(true, "node", "js-03/client.mjs"), slow: true},
		{
			name:   "js-03-rest",
			done:   "completed",
			driver: sdkDriver(true, "node", "js-03/client.mjs", "-rest"),
			slow:   true,
			mute:   true,
		},
		{name: "js-10", done: "completed", driver: sdkDriver(true, "node", "js-10/client.mjs"), slow: true},
		{name: "js-10-rest", done: "completed", driver: sdkDriver(true, "node", "js-10/client.mjs", "-rest"), slow: true},
		{
			name:   "js-10-grpc",
			done:   "completed",
			driver: sdkDriver(true, "node", "js-10/client.mjs", "-grpc"),
			slow:   true,
			root:   true,
		},
	}
}

// sdk is a client on another project's SDK: each thing that it does is one run of a program.
type sdk struct {
	t     *testing.T
	path  string
	args  []string
	async bool // it can send without waiting
}

func sdkDriver(async bool, words ...string) func(t *testing.T, mount string) driver {
	return func(t *testing.T, mount string) driver { return newSDK(t, mount, async, words...) }
}

func newSDK(t *testing.T, mount string, async bool, words ...string) *sdk {
	t.Helper()
	path, args := site.SDKCommand(t, words...)
	if path == "node" {
		mount += "/" // the SDKs in JavaScript look for the card beside the URL, not below it
	}
	return &sdk{t, path, append(args[:len(args):len(args)], "-url", mount, "-timeout", "100"), async}
}

// try runs the client to its end, and returns what it printed, or its error output.
func (s *sdk) try(args ...string) (events []view, failure string) {
	s.t.Helper()
	status, stdout, stderr := site.RunProcess(
		s.t,
		s.t.TempDir(),
		nil,
		s.path,
		append(s.args[:len(s.args):len(s.args)], args...)...)
	for line := range strings.Lines(stdout) {
		events = append(events, viewOfSDK(line))
	}
	if status != 0 && stderr == "" {
		stderr = fmt.Sprintf("status %d, without a word", status)
	}
	if status == 0 {
		return events, ""
	}
	return events, stderr
}

// viewOfSDK reads a line that a client printed.
func viewOfSDK(line string) view {
	v := gjson.Parse(line)
	t := viewOf(v)
	switch v.Get("kind").Str { // which the SDK knows
	case "status-update":
		t.Kind, t.all = "status", false
	case "task":
		t.Kind, t.all = "task", true
	case "card", "tasks", "push-config":
		t = view{Kind: v.Get("kind").Str}
	}
	return t
}

// one runs the client, which must print one line.
func (s *sdk) one(args ...string) view {
	s.t.Helper()
	events, failure := s.try(args...)
	if failure != "" || len(events) != 1 {
		s.t.Fatalf("%q printed %+v, and said: %s", args, events, failure)
	}
	return events[0]
}

func (s *sdk) send(text, task string) view {
	s.t.Helper()
	if task == "" {
		return s.one("send", text)
	}
	return s.one("send", text, "-task", task)
}

func (s *sdk) get(id string) view { s.t.Helper(); return s.one("get", id) }

func (s *sdk) cancel(id string) view { s.t.Helper(); return s.one("cancel", id) }

func (s *sdk) finish(string) view { return view{State: "completed"} }

func (s *sdk) stream(text string) []view {
	s.t.Helper()
	events, failure := s.try("stream", text)
	if failure != "" {
		s.t.Fatalf("the stream showed %+v, and ended with: %s", events, failure)
	}
	return events
}

// start sends without waiting where the client can, and follows by a stream where it cannot.
func (s *sdk) start(text string) (id string, wait func() string) {
	s.t.Helper()
	if s.async {
		id = s.one("send", text, "-async").ID
		var now view
		site.Eventually(s.t, "the task is at work", func() bool {
			now = s.get(id)
			return now.State == "working" || site.RestsIn(now.State)
		})
		return id, func() string {
			site.Eventually(s.t, "the task ends", func() bool { now = s.get(id); return site.RestsIn(now.State) })
			return now.State
		}
	}
	p := site.StartProcess(s.t, s.t.TempDir(), nil, s.path, append(s.args[:len(s.args):len(s.args)], "stream", text)...)
	last := func() (t view) {
		for line := range strings.Lines(p.Out.String()) {
			if strings.HasSuffix(line, "\n") && gjson.Valid(line) {
				if next := viewOfSDK(line); next.State != "" {
					t = next
				}
			}
		}
		return t
	}
	site.Eventually(s.t, "the task is at work", func() bool { return last().State != "" && last().State != "submitted" })
	return last().ID, func() string {
		<-p.Ended
		if p.Err != nil {
			s.t.Errorf("the stream ended with %v: %s", p.Err, p.Out.String())
		}
		return last().State
	}
}

// hooked registers the webhook while the task waits, because only some of the SDKs can do so when they send.
func (s *sdk) hooked(_, url, token string) view {
	s.t.Helper()
	ask := s.send("ask", "")
	if set := s.one("push-set", ask.ID, url, token); set.Kind != "push-config" {
		s.t.Errorf("push-set printed %+v", set)
	}
	return s.send("blue", ask.ID)
}

// rpc is the body of a JSON-RPC request.
func rpc(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`, method, params)
}

func legacyBegin(mount, id, text string) *http.Request {
	return site.JSONRequest(
		"POST",
		mount,
		rpc(
			"tasks/sendSubscribe",
			fmt.Sprintf(`{"id":%q,"message":{"role":"user","parts":[{"type":"text","text":%q}]}}`, id, text),
		),
	)
}

func legacyAgain(mount, id, last string) *http.Request {
	return site.JSONRequest("POST", mount, rpc("tasks/resubscribe", fmt.Sprintf(`{"id":%q}`, id)), "Last-Event-ID", last)
}

func v03Begin(mount, id, text string) *http.Request {
	return site.JSONRequest(
		"POST",
		mount,
		rpc(
			"message/stream",
			fmt.Sprintf(
				`{"message":{"kind":"message","messageId":%q,"role":"user","parts":[{"kind":"text","text":%q}]}}`,
				id,
				text,
			),
		),
	)
}

func v03Again(mount, id, last string) *http.Request {
	return site.JSONRequest("POST", mount, rpc("tasks/resubscribe", fmt.Sprintf(`{"id":%q}`, id)), "Last-Event-ID", last)
}

func v1Message(id, text string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]}}`, id, text)
}

func v1Begin(mount, id, text string) *http.Request {
	return site.JSONRequest("POST", mount, rpc("SendStreamingMessage", v1Message(id, text)), "A2A-Version", "1.0")
}

func v1Again(mount, id, last string) *http.Request {
	return site.JSONRequest(
		"POST",
		mount,
		rpc("SubscribeToTask", fmt.Sprintf(`{"id":%q}`, id)),
		"A2A-Version",
		"1.0",
		"Last-Event-ID",
		last,
	)
}

func restBegin(mount, id, text string) *http.Request {
	return site.JSONRequest("POST", mount+"/message:stream", v1Message(id, text), "A2A-Version", "1.0")
}

func restAgain(mount, id, last string) *http.Request {
	return site.JSONRequest("GET", mount+"/tasks/"+id+":subscribe", "", "A2A-Version", "1.0", "Last-Event-ID", last)
}

func rest03Begin(mount, id, text string) *http.Request {
	return site.JSONRequest(
		"POST",
		mount+"/v1/message:stream",
		fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","content":[{"text":%q}]}}`, id, text),
	)
}

func rest03Again(mount, id, last string) *http.Request {
	return site.JSONRequest("GET", mount+"/v1/tasks/"+id+":subscribe", "", "Last-Event-ID", last)
}

// wireStream is a stream as it comes over the wire.
type wireStream struct {
	res   *http.Response
	lines *bufio.Scanner
}

// openStream sends a request that must be answered by a stream. Closing it cuts the connection.
func openStream(t *testing.T, req *http.Request) *wireStream {
	t.Helper()
	// A connection of its own, which closing the body closes.
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req.WithContext(site.Within(t, site.Patience)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if got := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || got != "text/event-stream" {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
		t.Fatalf("a stream is answered with %s, %s: %s", res.Status, got, body)
	}
	s := &wireStream{res, bufio.NewScanner(res.Body)}
	s.lines.Buffer(nil, 4<<20)
	return s
}

// next returns the next event and its id. ok is false at the end of the stream.
func (s *wireStream) next(t *testing.T) (id string, event view, ok bool) {
	t.Helper()
	data := ""
	for s.lines.Scan() {
		name, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data += value
		case name == "" && value == "" && data != "":
			event = viewOf(gjson.Parse(data))
			if event.Kind == "error" {
				t.Fatalf("the stream has an error: %s", data)
			}
			return id, event, true
		}
	}
	if err := s.lines.Err(); err != nil {
		t.Fatalf("the stream breaks: %v", err)
	}
	return "", view{}, false
}

func (s *wireStream) close() { s.res.Body.Close() }
