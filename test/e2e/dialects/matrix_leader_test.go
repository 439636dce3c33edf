// SPDX-License-Identifier: Apache-2.0

package dialects

import (
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// leaderJobs are what an AIP Leader can see of agents that only some of the dialects have words for.
func leaderJobs(w *world) (jobs []job) {
	for _, b := range w.backs {
		jobs = append(jobs, job{"things to " + b.name, func(t *testing.T) { byThings(t, w, b) }})
		if !b.early {
			jobs = append(jobs,
				job{"message to " + b.name, func(t *testing.T) { byMessage(t, w, b) }},
				job{"rejection to " + b.name, func(t *testing.T) { byRejection(t, w, b) }},
				job{"permission to " + b.name, func(t *testing.T) { byPermission(t, w, b) }})
		}
	}
	return jobs
}

// byThings gets a file and data, each whole.
func byThings(t *testing.T, w *world, b *back) {
	l := newLeaderOf(t, w.mount(b))
	file := l.Caller.Start("file", "file")
	if len(file.Products) != 1 {
		t.Fatalf("the products are %+v", file.Products)
	}
	want := []task.DataItem{{Kind: task.FileItem, Name: "hello.txt", MIMEType: "text/plain", Bytes: "aGVsbG8K"}}
	got := file.Products[0].DataItems
	for i := range got {
		got[i].Metadata = nil
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the file (-want +got):\n%s", diff)
	}
	data := l.Caller.Start("data", "data")
	if len(data.Products) != 1 || len(data.Products[0].DataItems) != 1 {
		t.Fatalf("the products are %+v", data.Products)
	}
	if it := data.Products[0].DataItems[0]; it.Kind != task.DataKind ||
		string(it.Data) != `{"colour":"blue","parts":[1,2,3]}` {
		t.Errorf("the data is %+v", it)
	}
}

// byMessage talks to an agent that answers without a task. At the gateway it is one all the same.
func byMessage(t *testing.T, w *world, b *back) {
	l := newLeaderOf(t, w.mount(b))
	if got := viewOfTask(l.Caller.Start("m", "msg hi")); got.State != "awaiting-completion" || got.Holds != "direct: hi" {
		t.Errorf("the message is shown as %+v", got)
	}
	if got := l.send("msg again", "m"); got.State != "awaiting-completion" ||
		!strings.Contains(got.Holds, "direct: again") {
		t.Errorf("the next one is shown as %+v", got)
	}
	if got := l.finish("m"); got.State != "completed" {
		t.Errorf("it ends as %+v", got)
	}
}

// byRejection is rejected: a task that no client has seen was never accepted.
func byRejection(t *testing.T, w *world, b *back) {
	l := newLeaderOf(t, w.mount(b))
	l.Caller.Start("r", "reject")
	got := l.Caller.Get("r")
	if diff := cmp.Diff([]task.State{task.Rejected}, site.States(got.StatusHistory)); diff != "" ||
		site.Says(got.Status.DataItems) != "not my job" {
		t.Errorf("the rejection is %+v\n%s", got.Status, diff)
	}
	site.CheckHistory(t, got)
	var last view
	if err := l.follow(site.Within(t, site.Patience), "s", "reject",
		func(e view) bool { last = e; return true }); err != nil {
		t.Fatal(err)
	}
	if last.State != "rejected" && !(last.State == "failed" && strings.Contains(strings.ToLower(last.Says), "rejected")) {
		t.Errorf("a rejection after acceptance is shown as %+v", last)
	}
}

// byPermission waits until the user has logged in, or gives up.
func byPermission(t *testing.T, w *world, b *back) {
	l := newLeaderOf(t, w.mount(b))
	const wants = "log in at https://login.example/"
	if got := viewOfTask(l.Caller.Start("a", "auth")); got.State != "awaiting-input" ||
		!strings.Contains(got.Says, wants) ||
		!strings.Contains(got.Says, `"auth-required"`) {
		t.Errorf("the question is shown as %+v", got)
	}
	got := l.send("in", "a")
	switch b.name {
	case "go-10", "rest-10", "grpc-10": // whose SDK takes no message while it waits for permission
		if got.State != "awaiting-input" {
			t.Errorf("a message is answered with %+v", got)
		}
	default:
		if got.State != "awaiting-completion" || got.Holds != "you said: in" {
			t.Errorf("a message is answered with %+v", got)
		}
	}
	l.Caller.Start("c", "auth")
	if got := l.cancel("c"); got.State != "canceled" {
		t.Errorf("giving up is answered with %+v", got)
	}
}
