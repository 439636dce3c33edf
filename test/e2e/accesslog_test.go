// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// loggedCall is the object aip of a line in an access log.
type loggedCall struct{ Dialect, Command, Leader, Task, State, Error string }

// accessLine is what the tests read of a line in an access log.
type accessLine struct {
	Logger  string
	Msg     string
	UserID  string `json:"user_id"`
	Status  int
	Method  string // of AUN
	Address string // likewise
	Seen    string // of log_append
	AIP     loggedCall
}

// accessLines returns the lines of an access log that ok accepts, as soon as there are n.
func accessLines(t *testing.T, file string, n int, ok func(accessLine) bool) (lines []accessLine) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d lines are in the access log", n), func() bool {
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
	_, agent := sampleAgent(t)
	s := newSite(t)
	file := filepath.Join(s.dir, "access.log")
	s.start(config{handle: "log {\n\t\toutput file " + file + "\n\t}\n\tlog_append seen {aip.error}\n\t" +
		"aip_gateway a2a/legacy http://" + agent + " {\n\t\tcallers aip a2a\n\t}"})
	l := leaderOf(t, s.url())
	for _, c := range []struct {
		name string
		call func()
		want loggedCall
		seen string
	}{
		{"a success", func() { l.start("t1", "hello") },
			loggedCall{"aip", "start", l.Sender, "t1", "awaiting-completion", ""}, ""},
		{"an error", func() { l.refused(commandCall(task.Get, "t0")) },
			loggedCall{"aip", "get", l.Sender, "t0", "", "task-not-found"}, "task-not-found"},
		{"no JSON", func() { l.post("", []byte(`{`)) },
			loggedCall{"aip", "unknown", "", "", "", "parse-error"}, "parse-error"},
		{"a batch", func() { l.post("", []byte(`[{}]`)) },
			loggedCall{"aip", "unknown", "", "", "", "invalid-request"}, "invalid-request"},
		{"a task id that is too long", func() { l.post("", rpcBody(l.Sender, "get", strings.Repeat("x", 300), "")) },
			loggedCall{"aip", "unknown", "", "", "", "invalid-params"}, "invalid-params"},
		{"another Leader", func() { l.post("", rpcBody("10001000011K94ZH3VDXLP4S5EB63614", "get", "t1", "")) },
			loggedCall{"aip", "get", "", "t1", "", "authorization-failed"}, "authorization-failed"},
		{"a stream", func() { l.post("/stream", streamBody(l.Sender, "start", "t2", "fail", "")) },
			loggedCall{"aip", "start", l.Sender, "t2", "failed", ""}, ""},
		{"A2A", func() {
			l.post("", []byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t1"}}`), "A2A-Version", "0.3")
		}, loggedCall{"a2a/0.3", "get", l.Sender, "t1", "awaiting-completion", ""}, ""},
		{"a card", func() { l.request("GET", "/.well-known/acs.json", nil) }, loggedCall{Command: "card"}, ""},
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
	_, agent := sampleAgent(t)
	s := newAUN(t)
	file := filepath.Join(s.dir, "access.log")
	c := s.config("a2a/legacy http://" + agent)
	c.otherSites = strings.Replace(c.otherSites, "\taip_aun", "\tlog {\n\t\toutput file "+file+"\n\t}\n\taip_aun", 1)
	s.start(c)
	const alice = "alice.aid.test"
	conn := s.online(alice)
	created := must(conn.Create(s.soon(), aunAgent, "hello"))(t)
	s.rests(conn, created.TaskID)
	if _, err := conn.Do(s.soon(), "task.get", aunTask("task_0")); err == nil {
		t.Fatal("there is a task that was not created")
	}
	if _, err := conn.Do(s.soon(), "task.no_such_method", aunTask(created.TaskID)); err == nil {
		t.Fatal("there is a method of no name")
	}
	for _, want := range []accessLine{
		{Method: "task.create", AIP: loggedCall{"aun", "start", "aid:" + alice, created.TaskID, "working", ""}},
		{Method: "task.get", AIP: loggedCall{"aun", "get", "aid:" + alice, created.TaskID, "completed", ""}},
		{Method: "task.get", AIP: loggedCall{"aun", "get", "aid:" + alice, "task_0", "", "task-not-found"}},
		{Method: "task.no_such_method", AIP: loggedCall{"aun", "", "aid:" + alice, "", "", "aun:-32601"}},
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
