// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream/upstreamtest"
)

const pushing = `{"name":"n","url":"http://agent/","capabilities":{"streaming":false,"pushNotifications":true}}`

// cardServer shows a card.
type cardServer struct {
	body    atomic.Pointer[string] // nil for none
	status  atomic.Int64           // of the answer if there is none; 0 for 404
	delay   atomic.Int64           // of an answer
	fetches atomic.Int64
}

func (s *cardServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "agent-card.json") {
		http.NotFound(w, r)
		return
	}
	s.fetches.Add(1)
	select {
	case <-time.After(time.Duration(s.delay.Load())):
	case <-r.Context().Done():
		return
	}
	if body := s.body.Load(); body != nil {
		io.WriteString(w, *body)
		return
	}
	w.WriteHeader(int(cmp.Or(s.status.Load(), http.StatusNotFound)))
}

// withCard runs f in a bubble, with a card of a server.
func withCard(t *testing.T, body string, f func(t *testing.T, c *Card, s *cardServer)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		s := &cardServer{}
		if body != "" {
			s.body.Store(&body)
		}
		l, srv := upstreamtest.NewListener(), &http.Server{Handler: s}
		var serving sync.WaitGroup
		serving.Go(func() { srv.Serve(l) })
		c := NewCard(Config{URL: "http://agent/", Finder: a2a.Finder(), Dial: l.Dial})
		f(t, c, s)
		c.Close()
		srv.Close()
		serving.Wait()
	})
}

// TestCardServerHangs: a call without need of a card does not wait for one, and a caller waits no longer than its
// context allows.
func TestCardServerHangs(t *testing.T) {
	withCard(t, pushing, func(t *testing.T, c *Card, s *cardServer) {
		s.delay.Store(int64(time.Hour))
		for _, want := range []time.Duration{pushesWait, 0, 0} {
			begun := time.Now()
			if c.Pushes(t.Context()) {
				t.Error("an agent without a card pushes")
			}
			if took := time.Since(begun); took != want {
				t.Errorf("a turn waited for %v, want %v", took, want)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if _, _, err := c.Get(ctx); task.KindOf(err) != task.AgentTimeout {
			t.Errorf("a caller that waits for 100 ms: %v", err)
		}
		if took := time.Since(begun); took != 100*time.Millisecond {
			t.Errorf("a caller that waits for 100 ms waited for %v", took)
		}
		if _, _, err := c.Get(t.Context()); task.KindOf(err) != task.AgentTimeout {
			t.Errorf("a caller that waits for the card: %v", err)
		}
		if n := s.fetches.Load(); n != 1 {
			t.Errorf("the card was fetched %d times", n)
		}
	})
}

// TestCardIsFetchedOnce: callers at the same time cause one fetch.
func TestCardIsFetchedOnce(t *testing.T) {
	withCard(t, pushing, func(t *testing.T, c *Card, s *cardServer) {
		s.delay.Store(int64(time.Second))
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				if card, changed, err := c.Get(t.Context()); err != nil || card.Name != "n" ||
					!changed.Equal(time.Now()) {
					t.Errorf("got %+v, %v, %v", card, changed, err)
				}
			})
		}
		callers.Wait()
		if n := s.fetches.Load(); n != 1 {
			t.Errorf("the card was fetched %d times", n)
		}
		if !c.Pushes(t.Context()) {
			t.Error("an agent that pushes, and has no streams, does not push")
		}
	})
}

// TestOldCardIsServed: an old card is served while one fetch runs, and afterwards the new one.
func TestOldCardIsServed(t *testing.T) {
	withCard(t, pushing, func(t *testing.T, c *Card, s *cardServer) {
		get := func() (string, time.Time) {
			t.Helper()
			begun := time.Now()
			card, changed, err := c.Get(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begun); took != 0 {
				t.Errorf("a caller waited for %v", took)
			}
			return card.Name, changed
		}
		_, first := get()
		s.body.Store(new(strings.Replace(pushing, `"n"`, `"new"`, 1)))
		s.delay.Store(int64(time.Second))
		time.Sleep(cardAge)
		for range 3 {
			if name, changed := get(); name != "n" || !changed.Equal(first) {
				t.Errorf("the card of %q, changed at %v, while the new one is fetched", name, changed)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		name, changed := get()
		if name != "new" || !changed.Equal(time.Now()) {
			t.Errorf("the card of %q, changed at %v, after the fetch", name, changed)
		}
		if n := s.fetches.Load(); n != 2 {
			t.Errorf("the card was fetched %d times", n)
		}

		s.body.Store(nil) // an agent showing no card any more keeps the last one
		for range 20 {
			time.Sleep(cardAge / 10)
			if again, when := get(); again != "new" || !when.Equal(changed) {
				t.Errorf("the card of %q, changed at %v", again, when)
			}
		}
	})
}

// TestNoCard: an agent without a card is not asked all the time, and one with a failing server is asked sooner again.
func TestNoCard(t *testing.T) {
	for status, pause := range map[int]time.Duration{
		http.StatusNotFound: cardAge, http.StatusUnauthorized: cardAge, http.StatusMethodNotAllowed: cardAge,
		http.StatusBadGateway: cardPause, http.StatusTooManyRequests: cardPause,
	} {
		withCard(t, "", func(t *testing.T, c *Card, s *cardServer) {
			s.status.Store(int64(status))
			for range 100 {
				if _, _, err := c.Get(t.Context()); err == nil || c.Pushes(t.Context()) {
					t.Errorf("there is a card: %v", err)
				}
				time.Sleep(pause / 50)
			}
			if n := s.fetches.Load(); n != 2 {
				t.Errorf("with HTTP %d, the card was fetched %d times in %v", status, n, 2*pause)
			}
		})
	}
}

// brokenFinder has a bug in its reader of cards.
type brokenFinder struct{ translate.Finder }

func (brokenFinder) Card([]byte) (*translate.Card, error) { panic("a card") }

// TestCardPanics: a bug in the reader of cards ends in the goroutines waiting for the card.
func TestCardPanics(t *testing.T) {
	withCard(t, pushing, func(t *testing.T, c *Card, s *cardServer) {
		s.delay.Store(int64(time.Second))
		c.config.Finder = brokenFinder{c.config.Finder}
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				defer func() {
					if p, ok := recover().(error); !ok || !strings.Contains(p.Error(), "brokenFinder.Card") {
						t.Errorf("the panic is %v", p)
					}
				}()
				c.Get(t.Context())
			})
		}
		callers.Wait()
		if _, _, err := c.Get(t.Context()); task.KindOf(err) != task.Internal {
			t.Errorf("afterwards: %v", err)
		}
	})
}
