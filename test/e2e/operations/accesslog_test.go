// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// accessLine is what the tests read of a line in an access log.
type accessLine struct {
	Logger  string
	Msg     string
	UserID  string `json:"user_id"`
	Status  int
	Method  string // of AUN
	Address string // likewise
	Seen    string // of log_append
	AIP     site.LoggedCall
}

// accessLines returns the lines of an access log that ok accepts, as soon as there are n.
func accessLines(t *testing.T, file string, n int, ok func(accessLine) bool) (lines []accessLine) {
	t.Helper()
	site.Eventually(t, fmt.Sprintf("%d lines are in the access log", n), func() bool {
		lines = nil
		content, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		for text := range strings.Lines(string(content)) {
			var line accessLine
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				return false // it is being written
			}
			if ok(line) {
				lines = append(lines, line)
			}
		}
		return len(lines) >= n
	})
	return lines
}

// TestAccessLog makes calls of every kind, and reads what Caddy's access log says about them. Every one of them is
// answered with status 200.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	file := filepath.Join(s.Dir, "access.log")
	s.Start(site.Config{Handle: "log {\n\t\toutput file " + file + "\n\t}\n\tlog_append seen {aip.error}\n\t" +
		"aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers aip a2a\n\t}"})
	l := site.LeaderOf(t, s.URL())
	for _, c := range []struct {
		name string
		call func()
		want site.LoggedCall
		seen string
	}{
		{"a success", func() { l.Start("t1", "hello") },
			site.LoggedCall{Dialect: "aip", Command: "start", Leader: l.Sender, Task: "t1", State: "awaiting-completion"}, ""},
		{"an error", func() { l.Refused(site.CommandCall(task.Get, "t0")) },
			site.LoggedCall{Dialect: "aip", Command: "get", Leader: l.Sender, Task: "t0", Error: "task-not-found"},
			"task-not-found"},
		{"no JSON", func() { l.Post("", []byte(`{`)) },
			site.LoggedCall{Dialect: "aip", Command: "unknown", Error: "parse-error"}, "parse-error"},
		{"a batch", func() { l.Post("", []byte(`[{}]`)) },
			site.LoggedCall{Dialect: "aip", Command: "unknown", Error: "invalid-request"}, "invalid-request"},
		{"a task id that is too long", func() { l.Post("", site.RPCBody(l.Sender, "get", strings.Repeat("x", 300), "")) },
			site.LoggedCall{Dialect: "aip", Command: "unknown", Error: "invalid-params"}, "invalid-params"},
		{"another Leader", func() { l.Post("", site.RPCBody("10001000011K94ZH3VDXLP4S5EB63614", "get", "t1", "")) },
			site.LoggedCall{Dialect: "aip", Command: "get", Task: "t1", Error: "authorization-failed"}, "authorization-failed"},
		{"a stream", func() { l.Post("/stream", site.StreamBody(l.Sender, "start", "t2", "fail", "")) },
			site.LoggedCall{Dialect: "aip", Command: "start", Leader: l.Sender, Task: "t2", State: "failed"}, ""},
		{"A2A", func() {
			l.Post("", []byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t1"}}`), "A2A-Version", "0.3")
		}, site.LoggedCall{Dialect: "a2a/0.3", Command: "get", Leader: l.Sender, Task: "t1", State: "awaiting-completion"},
			""},
		{"a card", func() { l.Exchange("GET", "/.well-known/acs.json", nil) }, site.LoggedCall{Command: "card"}, ""},
	} {
		before := len(accessLines(t, file, 0, func(accessLine) bool { return true }))
		c.call()
		got := accessLines(t, file, before+1, func(accessLine) bool { return true })[before]
		want := accessLine{Logger: "http.log.access.log0", Msg: "handled request", UserID: l.Sender, Status: 200, AIP: c.want,
			Seen: c.seen}
		if c.want.Command == "card" { // who fetches it does not matter
			want.UserID = ""
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestAccessLogOfAUN reads what the access log says about calls over a WebSocket, which for Caddy are one request.
func TestAccessLogOfAUN(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.NewAUN(t)
	file := filepath.Join(s.Dir, "access.log")
	c := s.Config("a2a/legacy http://" + agent)
	c.OtherSites = strings.Replace(c.OtherSites, "\taip_aun", "\tlog {\n\t\toutput file "+file+"\n\t}\n\taip_aun", 1)
	s.Start(c)
	const alice = "alice.aid.test"
	conn := s.Online(alice)
	created := site.Must(conn.Create(s.Soon(), site.AUNAgent, "hello"))(t)
	s.Rests(conn, created.TaskID)
	if _, err := conn.Do(s.Soon(), "task.get", site.AUNTask("task_0")); err == nil {
		t.Fatal("there is a task that was not created")
	}
	if _, err := conn.Do(s.Soon(), "task.no_such_method", site.AUNTask(created.TaskID)); err == nil {
		t.Fatal("there is a method of no name")
	}
	for _, want := range []accessLine{
		{Method: "task.create", AIP: site.LoggedCall{Dialect: "aun", Command: "start", Leader: "aid:" + alice,
			Task: created.TaskID, State: "working"}},
		{Method: "task.get", AIP: site.LoggedCall{Dialect: "aun", Command: "get", Leader: "aid:" + alice,
			Task: created.TaskID, State: "completed"}},
		{Method: "task.get", AIP: site.LoggedCall{Dialect: "aun", Command: "get", Leader: "aid:" + alice, Task: "task_0",
			Error: "task-not-found"}},
		{Method: "task.no_such_method", AIP: site.LoggedCall{Dialect: "aun", Leader: "aid:" + alice, Error: "aun:-32601"}},
	} {
		// A line comes after the answer, and so maybe after that of a later call: a get is answered without a state at first.
		got := accessLines(t, file, 1, func(l accessLine) bool {
			return l.Method == want.Method && l.AIP.Error == want.AIP.Error &&
				(l.AIP.State == want.AIP.State || want.Method == "task.create")
		})[0]
		want.Logger, want.Msg, want.UserID = "http.log.access.log0", "a call was answered", alice
		if !strings.HasPrefix(got.Address, "127.0.0.1:") {
			t.Errorf("%s: the address is %q", want.Method, got.Address)
		}
		got.Address = ""
		if want.Method == "task.create" { // the agent may be fast
			got.AIP.State = "working"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.Method, diff)
		}
	}
}
