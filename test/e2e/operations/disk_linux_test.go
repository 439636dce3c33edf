// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// TestStoreFull fills the disk of a store, and makes room again. Meanwhile the gateway is not ready and says so, it
// accepts no task, and shows those that it has. Afterwards nothing is lost, and nothing needs a restart.
func TestStoreFull(t *testing.T) {
	t.Parallel()
	faults := map[string]fault{
		// A limit of the process: each write to a file fails. This is tested on every machine.
		"limit": {
			prepare: func(*site.Site) {},
			begin:   func(s *site.Site) { s.GrowFiles(false) }, end: func(s *site.Site) { s.GrowFiles(true) },
		},
	}
	if site.MountsDisks(t) {
		faults["disk"] = fault{
			prepare: (*site.Site).OnSmallDisk,
			begin:   func(s *site.Site) { s.Fill(0) }, end: (*site.Site).Empty,
		}
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testStoreFull(t, f)
		})
	}
}

// fault is a way to fill the disk of a store.
type fault struct{ prepare, begin, end func(*site.Site) }

func testStoreFull(t *testing.T, f fault) {
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	f.prepare(s)
	s.Start(site.Config{Handle: "aip_gateway a2a/legacy http://" + agent})
	caller := site.LeaderOf(t, s.URL())
	caller.Start("before", "hello")
	caller.Start("grows", "hello")
	runs := site.StartCall("runs", "slow 5")
	runs.Terms.Response = time.Millisecond
	caller.Send(runs)
	waitForReadiness(s, http.StatusOK)

	f.begin(s)
	n := 0
	for what, call := range map[string]func() *task.Call{
		"a start": func() *task.Call { n++; return site.StartCall(fmt.Sprint("full-", n), "hello") },
		// This one can be stored as long as there is any room.
		"a continue": func() *task.Call { return site.CommandCall(task.Continue, "grows", strings.Repeat("big ", 100_000)) },
	} {
		var refusal *leader.Error
		site.Eventually(t, what+" is refused", func() bool {
			_, err := caller.Try(call())
			if err != nil && !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			return err != nil
		})
		if refusal.Code != -32603 || site.Data(t, refusal.Data)["reason"] != "STORE_UNAVAILABLE" {
			t.Errorf("%s on a full disk: %+v, want -32603 with the reason STORE_UNAVAILABLE", what, refusal)
		}
	}
	body := waitForReadiness(s, http.StatusServiceUnavailable)
	if !strings.Contains(body, "the store accepts no new tasks") {
		t.Errorf("the reason is missing: %s", body)
	}
	if status, _ := s.Asked("GET", "/aip/health/live", ""); status != http.StatusOK {
		t.Errorf("the gateway is not live: %d", status)
	}
	if _, metrics := s.Asked("GET", "/metrics", ""); !strings.Contains(string(metrics), "\naip_store_writable 0\n") {
		t.Errorf("the metrics do not say that the store is full")
	}
	site.Eventually(t, "a task can be read", func() bool { // not while the database is opened again
		got, err := caller.Try(site.CommandCall(task.Get, "before"))
		return err == nil && got.Status.State == task.AwaitingCompletion
	})
	if got := s.ListedTasks(make(url.Values)); len(got) < 2 {
		t.Errorf("on a full disk, the tasks are %v", got)
	}

	f.end(s)
	waitForReadiness(s, http.StatusOK)
	caller.Start("after", "hello")
	caller.Complete("before")
	for _, id := range []string{"before", "grows", "after"} {
		site.CheckHistory(t, caller.Rests(id))
	}
	got := caller.Rests("runs")
	site.CheckHistory(t, got)
	if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"slow done"}},
		site.AnswerOf(got)); diff != "" {
		t.Errorf("the task that ran (-want +got):\n%s", diff)
	}
	if _, metrics := s.Asked("GET", "/metrics", ""); !strings.Contains(string(metrics), "\naip_store_writable 1\n") {
		t.Errorf("the metrics do not say that the store can be written")
	}
}

// waitForReadiness waits until the health route answers a status, and returns the answer.
func waitForReadiness(s *site.Site, want int) (body string) {
	s.T.Helper()
	site.Eventually(s.T, fmt.Sprint("GET /aip/health/ready answers ", want), func() bool {
		status, answer := s.Asked("GET", "/aip/health/ready", "")
		body = string(answer)
		return status == want
	})
	return body
}
