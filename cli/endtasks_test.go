// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// taskAdmin is an admin API with a number of tasks. One of them cannot be ended.
type taskAdmin struct {
	lock    sync.Mutex
	queries []string
	ended   []adminapi.TaskEnding
}

func (f *taskAdmin) serve(t *testing.T, tasks int) (address string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.lock.Lock()
		defer f.lock.Unlock()
		if r.URL.Path == adminapi.Tasks {
			f.queries = append(f.queries, r.URL.RawQuery)
			page := adminapi.TaskPage{Tasks: []adminapi.Task{}, Next: "next"}
			from := 0
			if r.URL.Query().Has("after") {
				from, page.Next = 1000, ""
			}
			for i := from; i < min(tasks, from+1000); i++ {
				page.Tasks = append(page.Tasks, taskAt(fmt.Sprint("task-", i)))
			}
			_ = json.NewEncoder(w).Encode(page)
			return
		}
		var e adminapi.TaskEnding
		_ = json.NewDecoder(r.Body).Decode(&e)
		if f.ended = append(f.ended, e); e.Task == "task-1" {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"error":"the agent \u001b[31mrefuses"}`)
			return
		}
		of := taskAt(e.Task)
		of.State = task.Canceled
		_ = json.NewEncoder(w).Encode(of)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// TestCancelTasks checks the tasks ended by caddy aip tasks cancel without a name, its question before, and its output.
func TestCancelTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		tasks int
		args  []string
		input string
		want  commandResult
		query string // of the first page
		ended int
	}{
		"yes": {3, []string{"--partner", "P", "--reason", "why", "--yes"}, "", commandResult{Status: 1,
			Stdout: "2 tasks canceled\n",
			Stderr: "task-1: the agent �[31mrefuses\nError: 1 of 3 tasks are not canceled\n"},
			"limit=1000&partner=P&state=pending&state=accepted&state=working&state=awaiting-input&state=awaiting-completion", 3},
		"asked": {1, []string{"--state", "working", "--min-age", "1h"}, "y\n", commandResult{
			Stdout: "1 task canceled\n", Stderr: "Cancel 1 task (1 working)? [y/N] "},
			"limit=1000&min_age=1h&state=working", 1},
		"no": {3, []string{"--state", "working"}, "n\n", commandResult{Status: 1,
			Stderr: "Cancel 3 tasks (3 working)? [y/N] Error: nothing was changed; answer y, or add --yes\n"},
			"limit=1000&state=working", 0},
		"too many": {1200, []string{"--state", "working"}, "yes\n", commandResult{Status: 1, Stdout: "999 tasks canceled\n",
			Stderr: "More than 1000 tasks are selected. Cancel the first 1000 tasks (1000 working)? [y/N] " +
				"task-1: the agent �[31mrefuses\nthere are more tasks: repeat the command\n" +
				"Error: 1 of 1000 tasks are not canceled\n"},
			"limit=1000&state=working", 1000},
		"none": {0, []string{"--state", "working"}, "", commandResult{Stdout: "There is no such task.\n"},
			"limit=1000&state=working", 0},
		"all": {3, nil, "", commandResult{Status: 1,
			Stderr: "Error: name a task, or say which by flags: --state, --min-age, --max-age, --since, " +
				"--search, --partner, --leader\n"}, "", 0},
		"ended": {3, []string{"--state", "failed"}, "", commandResult{Status: 1,
			Stderr: "Error: no task that is failed can be made canceled; --state is one of pending, accepted, working, " +
				"awaiting-input, awaiting-completion\n"}, "", 0},
	} {
		var admin taskAdmin
		args := append([]string{"tasks", "cancel", "--address", admin.serve(t, tc.tasks)}, tc.args...)
		got := runAIPAnswered(t, tc.input, args...)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if query := append(admin.queries, "")[0]; query != tc.query || len(admin.ended) != tc.ended {
			t.Errorf("%s asks for %q, and ends %d tasks", name, query, len(admin.ended))
		}
		slices.SortFunc(admin.ended, func(a, b adminapi.TaskEnding) int { return strings.Compare(a.Task, b.Task) })
		if name == "yes" && (admin.ended[0].Task != "task-0" || admin.ended[2].Reason != "why") {
			t.Errorf("it ends %+v", admin.ended)
		}
	}
	var admin taskAdmin
	got := runAIP(t, "tasks", "cancel", "--state", "working", "--yes", "--json", "--address", admin.serve(t, 1))
	var ended adminapi.Task
	if err := json.Unmarshal([]byte(got.Stdout), &ended); err != nil || ended.State != task.Canceled {
		t.Errorf("as JSON: %+v", got)
	}
}

// runAIPAnswered is runAIP with typed input.
func runAIPAnswered(t *testing.T, input string, args ...string) commandResult {
	t.Helper()
	var out, errOut bytes.Buffer
	status := runAIPFrom(t.Context(), strings.NewReader(input), &out, &errOut, args...)
	return commandResult{status, out.String(), errOut.String()}
}
