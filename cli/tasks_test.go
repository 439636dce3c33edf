// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// answeringAdmin is an admin API giving answers one after the other. It returns its address, and the requests to it.
func answeringAdmin(t *testing.T, answers ...any) (address string, asked func() []string) {
	t.Helper()
	var requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Method+" "+r.URL.RequestURI())
		if n := len(requests); n > len(answers) {
			t.Errorf("more requests than answers: %q", requests)
		} else if err := json.NewEncoder(w).Encode(answers[n-1]); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), func() []string { return requests }
}

// taskAt returns a task as the admin API lists it.
func taskAt(id string) adminapi.Task {
	return adminapi.Task{TaskName: adminapi.TaskName{Partner: "P", Leader: "L", Task: id}, Session: "s",
		State: task.Working, Since: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), First: 1, Last: 3, Bytes: 2048}
}

// TestListTasks checks the requests of caddy aip tasks list to the admin API, and its output, over several pages.
func TestListTasks(t *testing.T) {
	pages := []any{
		adminapi.TaskPage{Tasks: []adminapi.Task{taskAt("one\x1b[31m")}, Next: "abc"},
		adminapi.TaskPage{Tasks: []adminapi.Task{}, Next: "def"},
		adminapi.TaskPage{Tasks: []adminapi.Task{taskAt("two")}, Next: "ghi"},
	}
	address, asked := answeringAdmin(t, pages...)
	got := runAIP(t, "tasks", "list", "--leader", "L", "--state", "working", "--state", "pending", "--min-age", "1h",
		"--limit", "2", "--address", address)
	if diff := cmp.Diff(commandResult{Stdout: "" +
		"TASK      STATE    SINCE                      EVENTS  SIZE     LEADER  AGENT  REASON\n" +
		"one�[31m  working  2026-11-22T18:00:00+08:00  3       2.0 KiB  L       P      -\n" +
		"two       working  2026-11-22T18:00:00+08:00  3       2.0 KiB  L       P      -\n"}, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"GET /aip/tasks?leader=L&limit=2&min_age=1h&state=working&state=pending",
		"GET /aip/tasks?after=abc&leader=L&limit=1&min_age=1h&state=working&state=pending",
		"GET /aip/tasks?after=def&leader=L&limit=1&min_age=1h&state=working&state=pending",
	}, asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	address, _ = answeringAdmin(t, pages...)
	got = runAIP(t, "tasks", "list", "--limit", "2", "--json", "--address", address)
	if lines := strings.Split(got.Stdout, "\n"); got.Status != 0 || len(lines) != 4 ||
		!strings.HasPrefix(lines[2], `{"tasks":[{"partner":"P","leader":"L","task":"two","session":"s",`) {
		t.Errorf("as JSON, list prints %+v", got)
	}
	address, _ = answeringAdmin(t, adminapi.TaskPage{Tasks: []adminapi.Task{}})
	got = runAIP(t, "tasks", "list", "--address", address)
	if diff := cmp.Diff(commandResult{Stdout: "There is no such task.\n"}, got); diff != "" {
		t.Errorf("an empty list (-want +got):\n%s", diff)
	}
	if got = runAIP(t, "tasks", "list", "--limit", "0"); got.Status != 1 {
		t.Errorf("with the limit 0, list prints %+v", got)
	}
}

// TestShowTask checks the requests of caddy aip tasks show to the admin API, and its output.
func TestShowTask(t *testing.T) {
	cause := `{"type":"message","id":"m1","sentAt":"2026-11-22T10:00:00Z","command":"start",` +
		`"dataItems":[{"type":"text","text":"hello"}]}`
	answers := []any{
		adminapi.TaskPage{Tasks: []adminapi.Task{taskAt("one")}},
		adminapi.EventPage{Task: taskAt("one"), Next: 2, Events: []adminapi.Event{
			{Seq: 1, Kind: adminapi.TaskKind, Bytes: 100, Cause: json.RawMessage(cause), Value: json.RawMessage(
				`{"id":"one","sessionId":"s","status":{"state":"accepted","stateChangedAt":"2026-11-22T10:00:00Z"}}`)},
			{Seq: 2, Kind: adminapi.ProductKind, Bytes: 2 << 20},
		}},
		adminapi.EventPage{Task: taskAt("one"), Next: 3, Events: []adminapi.Event{
			{Seq: 3, Kind: adminapi.StatusKind, Bytes: 100, Value: json.RawMessage(
				`{"state":"working","stateChangedAt":"2026-11-22T10:00:01Z"}`)},
		}},
	}
	address, asked := answeringAdmin(t, answers...)
	got := runAIP(t, "tasks", "show", "one", "--limit", "3", "--address", address)
	if diff := cmp.Diff(commandResult{Stdout: "" +
		"task      one\n" +
		"session   s\n" +
		"agent     P\n" +
		"leader    L\n" +
		"state     working since 2026-11-22T18:00:00+08:00\n" +
		"events    1 to 3, 2.0 KiB\n" +
		"received  2026-11-22T18:00:00+08:00  start  m1\n" +
		"          hello\n" +
		"session   s  (event 1)\n" +
		"state     accepted since 2026-11-22T18:00:00+08:00\n" +
		"omitted   a product of 2.0 MiB  (event 2)\n" +
		"state     working since 2026-11-22T18:00:01+08:00  (event 3)\n" +
		"next      show with --after 3\n"}, got); diff != "" {
		t.Errorf("show (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"GET /aip/tasks?limit=2&task=one",
		"GET /aip/tasks/events?after=0&leader=L&limit=3&partner=P&task=one",
		"GET /aip/tasks/events?after=2&leader=L&limit=1&partner=P&task=one",
	}, asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	address, _ = answeringAdmin(t, answers...)
	got = runAIP(t, "tasks", "show", "one", "--limit", "3", "--json", "--address", address)
	if lines := strings.Split(got.Stdout, "\n"); got.Status != 0 || len(lines) != 3 ||
		!strings.Contains(lines[0], `"seq":2,"kind":"product","bytes":2097152}],"next":2`) {
		t.Errorf("as JSON, show prints %+v", got)
	}
	for want, tasks := range map[string][]adminapi.Task{
		"Error: there is no task \"one\"; it may have ended and been dropped\n":    {},
		"Error: several tasks have this id; say which by --leader and --partner\n": {taskAt("one"), taskAt("one")},
	} {
		address, _ := answeringAdmin(t, adminapi.TaskPage{Tasks: tasks})
		got := runAIP(t, "tasks", "show", "one", "--address", address)
		if diff := cmp.Diff(commandResult{Status: 1, Stderr: want}, got); diff != "" {
			t.Errorf("show of %d tasks (-want +got):\n%s", len(tasks), diff)
		}
	}
}

// TestCancelTask checks the requests of caddy aip tasks cancel to the admin API, and its output.
func TestCancelTask(t *testing.T) {
	found := adminapi.TaskPage{Tasks: []adminapi.Task{taskAt("one")}}
	canceled, completed := taskAt("one"), taskAt("one")
	canceled.State, completed.State = task.Canceled, task.Completed
	address, asked := answeringAdmin(t, found, canceled)
	got := runAIP(t, "tasks", "cancel", "one", "--partner", "P", "--address", address)
	if diff := cmp.Diff(commandResult{Stdout: "one is canceled\n"}, got); diff != "" {
		t.Errorf("cancel (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"GET /aip/tasks?limit=2&partner=P&task=one", "POST /aip/tasks/cancel"},
		asked()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	address, _ = answeringAdmin(t, found, completed)
	got = runAIP(t, "tasks", "cancel", "one", "--address", address)
	if diff := cmp.Diff(commandResult{Status: 1, Stdout: "one is completed\n",
		Stderr: "Error: the task has ended otherwise meanwhile\n"}, got); diff != "" {
		t.Errorf("cancel of a task that ends by itself (-want +got):\n%s", diff)
	}
}

// TestCompletedFlags: a shell completes the values of flags that have few.
func TestCompletedFlags(t *testing.T) {
	for flag, want := range map[string]string{
		"--sort":  "newest\nname\n",
		"--state": "pending\naccepted\nworking\nawaiting-input\nawaiting-completion\ncompleted\ncanceled\nfailed\nrejected\n",
	} {
		root, aip := &cobra.Command{Use: "caddy"}, &cobra.Command{Use: "aip"}
		aipCommand(aip)
		root.AddCommand(aip)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(io.Discard)
		root.SetArgs([]string{"__complete", "aip", "tasks", "list", flag, ""})
		if err := root.ExecuteContext(t.Context()); err != nil || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s is completed with %q, %v", flag, &out, err)
		}
	}
}
