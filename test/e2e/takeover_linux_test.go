// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/sseproxy"
)

// opened is a stream that a test reads event by event.
type opened struct {
	t   *testing.T
	res *http.Response
	in  *sseproxy.Reader
}

// open opens a stream, and says whether its connection was used before.
func (c *caller) open(t *testing.T, transport http.RoundTripper, body []byte) (o *opened, reused bool) {
	t.Helper()
	ctx := httptrace.WithClientTrace(within(t, 2*patience), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) { reused = got.Reused },
	})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.mount+"/stream", strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return &opened{t, res, sseproxy.NewReader(res.Body, sseproxy.Limits{})}, reused
}

// until reads events until a state.
func (o *opened) until(state string) {
	o.t.Helper()
	for {
		ev, err := o.in.Next()
		if err != nil {
			o.t.Fatalf("the stream ended before %q: %v", state, err)
		}
		if strings.Contains(string(ev.Data), `"state":"`+state+`"`) {
			return
		}
	}
}

// beats reads heartbeats. No event may come meanwhile.
func (o *opened) beats(n int) {
	o.t.Helper()
	lines := bufio.NewScanner(o.res.Body)
	for n > 0 && lines.Scan() {
		if lines.Text() == ":" {
			n--
		}
	}
	if n > 0 {
		o.t.Fatalf("the stream ended before its heartbeats: %v", lines.Err())
	}
}

// everySecond is a gateway with a heartbeat every second.
func everySecond(agent string) string {
	return strings.Replace(gatewayTo(agent), "limits {", "heartbeat 1s\n\t\tlimits {", 1)
}

// ends reads the end of the stream.
func (o *opened) ends() {
	o.t.Helper()
	for {
		if _, err := o.in.Next(); err == io.EOF {
			return
		} else if err != nil {
			o.t.Fatalf("the stream was cut: %v", err)
		}
	}
}

// TestStreamsOutliveTheirRequests follows streams over HTTP/1.1 with mutual TLS, which take their connections over, and
// give them back.
func TestStreamsOutliveTheirRequests(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	s := serve(t, config{handle: "log\n\theader X-Site one\n\t" + gatewayTo(agent), options: "metrics"})
	l := leaderOf(t, s.url())
	transport := l.transports(t)["1"]
	for i := range 3 {
		id := fmt.Sprint("t", i)
		o, reused := l.open(t, transport, streamBody(l.Sender, "start", id, "ask", ""))
		if reused != (i > 0) {
			t.Errorf("stream %d is on a connection that was used before: %t", i, reused)
		}
		if o.res.ProtoMajor != 1 || o.res.Header.Get("X-Site") != "one" {
			t.Errorf("the head is %s %v", o.res.Proto, o.res.Header)
		}
		o.until("awaiting-input")
		eventually(t, "the stream has outlived its request", func() bool { return s.held("streams_taken_over") == 1 })
		l.goOn(id, "blue")
		o.until("awaiting-completion")
		l.complete(id)
		o.ends()
		line := s.waitFor(t, `\{.*"a stream has ended".*"task":"`+id+`".*\}`)[0]
		var logged struct {
			Level, Leader, Address, Reason string
			Events, Bytes                  int
			AIP                            loggedCall
			Duration                       float64 // in seconds
		}
		if err := json.Unmarshal([]byte(line), &logged); err != nil {
			t.Fatal(err)
		}
		if logged.Level != "info" || logged.Leader != l.Sender || !strings.Contains(logged.Address, "127.0.0.1:") ||
			logged.Events < 6 || logged.Bytes < 500 || logged.Duration <= 0 ||
			logged.Reason != "the stream is complete" ||
			logged.AIP != (loggedCall{"aip", "start", l.Sender, id, "completed", ""}) {
			t.Errorf("the log says %s", line)
		}
		eventually(t, "the stream is not counted any more", func() bool { // it is, until its end has been logged
			return s.held("streams_taken_over")+s.held("streams") == 0
		})
	}
}

// TestStreamsThatKeepTheirRequests follows streams that are not taken over.
func TestStreamsThatKeepTheirRequests(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	for name, c := range map[string]struct {
		before, version string
		encodes         bool
	}{
		"HTTP/2":    {version: "2"},
		"encoded":   {before: "encode gzip\n\t", version: "1", encodes: true},
		"a timeout": {version: "1"},
	} {
		t.Run(name, func(t *testing.T) { // which is also the name of the task, since the gateways share the agent
			t.Parallel()
			s := newSite(t)
			with := config{handle: c.before + everySecond(agent), store: "store pebble " + s.dir + "/store"}
			if name == "a timeout" {
				with.options = "servers {\n\t\ttimeouts {\n\t\t\twrite 10m\n\t\t}\n\t}"
			}
			s.start(with)
			l := leaderOf(t, s.url())
			o, _ := l.open(t, l.transports(t)[c.version], streamBody(l.Sender, "start", name, "ask", ""))
			if got := fmt.Sprint(o.res.ProtoMajor); got != c.version || o.res.Uncompressed != c.encodes {
				t.Errorf("the stream is over HTTP/%s, encoded: %t", got, o.res.Uncompressed)
			}
			o.until("awaiting-input")
			if !c.encodes { // the encoder keeps heartbeats for itself
				o.beats(3)
			}
			l.goOn(name, "blue")
			o.until("awaiting-completion")
			if n := s.held("streams_taken_over"); n != 0 {
				t.Errorf("%d streams were taken over", n)
			}
			l.complete(name)
			o.ends()
		})
	}
}

// TestStreamsThatOutliveTheirRequestsEnd ends streams that rest, without a request.
func TestStreamsThatOutliveTheirRequestsEnd(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	for name, c := range map[string]struct {
		end  func(s *site, with config)
		last string
	}{
		"a reload": {func(s *site, with config) {
			if trouble := s.reload(with); trouble != "" {
				s.t.Error(trouble)
			}
		}, "re-stream from the last event"},
		"a stop":                   {func(s *site, _ config) { s.stop(s.t) }, "re-stream from the last event"},
		"the certificate's expiry": {func(*site, config) {}, "has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			with := config{handle: gatewayTo(agent), store: "store pebble " + s.dir + "/store\n\t\tdrain 500ms"}
			s.start(with)
			aic := string(certificates(t).Leader.AIC)
			lifetime := time.Hour
			if c.last == "has expired" {
				lifetime = 20 * time.Second // within which the stream begins
			}
			l := callerWith(t, s.url(), aic, issueFor(t, lifetime, aic))
			o, _ := l.open(t, l.transports(t)["1"], streamBody(l.Sender, "start", name, "ask", ""))
			eventually(t, "the stream has outlived its request", func() bool { return s.held("streams_taken_over") == 1 })
			c.end(s, with)
			content, err := io.ReadAll(o.res.Body)
			if err != nil || !strings.Contains(string(content), "awaiting-input") ||
				!strings.Contains(string(content), c.last) {
				t.Errorf("the stream ended with %v after\n%s", err, content)
			}
		})
	}
}
