// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// under makes a gateway decide by a policy.
func under(t testing.TB, c policy.Config) func(*setup) {
	return func(s *setup) { by(t, c, openBook(t))(s) }
}

// openBook returns a book in memory for the counts of quotas.
func openBook(t testing.TB) *policy.Book {
	store := replay.NewMemory(replay.Settings{})
	book := policy.OpenBook(shard.One(store), time.Now, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		book.Close()
		_ = store.Close()
	})
	return book
}

// by is under with the book of the quotas.
func by(t testing.TB, c policy.Config, book *policy.Book) func(*setup) {
	return func(s *setup) {
		c.Names = policy.Names{Commands: gateway.Commands(), Dialects: gateway.CallerDialects()}
		c.Meter, c.Log, c.Partner = new(policy.Meter), s.Log, s.Partner.Name
		p, err := policy.New(c)
		if err != nil {
			t.Fatal(err)
		}
		p.Open(book)
		s.Policy = p
	}
}

// onlyStarts are rules allowing nothing but a start.
var onlyStarts = policy.Config{Rules: []policy.Rule{
	{Name: "starters", Match: policy.Match{Command: []string{"start"}}},
}}

// TestDeniedCalls: a call beyond the rules is refused in the form of each dialect, before it is looked up, and neither
// the agent nor a caller learns anything of it. The log has the rule.
func TestDeniedCalls(t *testing.T) {
	g := open(t, everyCaller, under(t, onlyStarts))
	_, body := g.post("/agents/one/rpc", message("rpc", "start", "t1", "hello"))
	if !strings.Contains(body, `"awaiting-completion"`) {
		t.Fatalf("a start: %s", body)
	}
	asked := g.requests.Load()
	call := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	}
	for name, tc := range map[string]struct {
		path, body string
		status     int
		says       string
	}{
		"AIP, a task":         {"/rpc", message("rpc", "get", "t1", ""), 200, `"code":-32009`},
		"AIP, no task":        {"/rpc", message("rpc", "get", "t2", ""), 200, `"code":-32009`},
		"AIP, a cancel":       {"/rpc", message("rpc", "cancel", "t2", ""), 200, `"code":-32009`},
		"AIP, a re-stream":    {"/stream", message("stream", "re-stream", "t2", ""), 200, `"code":-32009`},
		"A2A 1.0":             {"", call("GetTask", `{"id":"t2"}`), 200, `"code":-32052`},
		"A2A 1.0, webhooks":   {"", call("ListTaskPushNotificationConfigs", `{"taskId":"t2"}`), 200, `"code":-32052`},
		"A2A 1.0, a list":     {"", call("ListTasks", `{}`), 200, `"code":-32052`},
		"A2A 0.3":             {"", call("tasks/get", `{"id":"t2"}`), 403, "Authorization failed"},
		"A2A 0.3, subscribes": {"", call("tasks/resubscribe", `{"id":"t2"}`), 403, "Authorization failed"},
	} {
		res, body := g.post("/agents/one"+tc.path, tc.body)
		if res.StatusCode != tc.status || !strings.Contains(body, tc.says) || strings.Contains(body, "rule") ||
			strings.Contains(strings.ToLower(body), "polic") {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	res, body := g.request("GET", "/agents/one/tasks/t2", "", "", "")
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("A2A 1.0, REST: %d %s", res.StatusCode, body)
	}
	if n := g.requests.Load(); n != asked {
		t.Errorf("the agent was asked %d times", n-asked)
	}
	if log := g.log.String(); !strings.Contains(log, policy.NoRule) {
		t.Errorf("the log does not have the rule:\n%s", log)
	}
}

// TestWebhookInAStart: a webhook beside a message is a set-webhook for the policy, in each dialect having it, and a
// decision point learns the task of a question for webhooks.
//
// Promise: a Leader does what it is not meant to do
func TestWebhookInAStart(t *testing.T) {
	var asked []string
	g := open(t, everyCaller, under(t, policy.Config{
		Rules: []policy.Rule{{Name: "hooks", Deny: true, Match: policy.Match{Command: []string{"set-webhook"}}}, {}},
		Further: func(_ context.Context, c *policy.Call) error {
			asked = append(asked, c.Command+" "+c.Task)
			return nil
		},
	}))
	const hook = `{"url":"https://hooks.example.com/x"}`
	v03 := func(config string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","messageId":"m` +
			`","role":"user","parts":[{"kind":"text","text":"hello"}]},"configuration":{` + config + `}}}`
	}
	for name, tc := range map[string]struct {
		body, says string
		asked      []string
	}{
		"A2A 0.3": {v03(`"pushNotificationConfig":` + hook), "Authorization failed", nil},
		"A2A 1.0": {`{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m",` +
			`"role":"ROLE_USER","parts":[{"text":"hello"}]},"configuration":{"taskPushNotificationConfig":` + hook + `}}}`,
			"-32052", nil},
		"A2A legacy": {`{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":"t9","message":{"role":"user",` +
			`"parts":[{"type":"text","text":"hello"}]},"pushNotification":` + hook + `}}`, "Authorization failed", nil},
		"by itself": {`{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/set","params":{"taskId":"t2",` +
			`"pushNotificationConfig":` + hook + `}}`, "Authorization failed", nil},
		"none": {v03(""), `"completed"`, []string{"start "}},
		"those of a task": {`{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/list","params":{"id":"t2"}}`,
			"-32001", []string{"get-webhooks t2"}},
	} {
		asked = nil
		if _, body := g.post("/agents/one", tc.body); !strings.Contains(body, tc.says) {
			t.Errorf("%s: %s, want %s", name, body, tc.says)
		}
		if diff := cmp.Diff(tc.asked, asked); diff != "" {
			t.Errorf("%s: the decision point was asked (-want +got):\n%s", name, diff)
		}
	}
}

// TestStartThatContinues: if a dialect has one call for both, it starts a task, but continues none for a Leader without
// the right to, and a decision point learns the task it may continue.
//
// Promise: a Leader does what it is not meant to do
func TestStartThatContinues(t *testing.T) {
	var asked []string
	further := func(_ context.Context, c *policy.Call) error {
		asked = append(asked, c.Command+" "+c.Task)
		return nil
	}
	send := func(id, text string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/send","params":{"id":%q,"message":{"role":"user",`+
			`"parts":[{"type":"text","text":%q}]}}}`, id, text)
	}
	for name, quotas := range map[string][]policy.Quota{
		"no quotas": nil, "a quota": {{Name: "q", Starts: 100, Tasks: 100}},
	} {
		c := onlyStarts
		c.Further, c.Quotas = further, quotas
		g := open(t, everyCaller, under(t, c))
		for _, call := range []struct{ id, text, says string }{
			{"t1", "ask", `"input-required"`}, {"t1", "more", "Authorization failed"}, {"t2", "hello", `"completed"`},
		} {
			asked = nil
			if _, body := g.post("/agents/one", send(call.id, call.text)); !strings.Contains(body, call.says) {
				t.Errorf("%s: %s of %s: %s, want %s", name, call.text, call.id, body, call.says)
			}
			if diff := cmp.Diff([]string{"start " + call.id}, asked); diff != "" {
				t.Errorf("%s: the decision point was asked (-want +got):\n%s", name, diff)
			}
		}
	}
}

// TestQuotaOfStarts: a start beyond the quota is refused with everything needed for coming back; the same start again
// is answered, and so are calls other than starts.
func TestQuotaOfStarts(t *testing.T) {
	g := open(t, everyCaller, under(t, policy.Config{Quotas: []policy.Quota{{Name: "gold", Starts: 2}}}))
	start := func(id string) (*http.Response, string) {
		return g.post("/agents/one/rpc", message("rpc", "start", id, "hello"))
	}
	for _, id := range []string{"t1", "t2", "t1", "t2"} {
		if _, body := start(id); !strings.Contains(body, `"awaiting-completion"`) {
			t.Errorf("%s: %s", id, body)
		}
	}
	res, body := start("t3")
	if res.StatusCode != http.StatusOK || !strings.Contains(body, `"code":-32050`) ||
		!strings.Contains(body, `"limit":"gold.starts","max":2,"retryAfter":`) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	for _, command := range []string{"get", "complete"} {
		if _, body := g.post("/agents/one/rpc", message("rpc", command, "t1", "")); strings.Contains(body, `"error"`) {
			t.Errorf("%s: %s", command, body)
		}
	}
	if _, body := start("t1"); strings.Contains(body, `"error"`) {
		t.Errorf("the same start again: %s", body)
	}
	if _, body := g.post("/agents/one/rpc", message("rpc", "get", "t3", "")); !strings.Contains(body, "-32001") {
		t.Errorf("the task that was not started: %s", body)
	}
	other := strings.Replace(message("rpc", "start", "t4", "hello"), `"senderId":"leader"`, `"senderId":"other"`, 1)
	if _, body := g.post("/agents/one/rpc", other); strings.Contains(body, `"error"`) {
		t.Errorf("another Leader: %s", body)
	}
}

// TestAFailedStartIsNone: a start refused for another reason leaves its place to the next one, and a stored one has it,
// although its agent fails.
func TestAFailedStartIsNone(t *testing.T) {
	g := open(t, func(h *setup) { h.Partner.MaxTasks = 1 },
		under(t, policy.Config{Quotas: []policy.Quota{{Name: "q", Starts: 3}}}))
	rpc := func(command, id, text string) string {
		_, body := g.post("/agents/one/rpc", message("rpc", command, id, text))
		return body
	}
	rpc("start", "t1", "hello")
	for range 5 {
		if body := rpc("start", "t2", "hello"); !strings.Contains(body, "tasks_per_leader") {
			t.Fatalf("%s", body)
		}
	}
	rpc("complete", "t1", "")
	if body := rpc("start", "t3", "fail now"); !strings.Contains(body, `"failed"`) {
		t.Errorf("%s", body)
	}
	rpc("start", "t4", "hello")
	rpc("complete", "t4", "")
	if body := rpc("start", "t5", "hello"); !strings.Contains(body, "q.starts") {
		t.Errorf("a fourth start: %s", body)
	}
}

// TestQuotaOfTasks: no more tasks are unfinished than the quotas allow, of a Leader and of all, also if many are
// started at once.
func TestQuotaOfTasks(t *testing.T) {
	g := open(t, under(t, policy.Config{Quotas: []policy.Quota{
		{Name: "each", Tasks: 3}, {Name: "all", Tasks: 5, Of: policy.OfAgent},
	}}))
	var mu sync.Mutex
	got := make(map[string]int)
	start := func(leader, id string) {
		_, body := g.post("/agents/one/rpc", strings.Replace(message("rpc", "start", id, "hello"),
			`"senderId":"leader"`, fmt.Sprintf(`"senderId":%q`, leader), 1))
		mu.Lock()
		defer mu.Unlock()
		for _, limit := range []string{"each.tasks", "all.tasks"} {
			if strings.Contains(body, `"limit":"`+limit+`"`) && strings.Contains(body, `"retryAfter":10`) {
				got[limit]++
				return
			}
		}
		if strings.Contains(body, `"error"`) {
			t.Errorf("%s", body)
		}
		got["ok"]++
	}
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() { start("a", fmt.Sprint("t", i)) })
	}
	wg.Wait()
	for i := range 5 {
		start("b", fmt.Sprint("t", i))
	}
	if got["ok"] != 5 || got["each.tasks"] != 7 || got["all.tasks"] != 3 {
		t.Errorf("got %v", got)
	}
}

// TestTriedQuotaOfTasks: in a dry run, tasks beyond the quota are started and counted.
func TestTriedQuotaOfTasks(t *testing.T) {
	g := open(t, under(t, policy.Config{Quotas: []policy.Quota{{Name: "q", Tasks: 2, DryRun: true}}}))
	for i := range 5 {
		_, body := g.post("/agents/one/rpc", message("rpc", "start", fmt.Sprint("t", i), "hello"))
		if strings.Contains(body, `"error"`) {
			t.Errorf("%s", body)
		}
	}
	if n := strings.Count(g.log.String(), "a quota that is tried would refuse a call"); n != 3 {
		t.Errorf("%d lines in the log", n)
	}
}

// TestQuotaOfStreams: no more streams are open than the quota allows, and an ended stream leaves its place.
func TestQuotaOfStreams(t *testing.T) { eachWay(t, quotaOfStreams) }

func quotaOfStreams(t *testing.T, way func(*setup)) {
	g := open(t, way, under(t, policy.Config{Quotas: []policy.Quota{{Name: "q", Streams: 1}}}))
	res, next := g.openStream(t.Context(), message("stream", "start", "t1", "hello"))
	until(t, next, "awaiting-completion")
	_, body := g.post("/agents/one/stream", message("stream", "start", "t2", "hello"))
	if !strings.Contains(body, `"limit":"q.streams","max":1,"retryAfter":10`) {
		t.Errorf("%s", body)
	}
	if _, body := g.post("/agents/one/rpc", message("rpc", "get", "t2", "")); !strings.Contains(body, "-32001") {
		t.Errorf("the task of a stream that was refused: %s", body)
	}
	_ = res.Body.Close()
	asynctest.Eventually(t, "no stream is open", func() bool { return g.streams() == 0 })
	res, next = g.openStream(t.Context(), message("stream", "re-stream", "t1", ""))
	until(t, next, "awaiting-completion")
	_ = res.Body.Close()
}

// TestQuotaOfBytes: an admitted call is answered, the next one is refused, and a stream ends with the error.
func TestQuotaOfBytes(t *testing.T) {
	g := open(t, under(t, policy.Config{Quotas: []policy.Quota{{Name: "q", Bytes: 1500}}}))
	text := strings.Repeat("x", 1000)
	if _, body := g.post("/agents/one/rpc", message("rpc", "start", "t1", text)); strings.Contains(body, `"error"`) {
		t.Errorf("%s", body)
	}
	_, body := g.post("/agents/one/rpc", message("rpc", "get", "t1", ""))
	if !strings.Contains(body, `"limit":"q.bytes","max":1500,"retryAfter":`) {
		t.Errorf("%s", body)
	}
	h := open(t, under(t, policy.Config{Quotas: []policy.Quota{{Name: "q", Bytes: 2500}}}))
	_, body = h.post("/agents/one/stream", message("stream", "start", "t1", text))
	if !strings.Contains(body, "data: ") || !strings.Contains(body, `"limit":"q.bytes"`) {
		t.Errorf("%s", body)
	}
}

// TestBytesOfStreams: all bytes of a stream count, those of a whole task and of the last frame, too.
func TestBytesOfStreams(t *testing.T) {
	book := openBook(t)
	g := open(t, everyCaller, by(t, policy.Config{Quotas: []policy.Quota{{Name: "q", Bytes: 1 << 30}}}, book))
	counted := func() (n int64) {
		page, _, err := book.Uses(t.Context(), policy.UseFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, used := range page {
			n += used.Bytes
		}
		return n
	}
	_, body := g.post("/agents/one/message:send",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`)
	id := gjson.Get(body, "task.id").Str
	subscribe := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tasks/resubscribe","params":{"id":%q}}`, id)
	for name, after := range map[string]string{"a whole task": "", "events": "1"} {
		before := counted()
		_, body := g.request("POST", "/agents/one", "Last-Event-Id", after, subscribe)
		if n := counted() - before; n != int64(len(body)) || n == 0 {
			t.Errorf("%s: %d bytes were counted of the %d of %s", name, n, len(body), body)
		}
	}
}

// TestRetryAfter: if the dialect has statuses, a quota is answered with 429 and Retry-After, or with RetryInfo.
func TestRetryAfter(t *testing.T) {
	quota := policy.Config{Quotas: []policy.Quota{{Name: "q", Calls: policy.Rate{N: 1, Per: time.Hour, Burst: 1}}}}
	const send = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`
	g := open(t, everyCaller, under(t, quota))
	begun := time.Now()
	inAnHour := func(wait time.Duration) bool { return wait <= time.Hour && wait >= time.Hour-time.Since(begun) }
	g.post("/agents/one/message:send", send)
	res, body := g.post("/agents/one/message:send", send)
	after := res.Header.Get("Retry-After")
	seconds, err := strconv.Atoi(after)
	if res.StatusCode != http.StatusTooManyRequests || err != nil || !inAnHour(time.Duration(seconds)*time.Second) ||
		!strings.Contains(body, fmt.Sprintf(`"limit":"q.calls","max":"1","retryAfter":%q`, after)) {
		t.Errorf("REST: %d, Retry-After %q, %s", res.StatusCode, after, body)
	}
	h := open(t, overGRPC, under(t, quota))
	client := h.grpcClient()
	begun = time.Now()
	if _, err := client.SendMessage(t.Context(), says("hello")); err != nil {
		t.Fatal(err)
	}
	_, err = client.GetTask(t.Context(), &a2apb.GetTaskRequest{Id: "x"})
	var delay time.Duration
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			delay = info.RetryDelay.AsDuration()
		}
	}
	if status.Code(err) != codes.ResourceExhausted || !inAnHour(delay) {
		t.Errorf("gRPC: %v after %v", err, delay)
	}
	d := open(t, overGRPC, under(t, onlyStarts))
	_, err = d.grpcClient().GetTask(t.Context(), &a2apb.GetTaskRequest{Id: "x"})
	if status.Code(err) != codes.PermissionDenied {
		t.Errorf("gRPC, denied: %v", err)
	}
}
