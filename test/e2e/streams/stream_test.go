// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// followAll starts n tasks by stream and follows them all until they rest, every other one over HTTP/1.1, on a
// connection that outlives its requests.
func followAll(
	t *testing.T,
	n int,
	ctx context.Context,
	text string,
	each func(i int) *site.Follower,
) (wait func() []*site.Follower) {
	t.Helper()
	all := make([]*site.Follower, n)
	var group sync.WaitGroup
	var http1 *http.Client
	for i := range all {
		all[i] = each(i)
		if http1 == nil {
			http1 = &http.Client{Transport: all[i].Transports(t)["1"]}
		}
		if i%2 == 1 {
			all[i].Over = http1
		}
		group.Go(func() {
			if err := all[i].FollowTo(ctx, text, "awaiting-completion"); err != nil {
				t.Error(err)
			}
		})
	}
	return func() []*site.Follower {
		group.Wait()
		return all
	}
}

func cuts(all []*site.Follower) (n int) {
	for _, f := range all {
		n += f.Cuts
	}
	return n
}

func TestStreamsWithTheRealAgent(t *testing.T) {
	t.Parallel()
	agent := strings.TrimSuffix(strings.TrimPrefix(site.TRPCAgent(t), "http://"), "/")
	s := site.Serve(t, site.Config{Handle: site.GatewayTo(agent)})
	l := site.LeaderOf(t, s.URL())
	ctx := site.Within(t, 3*site.Patience)

	f := &site.Follower{Caller: l, ID: "chunks"}
	if err := f.FollowTo(ctx, "stream 5 20", "awaiting-completion"); err != nil {
		t.Fatal(err)
	}
	if f.Text() != site.Chunks(5) || f.Cuts != 0 {
		t.Errorf("got %q with %d cuts", f.Text(), f.Cuts)
	}

	asks := &site.Follower{Caller: l, ID: "asks"}
	if err := asks.FollowTo(ctx, "ask", "awaiting-input"); err != nil {
		t.Fatal(err)
	}
	l.GoOn("asks", "blue")
	if err := asks.FollowTo(ctx, "", "awaiting-completion"); err != nil {
		t.Fatal(err)
	}
	l.Complete("asks")
	if err := asks.FollowTo(ctx, "", "completed"); err != nil {
		t.Fatal(err)
	}
	if asks.Text() != "you said: blue" {
		t.Errorf("the answer is %q", asks.Text())
	}

	fails := &site.Follower{Caller: l, ID: "fails"}
	if err := fails.FollowTo(ctx, "fail", "failed"); err != nil {
		t.Fatal(err)
	}
	if last := fails.Events[len(fails.Events)-1]; !strings.Contains(last, "agent broke") {
		t.Errorf("the failure is shown as %s", last)
	}

	slow := &site.Follower{Caller: l, ID: "slow"}
	if err := slow.FollowTo(ctx, "slow 20", "working"); err != nil {
		t.Fatal(err)
	}
	l.Cancel("slow")
	if err := slow.FollowTo(ctx, "", "canceled"); err != nil {
		t.Fatal(err)
	}
}

func TestStreamsOverEveryHTTP(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Handle: site.GatewayTo(agent)})
	l := site.LeaderOf(t, s.URL())
	for name, transport := range l.Transports(t) {
		var proto atomic.Value
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			res, err := transport.RoundTrip(r)
			if err == nil {
				proto.Store(fmt.Sprint(res.ProtoMajor))
			}
			return res, err
		})}
		f := &site.Follower{Caller: l, Over: client, ID: "h" + name}
		if err := f.FollowTo(site.Within(t, time.Minute), "stream 5 20", "awaiting-completion"); err != nil {
			t.Errorf("HTTP/%s: %v", name, err)
		}
		if f.Text() != site.Chunks(5) || f.Cuts != 0 || proto.Load() != name {
			t.Errorf("HTTP/%s: got %q with %d cuts, over HTTP/%s", name, f.Text(), f.Cuts, proto.Load())
		}
	}
}

// TestStopDrainsStreams stops the gateway with a stream open over each version of HTTP.
func TestStopDrainsStreams(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.New(t)
	s.Start(site.Config{Handle: site.GatewayTo(agent), Store: "store pebble " + s.Dir + "/store\n\t\tdrain 500ms"})
	l := site.LeaderOf(t, s.URL())
	ended := make(map[string]chan string)
	for name, transport := range l.Transports(t) {
		req, err := http.NewRequestWithContext(
			site.Within(t, 3*site.Patience),
			http.MethodPost,
			s.URL()+"/stream",
			bytes.NewReader(site.StreamBody(l.Sender, "start", "h"+name, "hello", "")),
		)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatalf("HTTP/%s: %v", name, err)
		}
		defer res.Body.Close()
		ended[name] = make(chan string, 1)
		go func() {
			content, _ := io.ReadAll(res.Body)
			ended[name] <- string(content)
		}()
		l.Rests("h" + name)
	}
	s.Stop(t)
	for name, content := range ended {
		if got := <-content; !strings.Contains(got, "awaiting-completion") ||
			!strings.Contains(got, "re-stream from the last event") {
			t.Errorf("HTTP/%s: the stream ended with\n%s", name, got)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestStreamsSurviveACrash kills the gateway with 500 tasks in mid-stream.
func TestStreamsSurviveACrash(t *testing.T) {
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Handle: site.GatewayTo(agent)})
	l := site.LeaderOf(t, s.URL())
	const tasks, pieces = 500, 100
	ctx := site.Within(t, site.ManyStreams)
	working := make([]chan struct{}, tasks)
	all := followAll(t, tasks, ctx, fmt.Sprintf("stream %d 100", pieces), func(i int) *site.Follower {
		working[i] = make(chan struct{})
		return &site.Follower{Caller: l, ID: fmt.Sprint("t", i), Working: working[i]}
	})
	for _, c := range working { // a task that its agent has not received yet would fail
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
	for range 2 {
		s.Kill()
		s.Run(s.Dir + "/Caddyfile")
		again := &site.Follower{Caller: l, ID: fmt.Sprint("after ", rand.Int())}
		if err := again.FollowTo(site.Within(t, site.ManyStreams), "stream 5 100", "awaiting-completion"); err != nil {
			t.Fatal(err)
		}
	}
	followers := all()
	for _, f := range followers {
		if f.Text() != site.Chunks(pieces) {
			t.Errorf("%s: the product is %q", f.ID, f.Text())
		}
	}
	if n := cuts(followers); n < tasks {
		t.Errorf("only %d streams were cut: the crash came too late", n)
	}
}

// TestStreamsSurviveReloads reloads under 1,000 open streams: with the same configuration, with another, and
// with the route taken away and given back.
func TestStreamsSurviveReloads(t *testing.T) {
	_, agent := site.SampleAgent(t)
	with := site.Config{Handle: site.GatewayTo(agent), Options: ""}
	s := site.New(t)
	with.Store = "store pebble " + s.Dir + "/store\n\t\tdrain 1s"
	s.Start(with)
	l := site.LeaderOf(t, s.URL())
	const tasks, pieces = 1000, 40
	all := followAll(t, tasks, site.Within(t, site.ManyStreams), fmt.Sprintf("stream %d 200", pieces),
		func(i int) *site.Follower {
			return &site.Follower{Caller: l, ID: fmt.Sprint("t", i)}
		})
	l.Start("before", "hello")
	changed := with
	changed.Handle = strings.Replace(with.Handle, "limits {", "heartbeat 5s\n\t\tlimits {", 1)
	removed := with
	// A connection that is opened at the moment of a reload may stay with the configuration that goes.
	removed.Handle = "respond gone 404 {\n\t\tclose\n\t}"
	for i, c := range []site.Config{with, changed, removed, with} {
		if trouble := s.Reload(c); trouble != "" {
			t.Fatalf("reload %d: %s", i, trouble)
		}
	}
	site.Eventually(t, "connections to the configuration without the route have ended", func() bool {
		_, err := l.Try(site.StartCall("after", "hello"))
		return err == nil
	})
	followers := all()
	for _, f := range followers {
		if f.Text() != site.Chunks(pieces) {
			t.Errorf("%s: the product is %q", f.ID, f.Text())
		}
	}
	if n := cuts(followers); n < tasks {
		t.Errorf("only %d streams were drained", n)
	}
	s.Stop(t)
}

// TestAgentBehindABrokenWire cuts the agent's stream after every byte, stalls it, and splits it: the tasks
// arrive whole, since the agent continues.
func TestAgentBehindABrokenWire(t *testing.T) {
	_, agent := site.SampleAgent(t)
	var connection atomic.Int64
	w := site.NewWire(t, agent, func() site.Damage {
		n := int(connection.Add(1))
		switch {
		case n > 1600: // all tasks have been cut once: let them end
			return site.Damage{After: -1}
		case n%8 == 0:
			return site.Damage{After: n, Stall: 100 * time.Millisecond}
		}
		return site.Damage{After: n, Split: n%3 == 0}
	})
	s := site.Serve(t, site.Config{Handle: site.GatewayTo(w.Address())})
	l := site.LeaderOf(t, s.URL())
	slots := make(chan struct{}, 100)
	var group sync.WaitGroup
	ctx := site.Within(t, site.ManyStreams)
	for i := range 800 {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f := &site.Follower{Caller: l, ID: fmt.Sprint("t", i)}
			if err := f.FollowTo(ctx, "stream 4 10", "awaiting-completion"); err != nil {
				t.Error(err)
			}
			if f.Text() != site.Chunks(4) {
				t.Errorf("%s: the product is %q: %s", f.ID, f.Text(), f.Events)
			}
		})
	}
	group.Wait()
}

// TestChaos lets everything break at random: the callers' connections, the agent's, the gateway's process and
// its configuration.
func TestChaos(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	_, agent := site.SampleAgent(t)
	behind := site.NewWire(t, agent, func() site.Damage { return site.Damage{After: -1} })
	with := site.Config{Handle: site.GatewayTo(behind.Address())}
	s := site.New(t)
	with.Store = "store pebble " + s.Dir + "/store\n\t\tdrain 100ms"
	s.Start(with)
	front := site.NewWire(t, fmt.Sprintf("127.0.0.1:%d", s.Port), func() site.Damage { return site.Damage{After: -1} })
	l := site.LeaderOf(t, fmt.Sprintf("https://localhost:%s", front.Address()[strings.LastIndex(front.Address(), ":")+1:]))
	const tasks, pieces = 100, 80
	load := new(site.Course)
	all := followAll(t, tasks, site.Within(t, site.ManyStreams), fmt.Sprintf("stream %d 100", pieces),
		func(i int) *site.Follower {
			return &site.Follower{Caller: l, ID: fmt.Sprint("t", i), Course: load}
		})
	over := make(chan struct{})
	go func() {
		defer close(over)
		all()
	}()
	for step := range 25 {
		select {
		case <-load.After(1 + rng.IntN(400)):
		case <-over:
		}
		switch rng.IntN(5) {
		case 0, 1:
			front.Cut()
		case 2:
			behind.Cut()
		case 3:
			if trouble := s.Reload(with); trouble != "" {
				t.Errorf("step %d: %s", step, trouble)
			}
		case 4:
			s.Kill()
			s.Run(s.Dir + "/Caddyfile")
		}
	}
	for _, f := range all() {
		if f.Text() != site.Chunks(pieces) {
			t.Errorf("%s: the product is %q", f.ID, f.Text())
		}
		site.CheckHistory(t, l.Get(f.ID))
	}
}

// TestRealAgentBehindACutWire cuts the stream of an agent whose tasks die with their connection, and which says that it
// works all the same: the task fails, and says why, once the agent has been asked for its timeout.
func TestRealAgentBehindACutWire(t *testing.T) {
	t.Parallel()
	agent := strings.TrimSuffix(strings.TrimPrefix(site.TRPCAgent(t), "http://"), "/")
	w := site.NewWire(t, agent, func() site.Damage { return site.Damage{After: -1} })
	s := site.Serve(t, site.Config{Handle: "aip_gateway {\n\t\tagent a2a/legacy http://" + w.Address() +
		" {\n\t\t\ttimeout 20s\n\t\t}\n\t}"})
	l := site.LeaderOf(t, s.URL())
	f := &site.Follower{Caller: l, ID: "cut"}
	ctx := site.Within(t, 2*time.Minute)
	if err := f.FollowTo(ctx, "slow 50", "working"); err != nil {
		t.Fatal(err)
	}
	w.Cut()
	if err := f.FollowTo(ctx, "", "failed"); err != nil {
		t.Fatal(err)
	}
	if last := f.Events[len(f.Events)-1]; !strings.Contains(last, "the agent has changed nothing for 20s") {
		t.Errorf("the failure is shown as %s", last)
	}
	if f.Cuts != 0 {
		t.Errorf("the Leader's own stream was cut %d times", f.Cuts)
	}
	site.CheckHistory(t, l.Get("cut"))
}
