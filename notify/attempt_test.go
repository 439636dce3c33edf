// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/egress"
	"github.com/aip-gateway/aip-gateway/task"
)

// What is sent over TCP, and what comes of the answers that there are.
func TestOverTCP(t *testing.T) {
	hang := make(chan struct{})
	var elsewhere int
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ok", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Contains(body, []byte(`"state":"accepted"`)) || r.ContentLength != int64(len(body)) ||
			r.Header.Get("Accept-Encoding") != "" || r.Header.Get("User-Agent") != "aip-gateway" {
			w.WriteHeader(400)
		}
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/elsewhere", func(http.ResponseWriter, *http.Request) { elsewhere++ })
	mux.HandleFunc("/reset", func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.(*net.TCPConn).SetLinger(0)
			_ = c.Close()
		}
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		for range 1000 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 64<<10)) })
	mux.HandleFunc("/hang", func(http.ResponseWriter, *http.Request) { <-hang })
	server := httptest.NewServer(mux)
	defer server.Close()
	defer close(hang)
	closed := httptest.NewServer(mux)
	closed.Close()

	w := newWorld(t, memory())
	w.e.Close()
	e, err := Open(t.Context(), w.store, nil)
	must(t, err)
	defer e.Close()
	w.conf.Timeout = 2 * time.Second
	e.Configure(w.conf)
	w.e = e
	for name, c := range map[string]struct {
		url string
		err string
		set func(*Config)
	}{
		"ok":       {server.URL + "/ok", "", nil},
		"redirect": {server.URL + "/redirect", "status 307", nil},
		"reset":    {server.URL + "/reset", "closed without an answer", nil},
		"endless":  {server.URL + "/endless", "status 500", nil},
		"header":   {server.URL + "/header", "not HTTP", nil},
		"hang":     {server.URL + "/hang", "within 100ms", func(c *Config) { c.Timeout = 100 * time.Millisecond }},
		"refused":  {closed.URL + "/ok", "was refused", nil},
		"guarded":  {server.URL + "/ok", "not public", func(c *Config) { c.Egress = new(egress.Policy) }},
	} {
		t.Run(name, func(t *testing.T) {
			conf := w.conf
			if c.set != nil {
				c.set(&conf)
			}
			e.Configure(conf)
			defer e.Configure(w.conf)
			var body bytes.Buffer
			body.WriteString(`{"status":{"state":"accepted"}}`)
			p := &parcel{setup: e.setup.Load(), hook: task.Webhook{URL: c.url}, id: "msg_a", began: time.Now(), header: http.Header{}, body: body.Bytes()}
			p.fill("")
			o := e.send(p)
			if !strings.Contains(o.err, c.err) || (o.err == "") != (c.err == "") {
				t.Errorf("got %+v", o)
			}
		})
	}
	if elsewhere != 0 {
		t.Error("a redirect was followed")
	}
}

func TestHopeless(t *testing.T) {
	w := newWorld(t, memory())
	defer w.e.Close()
	if o := w.e.attempt(&parcel{setup: w.e.setup.Load(), hook: task.Webhook{URL: here}}, w.e.logger()); !o.hopeless {
		t.Errorf("a damaged record: %+v", o)
	}
	if o := w.e.send(&parcel{setup: w.e.setup.Load(), hook: task.Webhook{URL: "://"}, header: http.Header{}}); !o.hopeless {
		t.Errorf("an impossible URL: %+v", o)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"": 0, "x": 0, "-5": 0, "0": 0, "7": 7 * time.Second, "99999999999999999999999": 0, "9223372036854775807": maxRetryAfter,
		now.Add(time.Hour).Format(http.TimeFormat): time.Hour, now.Add(-time.Hour).Format(http.TimeFormat): 0,
		now.Add(100 * 24 * time.Hour).Format(http.TimeFormat): maxRetryAfter,
	} {
		if got := retryAfter(field, now); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}

func TestBreaker(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var b breaker
	for i := range breakAt {
		if opened := b.fail(now); opened != (i == breakAt-1) {
			t.Fatalf("after %d failures: %v", i+1, opened)
		}
	}
	for want := breakFor; want < 4*breakMost; want *= 2 {
		most := min(want, breakMost)
		if d := b.until.Sub(now); d < most*8/10 || d > most*12/10 || !b.open(now) || b.halfOpen(now) {
			t.Errorf("open for %v, want %v", d, most)
		}
		if b.fail(now) {
			t.Error("an attempt that began before has opened it again")
		}
		if at := b.after(now); at.Before(b.until) {
			t.Errorf("come back at %v, before %v", at, b.until)
		}
		now = b.until
		if !b.halfOpen(now) || !b.fail(now) {
			t.Error("half-open, it does not open again")
		}
	}
	if !b.succeed() || b.succeed() || b != (breaker{}) {
		t.Errorf("%+v", b)
	}
	if !b.hold(now, 48*time.Hour) || b.hold(now, time.Second) || b.until != now.Add(breakMost) {
		t.Errorf("%+v", b)
	}
}

func TestEndpointOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://A.example.org/x?y": "https://a.example.org:443", "http://a:8080": "http://a:8080", "http://a./": "http://a:80",
		"https://[2001:DB8::1]/": "https://[2001:db8::1]:443", "://": "invalid://",
	} {
		if got := endpointOf(url); got != want {
			t.Errorf("%s is %s", url, got)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"seq":1,"state":"working","at":"2026-01-01T00:00:00Z"}` + "\n" + `{"id":"a","status":{"state":"working"}}`))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, tk, err := decodeRecord(data)
		if err != nil {
			return
		}
		if h.At.Year() < 1 || h.At.Year() > 9999 {
			return // which nothing of ours writes
		}
		again, tk2, err := decodeRecord(encodeRecord(&h, &tk))
		if err != nil {
			return // raw JSON inside that compaction would not take
		}
		if again.Seq != h.Seq || again.Life != h.Life || !again.At.Equal(h.At) || tk2.ID != strings.ToValidUTF8(tk.ID, "\ufffd") {
			t.Errorf("%s", cmp.Diff(h, again))
		}
	})
}

func FuzzPage(f *testing.F) {
	f.Add(page{at: time.Unix(1, 2), log: taskLog("a"), skip: 3}.String())
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		p, ok := parsePage(s)
		if !ok || s == "" {
			return
		}
		again, ok := parsePage(p.String())
		if !ok || !again.at.Equal(p.at) || again.log != p.log || again.skip != p.skip {
			t.Errorf("%q is %+v, and then %+v", s, p, again)
		}
	})
}

// The names of logs keep their parts apart.
func TestNames(t *testing.T) {
	log := taskLog("a")
	partner, leader, id := splitName(outboxOf(log))
	if taskOf(outboxOf(log)) != log || fmt.Sprint(partner, leader, id) != "partnerleadera" || outboxOf(log)[0] != Class {
		t.Errorf("%q, %q, %q", partner, leader, id)
	}
	en := &entry{Event: 1}
	ids := map[string]bool{}
	for _, id := range []string{
		webhookID("na\x00b\x00c", "d", en), webhookID("na\x00b\x00c", "e", en), webhookID("na\x00b\x00d", "d", en),
		webhookID("na\x00b\x00c", "d", &entry{Event: 2}), webhookID("na\x00b\x00c", "d", &entry{Event: 1, Life: 1}),
	} {
		ids[id] = true
	}
	if len(ids) != 5 {
		t.Errorf("%v", ids)
	}
	if got := new(note).wants(1, task.Working); got {
		t.Error("a note without webhooks wants something")
	}
}
