// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/notify/delivery"
	"github.com/aip-gateway/aip-gateway/notify/schedule"
	"github.com/aip-gateway/aip-gateway/task"
)

// TestMaskedPath holds an operator's view of a URL: enough to tell URLs apart, and too little to use them.
func TestMaskedPath(t *testing.T) {
	for url, want := range map[string]string{
		"https://h":                           "/",
		"https://h/":                          "/",
		"https://h/fulfil":                    "/f…l",
		"https://h/aip":                       "/…",
		"https://h/hook/":                     "/h…k/",
		"https://h/hook?secret=1":             "/h…k?…",
		"https://h/services/T024/B024/abcdef": "/s…s/T…4/B…4/a…f",
		"https://h/abcd/b/c/d/e/wxyz":         "/a…d/…/…/…/w…z",
		"https://h/%41bcd":                    "/%…d",
	} {
		got := maskedPath(url)
		if got != want {
			t.Errorf("of %s, %s is shown, want %s", url, got, want)
		}
		endpoint, paths, err := splitURL(endpointOf(url) + got)
		if err != nil || endpoint != endpointOf(url) || got != "/" && paths[0] != got {
			t.Errorf("what is shown of %s is read as %s, %q, %v", url, endpoint, paths, err)
		}
	}
}

// TestRates: the last attempts at each URL of an endpoint give its rate.
func TestRates(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		took := 10 * time.Millisecond
		w.sink.set(func(n *notice) (time.Duration, int, error) {
			took += 10 * time.Millisecond
			if strings.HasSuffix(n.url, "/fails") {
				return took, 400, nil
			}
			return took, 200, nil
		})
		begun := time.Now()
		one, two := w.task("one"), w.task("two")
		w.hook(one.log, "https://h.example.org/works", At{})
		must(t, one.move(task.Accepted, task.Working))
		time.Sleep(time.Second)
		synctest.Wait()
		w.hook(two.log, "https://h.example.org/fails", At{})
		failed := time.Now()
		must(t, two.move(task.Accepted))
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		got, err := w.all().Endpoints(t.Context())
		must(t, err)
		const ms = time.Millisecond
		want := []Endpoint{{URL: "https://h.example.org:443", State: Sending, Queued: 1, URLs: []EndpointURL{
			{Path: "/f…s", Queued: 1, Rate: Rate{Attempts: 1, Since: failed, Median: 40 * ms, P95: 40 * ms}},
			{Path: "/w…s", Rate: Rate{Attempts: 2, Delivered: 2, Since: begun, Median: 20 * ms, P95: 20 * ms}},
		}}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestBodies: bodies are kept only if the configuration says so, at most 4 KiB of each, without secrets of the webhook
// sent back by a receiver.
//
// Promise: the bodies of the last attempts to deliver notifications
func TestBodies(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		w.sink.set(status(400))
		w.sink.body = "\xff secret-token /x?secret=query " + strings.Repeat("a", 100_000)
		l := w.task("a")
		hook := w.hook(l.log, here, At{})
		must(t, l.move(task.Accepted))
		synctest.Wait()
		exchanges := func(f Filter) []Exchange {
			list, kept := w.all().Exchanges(f, 100)
			if kept != w.conf.KeepBodies {
				t.Errorf("that bodies are kept is said to be %t", kept)
			}
			return list
		}
		if got := exchanges(Filter{}); got != nil {
			t.Errorf("without keep_bodies, there are %+v", got)
		}

		w.conf.KeepBodies = true
		w.e.Configure(w.conf)
		time.Sleep(time.Minute)
		synctest.Wait()
		all := exchanges(Filter{})
		d := w.deliveries(Filter{})[0]
		if len(all) != 4 {
			t.Fatalf("%d are kept", len(all))
		}
		first := all[3]
		if !strings.HasPrefix(first.Request.Text, `{"type":"task","id":"a",`) ||
			first.Request.Bytes != len(first.Request.Text) {
			t.Errorf("the request is %+v", first.Request)
		}
		want := Body{Text: "\ufffd … … " + strings.Repeat("a", maxBody-len("\ufffd … … ")), Bytes: 64 << 10}
		if diff := cmp.Diff(want, first.Answer); diff != "" {
			t.Errorf("the answer (-want +got):\n%s", diff)
		}
		second := d.Recent[1]
		if !second.At.Equal(first.At.Truncate(time.Millisecond)) {
			t.Errorf("it was made at %s, want %s", first.At, second.At)
		}
		wanted := Exchange{Attempt: Attempt{At: first.At, Status: 400}, ID: d.ID, Partner: "partner", Leader: "leader",
			Task: "a", Webhook: hook.ID, Endpoint: d.Endpoint, Path: "/…?…", Event: 1, State: task.Accepted}
		if diff := cmp.Diff(wanted, first, cmpopts.IgnoreFields(Exchange{}, "Request", "Answer")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, f := range []Filter{{Task: "b"}, {URL: "https://other.example.org"}, {Since: time.Now().Add(time.Second)},
			{IDs: []string{"msg_other"}}} {
			if got := exchanges(f); got != nil {
				t.Errorf("%+v selects %+v", f, got)
			}
		}
		for _, f := range []Filter{{Leader: "leader"}, {URL: here}, {URL: "https://hooks.example.org/…?…"},
			{IDs: []string{d.ID}}} {
			if got := exchanges(f); len(got) != 4 {
				t.Errorf("%+v selects %+v", f, got)
			}
		}
		w.sink.set(nil)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := exchanges(Filter{}); len(got) != 5 || !got[0].Delivered || got[0].Status != 200 {
			t.Errorf("what was delivered is kept as %+v", got[0])
		}

		w.conf.KeepBodies = false
		w.e.Configure(w.conf)
		if got := exchanges(Filter{}); got != nil || w.e.process.results.size != 0 {
			t.Errorf("after keep_bodies was taken away, there are %+v", got)
		}
	})
}

// TestResultsAreBounded: whatever Leaders and receivers do, memory holds so much.
func TestResultsAreBounded(t *testing.T) {
	r := newResults()
	r.configure(true)
	body := make([]byte, maxBody)
	add := func(leader, path string) {
		n := &notification{leader: leader, path: path, job: schedule.Job{Endpoint: "https://h:443"}}
		r.add(n, &delivery.Outcome{Request: body, RequestBytes: maxBody, Answer: []byte("a"), AnswerBytes: 1})
	}
	for i := range 3 * maxResultLeaders {
		for j := range 2 * maxResultURLs {
			add(fmt.Sprint("leader", i), fmt.Sprint("/", j))
		}
	}
	for range 3 * maxResults {
		add("one", "/often")
	}
	urls := 0
	for _, of := range r.leaders.Values() {
		urls += of.Len()
	}
	if r.leaders.Len() != maxResultLeaders || urls > maxResultLeaders*maxResultURLs {
		t.Errorf("it remembers %d Leaders and %d URLs", r.leaders.Len(), urls)
	}
	of := r.of("one", urlName{"https://h:443", "/often"})
	if len(of.last) != maxResults || len(of.exchanges) != maxExchanges {
		t.Errorf("of one URL, it remembers %d attempts and %d exchanges", len(of.last), len(of.exchanges))
	}
	size := 0
	for at := r.exchanges.Front(); at != nil; at = at.Next() {
		e := at.Value.(*kept)
		size += len(e.Request.Text) + len(e.Answer.Text)
	}
	if size != r.size || size > maxBodiesKept || size < maxBodiesKept/2 {
		t.Errorf("it has %d bytes, and says %d", size, r.size)
	}
	r.configure(false)
	if r.size != 0 || r.exchanges.Len() != 0 || len(of.exchanges) != 0 {
		t.Errorf("%d bytes are left", r.size)
	}
}

// TestReplayByFilter: dead letters are counted and replayed by their URL and by when they died, up to a bound.
func TestReplayByFilter(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		w := newWorld(t, memory())
		defer func() { w.e.Close() }()
		w.conf.Attempts = 1
		w.e.Configure(w.conf)
		w.sink.set(status(400))
		var died []time.Time
		for i, url := range []string{"https://h.example.org/first", "https://h.example.org/other",
			"https://g.example.org/first"} {
			l := w.task(fmt.Sprint("task", i))
			w.hook(l.log, url, At{})
			must(t, l.move(task.Accepted))
			synctest.Wait()
			died = append(died, time.Now())
			time.Sleep(time.Hour)
		}
		w.sink.set(func(*notice) (time.Duration, int, error) { return time.Second, 200, nil })
		for name, tc := range map[string]struct {
			Filter
			want int
		}{
			"all":        {Filter{}, 3},
			"endpoint":   {Filter{URL: "https://H.example.org:443"}, 2},
			"the URL":    {Filter{URL: "https://h.example.org/first"}, 1},
			"as shown":   {Filter{URL: "https://h.example.org:443/o…r"}, 1},
			"no such":    {Filter{URL: "https://h.example.org/second"}, 0},
			"no URL":     {Filter{URL: "example"}, 0},
			"since":      {Filter{Since: died[1]}, 2},
			"until":      {Filter{Until: died[1]}, 1},
			"hour":       {Filter{Since: died[1], Until: died[2]}, 1},
			"and a task": {Filter{Since: died[1], Task: "task2"}, 1},
		} {
			if n, err := w.all().Replayable(t.Context(), tc.Filter); n != tc.want || err != nil {
				t.Errorf("%s: %d are counted, want %d: %v", name, n, tc.want, err)
			}
			if n := len(w.deliveries(tc.Filter)); n != tc.want {
				t.Errorf("%s: %d are listed, want %d", name, n, tc.want)
			}
		}
		if n := len(w.deliveries(Filter{Status: Dead})); n != 3 {
			t.Errorf("%d are dead after they were counted", n)
		}
		if n, err := w.e.eachDead(t.Context(), Filter{}, 2, false); n != 2 || err != nil {
			t.Errorf("up to two, %d are replayed: %v", n, err)
		}
		if n, err := w.all().Replay(t.Context(), Filter{}); n != 1 || err != nil {
			t.Errorf("then %d are replayed: %v", n, err)
		}
	})
}
