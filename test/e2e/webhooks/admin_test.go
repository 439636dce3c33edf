// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// command runs a command of caddy aip deliveries, demands its exit status, and returns what it prints, or the error
// that it ends with.
func command(s *site.Site, want int, args ...string) string {
	s.T.Helper()
	stdout, stderr := s.LiveCommand(want, append([]string{"deliveries"}, args...)...)
	if want != 0 {
		return stderr
	}
	return stdout
}

// TestDeliveries gives notifications up and replays them, and switches endpoints off and on, by caddy aip deliveries.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	agent, to := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.Serve(
		t,
		site.Config{Store: "store memory", Notify: site.AllowHere + "attempts 1\nkeep_bodies",
			Handle: "aip_gateway a2a/legacy " + agent.URL},
	)
	leader := site.LeaderOf(t, s.URL())
	s.Awake()
	if got := command(s, 0, "list"); got != "Nothing waits to be delivered.\n" {
		t.Errorf("an empty list is %q", got)
	}
	if got := command(s, 0, "endpoints"); got != "No notifications were delivered recently, and none wait.\n" {
		t.Errorf("no endpoints are %q", got)
	}
	to.Answers(site.Always(site.Refusal(400)))
	leader.SetHook(site.Hook{URL: to.Origin() + "/dead", Token: "t", TaskID: "a"})
	leader.Start("a", "hello")
	leader.Complete("a")
	history := leader.Get("a").StatusHistory
	dead := s.Dead(len(history))
	list := command(s, 0, "list", "--status", "dead")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) != 1+len(history) || !strings.HasPrefix(lines[0], "STATUS") {
		t.Fatalf("the list is\n%s", list)
	}
	for i, d := range dead {
		want := []string{"dead", string(history[i].State), "a", to.Origin() + "/d…d", "1", "-", d.ID}
		fields := strings.Fields(lines[i+1])
		got := append(append([]string{}, fields[:6]...), fields[len(fields)-1])
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(lines[i+1], "400") {
			t.Errorf("line %d of the list is %q (-want +got):\n%s", i+1, lines[i+1], diff)
		}
	}
	var page struct{ Deliveries []site.Delivery }
	if err := json.Unmarshal([]byte(command(s, 0, "list", "--json", "--task", "a")), &page); err != nil ||
		cmp.Diff(dead, page.Deliveries) != "" {
		t.Errorf("the list as JSON is %+v: %v", page, err)
	}
	if got := command(s, 0, "list", "--limit", "2"); strings.Count(got, "msg_") != 2 {
		t.Errorf("a list of two is\n%s", got)
	}

	// Replayed under the ids that they had, one and then all.
	to.Answers(site.Always(site.Taken()))
	if got := command(s, 0, "show", dead[2].ID); !strings.Contains(got, "\nattempts  ") ||
		!strings.Contains(got, "\nstatus    dead\n") {
		t.Errorf("show prints\n%s", got)
	}
	if got := command(s, 0, "replay", "msg_none"); got != "0 to be sent again\n" {
		t.Errorf("a replay of nothing says %q", got)
	}
	if got := command(s, 0, "replay", dead[2].ID); got != "1 to be sent again\n" {
		t.Errorf("a replay of one says %q", got)
	}
	to.WaitForChanges("/dead", history[2:3])
	s.Dead(len(history) - 1)
	const question = "dead notifications again? [y/N] \nError: nothing was changed; answer y, or add --yes\n"
	if got := command(s, 1, "replay", "--task", "a", "--since", "1h"); got !=
		fmt.Sprintf("Send %d ", len(history)-1)+question {
		t.Errorf("before a replay of a task, it asks %q", got)
	}
	s.Dead(len(history) - 1)
	if got := command(s, 0, "replay", "--yes", "--task", "a", "--endpoint", to.Origin()+"/d…d"); got !=
		fmt.Sprintf("%d to be sent again\n", len(history)-1) {
		t.Errorf("a replay of a task says %q", got)
	}
	s.Dead(0)
	to.WaitForChanges(
		"/dead",
		append(append([]task.Status{}, history[2]), append(append([]task.Status{}, history[:2]...), history[3:]...)...),
	)
	idle(s) // the outcome is stored a moment after the receiver has answered
	if got := command(s, 0, "list"); got != "Nothing waits to be delivered.\n" {
		t.Errorf("after the replay the list is %q", got)
	}

	// Disabled, and enabled again.
	if got := command(s, 0, "disable", strings.ToUpper(to.Origin())+"/path"); got != to.Origin()+" is disabled\n" {
		t.Errorf("disable says %q", got)
	}
	had := len(to.Arrived(""))
	held := site.LeadWithWebhook(leader, "b", to.Origin()+"/held")
	site.Eventually(t, "the notifications to a disabled endpoint are listed", func() bool {
		list := command(s, 0, "list", "--status", "disabled", "--host", to.Address)
		return strings.Count(list, "\ndisabled ") == len(held)
	})
	if got := command(s, 0, "endpoints", "--json"); !strings.Contains(got, `"endpoint":"`+to.Origin()+`"`) {
		t.Errorf("the endpoints are, in JSON,\n%s", got)
	}
	if got := command(s, 0, "endpoints"); !strings.Contains(got, to.Origin()+"/h…d  disabled by the operator since ") &&
		!strings.Contains(got, to.Origin()+"  disabled by the operator since ") {
		t.Errorf("the endpoints are\n%s", got)
	}
	if n := len(to.Arrived("")) - had; n != 0 {
		t.Errorf("a disabled endpoint was sent %d notifications", n)
	}
	if got := command(s, 0, "enable", to.Origin()); got != to.Origin()+" is enabled\n" {
		t.Errorf("enable says %q", got)
	}
	to.WaitForChanges("/held", held)
	to.InOrder("/held")
	idle(s)
	if got := command(s, 0, "endpoints"); !strings.Contains(got, to.Origin()+"  sending  ") ||
		!regexp.MustCompile(`(?m)^  /d…d +0 +0 +50% of \d+ +[0-9.]+[mµ]?s, 95% [0-9.]+[mµ]?s$`).MatchString(got) {
		t.Errorf("the endpoints are\n%s", got)
	}

	// What was sent, and what came back.
	got := command(s, 0, "attempts", "--task", "a", "--until", "2h")
	if got != "No such attempt is kept.\n" {
		t.Errorf("two hours ago, the attempts were\n%s", got)
	}
	got = command(s, 0, "attempts", dead[2].ID)
	if strings.Count(got, to.Origin()+"/d…d\n") != 2 || !strings.Contains(got, "HTTP 400 after ") ||
		!strings.Contains(got, "HTTP 200 after ") || strings.Count(got, `    {"type":"task","id":"a"`) != 2 {
		t.Errorf("the attempts are\n%s", got)
	}

	for _, tc := range []struct{ want, args string }{
		{"say which", "replay"},
		{"must be pending, failing, dead or disabled", "list --status deaf"},
		{"limit", "list --limit 0"},
		{"an endpoint is written as", "list --endpoint nonsense"},
		{"since is \"soon\", but must be", "list --since soon"},
		{"no dead notification is selected", "replay --task none"},
		{"https://host", "disable nonsense"},
		{"https://host", "enable ftp://example.com"},
		{"arg", "disable"},
	} {
		if got := command(s, 1, strings.Fields(tc.args)...); !strings.Contains(got, tc.want) {
			t.Errorf("%s says %q, want %q in it", tc.args, got, tc.want)
		}
	}
	s.Stop(t)
	if got := command(s, 1, "list"); !strings.Contains(got, "refused") {
		t.Errorf("of a Caddy that does not run, list says %q", got)
	}
}

// TestDeliveriesAPI asks the admin API for what was not delivered.
func TestDeliveriesAPI(t *testing.T) {
	t.Parallel()
	agent, one, two := site.NewFakeAgent(t, nil), site.NewSink(t), site.NewSink(t)
	s := site.Serve(t, site.Config{Notify: site.AllowHere + "attempts 1", Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	for _, to := range []*site.Sink{one, two} {
		to.Answers(site.Always(site.Refusal(500)))
	}
	hooks := make(map[string]site.Hook)
	for id, to := range map[string]*site.Sink{"a": one, "b": two} {
		hooks[id] = leader.SetHook(site.Hook{URL: to.Origin() + "/" + id, Token: "t", TaskID: id})
		leader.Start(id, "hello")
	}
	all := s.Dead(6)
	of := func(id string) (some []site.Delivery) {
		for _, d := range all {
			if d.Task == id {
				some = append(some, d)
			}
		}
		return some
	}
	for query, want := range map[string][]site.Delivery{
		"":                                   all,
		"limit=1":                            all,
		"limit=4":                            all,
		"status=dead":                        all,
		"status=pending":                     nil,
		"task=a":                             of("a"),
		"task=none":                          nil,
		"webhook=" + hooks["b"].ID:           of("b"),
		"host=127.0.0.1":                     all,
		"host=" + one.Address:                of("a"),
		"host=example.com":                   nil,
		"leader=" + leader.Sender:            all,
		"leader=other":                       nil,
		"partner=" + agent.URL:               all,
		"partner=other":                      nil,
		"id=" + all[0].ID:                    all[:1],
		"id=" + all[0].ID + "&id=none":       all[:1],
		"task=b&status=dead&limit=2":         of("b"),
		"task=a&webhook=" + hooks["b"].ID:    nil,
		"id=" + all[0].ID + "&status=dead":   all[:1],
		"status=failing&task=" + all[0].Task: nil,
		"endpoint=" + one.Origin():           of("a"),
		"endpoint=" + one.Origin() + "/a":    of("a"),
		"endpoint=" + two.Origin() + "/b":    of("b"),
		"endpoint=" + two.Origin() + "/bcde": nil,
		"since=1h":                           all,
		"since=1h&until=30m":                 nil,
	} {
		if diff := cmp.Diff(want, s.Deliveries(query), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	var states []task.State
	for _, d := range of("a") {
		want := site.Delivery{
			ID:         d.ID,
			Status:     "dead",
			Partner:    agent.URL,
			Leader:     leader.Sender,
			Task:       "a",
			Webhook:    hooks["a"].ID,
			Endpoint:   one.Origin(),
			Path:       "/…",
			State:      d.State,
			Attempts:   1,
			Next:       time.Time{},
			LastStatus: 500,
			LastError:  d.LastError,
			Recent:     d.Recent,
		}
		if diff := cmp.Diff(want, d); diff != "" || !strings.Contains(d.LastError, "500") ||
			!strings.HasPrefix(d.ID, "msg_") {
			t.Errorf("a dead letter (-want +got):\n%s", diff)
		}
		states = append(states, d.State)
	}
	if diff := cmp.Diff([]task.State{task.Accepted, task.Working, task.AwaitingCompletion}, states); diff != "" {
		t.Errorf("the dead letters of a task (-want +got):\n%s", diff)
	}

	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/aip/deliveries?status=deaf", "", 400, "must be pending, failing, dead or disabled"},
		{"GET", "/aip/deliveries?limit=0", "", 400, "a whole number above 0"},
		{"GET", "/aip/deliveries?limit=many", "", 400, "a whole number above 0"},
		{"GET", "/aip/deliveries?stat=dead", "", 400, "use status, partner,"},
		{"GET", "/aip/deliveries?after=here", "", 400, "the value that the page before returned"},
		{"POST", "/aip/deliveries", "", 405, "use GET"},
		{"GET", "/aip/deliveries/replay?task=a", "", 405, "use POST"},
		{"POST", "/aip/deliveries/replay", "", 400, "say which"},
		{"POST", "/aip/deliveries/replay?limit=1", "", 400, "say which"},
		{"POST", "/aip/deliveries/replay?status=none", "", 400, "must be pending"},
		{"POST", "/aip/deliveries/replay?status=dead&dry_run=yes", "", 400, "must be true or false"},
		{"GET", "/aip/deliveries?until=later", "", 400, "until is \"later\", but must be a time"},
		{"POST", "/aip/deliveries/attempts", "", 405, "use GET"},
		{"POST", "/aip/endpoints", "", 405, "use GET"},
		{"POST", "/aip/endpoints/disable", "", 400, "the body must be"},
		{"POST", "/aip/endpoints/disable", `{"endpoint":""}`, 400, "the body must be"},
		{"POST", "/aip/endpoints/disable", `{"endpoints":"https://example.com"}`, 400, "the body must be"},
		{"POST", "/aip/endpoints/disable", `{"endpoint":"example.com"}`, 400, "https://host"},
		{"POST", "/aip/endpoints/enable", `{"endpoint":"https://"}`, 400, "https://host"},
		{"GET", "/aip/endpoints/enable", "", 405, "use POST"},
	} {
		status, body := s.Asked(tc.method, tc.path, tc.body)
		var answer struct{ Error string }
		if err := json.Unmarshal(body, &answer); status != tc.status || err != nil ||
			!strings.Contains(answer.Error, tc.want) {
			t.Errorf(
				"%s %s %s is answered with %d %s, want %d and %q",
				tc.method,
				tc.path,
				tc.body,
				status,
				body,
				tc.status,
				tc.want,
			)
		}
	}
	if got := s.Dead(6); cmp.Diff(all, got) != "" {
		t.Errorf("what was refused has changed something: %+v", got)
	}

	// A replay that fails is another dead letter of the same id; one that does not is none.
	two.Answers(site.Always(site.Taken()))
	var answer struct{ Replayed, Selected int }
	if s.AdminCall("POST", "/aip/deliveries/replay?status=dead&dry_run=true", "", &answer); answer.Selected != 6 {
		t.Errorf("%d would be replayed", answer.Selected)
	}
	var kept struct {
		Kept     bool
		Attempts []any
	}
	if s.AdminCall("GET", "/aip/deliveries/attempts", "", &kept); kept.Kept || len(kept.Attempts) != 0 {
		t.Errorf("without keep_bodies, there is %+v", kept)
	}
	if s.AdminCall("POST", "/aip/deliveries/replay?status=dead", "", &answer); answer.Replayed != 6 {
		t.Errorf("%d were replayed", answer.Replayed)
	}
	two.WaitForChanges("/b", leader.Get("b").StatusHistory)
	site.Eventually(t, "the others have failed again", func() bool {
		s.Enable(one.Origin()) // after some failures, it is left alone
		return len(one.Arrived("/a")) == 6
	})
	idle(s)
	for i, d := range s.Dead(3) {
		if d.ID != of("a")[i].ID || d.Attempts != 1 {
			t.Errorf("a dead letter that was replayed is %+v", d)
		}
	}
	site.Eventually(t, "nothing is under way to the two endpoints", func() bool { // a moment after the outcome is stored
		got := s.Endpoints()
		return len(got) == 2 && got[0].Queued+got[1].Queued+got[0].InFlight+got[1].InFlight == 0
	})

	// What an operator switches off stays so, whatever becomes of the gateway.
	s.Turn("disable", two.Origin())
	held := site.LeadWithWebhook(leader, "c", two.Origin()+"/c")
	s.Kill()
	s.Run(s.Dir + "/Caddyfile")
	s.Awake()
	s.Dead(3)
	site.Eventually(t, "all are held after a restart", func() bool { // those that the kill has taken are found again
		return len(s.Deliveries("status=disabled")) == len(held)
	})
	if n := len(two.Arrived("/c")); n != 0 {
		t.Errorf("after a restart, %d came to an endpoint that is disabled", n)
	}
	s.Enable(two.Origin())
	two.WaitForChanges("/c", held)
}

// TestDeliveriesWithoutGateway asks an admin API behind which there is no gateway.
func TestDeliveriesWithoutGateway(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	path := filepath.Join(s.Dir, "Caddyfile")
	if err := os.WriteFile(path, fmt.Appendf(nil, "{\nadmin 127.0.0.1:%d\n}\nhttp://127.0.0.1:%d {\nrespond hello\n}\n",
		s.Admin, s.Port), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Run(path)
	for _, path := range []string{"/aip/deliveries", "/aip/endpoints"} {
		if status, body := s.Asked("GET", path, ""); status != 503 ||
			!strings.Contains(string(body), "no aip_gateway is configured") {
			t.Errorf("%s is answered with %d %s", path, status, body)
		}
	}
	if got := command(s, 1, "list"); !strings.Contains(got, "no aip_gateway is configured") {
		t.Errorf("list says %q", got)
	}
}
