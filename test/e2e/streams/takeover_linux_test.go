// SPDX-License-Identifier: Apache-2.0

package streams

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// everySecond is a gateway with a heartbeat every second.
func everySecond(agent string) string {
	return strings.Replace(site.GatewayTo(agent), "limits {", "heartbeat 1s\n\t\tlimits {", 1)
}

// TestStreamsOutliveTheirRequests follows streams over HTTP/1.1 with mutual TLS, which take their connections over, and
// give them back.
func TestStreamsOutliveTheirRequests(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	s := site.Serve(t, site.Config{Handle: "log\n\theader X-Site one\n\t" + site.GatewayTo(agent), Options: "metrics"})
	l := site.LeaderOf(t, s.URL())
	transport := l.Transports(t)["1"]
	for i := range 3 {
		id := fmt.Sprint("t", i)
		o, reused := l.Open(t, transport, site.StreamBody(l.Sender, "start", id, "ask", ""))
		if reused != (i > 0) {
			t.Errorf("stream %d is on a connection that was used before: %t", i, reused)
		}
		if o.Res.ProtoMajor != 1 || o.Res.Header.Get("X-Site") != "one" {
			t.Errorf("the head is %s %v", o.Res.Proto, o.Res.Header)
		}
		o.Until("awaiting-input")
		site.Eventually(t, "the stream has outlived its request", func() bool { return held(s, "streams_taken_over") == 1 })
		l.GoOn(id, "blue")
		o.Until("awaiting-completion")
		l.Complete(id)
		o.Ends()
		line := s.WaitFor(t, `\{.*"a stream has ended".*"task":"`+id+`".*\}`)[0]
		var logged struct {
			Level, Leader, Address, Reason string
			Events, Bytes                  int
			AIP                            site.LoggedCall
			Duration                       float64 // in seconds
		}
		if err := json.Unmarshal([]byte(line), &logged); err != nil {
			t.Fatal(err)
		}
		if logged.Level != "info" || logged.Leader != l.Sender || !strings.Contains(logged.Address, "127.0.0.1:") ||
			logged.Events < 6 || logged.Bytes < 500 || logged.Duration <= 0 ||
			logged.Reason != "the stream is complete" ||
			logged.AIP != (site.LoggedCall{Dialect: "aip", Command: "start", Leader: l.Sender, Task: id, State: "completed"}) {
			t.Errorf("the log says %s", line)
		}
		site.Eventually(t, "the stream is not counted any more", func() bool { // it is, until its end has been logged
			return held(s, "streams_taken_over")+held(s, "streams") == 0
		})
	}
}

// TestStreamsThatKeepTheirRequests follows streams that are not taken over.
func TestStreamsThatKeepTheirRequests(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
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
			s := site.New(t)
			with := site.Config{Handle: c.before + everySecond(agent), Store: "store pebble " + s.Dir + "/store"}
			if name == "a timeout" {
				with.Options = "servers {\n\t\ttimeouts {\n\t\t\twrite 10m\n\t\t}\n\t}"
			}
			s.Start(with)
			l := site.LeaderOf(t, s.URL())
			o, _ := l.Open(t, l.Transports(t)[c.version], site.StreamBody(l.Sender, "start", name, "ask", ""))
			if got := fmt.Sprint(o.Res.ProtoMajor); got != c.version || o.Res.Uncompressed != c.encodes {
				t.Errorf("the stream is over HTTP/%s, encoded: %t", got, o.Res.Uncompressed)
			}
			o.Until("awaiting-input")
			if !c.encodes { // the encoder keeps heartbeats for itself
				o.Beats(3)
			}
			l.GoOn(name, "blue")
			o.Until("awaiting-completion")
			if n := held(s, "streams_taken_over"); n != 0 {
				t.Errorf("%d streams were taken over", n)
			}
			l.Complete(name)
			o.Ends()
		})
	}
}

// TestStreamsThatOutliveTheirRequestsEnd ends streams that rest, without a request.
func TestStreamsThatOutliveTheirRequestsEnd(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	for name, c := range map[string]struct {
		end  func(s *site.Site, with site.Config)
		last string
	}{
		"a reload": {func(s *site.Site, with site.Config) {
			if trouble := s.Reload(with); trouble != "" {
				s.T.Error(trouble)
			}
		}, "re-stream from the last event"},
		"a stop":                   {func(s *site.Site, _ site.Config) { s.Stop(s.T) }, "re-stream from the last event"},
		"the certificate's expiry": {func(*site.Site, site.Config) {}, "has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := site.New(t)
			with := site.Config{Handle: site.GatewayTo(agent), Store: "store pebble " + s.Dir + "/store\n\t\tdrain 500ms"}
			s.Start(with)
			aic := string(site.Certificates(t).Leader.AIC)
			lifetime := time.Hour
			if c.last == "has expired" {
				lifetime = 20 * time.Second // within which the stream begins
			}
			l := site.CallerWith(t, s.URL(), aic, site.IssueFor(t, lifetime, aic))
			o, _ := l.Open(t, l.Transports(t)["1"], site.StreamBody(l.Sender, "start", name, "ask", ""))
			site.Eventually(t, "the stream has outlived its request", func() bool { return held(s, "streams_taken_over") == 1 })
			o.Until("awaiting-input")
			c.end(s, with)
			if all := o.Ends(); !strings.Contains(all, c.last) {
				t.Errorf("the stream ended after\n%s", all)
			}
		})
	}
}
