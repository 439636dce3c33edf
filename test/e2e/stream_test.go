// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// chunks is what the agents' "stream n" makes.
func chunks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "chunk-%d ", i)
	}
	return b.String()
}

func gatewayTo(agent string) string {
	return "aip_gateway a2a/legacy http://" + agent + " {\n\t\tlimits {\n\t\t\tstreams_per_leader 10000\n\t\t}\n\t}"
}

// manyStreams is how long a test with hundreds of streams may take on a slow machine.
const manyStreams = 10 * time.Minute

// within returns a context for what may take long but must end.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// followAll starts n tasks by stream and follows them all until they rest, every other one over HTTP/1.1, on a
// connection that outlives its requests.
func followAll(
	t *testing.T,
	n int,
	ctx context.Context,
	text string,
	each func(i int) *follower,
) (wait func() []*follower) {
	t.Helper()
	all := make([]*follower, n)
	var group sync.WaitGroup
	var http1 *http.Client
	for i := range all {
		all[i] = each(i)
		if http1 == nil {
			http1 = &http.Client{Transport: all[i].transports(t)["1"]}
		}
		if i%2 == 1 {
			all[i].client = http1
		}
		group.Go(func() {
			if err := all[i].follow(ctx, text, "awaiting-completion"); err != nil {
				t.Error(err)
			}
		})
	}
	return func() []*follower {
		group.Wait()
		return all
	}
}

func cuts(all []*follower) (n int) {
	for _, f := range all {
		n += f.cuts
	}
	return n
}

func TestStreamsWithTheRealAgent(t *testing.T) {
	t.Parallel()
	agent := strings.TrimSuffix(strings.TrimPrefix(trpcAgent(t), "http://"), "/")
	s := serve(t, config{handle: gatewayTo(agent)})
	l := leaderOf(t, s.url())
	ctx := within(t, 3*patience)

	f := &follower{caller: l, id: "chunks"}
	if err := f.follow(ctx, "stream 5 20", "awaiting-completion"); err != nil {
		t.Fatal(err)
	}
	if f.text() != chunks(5) || f.cuts != 0 {
		t.Errorf("got %q with %d cuts", f.text(), f.cuts)
	}

	asks := &follower{caller: l, id: "asks"}
	if err := asks.follow(ctx, "ask", "awaiting-input"); err != nil {
		t.Fatal(err)
	}
	l.goOn("asks", "blue")
	if err := asks.follow(ctx, "", "awaiting-completion"); err != nil {
		t.Fatal(err)
	}
	l.complete("asks")
	if err := asks.follow(ctx, "", "completed"); err != nil {
		t.Fatal(err)
	}
	if asks.text() != "you said: blue" {
		t.Errorf("the answer is %q", asks.text())
	}

	fails := &follower{caller: l, id: "fails"}
	if err := fails.follow(ctx, "fail", "failed"); err != nil {
		t.Fatal(err)
	}
	if last := fails.events[len(fails.events)-1]; !strings.Contains(last, "agent broke") {
		t.Errorf("the failure is shown as %s", last)
	}

	slow := &follower{caller: l, id: "slow"}
	if err := slow.follow(ctx, "slow 20", "working"); err != nil {
		t.Fatal(err)
	}
	l.cancel("slow")
	if err := slow.follow(ctx, "", "canceled"); err != nil {
		t.Fatal(err)
	}
}

// transports returns one for each version of HTTP.
func (c *caller) transports(t *testing.T) map[string]http.RoundTripper {
	config := c.HTTP.Transport.(*http.Transport).TLSClientConfig
	h1 := &http.Transport{
		TLSClientConfig: config.Clone(),
		TLSNextProto:    map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	h1.TLSClientConfig.NextProtos = nil // a transport that was used has h2 there
	h2 := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
	h3 := &http3.Transport{TLSClientConfig: config.Clone()}
	t.Cleanup(func() {
		h1.CloseIdleConnections()
		h2.CloseIdleConnections()
		h3.Close()
	})
	return map[string]http.RoundTripper{"1": h1, "2": h2, "3": h3}
}

func TestStreamsOverEveryHTTP(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := serve(t, config{handle: gatewayTo(agent)})
	l := leaderOf(t, s.url())
	for name, transport := range l.transports(t) {
		var proto atomic.Value
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			res, err := transport.RoundTrip(r)
			if err == nil {
				proto.Store(fmt.Sprint(res.ProtoMajor))
			}
			return res, err
		})}
		f := &follower{caller: l, client: client, id: "h" + name}
		if err := f.follow(within(t, time.Minute), "stream 5 20", "awaiting-completion"); err != nil {
			t.Errorf("HTTP/%s: %v", name, err)
		}
		if f.text() != chunks(5) || f.cuts != 0 || proto.Load() != name {
			t.Errorf("HTTP/%s: got %q with %d cuts, over HTTP/%s", name, f.text(), f.cuts, proto.Load())
		}
	}
}

// TestStopDrainsStreams stops the gateway with a stream open over each version of HTTP.
func TestStopDrainsStreams(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := newSite(t)
	s.start(config{handle: gatewayTo(agent), store: "store pebble " + s.dir + "/store\n\t\tdrain 500ms"})
	l := leaderOf(t, s.url())
	ended := make(map[string]chan string)
	for name, transport := range l.transports(t) {
		req, err := http.NewRequestWithContext(
			within(t, 3*patience),
			http.MethodPost,
			s.url()+"/stream",
			bytes.NewReader(streamBody(l.Sender, "start", "h"+name, "hello", "")),
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
		l.rests("h" + name)
	}
	s.stop(t)
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
	_, agent := sampleAgent(t)
	s := serve(t, config{handle: gatewayTo(agent)})
	l := leaderOf(t, s.url())
	const tasks, pieces = 500, 100
	ctx := within(t, manyStreams)
	working := make([]chan struct{}, tasks)
	all := followAll(t, tasks, ctx, fmt.Sprintf("stream %d 100", pieces), func(i int) *follower {
		working[i] = make(chan struct{})
		return &follower{caller: l, id: fmt.Sprint("t", i), working: working[i]}
	})
	for _, c := range working { // a task that its agent has not received yet would fail
		select {
		case <-c:
		case <-ctx.Done():
		}
	}
	for range 2 {
		s.kill()
		s.run(s.dir + "/Caddyfile")
		again := &follower{caller: l, id: fmt.Sprint("after ", rand.Int())}
		if err := again.follow(within(t, manyStreams), "stream 5 100", "awaiting-completion"); err != nil {
			t.Fatal(err)
		}
	}
	followers := all()
	for _, f := range followers {
		if f.text() != chunks(pieces) {
			t.Errorf("%s: the product is %q", f.id, f.text())
		}
	}
	if n := cuts(followers); n < tasks {
		t.Errorf("only %d streams were cut: the crash came too late", n)
	}
}

// TestStreamsSurviveReloads reloads under 1,000 open streams: with the same configuration, with another, and
// with the route taken away and given back.
func TestStreamsSurviveReloads(t *testing.T) {
	_, agent := sampleAgent(t)
	with := config{handle: gatewayTo(agent), options: ""}
	s := newSite(t)
	with.store = "store pebble " + s.dir + "/store\n\t\tdrain 1s"
	s.start(with)
	l := leaderOf(t, s.url())
	const tasks, pieces = 1000, 40
	all := followAll(t, tasks, within(t, manyStreams), fmt.Sprintf("stream %d 200", pieces), func(i int) *follower {
		return &follower{caller: l, id: fmt.Sprint("t", i)}
	})
	l.start("before", "hello")
	changed := with
	changed.handle = strings.Replace(with.handle, "limits {", "heartbeat 5s\n\t\tlimits {", 1)
	removed := with
	// A connection that is opened at the moment of a reload may stay with the configuration that goes.
	removed.handle = "respond gone 404 {\n\t\tclose\n\t}"
	for i, c := range []config{with, changed, removed, with} {
		if trouble := s.reload(c); trouble != "" {
			t.Fatalf("reload %d: %s", i, trouble)
		}
	}
	eventually(t, "connections to the configuration without the route have ended", func() bool {
		_, err := l.try(startCall("after", "hello"))
		return err == nil
	})
	followers := all()
	for _, f := range followers {
		if f.text() != chunks(pieces) {
			t.Errorf("%s: the product is %q", f.id, f.text())
		}
	}
	if n := cuts(followers); n < tasks {
		t.Errorf("only %d streams were drained", n)
	}
	s.stop(t)
}

// TestAgentBehindABrokenWire cuts the agent's stream after every byte, stalls it, and splits it: the tasks
// arrive whole, since the agent continues.
func TestAgentBehindABrokenWire(t *testing.T) {
	_, agent := sampleAgent(t)
	var connection atomic.Int64
	w := newWire(t, agent, func() damage {
		n := int(connection.Add(1))
		switch {
		case n > 1600: // all tasks have been cut once: let them end
			return damage{after: -1}
		case n%8 == 0:
			return damage{after: n, stall: 100 * time.Millisecond}
		}
		return damage{after: n, split: n%3 == 0}
	})
	s := serve(t, config{handle: gatewayTo(w.address())})
	l := leaderOf(t, s.url())
	slots := make(chan struct{}, 100)
	var group sync.WaitGroup
	ctx := within(t, manyStreams)
	for i := range 800 {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			f := &follower{caller: l, id: fmt.Sprint("t", i)}
			if err := f.follow(ctx, "stream 4 10", "awaiting-completion"); err != nil {
				t.Error(err)
			}
			if f.text() != chunks(4) {
				t.Errorf("%s: the product is %q: %s", f.id, f.text(), f.events)
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
	_, agent := sampleAgent(t)
	behind := newWire(t, agent, func() damage { return damage{after: -1} })
	with := config{handle: gatewayTo(behind.address())}
	s := newSite(t)
	with.store = "store pebble " + s.dir + "/store\n\t\tdrain 100ms"
	s.start(with)
	front := newWire(t, fmt.Sprintf("127.0.0.1:%d", s.port), func() damage { return damage{after: -1} })
	l := leaderOf(t, fmt.Sprintf("https://localhost:%s", front.address()[strings.LastIndex(front.address(), ":")+1:]))
	const tasks, pieces = 100, 80
	load := new(course)
	all := followAll(t, tasks, within(t, manyStreams), fmt.Sprintf("stream %d 100", pieces), func(i int) *follower {
		return &follower{caller: l, id: fmt.Sprint("t", i), course: load}
	})
	over := make(chan struct{})
	go func() {
		defer close(over)
		all()
	}()
	for step := range 25 {
		select {
		case <-load.after(1 + rng.IntN(400)):
		case <-over:
		}
		switch rng.IntN(5) {
		case 0, 1:
			front.cut()
		case 2:
			behind.cut()
		case 3:
			if trouble := s.reload(with); trouble != "" {
				t.Errorf("step %d: %s", step, trouble)
			}
		case 4:
			s.kill()
			s.run(s.dir + "/Caddyfile")
		}
	}
	for _, f := range all() {
		if f.text() != chunks(pieces) {
			t.Errorf("%s: the product is %q", f.id, f.text())
		}
		checkHistory(t, l.get(f.id))
	}
}

// TestRealAgentBehindACutWire cuts the stream of an agent whose tasks die with their connection, and which says that it
// works all the same: the task fails, and says why, once the agent has been asked for its timeout.
func TestRealAgentBehindACutWire(t *testing.T) {
	t.Parallel()
	agent := strings.TrimSuffix(strings.TrimPrefix(trpcAgent(t), "http://"), "/")
	w := newWire(t, agent, func() damage { return damage{after: -1} })
	s := serve(t, config{handle: "aip_gateway {\n\t\tagent a2a/legacy http://" + w.address() +
		" {\n\t\t\ttimeout 20s\n\t\t}\n\t}"})
	l := leaderOf(t, s.url())
	f := &follower{caller: l, id: "cut"}
	ctx := within(t, 2*time.Minute)
	if err := f.follow(ctx, "slow 50", "working"); err != nil {
		t.Fatal(err)
	}
	w.cut()
	if err := f.follow(ctx, "", "failed"); err != nil {
		t.Fatal(err)
	}
	if last := f.events[len(f.events)-1]; !strings.Contains(last, "the agent has changed nothing for 20s") {
		t.Errorf("the failure is shown as %s", last)
	}
	if f.cuts != 0 {
		t.Errorf("the Leader's own stream was cut %d times", f.cuts)
	}
	checkHistory(t, l.get("cut"))
}
