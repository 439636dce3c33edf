// SPDX-License-Identifier: Apache-2.0

package httpfront

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/limit"
)

func TestStreamOfAWholeLife(t *testing.T) { eachWay(t, streamOfAWholeLife) }

func streamOfAWholeLife(t *testing.T, way func(*setup)) {
	g := open(t, way)
	res, next := g.openStream(t.Context(), message("stream", "start", "t1", "stream 3 5"))
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type") + " " +
		res.Header.Get("X-Accel-Buffering"); got != "text/event-stream no" ||
		(res.ProtoMajor == 1) != g.setup.http1 {
		t.Errorf("the stream began with %s over %s", got, res.Proto)
	}
	frames := until(t, next, "awaiting-completion")
	if frames[0].kind != "task" {
		t.Errorf("the first event is a %s", frames[0].kind)
	}

	again, nextAgain := g.openStream(t.Context(), message("stream", "continue", "t1", "ask"))
	defer again.Body.Close()
	second := until(t, nextAgain, "awaiting-input")
	dense(t, second, uint64(len(frames)+1))
	if second[0].state != "working" {
		t.Errorf("a continue by stream begins with %+v", second[0])
	}
	frames = append(frames, until(t, next, "awaiting-input")...)
	g.post("/agents/one/rpc", message("rpc", "continue", "t1", "blue"))
	frames = append(frames, until(t, next, "awaiting-completion")...)
	g.post("/agents/one/rpc", message("rpc", "complete", "t1", ""))
	frames = append(frames, all(t, next)...)
	dense(t, frames, 1)
	if last := frames[len(frames)-1]; last.state != "completed" {
		t.Errorf("the stream ended with %+v", last)
	}

	for after := range len(frames) + 1 {
		res, next := g.openStream(t.Context(), message("stream", "re-stream", "t1", "",
			fmt.Sprintf(`,"commandParams":{"lastEventSeq":%d}`, after)))
		if diff := cmp.Diff(frames[after:], append([]frame{}, all(t, next)...),
			cmp.AllowUnexported(frame{})); diff != "" {
			t.Errorf("re-stream after %d (-live +replayed):\n%s", after, diff)
		}
		res.Body.Close()
	}
	for _, more := range []string{"", `,"commandParams":{}`, `,"commandParams":{"lastEventSeq":null}`} {
		res, next := g.openStream(t.Context(), message("stream", "re-stream", "t1", "", more))
		if got := all(t, next); len(got) != len(frames) {
			t.Errorf("re-stream with %q gave %d events, want %d", more, len(got), len(frames))
		}
		res.Body.Close()
	}
	res, next = g.openStream(t.Context(), message("stream", "start", "t1", "again"))
	defer res.Body.Close()
	if got := all(t, next); len(got) != len(frames) {
		t.Errorf("a repeated start gave %d events, want %d", len(got), len(frames))
	}
}

func TestStreamIsRefused(t *testing.T) {
	g := open(t)
	g.post("/agents/one/rpc", message("rpc", "start", "t1", "hello"))
	for _, c := range []struct{ body, contains string }{
		{message("stream", "re-stream", "none", ""), `"code":-32001`},
		{message("stream", "continue", "none", ""), `"code":-32001`},
		{message("stream", "re-stream", "t1", "", `,"commandParams":{"lastEventSeq":99}`), `"code":-32602`},
		{message("stream", "re-stream", "t1", "", `,"commandParams":{"lastEventSeq":-1}`), `"code":-32602`},
		{message("stream", "re-stream", "t1", "", `,"commandParams":{"lastEventSeq":"1"}`), `"code":-32602`},
		{strings.Replace(message("stream", "re-stream", "t1", ""), `"senderId":"leader"`, `"senderId":"other"`, 1),
			`"code":-32001`},
		{message("stream", "get", "t1", ""), `"code":-32602`},
	} {
		res, body := g.post("/agents/one/stream", c.body)
		if res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" ||
			!strings.Contains(body, c.contains) {
			t.Errorf("%s: got %d %s", c.body, res.StatusCode, body)
		}
	}
	if n := g.streams(); n != 0 {
		t.Errorf("%d streams are counted as open", n)
	}
}

func TestExpiredEventsEndAStream(t *testing.T) {
	g := open(t)
	res, _ := g.openStream(t.Context(), message("stream", "start", "t1", "stream 1500 0"))
	res.Body.Close()
	asynctest.Eventually(t, "the turn is over", func() bool {
		_, got := g.post("/agents/one/rpc", message("rpc", "get", "t1", ""))
		return strings.Contains(got, `"status":{"state":"awaiting-completion"`)
	})
	late, body := g.post("/agents/one/stream", message("stream", "re-stream", "t1", "",
		`,"commandParams":{"lastEventSeq":3}`))
	if late.Header.Get("Content-Type") != "text/event-stream" || strings.Count(body, "data:") != 1 ||
		!strings.Contains(body, `"code":-32001`) || !strings.Contains(body, `"reason":"EVENTS_EXPIRED"`) ||
		!strings.Contains(body, `"firstEventSeq":`) || !strings.Contains(body, `"lastEventSeq":`) {
		t.Errorf("got %s %s", late.Header.Get("Content-Type"), body)
	}
}

func TestStreamLimits(t *testing.T) { eachWay(t, streamLimits) }

func streamLimits(t *testing.T, way func(*setup)) {
	g := open(t, way, func(h *setup) { h.Streaming.Max, h.Streaming.MaxPerLeader = 3, 2 })
	start := func(leader, id string) string {
		return strings.Replace(message("stream", "start", id, "hello"), `"senderId":"leader"`,
			fmt.Sprintf(`"senderId":%q`, leader), 1)
	}
	var close []func() error
	for _, c := range []struct{ leader, id, contains string }{
		{"a", "t1", ""}, {"a", "t2", ""}, {"a", "t3", `"limit":"streams_per_leader"`},
		{"b", "t1", ""}, {"c", "t1", `"limit":"streams"`},
	} {
		if c.contains != "" {
			if _, body := g.post("/agents/one/stream", start(c.leader, c.id)); !strings.Contains(body,
				`"code":-32050`) || !strings.Contains(body, c.contains) {
				t.Errorf("%s's %s got %s", c.leader, c.id, body)
			}
			continue
		}
		res, next := g.openStream(t.Context(), start(c.leader, c.id))
		until(t, next, "awaiting-completion")
		close = append(close, res.Body.Close)
	}
	for _, f := range close {
		f()
	}
	asynctest.Eventually(t, "no stream is open", func() bool { return g.streams() == 0 })
}

// TestStreamsOfUnverified proves: callers without a certificate have the limit of one Leader together, by whatever
// names, and leave half of all streams to the others.
func TestStreamsOfUnverified(t *testing.T) {
	for name, c := range map[string]struct {
		max, perLeader int
		limit          string
	}{
		"as one Leader": {100, 2, `"limit":"streams_per_leader","max":2`},
		"half of all":   {4, 4, `"limit":"streams","max":2`},
	} {
		t.Run(name, func(t *testing.T) {
			g := open(t, func(h *setup) {
				h.Guard = &identity.Guard{Mode: identity.Optional}
				h.Streaming.Max, h.Streaming.MaxPerLeader = c.max, c.perLeader
			})
			start := func(leader string) string {
				return strings.Replace(message("stream", "start", "t1", "ask"), `"senderId":"leader"`,
					fmt.Sprintf(`"senderId":%q`, leader), 1)
			}
			for _, leader := range []string{"a", "b"} {
				res, next := g.openStream(t.Context(), start(leader))
				defer res.Body.Close()
				until(t, next, "awaiting-input")
			}
			if _, body := g.post("/agents/one/stream", start("c")); !strings.Contains(body, `"code":-32050`) ||
				!strings.Contains(body, c.limit) {
				t.Errorf("the third name got %s", body)
			}
			counter, limits := &g.setup.Process.Streams, limit.Limits{Total: int64(c.max),
				PerLeader: int64(c.perLeader)}
			if err := counter.Take("verified", 1, limits); err != nil {
				t.Errorf("a verified Leader got %v", err)
			} else {
				counter.Give("verified", 1)
			}
		})
	}
}

func TestSilentStreamsSendHeartbeats(t *testing.T) { eachWay(t, silentStreamsBeat) }

func silentStreamsBeat(t *testing.T, way func(*setup)) {
	g := open(t, way, func(h *setup) { h.front.Heartbeat = 10 * time.Millisecond })
	res, _ := g.openStream(t.Context(), message("stream", "start", "t1", "hello"))
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for beats := 0; beats < 3; {
		if !lines.Scan() {
			t.Fatalf("the stream ended after %d comments: %v", beats, lines.Err())
		}
		if lines.Text() == ":" {
			beats++
		}
	}
}

func TestSlowReaderIsCutAndDelaysNoOther(t *testing.T) { eachWay(t, slowReaderIsCutAndDelaysNoOther) }

func slowReaderIsCutAndDelaysNoOther(t *testing.T, way func(*setup)) {
	g := open(t, way, func(h *setup) { h.front.WriteTimeout = 2 * time.Second })
	// The slow one opens a stream of more than its connection holds, over HTTP/1.1, and does not read.
	addr := strings.TrimPrefix(g.server.URL, "https://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	slow := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	body := message("stream", "start", "t1", "stream 900 0", `,"mentions":[]`)
	fmt.Fprintf(slow, "POST /agents/one/stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	res, next := g.openStream(t.Context(), message("stream", "start", "t2", "hello"))
	defer res.Body.Close()
	until(t, next, "awaiting-completion")
	asynctest.Eventually(t, "the slow Leader's turn has ended", func() bool {
		_, got := g.post("/agents/one/rpc", message("rpc", "get", "t1", ""))
		return strings.Contains(got, `"awaiting-completion"`)
	})
	// The rest of its stream has room in a connection, so on a busy machine its reader is not taken for a slow one.
	again, nextAgain := g.openStream(t.Context(), message("stream", "re-stream", "t1", "",
		`,"commandParams":{"lastEventSeq":880}`))
	defer again.Body.Close()
	if frames := until(t, nextAgain, "awaiting-completion"); frames[0].seq != 881 {
		t.Errorf("the rest of the slow one's task begins with %+v", frames[0])
	}
	asynctest.Eventually(t, "two streams are open", func() bool { return g.streams() == 2 })
}

func TestDrainedStreamsLoseNothing(t *testing.T) { eachWay(t, drainedStreamsLoseNothing) }

func drainedStreamsLoseNothing(t *testing.T, way func(*setup)) {
	speaks := spoken{pieces: make(chan string)}
	g := open(t, way, func(h *setup) { h.Partner.Agent = speaks })
	res, next := g.openStream(t.Context(), message("stream", "start", "t1", "hello"))
	defer res.Body.Close()
	first, err := next()
	if err != nil {
		t.Fatal(err)
	}
	const pieces = 200
	drained := make(chan struct{})
	go func() {
		for i := range pieces {
			if i == pieces/2 {
				<-drained
			}
			speaks.pieces <- "piece"
		}
	}()
	g.drain()
	frames := append([]frame{first}, all(t, next)...)
	close(drained)
	g.setup.Streaming.Drain = t.Context()
	g.serving.Store(g.setup.compose(t, g.tasks)) // as a new configuration does
	g.server.Client().CloseIdleConnections()     // the gateway may close them at any time, too
	res, next = g.openStream(t.Context(), message("stream", "re-stream", "t1", "",
		fmt.Sprintf(`,"commandParams":{"lastEventSeq":%d}`, len(frames))))
	defer res.Body.Close()
	for len(frames) < pieces+2 { // the task, the work and its pieces
		f, err := next()
		if err != nil {
			t.Fatalf("after %d events: %v", len(frames), err)
		}
		frames = append(frames, f)
	}
	g.post("/agents/one/rpc", message("rpc", "cancel", "t1", ""))
	frames = append(frames, all(t, next)...)
	dense(t, frames, 1)
	if len(frames) != pieces+3 || frames[pieces+2].state != "canceled" {
		t.Errorf("got %d events, the last one is %+v", len(frames), frames[len(frames)-1])
	}
}

func TestManyFollowersGetTheSame(t *testing.T) { eachWay(t, manyFollowersGetTheSame) }

func manyFollowersGetTheSame(t *testing.T, way func(*setup)) {
	g := open(t, way)
	res, next := g.openStream(t.Context(), message("stream", "start", "t1", "stream 50 5"))
	defer res.Body.Close()
	var group sync.WaitGroup
	others := make([][]frame, 20)
	for i := range others {
		res, next := g.openStream(t.Context(), message("stream", "re-stream", "t1", ""))
		group.Go(func() {
			defer res.Body.Close()
			others[i] = until(t, next, "awaiting-completion")
		})
	}
	frames := until(t, next, "awaiting-completion")
	group.Wait()
	for i := range others {
		if diff := cmp.Diff(frames, others[i], cmp.AllowUnexported(frame{})); diff != "" {
			t.Errorf("follower %d got other events (-first +other):\n%s", i, diff)
		}
	}
}
