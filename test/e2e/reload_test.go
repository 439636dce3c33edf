// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/task"
)

// again sends a command beside a reload, once more if its connection was reset. On Linux, each configuration has a
// listening socket of its own for one port, and a connection that the old one has not accepted yet is reset with it.
// Every command may be repeated.
func (c *caller) again(call *task.Call) (*task.Task, error) {
	got, err := c.try(call)
	if errors.Is(err, syscall.ECONNRESET) {
		got, err = c.try(call)
	}
	return got, err
}

// load has Leaders start, continue and complete tasks until it is ended. Every answer must be the right one.
func load(t testing.TB, mount string, leaders int) (end func() (tasks int)) {
	t.Helper()
	stop := make(chan struct{})
	var all sync.WaitGroup
	counts := make([]int, leaders)
	for w := range leaders {
		leader := leaderOf(t, mount)
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
					want answered
				}{
					{startCall(id, "ask"), answered{task.AwaitingInput, "which colour?", nil}},
					{commandCall(task.Continue, id, "blue"), answered{task.AwaitingCompletion, "done", []string{"you said: blue"}}},
					{commandCall(task.Complete, id), answered{task.Completed, "", []string{"you said: blue"}}},
				} {
					got, err := leader.again(step.call)
					if err != nil {
						t.Errorf("under load: %s of %s: %v", step.call.Message.Command, id, explain(err))
						return
					}
					if diff := cmp.Diff(step.want, of(got)); diff != "" {
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

// goroutines returns how many goroutines the gateway has.
func (s *site) goroutines() int {
	s.t.Helper()
	res, err := http.Get(s.adminURL() + "/debug/pprof/goroutine?debug=1")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	m := regexp.MustCompile(`^goroutine profile: total (\d+)`).FindSubmatch(body)
	if m == nil {
		s.t.Fatalf("the admin API says: %.200s", body)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// TestReload changes the configuration under load, well and badly.
func TestReload(t *testing.T) {
	t.Parallel()
	_, address := sampleAgent(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := newSite(t)
	gateway := "aip_gateway a2a/legacy http://" + address
	dir := s.dir + "/store"
	base := config{handle: gateway}
	s.start(base)
	leader := leaderOf(t, s.url())
	leader.start("before", "ask")

	end := load(t, s.url(), 8)
	slow := make(chan answered, 1)
	go func() {
		got, err := leader.again(startCall("in flight", "slow 3"))
		if err != nil {
			t.Errorf("a start in flight: %v", explain(err))
			got = new(task.Task)
		}
		slow <- of(got)
	}()
	background := startCall("background", "slow 3")
	background.Terms.Response = time.Millisecond
	if got := leader.do(background); got.Status.State != task.Working {
		t.Errorf("the background run: %+v", of(got))
	}

	for _, tc := range []struct {
		name   string
		config config
		want   string // what Caddy has against it
	}{
		{"the same", base, ""},
		{"other timeouts", config{handle: gateway + " {\ntimeouts {\nresponse 20s\nawaiting_input 1h\n}\n}"}, ""},
		{"a bad store", config{handle: gateway, store: "store pebble /dev/null/store"}, `/dev/null`},
		{"another sync", config{handle: gateway, store: "store pebble " + dir + " {\nsync always\nretention 1h\n}"}, ""},
		{"a bad AIC", config{handle: gateway + " {\naic 1234\n}"}, `aic: `},
		{"a port that is taken", config{handle: gateway,
			otherSites: fmt.Sprintf("http://127.0.0.1:%d {\nrespond hi\n}", taken.Addr().(*net.TCPAddr).Port)},
			`address already in use`},
		{"a bad store and another sync", config{handle: gateway, store: "store pebble " + s.dir +
			"/Caddyfile {\nsync never\n}"}, `Caddyfile`},
		{"never sync", config{handle: gateway, store: "store pebble " + dir + " {\nsync never\n}"}, ""},
		{"back again", base, ""},
	} {
		complaint := s.reload(tc.config)
		if tc.want == "" && complaint != "" ||
			tc.want != "" && !regexp.MustCompile(tc.want).MatchString(lastMessage(complaint)+complaint) {
			t.Errorf("%s: Caddy says %q, want %q", tc.name, complaint, tc.want)
		}
		if got, err := leader.again(commandCall(task.Get, "before")); err != nil {
			t.Errorf("%s: a task from before: %v", tc.name, explain(err))
		} else if got.Status.State != task.AwaitingInput {
			t.Errorf("%s: a task from before is %+v", tc.name, of(got))
		}
	}
	want := answered{task.AwaitingCompletion, "", []string{"slow done"}}
	if diff := cmp.Diff(want, <-slow); diff != "" {
		t.Errorf("a start in flight (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, of(leader.rests("background"))); diff != "" {
		t.Errorf("a run in the background (-want +got):\n%s", diff)
	}
	if got := leader.goOn("before", "blue"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("a task from before becomes %+v", of(got))
	}
	if n := end(); n == 0 {
		t.Error("there was no load")
	} else {
		t.Logf("%d tasks", n)
	}

	// A route that goes takes no task with it.
	if complaint := s.reload(config{handle: "respond gone 410"}); complaint != "" {
		t.Fatal(complaint)
	}
	eventually(t, "connections to the configuration with the route have ended", func() bool {
		res, _ := leader.request(http.MethodGet, "/.well-known/acs.json", nil)
		return res.StatusCode == http.StatusGone
	})
	if res, body := leader.post("/rpc", []byte(startBody(leader.Sender, "none"))); res.StatusCode != http.StatusGone {
		t.Errorf("a removed route answers %d %s", res.StatusCode, body)
	}
	if complaint := s.reload(base); complaint != "" {
		t.Fatal(complaint)
	}
	var back *task.Task
	eventually(t, "connections to the configuration without the route have ended", func() bool {
		back, err = leader.again(commandCall(task.Get, "before"))
		return err == nil
	})
	if back.Status.State != task.AwaitingCompletion {
		t.Errorf("a task of a route that was away is %+v", of(back))
	}
	s.stop(t)
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("caddy run ended with %d", code)
	}
}

// TestReloadKeepsRunsOfARemovedRoute takes a route away while its agent is at work.
func TestReloadKeepsRunsOfARemovedRoute(t *testing.T) {
	t.Parallel()
	_, address := sampleAgent(t)
	base := config{handle: "aip_gateway a2a/legacy http://" + address}
	s := serve(t, base)
	leader := leaderOf(t, s.url())
	call := startCall("one", "slow 2")
	call.Terms.Response = time.Millisecond
	leader.do(call)
	for _, c := range []config{{handle: "respond gone 410"}, base} {
		if complaint := s.reload(c); complaint != "" {
			t.Fatal(complaint)
		}
	}
	got := leader.rests("one")
	checkHistory(t, got)
	if diff := cmp.Diff(answered{task.AwaitingCompletion, "", []string{"slow done"}}, of(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestReloadLeaks reloads often, and looks for what stays behind.
func TestReloadLeaks(t *testing.T) {
	t.Parallel()
	_, address := sampleAgent(t)
	c := func(i int) config {
		return config{
			handle: fmt.Sprintf("aip_gateway a2a/legacy http://%s {\ntimeouts {\nresponse %ds\n}\n}", address, 20+i),
		}
	}
	s := newSite(t)
	s.start(c(0))
	use := func(i int) {
		leader := leaderOf(t, s.url())
		defer leader.Close()
		if _, err := leader.again(startCall(fmt.Sprint("one-", i), "hello")); err != nil {
			t.Error(explain(err))
		}
	}
	use(0)
	if complaint := s.reload(c(1)); complaint != "" { // the first one makes what stays
		t.Fatal(complaint)
	}
	use(1)
	http.DefaultClient.CloseIdleConnections()
	// It settles once connections that are idle have been closed.
	least, same := s.goroutines(), 0
	eventually(t, "the number of goroutines settles", func() bool {
		http.DefaultClient.CloseIdleConnections()
		switch n := s.goroutines(); {
		case n < least:
			least, same = n, 0
		default:
			same++
		}
		return same == 50
	})
	for i := range 20 {
		if complaint := s.reload(c(2 + i)); complaint != "" {
			t.Fatal(complaint)
		}
		use(2 + i)
	}
	var now int
	eventually(t, fmt.Sprintf("there are about %d goroutines again", least), func() bool {
		http.DefaultClient.CloseIdleConnections()
		now = s.goroutines()
		return now <= least+5
	})
	t.Logf("%d goroutines before, %d after", least, now)
	if strings.Contains(s.out.String(), `"level":"error"`) {
		t.Error("the log has errors")
	}
}
