// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// The gateway's credentials go with every question, and so do the fields with the version.
func TestDiscoverSendsHeader(t *testing.T) {
	var mu sync.Mutex
	var got []string
	p := &peer{cards: only(cardJSON, card03), rpc: at1("/invoke", speaks03)}
	p.over = func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.Join([]string{r.Method, r.Host, r.Header.Get("Authorization"),
			r.Header.Get("A2A-Version"),
			r.Header.Get("Accept"), r.Header.Get("Content-Type"), r.Header.Get("User-Agent")}, "|"))
		return false
	}
	srv := httptest.NewServer(p)
	defer srv.Close()
	header := http.Header{"Authorization": {"Bearer x"}, "host": {"agent.example"}, "Host": {"agent.example"}}
	found, err := Discover(t.Context(), Config{URL: srv.URL, Finder: a2a.Finder(), Header: header})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET|agent.example|Bearer x|1.0|application/json||aip-gateway",
		"POST|agent.example|Bearer x||application/json|application/json|aip-gateway",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if u, _ := url.Parse(found.URL); u.Host != strings.TrimPrefix(srv.URL, "http://") {
		t.Errorf("the endpoint is %s", found.URL)
	}
	if len(header) != 3 || len(header["Authorization"]) != 1 {
		t.Errorf("the header was changed: %v", header)
	}
}

func TestDiscoverOverTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(&peer{cards: only(cardJSON, card10), rpc: at1("/rpc", speaks10)})
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains of the first handshake
	srv.StartTLS()
	defer srv.Close()
	config := Config{URL: srv.URL, Finder: a2a.Finder()}
	if _, err := Discover(t.Context(), config); task.KindOf(err) != task.AgentUnavailable {
		t.Errorf("a certificate that is not trusted: %v", err)
	}
	config.TLS = srv.Client().Transport.(*http.Transport).TLSClientConfig
	found, err := Discover(t.Context(), config)
	if err != nil || found.Dialect != "a2a/1.0" || found.URL != srv.URL+"/rpc" {
		t.Errorf("found %+v, %v", found, err)
	}
}

func TestDiscoverWaits(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	slowly(t, &peer{over: hang}, func(t *testing.T, config Config) {
		begin := time.Now()
		_, err := Discover(t.Context(), config)
		if task.KindOf(err) != task.AgentTimeout || !strings.Contains(err.Error(),
			"did not answer within 10s; start it, or correct its URL") {
			t.Errorf("a silent agent: %v", err)
		}
		if took := time.Since(begin); took != questionTimeout {
			t.Errorf("it took %v", took)
		}
	})
	// A hanging endpoint is no endpoint; its card may still be right.
	posts := func(w http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodPost && hang(w, r) }
	slowly(t, &peer{cards: only(cardJSON, card03), over: posts}, func(t *testing.T, config Config) {
		found, err := Discover(t.Context(), config)
		if err != nil || found.Dialect != "a2a/0.3" || !strings.HasSuffix(found.Why,
			"though no answer of the agent proves it") {
			t.Errorf("an agent that only has a card: %+v, %v", found, err)
		}
	})
	slowly(t, &peer{cards: only(cardJSON, card03), over: posts}, func(t *testing.T, config Config) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := Discover(ctx, config); task.KindOf(err) != task.AgentTimeout || !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("a caller that does not wait: %v", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestDiscoverNoAgent(t *testing.T) {
	url := fmt.Sprint("http://127.0.0.1:", freeport.Closed(t))
	for _, f := range []func(context.Context, Config) error{
		func(ctx context.Context, c Config) error { _, err := Discover(ctx, c); return err },
		func(ctx context.Context, c Config) error { _, err := FetchCard(ctx, c); return err },
	} {
		err := f(t.Context(), Config{URL: url, Finder: a2a.Finder()})
		if task.KindOf(err) != task.AgentUnavailable || !strings.Contains(err.Error(), "start it, or correct its URL") {
			t.Errorf("no agent: %v", err)
		}
	}
}

// TestDiscoverStaysAtItsHost: a redirect to another host is not followed, whatever it adds to the path.
func TestDiscoverStaysAtItsHost(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	for _, to := range []string{elsewhere + "/app/", "//u@x/app/", "/other/"} {
		p := &peer{cards: only(cardJSON, strings.Replace(card03, "invoke", "app", 1)), rpc: at1("/app/", speaks03),
			over: redirecting("/app", to)}
		srv := httptest.NewServer(p)
		found, err := Discover(t.Context(), Config{URL: srv.URL, Finder: a2a.Finder(),
			Header: http.Header{"Authorization": {"Bearer x"}}})
		if err != nil || found.URL != srv.URL+"/app" || asked {
			t.Errorf("%s: %+v, %v, and the other host was asked: %t", to, found, err, asked)
		}
		srv.Close()
	}
}
