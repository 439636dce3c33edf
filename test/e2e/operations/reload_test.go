// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/google/go-cmp/cmp"
)

// load has Leaders start, continue and complete tasks until it is ended. Every answer must be the right one.
func load(t testing.TB, mount string, leaders int) (end func() (tasks int)) {
	t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	counts := make([]int, leaders)
	for w := range leaders {
		leader := site.LeaderOf(t, mount)
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("load-%d-%d", w, counts[w])
				for _, step := range []struct {
					call *task.Call
					want site.Answered
				}{
					{site.StartCall(id, "ask"), site.Answered{State: task.AwaitingInput, Says: "which colour?"}},
					{site.CommandCall(task.Continue, id, "blue"), site.Answered{State: task.AwaitingCompletion, Says: "done",
						Products: []string{"you said: blue"}}},
					{site.CommandCall(task.Complete, id), site.Answered{State: task.Completed, Products: []string{"you said: blue"}}},
				} {
					got, err := leader.Again(step.call)
					if err != nil {
						t.Errorf("under load: %s of %s: %v", step.call.Message.Command, id, site.Explain(err))
						return
					}
					if diff := cmp.Diff(step.want, site.AnswerOf(got)); diff != "" {
						t.Errorf("under load: %s of %s (-want +got):\n%s", step.call.Message.Command, id, diff)
						return
					}
				}
				counts[w]++
			}
		})
	}
	return func() int {
		close(stop)
		all.Wait()
		total := 0
		for _, n := range counts {
			total += n
		}
		return total
	}
}

// TestReload changes the configuration under load, well and badly.
func TestReload(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := site.New(t)
	gateway := "aip_gateway a2a/legacy http://" + address
	dir := s.Dir + "/store"
	base := site.Config{Handle: gateway}
	s.Start(base)
	leader := site.LeaderOf(t, s.URL())
	leader.Start("before", "ask")

	end := load(t, s.URL(), 8)
	slow := make(chan site.Answered, 1)
	go func() {
		got, err := leader.Again(site.StartCall("in flight", "slow 3"))
		if err != nil {
			t.Errorf("a start in flight: %v", site.Explain(err))
			got = new(task.Task)
		}
		slow <- site.AnswerOf(got)
	}()
	background := site.StartCall("background", "slow 3")
	background.Terms.Response = time.Millisecond
	if got := leader.Send(background); got.Status.State != task.Working {
		t.Errorf("the background run: %+v", site.AnswerOf(got))
	}

	for _, tc := range []struct {
		name   string
		config site.Config
		want   string // what Caddy has against it
	}{
		{"the same", base, ""},
		{"other timeouts", site.Config{Handle: gateway + " {\ntimeouts {\nresponse 20s\nawaiting_input 1h\n}\n}"}, ""},
		{"a bad store", site.Config{Handle: gateway, Store: "store pebble /dev/null/store"}, `/dev/null`},
		{"another sync", site.Config{Handle: gateway, Store: "store pebble " + dir + " {\nsync always\nretention 1h\n}"}, ""},
		{"a bad AIC", site.Config{Handle: gateway + " {\naic 1234\n}"}, `aic: `},
		{"a port that is taken", site.Config{Handle: gateway,
			OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\nrespond hi\n}", taken.Addr().(*net.TCPAddr).Port)},
			`address already in use`},
		{"a bad store and another sync", site.Config{Handle: gateway, Store: "store pebble " + s.Dir +
			"/Caddyfile {\nsync never\n}"}, `Caddyfile`},
		{"never sync", site.Config{Handle: gateway, Store: "store pebble " + dir + " {\nsync never\n}"}, ""},
		{"back again", base, ""},
	} {
		complaint := s.Reload(tc.config)
		if tc.want == "" && complaint != "" ||
			tc.want != "" && !regexp.MustCompile(tc.want).MatchString(lastMessage(complaint)+complaint) {
			t.Errorf("%s: Caddy says %q, want %q", tc.name, complaint, tc.want)
		}
		if got, err := leader.Again(site.CommandCall(task.Get, "before")); err != nil {
			t.Errorf("%s: a task from before: %v", tc.name, site.Explain(err))
		} else if got.Status.State != task.AwaitingInput {
			t.Errorf("%s: a task from before is %+v", tc.name, site.AnswerOf(got))
		}
	}
	want := site.Answered{State: task.AwaitingCompletion, Products: []string{"slow done"}}
	if diff := cmp.Diff(want, <-slow); diff != "" {
		t.Errorf("a start in flight (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, site.AnswerOf(leader.Rests("background"))); diff != "" {
		t.Errorf("a run in the background (-want +got):\n%s", diff)
	}
	if got := leader.GoOn("before", "blue"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("a task from before becomes %+v", site.AnswerOf(got))
	}
	if n := end(); n == 0 {
		t.Error("there was no load")
	} else {
		t.Logf("%d tasks", n)
	}

	// A route that goes takes no task with it.
	if complaint := s.Reload(site.Config{Handle: "respond gone 410"}); complaint != "" {
		t.Fatal(complaint)
	}
	site.Eventually(t, "connections to the configuration with the route have ended", func() bool {
		res, _ := leader.Exchange(http.MethodGet, "/.well-known/acs.json", nil)
		return res.StatusCode == http.StatusGone
	})
	if res, body := leader.Post("/rpc", []byte(site.StartBody(leader.Sender, "none"))); res.StatusCode != http.StatusGone {
		t.Errorf("a removed route answers %d %s", res.StatusCode, body)
	}
	if complaint := s.Reload(base); complaint != "" {
		t.Fatal(complaint)
	}
	var back *task.Task
	site.Eventually(t, "connections to the configuration without the route have ended", func() bool {
		back, err = leader.Again(site.CommandCall(task.Get, "before"))
		return err == nil
	})
	if back.Status.State != task.AwaitingCompletion {
		t.Errorf("a task of a route that was away is %+v", site.AnswerOf(back))
	}
	s.Stop(t)
	if code := s.Cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("caddy run ended with %d", code)
	}
}

// TestReloadKeepsRunsOfARemovedRoute takes a route away while its agent is at work.
func TestReloadKeepsRunsOfARemovedRoute(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	base := site.Config{Handle: "aip_gateway a2a/legacy http://" + address}
	s := site.Serve(t, base)
	leader := site.LeaderOf(t, s.URL())
	call := site.StartCall("one", "slow 2")
	call.Terms.Response = time.Millisecond
	leader.Send(call)
	for _, c := range []site.Config{{Handle: "respond gone 410"}, base} {
		if complaint := s.Reload(c); complaint != "" {
			t.Fatal(complaint)
		}
	}
	got := leader.Rests("one")
	site.CheckHistory(t, got)
	if diff := cmp.Diff(site.Answered{State: task.AwaitingCompletion, Products: []string{"slow done"}},
		site.AnswerOf(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReloadLeaks reloads often, and looks for what stays behind.
func TestReloadLeaks(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	c := func(i int) site.Config {
		return site.Config{
			Handle: fmt.Sprintf("aip_gateway a2a/legacy http://%s {\ntimeouts {\nresponse %ds\n}\n}", address, 20+i),
		}
	}
	s := site.New(t)
	s.Start(c(0))
	use := func(i int) {
		leader := site.LeaderOf(t, s.URL())
		defer leader.Close()
		if _, err := leader.Again(site.StartCall(fmt.Sprint("one-", i), "hello")); err != nil {
			t.Error(site.Explain(err))
		}
	}
	use(0)
	if complaint := s.Reload(c(1)); complaint != "" { // the first one makes what stays
		t.Fatal(complaint)
	}
	use(1)
	http.DefaultClient.CloseIdleConnections()
	// It settles once connections that are idle have been closed.
	least, same := goroutines(s), 0
	site.Eventually(t, "the number of goroutines settles", func() bool {
		http.DefaultClient.CloseIdleConnections()
		switch n := goroutines(s); {
		case n < least:
			least, same = n, 0
		default:
			same++
		}
		return same == 50
	})
	for i := range 20 {
		if complaint := s.Reload(c(2 + i)); complaint != "" {
			t.Fatal(complaint)
		}
		use(2 + i)
	}
	var now int
	site.Eventually(t, fmt.Sprintf("there are about %d goroutines again", least), func() bool {
		http.DefaultClient.CloseIdleConnections()
		now = goroutines(s)
		return now <= least+5
	})
	t.Logf("%d goroutines before, %d after", least, now)
	if strings.Contains(s.Out.String(), `"level":"error"`) {
		t.Error("the log has errors")
	}
}

// goroutines returns how many goroutines the gateway has.
func goroutines(s *site.Site) int {
	s.T.Helper()
	_, body := s.Asked(http.MethodGet, "/debug/pprof/goroutine?debug=1", "")
	m := regexp.MustCompile(`^goroutine profile: total (\d+)`).FindSubmatch(body)
	if m == nil {
		s.T.Fatalf("the admin API says: %.200s", body)
	}
	n, err := strconv.Atoi(string(m[1]))
	site.NoError(s.T, err)
	return n
}
