// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/task"
)

// delivery is a notification that was not delivered, as the admin API shows it.
type delivery struct {
	ID         string     `json:"id"`
	Status     string     `json:"status"`
	Partner    string     `json:"partner"`
	Leader     string     `json:"leader"`
	Task       string     `json:"task"`
	Webhook    string     `json:"webhook"`
	Endpoint   string     `json:"endpoint"`
	Path       string     `json:"path"`
	State      task.State `json:"state"`
	Attempts   int        `json:"attempts"`
	Next       time.Time  `json:"next"`
	LastStatus int        `json:"last_status"`
	LastError  string     `json:"last_error"`
	Recent     []attempt  `json:"recent_attempts"`
}

// endpoint is where webhooks are delivered to, as the admin API shows it.
type endpoint struct {
	Endpoint string `json:"endpoint"`
	State    string `json:"state"`
	InFlight int    `json:"in_flight"`
	Queued   int    `json:"queued"`
	URLs     []struct {
		Path      string  `json:"path"`
		Dead      int     `json:"dead"`
		Attempts  int     `json:"attempts"`
		Delivered int     `json:"delivered"`
		Median    float64 `json:"median_ms"`
	} `json:"urls"`
}

// deliveries returns what the admin API lists, of all pages.
func (s *site) deliveries(query string) (all []delivery) {
	s.t.Helper()
	for after := ""; ; {
		var page struct {
			Deliveries []delivery `json:"deliveries"`
			Next       string     `json:"next"`
		}
		s.adminCall("GET", "/aip/deliveries?"+query+after, "", &page)
		if all = append(all, page.Deliveries...); page.Next == "" {
			return all
		}
		if len(all) > 10_000 {
			s.t.Fatal("the pages have no end")
		}
		after = "&after=" + url.QueryEscape(page.Next)
		if query == "" {
			after = after[1:]
		}
	}
}

func (s *site) endpoints() []endpoint {
	s.t.Helper()
	var answer struct {
		Endpoints []endpoint `json:"endpoints"`
	}
	s.adminCall("GET", "/aip/endpoints", "", &answer)
	return answer.Endpoints
}

// enable has everything that waits for an endpoint tried now. It is how tests need not wait for what comes by itself,
// minutes later.
func (s *site) enable(origin string) { s.t.Helper(); s.turn("enable", origin) }

func (s *site) turn(how, origin string) {
	s.t.Helper()
	var answer struct{ Endpoint string }
	if s.adminCall("POST", "/aip/endpoints/"+how, `{"endpoint":"`+origin+`"}`, &answer); answer.Endpoint != origin {
		s.t.Errorf("%s of %s is answered %+v", how, origin, answer)
	}
}

// idle waits until nothing is to be delivered any more, now or later.
func (s *site) idle() {
	s.t.Helper()
	eventually(s.t, "nothing is left to be delivered", func() bool {
		return len(s.deliveries("status=pending")) == 0 && len(s.deliveries("status=failing")) == 0
	})
}

// dead waits until a number of notifications is dead, and returns them.
func (s *site) dead(n int) (all []delivery) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%d notifications are dead", n), func() bool {
		all = s.deliveries("status=dead")
		return len(all) == n
	})
	return all
}

// aip runs a command of the gateway's and demands its exit status.
func (s *site) aip(want int, args ...string) string {
	s.t.Helper()
	args = append([]string{"aip", "deliveries"}, append(args, "--address", strings.TrimPrefix(s.adminURL(), "http://"))...)
	status, stdout, stderr := s.caddy(args...)
	if status != want {
		s.t.Errorf("%q ends with %d, want %d: %s%s", args, status, want, stdout, stderr)
	}
	if want != 0 {
		return stderr
	}
	return stdout
}

// TestDeliveries gives notifications up and replays them, and switches endpoints off and on, by caddy aip deliveries.
func TestDeliveries(t *testing.T) {
	t.Parallel()
	agent, to := newFakeAgent(t, nil), newSink(t)
	s := serve(
		t,
		config{store: "store memory", notify: here + "attempts 1\nkeep_bodies",
			handle: "aip_gateway a2a/legacy " + agent.url},
	)
	leader := leaderOf(t, s.url())
	s.awake()
	if got := s.aip(0, "list"); got != "Nothing waits to be delivered.\n" {
		t.Errorf("an empty list is %q", got)
	}
	if got := s.aip(0, "endpoints"); got != "No notifications were delivered recently, and none wait.\n" {
		t.Errorf("no endpoints are %q", got)
	}
	to.answers(always(refusal(400)))
	leader.setHook(hook{URL: to.origin() + "/dead", Token: "t", TaskID: "a"})
	leader.start("a", "hello")
	leader.complete("a")
	history := leader.get("a").StatusHistory
	dead := s.dead(len(history))
	list := s.aip(0, "list", "--status", "dead")
	lines := strings.Split(strings.TrimSpace(list), "\n")
	if len(lines) != 1+len(history) || !strings.HasPrefix(lines[0], "STATUS") {
		t.Fatalf("the list is\n%s", list)
	}
	for i, d := range dead {
		want := []string{"dead", string(history[i].State), "a", to.origin() + "/d…d", "1", "-", d.ID}
		fields := strings.Fields(lines[i+1])
		got := append(append([]string{}, fields[:6]...), fields[len(fields)-1])
		if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(lines[i+1], "400") {
			t.Errorf("line %d of the list is %q (-want +got):\n%s", i+1, lines[i+1], diff)
		}
	}
	var page struct{ Deliveries []delivery }
	if err := json.Unmarshal([]byte(s.aip(0, "list", "--json", "--task", "a")), &page); err != nil ||
		cmp.Diff(dead, page.Deliveries) != "" {
		t.Errorf("the list as JSON is %+v: %v", page, err)
	}
	if got := s.aip(0, "list", "--limit", "2"); strings.Count(got, "msg_") != 2 {
		t.Errorf("a list of two is\n%s", got)
	}

	// Replayed under the ids that they had, one and then all.
	to.answers(always(taken()))
	if got := s.aip(0, "show", dead[2].ID); !strings.Contains(got, "\nattempts  ") ||
		!strings.Contains(got, "\nstatus    dead\n") {
		t.Errorf("show prints\n%s", got)
	}
	if got := s.aip(0, "replay", "msg_none"); got != "0 to be sent again\n" {
		t.Errorf("a replay of nothing says %q", got)
	}
	if got := s.aip(0, "replay", dead[2].ID); got != "1 to be sent again\n" {
		t.Errorf("a replay of one says %q", got)
	}
	to.waitForChanges("/dead", history[2:3])
	s.dead(len(history) - 1)
	const question = "dead notifications again? [y/N] \nError: nothing was changed; answer y, or add --yes\n"
	if got := s.aip(1, "replay", "--task", "a", "--since", "1h"); got != fmt.Sprintf("Send %d ", len(history)-1)+question {
		t.Errorf("before a replay of a task, it asks %q", got)
	}
	s.dead(len(history) - 1)
	if got := s.aip(0, "replay", "--yes", "--task", "a", "--endpoint", to.origin()+"/d…d"); got !=
		fmt.Sprintf("%d to be sent again\n", len(history)-1) {
		t.Errorf("a replay of a task says %q", got)
	}
	s.dead(0)
	to.waitForChanges(
		"/dead",
		append(append([]task.Status{}, history[2]), append(append([]task.Status{}, history[:2]...), history[3:]...)...),
	)
	s.idle() // the outcome is stored a moment after the receiver has answered
	if got := s.aip(0, "list"); got != "Nothing waits to be delivered.\n" {
		t.Errorf("after the replay the list is %q", got)
	}

	// Disabled, and enabled again.
	if got := s.aip(0, "disable", strings.ToUpper(to.origin())+"/path"); got != to.origin()+" is disabled\n" {
		t.Errorf("disable says %q", got)
	}
	had := len(to.arrived(""))
	held := lead(leader, "b", to.origin()+"/held")
	if got := s.aip(0, "list", "--status", "disabled", "--host", to.address); strings.Count(
		got,
		"\ndisabled ",
	) != len(
		held,
	) {
		t.Errorf("of a disabled endpoint, the list is\n%s", got)
	}
	if got := s.aip(0, "endpoints", "--json"); !strings.Contains(got, `"endpoint":"`+to.origin()+`"`) {
		t.Errorf("the endpoints are, in JSON,\n%s", got)
	}
	if got := s.aip(0, "endpoints"); !strings.Contains(got, to.origin()+"/h…d  disabled by the operator since ") &&
		!strings.Contains(got, to.origin()+"  disabled by the operator since ") {
		t.Errorf("the endpoints are\n%s", got)
	}
	if n := len(to.arrived("")) - had; n != 0 {
		t.Errorf("a disabled endpoint was sent %d notifications", n)
	}
	if got := s.aip(0, "enable", to.origin()); got != to.origin()+" is enabled\n" {
		t.Errorf("enable says %q", got)
	}
	to.waitForChanges("/held", held)
	to.inOrder("/held")
	s.idle()
	if got := s.aip(0, "endpoints"); !strings.Contains(got, to.origin()+"  sending  ") ||
		!regexp.MustCompile(`(?m)^  /d…d +0 +0 +50% of \d+ +[0-9.]+[mµ]?s, 95% [0-9.]+[mµ]?s$`).MatchString(got) {
		t.Errorf("the endpoints are\n%s", got)
	}

	// What was sent, and what came back.
	got := s.aip(0, "attempts", "--task", "a", "--until", "2h")
	if got != "No such attempt is kept.\n" {
		t.Errorf("two hours ago, the attempts were\n%s", got)
	}
	got = s.aip(0, "attempts", dead[2].ID)
	if strings.Count(got, to.origin()+"/d…d\n") != 2 || !strings.Contains(got, "HTTP 400 after ") ||
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
		if got := s.aip(1, strings.Fields(tc.args)...); !strings.Contains(got, tc.want) {
			t.Errorf("%s says %q, want %q in it", tc.args, got, tc.want)
		}
	}
	s.stop(t)
	if got := s.aip(1, "list"); !strings.Contains(got, "refused") {
		t.Errorf("of a Caddy that does not run, list says %q", got)
	}
}

// TestDeliveriesAPI asks the admin API for what was not delivered.
func TestDeliveriesAPI(t *testing.T) {
	t.Parallel()
	agent, one, two := newFakeAgent(t, nil), newSink(t), newSink(t)
	s := serve(t, config{notify: here + "attempts 1", handle: "aip_gateway a2a/legacy " + agent.url})
	leader := leaderOf(t, s.url())
	for _, to := range []*sink{one, two} {
		to.answers(always(refusal(500)))
	}
	hooks := make(map[string]hook)
	for id, to := range map[string]*sink{"a": one, "b": two} {
		hooks[id] = leader.setHook(hook{URL: to.origin() + "/" + id, Token: "t", TaskID: id})
		leader.start(id, "hello")
	}
	all := s.dead(6)
	of := func(id string) (some []delivery) {
		for _, d := range all {
			if d.Task == id {
				some = append(some, d)
			}
		}
		return some
	}
	for query, want := range map[string][]delivery{
		"":                                   all,
		"limit=1":                            all,
		"limit=4":                            all,
		"status=dead":                        all,
		"status=pending":                     nil,
		"task=a":                             of("a"),
		"task=none":                          nil,
		"webhook=" + hooks["b"].ID:           of("b"),
		"host=127.0.0.1":                     all,
		"host=" + one.address:                of("a"),
		"host=example.com":                   nil,
		"leader=" + leader.Sender:            all,
		"leader=other":                       nil,
		"partner=" + agent.url:               all,
		"partner=other":                      nil,
		"id=" + all[0].ID:                    all[:1],
		"id=" + all[0].ID + "&id=none":       all[:1],
		"task=b&status=dead&limit=2":         of("b"),
		"task=a&webhook=" + hooks["b"].ID:    nil,
		"id=" + all[0].ID + "&status=dead":   all[:1],
		"status=failing&task=" + all[0].Task: nil,
		"endpoint=" + one.origin():           of("a"),
		"endpoint=" + one.origin() + "/a":    of("a"),
		"endpoint=" + two.origin() + "/b":    of("b"),
		"endpoint=" + two.origin() + "/bcde": nil,
		"since=1h":                           all,
		"since=1h&until=30m":                 nil,
	} {
		if diff := cmp.Diff(want, s.deliveries(query), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	var states []task.State
	for _, d := range of("a") {
		want := delivery{
			d.ID,
			"dead",
			agent.url,
			leader.Sender,
			"a",
			hooks["a"].ID,
			one.origin(),
			"/…",
			d.State,
			1,
			time.Time{},
			500,
			d.LastError,
			d.Recent,
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
		status, body := s.asked(tc.method, tc.path, tc.body)
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
	if got := s.dead(6); cmp.Diff(all, got) != "" {
		t.Errorf("what was refused has changed something: %+v", got)
	}

	// A replay that fails is another dead letter of the same id; one that does not is none.
	two.answers(always(taken()))
	var answer struct{ Replayed, Selected int }
	if s.adminCall("POST", "/aip/deliveries/replay?status=dead&dry_run=true", "", &answer); answer.Selected != 6 {
		t.Errorf("%d would be replayed", answer.Selected)
	}
	var kept struct {
		Kept     bool
		Attempts []any
	}
	if s.adminCall("GET", "/aip/deliveries/attempts", "", &kept); kept.Kept || len(kept.Attempts) != 0 {
		t.Errorf("without keep_bodies, there is %+v", kept)
	}
	if s.adminCall("POST", "/aip/deliveries/replay?status=dead", "", &answer); answer.Replayed != 6 {
		t.Errorf("%d were replayed", answer.Replayed)
	}
	two.waitForChanges("/b", leader.get("b").StatusHistory)
	eventually(t, "the others have failed again", func() bool {
		s.enable(one.origin()) // after some failures, it is left alone
		return len(one.arrived("/a")) == 6
	})
	s.idle()
	for i, d := range s.dead(3) {
		if d.ID != of("a")[i].ID || d.Attempts != 1 {
			t.Errorf("a dead letter that was replayed is %+v", d)
		}
	}
	eventually(t, "nothing is under way to the two endpoints", func() bool { // a moment after the outcome is stored
		got := s.endpoints()
		return len(got) == 2 && got[0].Queued+got[1].Queued+got[0].InFlight+got[1].InFlight == 0
	})

	// What an operator switches off stays so, whatever becomes of the gateway.
	s.turn("disable", two.origin())
	held := lead(leader, "c", two.origin()+"/c")
	s.kill()
	s.run(s.dir + "/Caddyfile")
	s.awake()
	s.dead(3)
	if got := s.deliveries("status=disabled"); len(got) != len(held) || len(two.arrived("/c")) != 0 {
		t.Errorf("after a restart, %d are held, and %d came", len(got), len(two.arrived("/c")))
	}
	s.enable(two.origin())
	two.waitForChanges("/c", held)
}

// TestDeliveriesWithoutGateway asks an admin API behind which there is no gateway.
func TestDeliveriesWithoutGateway(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	path := filepath.Join(s.dir, "Caddyfile")
	if err := os.WriteFile(path, fmt.Appendf(nil, "{\nadmin 127.0.0.1:%d\n}\nhttp://127.0.0.1:%d {\nrespond hello\n}\n",
		s.admin, s.port), 0o600); err != nil {
		t.Fatal(err)
	}
	s.run(path)
	for _, path := range []string{"/aip/deliveries", "/aip/endpoints"} {
		if status, body := s.asked("GET", path, ""); status != 503 ||
			!strings.Contains(string(body), "no aip_gateway is configured") {
			t.Errorf("%s is answered with %d %s", path, status, body)
		}
	}
	if got := s.aip(1, "list"); !strings.Contains(got, "no aip_gateway is configured") {
		t.Errorf("list says %q", got)
	}
}
