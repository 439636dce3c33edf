// SPDX-License-Identifier: Apache-2.0

package tasks

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// TestTasks lists tasks, and shows one with its events, by the admin API and by caddy aip tasks, also after a crash.
func TestTasks(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		state := "completed"
		if strings.Contains(string(h.Body), "ask me") {
			state = "input-required"
		}
		site.WriteTask(w, h, state, "said \u202ered")
	})
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	s.Awake()
	if got := s.TasksCommand(0, "list"); got != "There is no such task.\n" {
		t.Errorf("an empty list is %q", got)
	}
	leader := site.LeaderOf(t, s.URL())
	leader.Start("a", "hello")
	site.Outlast(leader.Complete("a").Status.ChangedAt)
	site.Outlast(leader.Start("b", "ask me").Status.ChangedAt)
	leader.Start("c", "hello")

	check := func() {
		t.Helper()
		every := []string{"c awaiting-completion", "b awaiting-input", "a completed"} // the last change first
		for query, want := range map[string][]string{
			"":                                   every,
			"limit=1":                            every,
			"limit=2":                            every,
			"task=b":                             every[1:2],
			"state=completed":                    every[2:],
			"state=completed&state=pending":      every[2:],
			"state=awaiting-input&limit=1":       every[1:2],
			"min_age=1d":                         nil,
			"max_age=1d":                         every,
			"leader=" + leader.Sender:            every,
			"leader=other":                       nil,
			"partner=" + agent.URL:               every,
			"partner=" + agent.URL + "&task=c":   every[:1],
			"partner=other":                      nil,
			"leader=" + leader.Sender + "&task=": every,
		} {
			q, err := url.ParseQuery(query)
			site.NoError(t, err)
			if diff := cmp.Diff(want, s.ListedTasks(q)); diff != "" {
				t.Errorf("%q (-want +got):\n%s", query, diff)
			}
		}
		list := s.TasksCommand(0, "list", "--state", "awaiting-input")
		if !regexp.MustCompile(`^TASK +STATE .*\nb +awaiting-input +\S+ +\d+ +\S+ \S+ +` + leader.Sender + ` +` +
			regexp.QuoteMeta(strings.TrimPrefix(agent.URL, "http://")) + ` +-\n$`).MatchString(list) {
			t.Errorf("the list is\n%s", list)
		}
		shown := s.TasksCommand(0, "show", "a")
		for _, want := range []string{
			`(?m)^state     completed since `, `(?m)^received  \S+  start  \S+\n          hello$`,
			`(?m)^product .*\(event \d+\)$`, `(?m)^          said �red$`, `(?m)^received  \S+  complete `,
			`(?m)^state     completed since \S+  \(event 5\)$`,
		} {
			if !regexp.MustCompile(want).MatchString(shown) {
				t.Errorf("show prints no %s, but\n%s", want, shown)
			}
		}
	}
	check()
	s.Kill()
	s.Run(s.Dir + "/Caddyfile")
	s.Awake()
	check()

	// One task with its events, one on a page.
	path := "/aip/tasks/events?" + url.Values{"partner": {agent.URL}, "leader": {leader.Sender}, "task": {"a"}}.Encode()
	var kinds []string
	for after := "0"; after != ""; {
		status, body := s.Asked("GET", path+"&limit=1&after="+after, "")
		page := gjson.ParseBytes(body)
		if status != http.StatusOK || page.Get("events.#").Int() != 1 || page.Get("task.last").Int() != 5 {
			t.Fatalf("the admin API answers %d %s", status, body)
		}
		kinds = append(kinds, page.Get("events.0.seq").String()+" "+page.Get("events.0.kind").String())
		after = page.Get("next").String()
	}
	if diff := cmp.Diff([]string{"1 task", "2 status", "3 product", "4 status", "5 status"}, kinds); diff != "" {
		t.Errorf("the events (-want +got):\n%s", diff)
	}
	last := s.TasksCommand(0, "show", "a", "--json", "--after", "4")
	if got := gjson.Get(last, "events.0.cause.command").String(); got != "complete" {
		t.Errorf("the last event was caused by %s", got)
	}

	for _, tc := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"POST", "/aip/tasks", 405, "use GET"},
		{"GET", "/aip/tasks?state=odd", 400, "must be pending or a state of AIP"},
		{"GET", "/aip/tasks?stat=failed", 400, "use partner, leader,"},
		{"GET", "/aip/tasks?min_age=long", 400, "must be a duration"},
		{"GET", "/aip/tasks?max_age=-1s", 400, "must be a duration"},
		{"GET", "/aip/tasks?limit=0", 400, "a whole number above 0"},
		{"GET", "/aip/tasks?after=here", 400, "the value that the page before returned"},
		{"POST", "/aip/tasks/events", 405, "use GET"},
		{"GET", "/aip/tasks/events?task=a", 400, "name the task by partner, leader and task"},
		{"GET", path + "&after=6", 400, "the last one is 5"},
		{"GET", path + "&after=-1", 400, "must be the number of an event"},
		{"GET", strings.Replace(path, "task=a", "task=none", 1), 404, "there is no such task"},
	} {
		status, body := s.Asked(tc.method, tc.path, "")
		if status != tc.status || !strings.Contains(gjson.GetBytes(body, "error").String(), tc.want) {
			t.Errorf("%s %s is answered with %d %s, want %d and %q", tc.method, tc.path, status, body, tc.status, tc.want)
		}
	}
	for want, args := range map[string]string{
		"there is no task": "show none",
		"accepts 1 arg":    "show",
		"must be pending":  "list --state odd",
	} {
		if got := s.TasksCommand(1, strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q in it", args, got, want)
		}
	}
}

// TestCancelByOperator cancels a task whose Leader waits for its agent, by caddy aip tasks cancel.
func TestCancelByOperator(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if h.Method != "tasks/cancel" {
			<-r.Context().Done()
		}
		site.WriteTask(w, h, "canceled", "")
	})
	s := site.Serve(t, site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL})
	s.Awake()
	leader := site.LeaderOf(t, s.URL())
	answered := starting(leader, "a")
	site.Eventually(t, "the agent works on the task", func() bool { return len(agent.Requests("tasks/send")) == 1 })
	if diff := cmp.Diff([]string{"a pending"}, s.ListedTasks(url.Values{})); diff != "" {
		t.Errorf("the tasks (-want +got):\n%s", diff)
	}
	if got := s.TasksCommand(0, "cancel", "a", "--reason", "the agent hangs"); got != "a is canceled\n" {
		t.Errorf("cancel prints %q", got)
	}
	if n := len(agent.Requests("tasks/cancel")); n != 1 {
		t.Errorf("the agent was asked %d times to cancel", n)
	}
	got := <-answered
	const said = "canceled by the operator of the gateway: the agent hangs"
	site.NoError(t, got.Err)
	if status := got.Task.Status; status.State != task.Canceled || status.DataItems[0].Text != said {
		t.Errorf("the Leader's start is answered with %+v", status)
	}
	if history := leader.Get("a").MessageHistory; len(history) != 1 {
		t.Errorf("the Leader is said to have sent %+v", history)
	}
	if shown := s.TasksCommand(0, "show", "a"); !strings.Contains(shown, "\nsays      "+said+"\n") {
		t.Errorf("show prints\n%s", shown)
	}

	// What has ended, or is not there, is not canceled.
	for want, args := range map[string]string{
		"Error: the task is canceled, and cannot be canceled any more\n": "cancel a",
		"there is no task":                       "cancel none",
		"name a task, or say which by flags":     "cancel",
		"no task that is completed can be made":  "cancel --state completed",
		"the reason may have 1024 bytes at most": "cancel a --reason " + strings.Repeat("x", 1025),
	} {
		if got := s.TasksCommand(1, strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q in it", args, got, want)
		}
	}
	named := func(partner, id string) string {
		return `{"partner":"` + partner + `","leader":"` + leader.Sender + `","task":"` + id + `"}`
	}
	for _, tc := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"GET", "", 405, "use POST"},
		{"POST", "", 400, "the body must be"},
		{"POST", `{"task":"a"}`, 400, "the body must be"},
		{"POST", `{"partner":"p","leader":"l","task":"a","why":"so"}`, 400, "the body must be"},
		{"POST", named(agent.URL, "a"), 409, "cannot be canceled any more"},
		{"POST", named(agent.URL, "none"), 404, "there is no such task"},
		{"POST", named("other", "a"), 404, "there is no such task"},
	} {
		status, body := s.Asked(tc.method, "/aip/tasks/cancel", tc.body)
		if status != tc.status || !strings.Contains(gjson.GetBytes(body, "error").String(), tc.want) {
			t.Errorf("%s %s is answered with %d %s, want %d and %q", tc.method, tc.body, status, body, tc.status, tc.want)
		}
	}
}

// TestTailTasks follows the changes of all tasks, and the events of one, by the admin API and by caddy aip tasks tail.
func TestTailTasks(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		site.WriteTask(w, h, "completed", "done")
	})
	c := site.Config{Handle: "aip_gateway a2a/legacy " + agent.URL}
	s := site.Serve(t, c)
	s.Awake()
	leader := site.LeaderOf(t, s.URL())
	leader.Start("a", "hello")

	follow := func(query string) *sseproxy.Reader {
		t.Helper()
		res, err := http.Get(s.AdminURL() + "/aip/tasks/tail?" + query)
		site.NoError(t, err)
		t.Cleanup(func() { res.Body.Close() })
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%s is answered with %d %v", query, res.StatusCode, res.Header)
		}
		return sseproxy.NewReader(res.Body, sseproxy.Limits{})
	}
	name := url.Values{"partner": {agent.URL}, "leader": {leader.Sender}, "task": {"a"}}.Encode()
	all, some, one := follow(""), follow("state=completed&leader="+leader.Sender), follow(name+"&after=2")
	leader.Start("b", "hello")
	leader.Complete("a")
	next := func(events *sseproxy.Reader) string {
		t.Helper()
		ev, err := events.Next()
		if err != nil {
			return err.Error()
		}
		got := gjson.ParseBytes(ev.Data)
		return strings.Join(strings.Fields(strings.Join([]string{ev.Name, string(ev.ID), got.Get("task").String(),
			got.Get("state").String(), got.Get("kind").String(), got.Get("value.state").String()}, " ")), " ")
	}
	for _, tc := range []struct {
		name   string
		events *sseproxy.Reader
		want   []string
	}{
		{"all changes", all, []string{"change b pending", "change b accepted", "change b working",
			"change b awaiting-completion", "change a completed"}},
		{"some changes", some, []string{"change a completed"}},
		{"one task", one, []string{"event 3 product", "event 4 status awaiting-completion", "event 5 status completed",
			"end 5 a completed", "EOF"}},
	} {
		for _, want := range tc.want {
			if got := next(tc.events); got != want {
				t.Errorf("%s: %q, want %q", tc.name, got, want)
			}
		}
	}

	printed := s.TasksCommand(0, "tail", "a", "--after", "0")
	for _, want := range []string{"state     accepted since", "done", "state     completed since"} {
		if !strings.Contains(printed, want) {
			t.Errorf("tail prints no %q, but\n%s", want, printed)
		}
	}
	if got := s.TasksCommand(0, "tail", "a"); got != "" {
		t.Errorf("the tail of a task that has ended is %q", got)
	}
	got := s.TasksCommand(0, "tail", "a", "--after", "4", "--json")
	if !strings.HasPrefix(got, `{"seq":5,"kind":"status"`) {
		t.Errorf("as JSON, tail prints %q", got)
	}
	for want, args := range map[string]string{
		"there is no task":              "tail none",
		"is for the events of one task": "tail --after 3",
		"the last one is 5":             "tail a --after 6",
		"must be pending or a state":    "tail --state odd",
		"for the changes of all tasks":  "tail a --state failed",
		"accepts at most 1 arg":         "tail a b",
	} {
		if got := s.TasksCommand(1, strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q in it", args, got, want)
		}
	}
	if status, body := s.Asked("GET", "/aip/tasks/tail?"+name+"&after=-1", ""); status != 400 ||
		!strings.Contains(string(body), "must be the number of an event") {
		t.Errorf("a wrong number is answered with %d %s", status, body)
	}

	// A reload ends the streams of the configuration before.
	if refused := s.Reload(c); refused != "" {
		t.Fatal(refused)
	}
	if got := next(all); got != "EOF" {
		t.Errorf("after a reload, the stream has %q", got)
	}
}

// TestFailByOperator fails a task by caddy aip tasks fail, although its agent refuses to stop. The Leader that waits, a
// stream and a webhook get that.
func TestFailByOperator(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		if h.Method != "tasks/cancel" {
			<-r.Context().Done()
			return
		}
		site.WriteError(w, h, -32002, "it is too late")
	})
	sink := site.NewSink(t)
	s := site.Serve(t, site.Config{Notify: site.AllowHere, Handle: "aip_gateway a2a/legacy " + agent.URL})
	s.Awake()
	leader := site.LeaderOf(t, s.URL())
	answered := starting(leader, "a")
	site.Eventually(t, "the agent works on the task", func() bool { return len(agent.Requests("tasks/send")) == 1 })
	leader.Granted("set", map[string]string{"taskId": "a", "url": sink.Origin() + "/a", "token": "t"})
	if got := s.TasksCommand(0, "fail", "a", "--reason", "the agent hangs"); got != "a is failed\n" {
		t.Errorf("fail prints %q", got)
	}
	got := <-answered
	site.NoError(t, got.Err)
	const said = "failed by the operator of the gateway: the agent hangs"
	if status := got.Task.Status; status.State != task.Failed || status.DataItems[0].Text != said {
		t.Errorf("the Leader's start is answered with %+v", status)
	}
	sink.WaitForChanges("/a", leader.Get("a").StatusHistory)

	// Those of a filter, after a question that no one answers.
	for _, id := range []string{"b", "c"} {
		starting(leader, id)
	}
	site.Eventually(t, "the agent works on them", func() bool { return len(agent.Requests("tasks/send")) == 3 })
	const question = "Fail 2 tasks (2 pending)? [y/N] \nError: nothing was changed; answer y, or add --yes\n"
	if got := s.TasksCommand(1, "fail", "--partner", agent.URL); !strings.Contains(got, question) {
		t.Errorf("fail of a filter asks %q, want %q", got, question)
	}
	if diff := cmp.Diff([]string{"a failed", "b pending", "c pending"}, s.ListedTasksSorted()); diff != "" {
		t.Errorf("the tasks after no answer (-want +got):\n%s", diff)
	}
	if got := s.TasksCommand(0, "fail", "--partner", agent.URL, "--yes"); got != "2 tasks failed\n" {
		t.Errorf("fail of a filter prints %q", got)
	}
	if diff := cmp.Diff([]string{"a failed", "b failed", "c failed"}, s.ListedTasksSorted()); diff != "" {
		t.Errorf("the tasks of the filter (-want +got):\n%s", diff)
	}
	for want, args := range map[string]string{
		"the task has ended already: it is failed":   "fail a",
		"no task that is awaiting-input can be made": "fail --state awaiting-input",
		"there is no task":                           "fail none",
	} {
		if got := s.TasksCommand(1, strings.Fields(args)...); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %q in it", args, got, want)
		}
	}
}

// started is what a Leader is answered that waits for its start.
type started struct {
	Task *task.Task // the answer
	Err  error      // of a refused start
}

// starting starts a task in the background, and passes on what the waiting Leader is answered.
func starting(c *site.Caller, id string) <-chan started {
	answered := make(chan started, 1)
	call := site.StartCall(id, "hello")
	call.Terms.Response = 2 * site.Patience // in which the test does what answers it
	go func() {
		got, err := c.Try(call)
		answered <- started{got, err}
	}()
	return answered
}
