// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// site is a web site without a network: it has a list.
type site struct {
	mu     sync.Mutex
	status int // default: 200
	header http.Header
	body   []byte
	etag   string
	asked  int // requests
	whole  int // answers with the list
}

func (s *site) set(body []byte, etag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.header, s.body, s.etag = 0, nil, body, etag
}

func (s *site) fail(status int, header http.Header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status, s.header = status, header
}

func (s *site) counts() (asked, whole int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.whole
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	switch {
	case s.status != 0:
		for k, v := range s.header {
			w.Header()[k] = v
		}
		w.WriteHeader(s.status)
	case s.etag != "" && r.Header.Get("If-None-Match") == s.etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		if s.etag != "" {
			w.Header().Set("ETag", s.etag)
		}
		s.whole++
		_, _ = w.Write(s.body)
	}
}

// RoundTrip implements http.RoundTripper.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// startAt starts a Checker with its requests going to a site.
func startAt(t *testing.T, s http.RoundTripper, config Config) *Checker {
	t.Helper()
	config.Log = slog.New(slog.DiscardHandler)
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	c.client.Transport = s
	c.Start()
	t.Cleanup(c.Close)
	return c
}

const listURL = "http://ca.example/list"

// TestURL follows the list of a URL.
func TestURL(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		s := &site{}
		s.set(p.crl(p.first, 5, nil), `"5"`)
		c := startAt(t, s, Config{Sources: lists(listURL), MaxSize: 5000})
		chain := p.leaf(p.first, 7)
		beforeAsked, beforeWhole := 0, 0
		step := func(what string, wait time.Duration, want Reason, asked, whole int) {
			t.Helper()
			bubble.Pass(wait)
			if got := reason(t, c.Known(chain)); got != want {
				t.Errorf("%s: %q, want %q", what, got, want)
			}
			nowAsked, nowWhole := s.counts()
			if nowAsked-beforeAsked != asked || nowWhole-beforeWhole != whole {
				t.Errorf("%s: %d requests and %d lists, want %d and %d", what, nowAsked-beforeAsked, nowWhole-beforeWhole,
					asked, whole)
			}
			beforeAsked, beforeWhole = nowAsked, nowWhole
		}
		step("first list", time.Second, "", 1, 1)
		step("nothing new", 15*time.Minute, "", 3, 0)
		s.set(p.crl(p.first, 6, []int64{7}), `"6"`)
		step("revoked", 5*time.Minute, Revoked, 1, 1)
		s.set(p.crl(p.first, 7, nil), `"7"`)
		step("not revoked", 5*time.Minute, "", 1, 1)
		s.set(p.crl(p.first, 6, []int64{7}), `"6"`)
		step("older: the same again after 10, 20, 40 and 80 s", 10*time.Minute, "", 5, 5)
		s.set([]byte("<html>"), "")
		step("broken", 5*time.Minute, "", 1, 1)
		s.set(make([]byte, 5001), "")
		step("too large", 5*time.Minute, "", 1, 1)
		s.fail(http.StatusNotFound, nil)
		step("not found", 5*time.Minute, "", 1, 0)
		if err := c.Health()[0].Err; err == nil || err.Error() != "it is answered with 404 Not Found" {
			t.Errorf("the health of the source is %v", err)
		}
		s.fail(http.StatusTooManyRequests, http.Header{"Retry-After": {"900"}})
		step("too many requests", 5*time.Minute, "", 1, 0)
		step("too many requests, waiting", 9*time.Minute, "", 0, 0)
		s.set(p.crl(p.first, 7, nil, times(-time.Hour, 4*time.Minute)), `"7b"`)
		step("ends soon", 3*time.Minute, "", 1, 1)
		s.set(p.crl(p.first, 8, []int64{7}), `"8"`)
		step("the next one is fetched at the end", 2*time.Minute-time.Second, Revoked, 1, 1)
		if got := c.Health()[0]; got.Err != nil || got.Number != "8" || got.Entries != 1 {
			t.Errorf("the health of the source is %+v", got)
		}
	})
}

// TestURLAge asks about a certificate while a URL does not answer any more, or repeats an ended list.
func TestURLAge(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		gone, repeats := &site{}, &site{}
		for _, s := range []*site{gone, repeats} {
			s.set(p.crl(p.first, 1, nil, times(-time.Hour, 24*time.Hour)), `"1"`)
		}
		chain := p.leaf(p.first, 8)
		type checker struct {
			*Checker
			end time.Duration // it refuses after this time
		}
		aged := Config{Sources: lists(listURL), MaxAge: 3 * time.Hour}
		grace := Config{Sources: lists(listURL), Grace: 2 * time.Hour}
		checkers := map[string]checker{
			"gone, max_age":    {startAt(t, gone, aged), 3 * time.Hour},
			"repeats, max_age": {startAt(t, repeats, aged), 24 * time.Hour},
			"gone, grace":      {startAt(t, gone, grace), 26 * time.Hour},
			"repeats, grace":   {startAt(t, repeats, grace), 26 * time.Hour},
		}
		bubble.Pass(time.Second)
		for name, c := range checkers {
			if got := reason(t, c.Known(chain)); got != "" {
				t.Fatalf("%s: %q at first", name, got)
			}
		}
		bubble.Pass(5 * time.Minute)
		gone.fail(http.StatusServiceUnavailable, nil)
		start := time.Now()
		for time.Since(start) < 50*time.Hour {
			for name, c := range checkers {
				// The last answers are up to a refresh old.
				want := Reason("")
				if time.Since(start) > c.end {
					want = Stale
				}
				if got := reason(t, c.Known(chain)); got != want {
					t.Errorf("%s: %q after %v, want %q", name, got, time.Since(start), want)
				}
			}
			bubble.Pass(30*time.Minute + 7*time.Minute)
		}
	})
}

// TestKept starts again with the data kept on disk, without a network.
func TestKept(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		s := &site{}
		s.set(p.crl(p.first, 5, []int64{7}), `"5"`)
		config := Config{Sources: lists(listURL), Dir: filepath.Join(t.TempDir(), "revocation"), MaxAge: time.Hour}
		c := startAt(t, s, config)
		bubble.Pass(time.Second)
		if got := reason(t, c.Known(p.leaf(p.first, 7))); got != Revoked {
			t.Errorf("at first: %q", got)
		}
		c.Close()

		name := cacheName(config.Dir, listURL)
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("the list on disk: %v, %v", info.Mode(), err)
		}
		s.fail(http.StatusBadGateway, nil)
		c = startAt(t, s, config)
		for serial, want := range map[int64]Reason{7: Revoked, 8: ""} {
			if got := reason(t, c.Known(p.leaf(p.first, serial))); got != want {
				t.Errorf("%d after a start without a network: %q, want %q", serial, got, want)
			}
		}
		if got := reason(t, c.Known(p.leaf(p.second, 8))); got != NoAnswer {
			t.Errorf("another issuer: %q", got)
		}
		// Later lists are no worse than the kept ones.
		s.set(p.crl(p.first, 4, nil), "")
		bubble.Pass(10 * time.Minute)
		if got := reason(t, c.Known(p.leaf(p.first, 7))); got != Revoked {
			t.Errorf("with an older list: %q", got)
		}
		c.Close()

		bubble.Pass(2 * time.Hour)
		s.fail(http.StatusBadGateway, nil)
		c = startAt(t, s, config)
		for serial, want := range map[int64]Reason{7: Revoked, 8: Stale} {
			if got := reason(t, c.Known(p.leaf(p.first, serial))); got != want {
				t.Errorf("%d after a long time: %q, want %q", serial, got, want)
			}
		}
		c.Close()

		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, content := range map[string][]byte{
			"empty":  nil,
			"cut":    content[:len(content)/2],
			"forged": bytes.Replace(content, []byte{2, 1, 7}, []byte{2, 1, 6}, 1),
		} {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
			c = startAt(t, s, config)
			if got := reason(t, c.Known(p.leaf(p.first, 7))); got != NoAnswer {
				t.Errorf("%s: %q", what, got)
			}
			c.Close()
		}
	})
}

// TestKeptOfTheFuture: a list kept while the clock was ahead is as old as the start reading it.
func TestKeptOfTheFuture(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		s := &site{}
		s.set(p.crl(p.first, 5, nil, times(0, 24*time.Hour)), "")
		config := Config{Sources: lists(listURL), Dir: t.TempDir(), MaxAge: time.Hour}
		c := startAt(t, s, config)
		bubble.Pass(time.Second)
		if got := reason(t, c.Known(p.leaf(p.first, 8))); got != "" {
			t.Errorf("at first: %q", got)
		}
		c.Close()
		ahead := time.Now().Add(10 * time.Hour)
		if err := os.Chtimes(cacheName(config.Dir, listURL), ahead, ahead); err != nil {
			t.Fatal(err)
		}
		s.fail(http.StatusBadGateway, nil)
		c = startAt(t, s, config)
		for _, want := range []Reason{"", Stale} {
			if got := reason(t, c.Known(p.leaf(p.first, 8))); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			bubble.Pass(2 * time.Hour)
		}
	})
}

// TestNetwork fetches lists over the network: by http, by https from a trusted server, and from no other.
func TestNetwork(t *testing.T) {
	p := newPKI(t)
	raw := p.crl(p.first, 1, []int64{7})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/", http.StatusFound)
			return
		}
		_, _ = w.Write(raw)
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	for _, test := range []struct {
		name, url string
		config    Config
		want      Reason
	}{
		{"http", plain.URL, Config{}, Revoked},
		{"https", secure.URL, Config{Roots: secure.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}, Revoked},
		{"https, not trusted", secure.URL, Config{}, NoAnswer},
		{"redirect", plain.URL + "/moved", Config{}, NoAnswer},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.config.Sources, test.config.Log = lists(test.url), slog.New(slog.DiscardHandler)
			c, err := New(test.config)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_ = c.learn(p.first.Certificate)
			_, _ = c.fetch(c.locations[0])
			if got := reason(t, c.Known(p.leaf(p.first, 7))); got != test.want {
				t.Errorf("%q, want %q (%v)", got, test.want, c.Health()[0].Err)
			}
		})
	}
	t.Run("closed in the middle", func(t *testing.T) {
		reached, release := make(chan struct{}), make(chan struct{})
		slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			close(reached)
			<-release
		}))
		defer slow.Close()
		defer close(release)
		c := start(t, Config{Sources: lists(slow.URL)})
		<-reached
		c.Close()
	})
}
