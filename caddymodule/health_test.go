// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay"
)

// healthSite returns a configuration with aip_health on the site of the Partner. The store is pebble in the site's
// directory, unless another one is given.
func (s *site) healthSite(agent string, store ...string) []byte {
	s.t.Helper()
	if store == nil {
		store = []string{"pebble " + s.dir}
	}
	out := adapt(s.t, string(caddyfile.Format(fmt.Appendf(nil, `{
	admin off
	auto_https off
	aip {
		store %s
		drain 1s
	}
}
http://%s {
	aip_health
	aip_gateway {
		identity off
		%s
	}
}
`, store[0], s.addr, agent))))
	if strings.HasPrefix(out, "error") {
		s.t.Fatal(out)
	}
	return []byte(out)
}

// health asks the site for a health route.
func (s *site) health(route string) (status int, h adminapi.Health) {
	s.t.Helper()
	res, err := overReload(func() (*http.Response, error) { return http.Get("http://" + s.addr + route) })
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil {
		s.t.Fatal(err)
	}
	for i := range h.Agents { // times differ
		h.Agents[i].Answered, h.Agents[i].Failed = time.Time{}, time.Time{}
	}
	return res.StatusCode, h
}

func (s *site) wantHealth(want adminapi.AgentHealth) {
	s.t.Helper()
	ready := adminapi.Health{Status: adminapi.Ready, Store: &adminapi.StoreHealth{Driver: "pebble", Writable: true},
		Agents: []adminapi.AgentHealth{want}}
	status, got := s.health(adminapi.HealthReady)
	if diff := cmp.Diff(ready, got); diff != "" || status != http.StatusOK {
		s.t.Errorf("ready is answered by %d (-want +got):\n%s", status, diff)
	}
}

func TestHealthOfAnAgent(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.healthSite("agent a2a/legacy " + s.agent))
	want := adminapi.AgentHealth{Name: strings.TrimPrefix(s.agent, "http://"), URL: "http://" + s.addr,
		Partner: s.agent, Agent: s.agent, Dialect: "a2a/legacy", State: adminapi.AgentUnknown}
	s.wantHealth(want)
	s.want("start", "t1", "hello", "awaiting-completion")
	want.State = adminapi.AgentUp
	s.wantHealth(want)
	s.mustLoad(s.healthSite("agent a2a/legacy " + s.agent + " {\ntimeout 1m\n}"))
	s.wantHealth(want)

	down := freeAddr(t)
	s.mustLoad(s.healthSite("agent a2a/legacy http://" + down + " {\nretry_for 0\n}"))
	s.want("start", "t2", "hello", "failed")
	s.wantHealth(adminapi.AgentHealth{Name: down, URL: "http://" + s.addr,
		Partner: "http://" + down, Agent: "http://" + down,
		Dialect: "a2a/legacy", State: adminapi.AgentDown, Reason: "the agent cannot be reached"})
	if status, got := s.health(adminapi.HealthLive); status != http.StatusOK || got.Status != adminapi.Live {
		t.Errorf("live is answered by %d: %+v", status, got)
	}
}

// TestHealthChecks: an agent with check is known before a task needs it, with its dialect.
func TestHealthChecks(t *testing.T) {
	s := newSite(t)
	down := freeAddr(t)
	for _, tt := range []struct{ agent, state, dialect string }{
		{s.agent, adminapi.AgentUp, "a2a/legacy"},
		{"http://" + down, adminapi.AgentDown, ""},
	} {
		s.mustLoad(s.healthSite("agent a2a " + tt.agent + " {\ncheck 1s\n}"))
		asynctest.Eventually(t, tt.agent+" is "+tt.state, func() bool {
			_, got := s.health(adminapi.HealthReady)
			return got.Agents[0].State == tt.state && got.Agents[0].Dialect == tt.dialect
		})
		if status, got := s.health(adminapi.HealthReady); status != http.StatusOK || got.Status != adminapi.Ready {
			t.Errorf("an agent that is %s makes the gateway %d %s", tt.state, status, got.Status)
		}
	}
}

// TestHealthOfTheStore: a store that is full of unfinished tasks makes the gateway unready until one of them ends.
func TestHealthOfTheStore(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.healthSite("agent a2a/legacy "+s.agent, "memory {\nmax_size 64KiB\nmax_bytes 64KiB\n}"))
	big := strings.Repeat("hello ", 2000)
	var refused error
	for i := 0; refused == nil && i < 100; i++ {
		_, refused = s.call(t.Context(), "start", fmt.Sprint("t", i), big)
	}
	for i := 0; i < 100; i++ { // the rest of the capacity
		_, _ = s.call(t.Context(), "start", fmt.Sprint("s", i), "hello")
	}
	status, got := s.health(adminapi.HealthReady)
	want := &adminapi.StoreHealth{Driver: "memory", Reason: replay.ErrFull.Error()}
	if diff := cmp.Diff(want, got.Store); diff != "" || status != http.StatusServiceUnavailable ||
		got.Status != adminapi.Unready || len(got.Reasons) != 1 || !strings.Contains(got.Reasons[0], want.Reason) {
		t.Errorf("ready is answered by %d %+v; store (-want +got):\n%s", status, got, diff)
	}
	if status, _ := s.health(adminapi.HealthLive); status != http.StatusOK {
		t.Errorf("live is answered by %d", status)
	}
	s.want("complete", "t0", "", "completed")
	if status, got := s.health(adminapi.HealthReady); status != http.StatusOK {
		t.Errorf("when a task has ended, ready is answered by %d %+v", status, got)
	}
}

func TestHealthWithoutAPartner(t *testing.T) {
	addr := freeAddr(t)
	s := &site{t: t, addr: addr}
	config := adapt(t, "{\n\tadmin off\n}\n\nhttp://"+addr+" {\n\taip_health\n\trespond \"next\" 404\n}\n")
	s.mustLoad([]byte(config))
	defer caddy.Stop()
	if status, got := s.health(adminapi.HealthReady); status != http.StatusServiceUnavailable || len(got.Reasons) != 1 {
		t.Errorf("ready is answered by %d %+v", status, got)
	}
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{http.MethodHead, adminapi.HealthLive, 200},
		{http.MethodHead, adminapi.HealthReady, 503},
		{http.MethodPost, adminapi.HealthReady, 405},
		{http.MethodGet, "/aip/health", 404},
	} {
		req, err := http.NewRequest(tt.method, "http://"+addr+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != tt.status {
			t.Errorf("%s %s is answered by %d, want %d", tt.method, tt.path, res.StatusCode, tt.status)
		}
	}
}

// startedApp is an app of Caddy that asks whether the gateway is ready while the apps of a configuration start.
type startedApp struct{}

var readyAtStart []adminapi.Health // as the apps of this name saw it

func init() { caddy.RegisterModule(startedApp{}) }

// CaddyModule returns the Caddy module information.
func (startedApp) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "started_in_test", New: func() caddy.Module { return new(startedApp) }}
}

// Start implements caddy.App.
func (*startedApp) Start() error { readyAtStart = append(readyAtStart, readiness()); return nil }

// Stop implements caddy.App.
func (*startedApp) Stop() error { return nil }

// TestReadyWhenSitesListen: the gateway is not ready before all apps of Caddy have started, in whatever order they do,
// and is ready while a reload starts them again.
func TestReadyWhenSitesListen(t *testing.T) {
	s := newSite(t)
	config := []byte(strings.Replace(string(s.healthSite("agent a2a/legacy "+s.agent)), `"apps": {`,
		`"apps": {"started_in_test": {},`, 1))
	for range 12 { // Caddy starts apps in a random order
		readyAtStart = nil
		s.mustLoad(config)
		if _, now := s.health(adminapi.HealthReady); now.Status != adminapi.Ready {
			t.Errorf("when the sites listen: %+v", now)
		}
		s.mustLoad(config)
		if len(readyAtStart) != 2 || readyAtStart[0].Status != adminapi.Unready || readyAtStart[1].Status != adminapi.Ready {
			t.Fatalf("at a start and at a reload: %+v", readyAtStart)
		}
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
