// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestTasks: the tasks of a gateway are listed in pages, counted and selected, shown with their events and contents,
// and ended.
func TestTasks(t *testing.T) {
	p := newAlone(t, nil)
	p.has.TraceLink = func(id string) string { return "trace:" + id }
	asked, done := p.try("ask", task.AwaitingInput), p.try("hello there", task.AwaitingCompletion)

	list := func(query string) (ids []string) {
		t.Helper()
		for after := ""; ; {
			var page adminapi.TaskPage
			p.ask("GET", adminapi.Tasks+"?limit=1&"+query+"&after="+url.QueryEscape(after), "", &page)
			for _, one := range page.Tasks {
				ids = append(ids, one.Task)
			}
			if after = page.Next; after == "" {
				return ids
			}
		}
	}
	for query, want := range map[string][]string{
		"": {done.Task, asked.Task}, "state=awaiting-input": {asked.Task}, "task=" + done.Task: {done.Task},
		"search=map": {done.Task, asked.Task}, "search=none": nil, "partner=maps&max_age=1h": {done.Task, asked.Task},
		"min_age=1h": nil, "since=1h": {done.Task, asked.Task}, "session=" + asked.Session: {asked.Task},
		"state=pending": nil, "sort=newest": {done.Task, asked.Task},
	} {
		if diff := cmp.Diff(want, list(query)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", query, diff)
		}
	}
	if all := list("sort=name"); len(all) != 2 {
		t.Errorf("by name there are %s", all)
	}
	var counts adminapi.TaskCountList
	p.ask("GET", adminapi.TaskCounts, "", &counts)
	want := []adminapi.TaskCount{{State: task.AwaitingInput, Count: 1}, {State: task.AwaitingCompletion, Count: 1}}
	if diff := cmp.Diff(want, counts.Counts); diff != "" {
		t.Errorf("the counts (-want +got):\n%s", diff)
	}

	of := "?partner=maps&leader=" + url.QueryEscape(done.Leader) + "&task=" + done.Task
	var seen []string
	for after := uint64(0); ; {
		var events adminapi.EventPage
		p.ask("GET", fmt.Sprint(adminapi.TaskEvents, of, "&limit=1&after=", after), "", &events)
		for _, e := range events.Events {
			seen = append(seen, e.Kind)
		}
		if events.Task.Task != done.Task {
			t.Errorf("the events are those of %+v", events.Task)
		}
		if after = events.Next; after == 0 {
			break
		}
	}
	if len(seen) < 3 || seen[0] != adminapi.TaskKind {
		t.Errorf("the events are %s", seen)
	}
	var contents adminapi.TaskContents
	p.ask("GET", adminapi.ShowTask+of, "", &contents)
	if len(contents.Products) != 1 || contents.Products[0].Items[0].Text != "echo: hello there" ||
		len(contents.Commands) != 1 || len(contents.States) < 2 {
		t.Errorf("the contents are %+v", contents)
	}
	if link := p.traceLink("7"); link != "trace:7" {
		t.Errorf("the trace is at %s", link)
	}

	name := func(of adminapi.Task, more string) string {
		return `{"partner":"maps","leader":"` + of.Leader + `","task":"` + of.Task + `"` + more + `}`
	}
	var ended adminapi.Task
	if p.ask("POST", adminapi.CancelTask, name(asked, ""), &ended); ended.State != task.Canceled {
		t.Errorf("the canceled task is %+v", ended)
	}
	slow := p.try("slow 60", task.Working)
	if p.ask("POST", adminapi.FailTask, name(slow, `,"reason":"of no use"`), &ended); ended.State != task.Failed {
		t.Errorf("the failed task is %+v", ended)
	}
	p.refuses(map[string]string{
		"POST " + adminapi.CancelTask + " " + name(asked, ""): "Conflict: the task is canceled, and cannot be canceled " +
			"any more",
		"POST " + adminapi.FailTask + " {}": `Bad Request: the body must be {"partner": "…", "leader": "…", ` +
			`"task": "…", "reason": "…"}; the reason may be missing`,
	})
}

// TestTaskFilter: what a query says of tasks is read, or refused with what it must be.
func TestTaskFilter(t *testing.T) {
	p := newAlone(t, nil)
	synctest.Test(t, func(t *testing.T) {
		for query, want := range map[string]partner.TaskFilter{
			"partner=P&leader=l&task=t&session=s&after=a&limit=3": {Partner: "P", Leader: "l", Task: "t", Session: "s",
				After: "a", Limit: 3},
			"state=pending&state=working":  {States: []task.State{task.None, task.Working}},
			"min_age=1d&max_age=2d":        {MinAge: 24 * time.Hour, MaxAge: 48 * time.Hour},
			"since=1h":                     {MaxAge: time.Hour},
			"since=1h&max_age=10m":         {MaxAge: 10 * time.Minute},
			"since=10m&max_age=1h":         {MaxAge: 10 * time.Minute},
			"search=ma&sort=name":          {Search: "ma", SearchPartners: []string{"P"}, ByName: true},
			"search=P":                     {Search: "P", SearchPartners: []string{"P"}},
			"search=elsewhere&sort=newest": {Search: "elsewhere"},
		} {
			q, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.taskFilterOf(q)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", query, err, diff)
			}
		}
		for query, want := range map[string]string{
			"sort=oldest":                `sort is "oldest", but must be newest or name`,
			"state=odd":                  `state is "odd", but must be pending or a state of AIP`,
			"min_age=-1s":                `min_age is "-1s", but must be a duration such as 90s, 10m or 2d`,
			"max_age=ten":                `max_age is "ten", but must be a duration such as 90s, 10m or 2d`,
			"since=2999-01-01T00:00:00Z": `since is "2999-01-01T00:00:00Z", but must be a time that is over`,
			"limit=0":                    `limit is "0", but must be a whole number above 0`,
		} {
			q, _ := url.ParseQuery(query)
			if _, err := p.taskFilterOf(q); statusOf(err) != http.StatusBadRequest || sentenceOf(err) != want {
				t.Errorf("%s is refused by %v", query, err)
			}
		}
	})
}

// TestItemsWithin: data items are shown as far as there is room, a text in part.
func TestItemsWithin(t *testing.T) {
	text := func(s string) task.DataItem { return task.DataItem{Kind: task.TextItem, Text: s} }
	file := task.DataItem{Kind: task.FileItem, Name: "f", MIMEType: "image/png", Bytes: "AAAA"}
	typed := text("<p>")
	typed.Metadata = []byte(`{"mediaType":"text/html"}`)
	for name, tc := range map[string]struct {
		items []task.DataItem
		room  int
		want  []adminapi.Item
		cut   bool
		left  int
	}{
		"nothing": {nil, 10, nil, false, 10},
		"all": {[]task.DataItem{text("abc"), file}, 10, []adminapi.Item{{Kind: task.TextItem, Text: "abc"},
			{Kind: task.FileItem, Name: "f", MIMEType: "image/png", Bytes: "AAAA"}}, false, 3},
		"a text in part": {[]task.DataItem{text("abcdef")}, 4, []adminapi.Item{{Kind: task.TextItem, Text: "abcd",
			Cut: true}}, true, 0},
		"not within a character": {[]task.DataItem{text("aé")}, 2, []adminapi.Item{{Kind: task.TextItem, Text: "a",
			Cut: true}}, true, 1},
		"a file without its bytes": {[]task.DataItem{file, text("ab")}, 3, []adminapi.Item{{Kind: task.FileItem, Name: "f",
			MIMEType: "image/png", Cut: true}, {Kind: task.TextItem, Text: "ab"}}, true, 1},
		"the type of a text": {[]task.DataItem{typed}, 10, []adminapi.Item{{Kind: task.TextItem, Text: "<p>",
			MIMEType: "text/html"}}, false, 7},
	} {
		left := tc.room
		got, cut := itemsWithin(tc.items, &left)
		if diff := cmp.Diff(tc.want, got); diff != "" || cut != tc.cut || left != tc.left {
			t.Errorf("%s: cut %t, %d left (-want +got):\n%s", name, cut, left, diff)
		}
	}
	left := maxContents
	many := make([]task.DataItem, maxShown+1)
	for i := range many {
		many[i] = text("x")
	}
	if got, cut := itemsWithin(many, &left); len(got) != maxShown || !cut {
		t.Errorf("%d of %d are shown, cut %t", len(got), len(many), cut)
	}
}

// TestTail: a stream has the changes of tasks, or the events of one until its end.
func TestTail(t *testing.T) {
	p := newAlone(t, nil)
	server := newTailServer(p)
	changes := server.open(adminapi.TailTasks+"?partner=maps", "")
	done := p.try("hello", task.AwaitingCompletion)
	if got := changes.until(string(task.AwaitingCompletion)); !strings.Contains(got, `"agent_name":"maps"`) {
		t.Errorf("the changes are %s", got)
	}
	of := "?partner=maps&leader=" + url.QueryEscape(done.Leader) + "&task=" + done.Task
	events := server.open(adminapi.TailTasks+of, "")
	first := events.until("id: 2")
	p.ask("POST", adminapi.CancelTask, `{"partner":"maps","leader":"`+done.Leader+`","task":"`+done.Task+`"}`,
		new(adminapi.Task))
	if last := events.until("event: " + adminapi.TailEnd); !strings.Contains(first, "event: "+adminapi.TailEvent) {
		t.Errorf("the events are %s%s", first, last)
	}
	if again := server.open(adminapi.TailTasks+of, "1").until("event: "); strings.Contains(again, "id: 1\n") {
		t.Errorf("after event 1 there is %s", again)
	}
	p.refuses(map[string]string{
		"GET " + adminapi.TailTasks + "?state=odd": `Bad Request: state is "odd", but must be pending or a state of AIP`,
		"GET " + adminapi.TailTasks + "?after=1":   `Bad Request: there is no "after"; use partner, leader or state`,
		"GET " + adminapi.TailTasks + of + "&state=failed": `Bad Request: there is no "state"; use partner, leader, task ` +
			"or after",
		"GET " + adminapi.TailTasks + of + "-": "Not Found: there is no such task; it may have ended and been dropped",
	})
	p.tailing.Store(maxTails)
	p.refuses(map[string]string{
		"GET " + adminapi.TailTasks: "Too Many Requests: 64 streams of tasks are open, which is the most there may be",
	})
	p.tailing.Store(0)
}
