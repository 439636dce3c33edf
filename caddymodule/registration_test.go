// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/certmagic"

	"github.com/aip-gateway/aip-gateway/acps/registry"
	"github.com/aip-gateway/aip-gateway/acps/registry/registrytest"
	"github.com/aip-gateway/aip-gateway/caddymodule/acps"
	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/pki"
)

// TestWithoutItsAIC: what needs the AIC of the Partner is accepted where the registry assigns it, and not where there
// is none.
func TestWithoutItsAIC(t *testing.T) {
	for name, set := range map[string]func(*Gateway){
		"group": func(g *Gateway) { g.Group = &Group{AllowBrokers: []string{"mq.example"}} },
		"aac":   func(g *Gateway) { g.AAC = &AAC{Issuers: []Issuer{{Issuer: "https://issuer.example"}}} },
	} {
		for _, aic := range []string{"", registeredAIC} {
			g := &Gateway{AIC: aic, PublicURL: "https://agent.example", Callers: []string{"aip/2"},
				Agent: agents.Config{URL: "https://agent.example/rpc", Dialect: "a2a/1.0"}}
			set(g)
			g.fillDefaults()
			err := g.check()
			if aic == registeredAIC && err != nil || aic == "" && (err == nil || !strings.Contains(err.Error(), "aic")) {
				t.Errorf("%s with the aic %q: %v", name, aic, err)
			}
		}
	}
}

// storageWithFaults is a storage on disk that stores nothing while there are faults left.
type storageWithFaults struct {
	*certmagic.FileStorage
	faults atomic.Int32
}

func (s *storageWithFaults) Store(ctx context.Context, key string, value []byte) error {
	if s.faults.Add(-1) >= 0 {
		return syscall.ENOSPC
	}
	return s.FileStorage.Store(ctx, key, value)
}

// registrant has an account whose storage may have faults, and a Partner that is registered once.
func registrant(t *testing.T) (r *registrytest.Registry, a *registry.Account, s *storageWithFaults, o registry.Order) {
	t.Helper()
	r = registrytest.New(t)
	client, err := registry.New(registry.Config{URL: r.URL})
	if err != nil {
		t.Fatal(err)
	}
	s = &storageWithFaults{FileStorage: &certmagic.FileStorage{Path: t.TempDir()}}
	a = registry.NewAccount(client, &registry.Password{Client: client, User: registrytest.User,
		Secret: func() (string, error) { return registrytest.Password, nil }}, s)
	const partner = "https://agent.example/{AIC}"
	o = registry.Order{Partner: partner, Differs: func(json.RawMessage) (bool, error) { return false, nil },
		ACS: []byte(`{"aic":"unassigned","name":"Echo","version":"1.0.0","endPoints":[{"url":"` + partner + `"}]}`)}
	if _, err := a.Register(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return r, a, s, o
}

// followed follows the registration of a Partner until the test ends. loads is called when the configuration is loaded
// again.
func followed(t *testing.T, g *Gateway, a *registry.Account, loads func()) {
	t.Helper()
	admin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if q.Method == http.MethodPost {
			loads()
		}
	}))
	t.Cleanup(admin.Close)
	address := admin.Listener.Addr().(*net.TCPAddr)
	g.registered = true
	if g.app == nil {
		g.app = new(App)
	}
	g.app.account, g.app.Registry = a, &acps.Registry{Poll: caddy.Duration(20 * time.Millisecond)}
	g.app.admin = adminAPI{host: address.String(), at: caddy.NetworkAddress{Network: "tcp", Host: address.IP.String(),
		StartPort: uint(address.Port), EndPort: uint(address.Port)}}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		g.followRegistration(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
}

// TestNewVersionIsUsed: where the gateway obtains the certificates of its Partners, the AIC of a new version is used at
// once. Where an operator does, the log says how.
func TestNewVersionIsUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		certificates *pki.Certificates
		loads        bool
	}{
		"obtained":          {&pki.Certificates{}, true},
		"of others":         {&pki.Certificates{Partners: []string{"1.2.3"}}, false},
		"of the operator's": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, account, _, order := registrant(t)
			old := r.Process("Echo", "1.0.0", true, "")
			order.ACS, order.NewVersion = []byte(strings.Replace(string(order.ACS), "1.0.0", "2.0.0", 1)), true
			if _, err := account.Register(t.Context(), order); err != nil {
				t.Fatal(err)
			}
			process.Reloaded.Delete(r.Process("Echo", "2.0.0", true, "")) // the test may run again
			said := make(chan string, 8)
			g := &Gateway{PublicURL: order.Partner, AIC: old, app: &App{Certificates: tt.certificates},
				log: slog.New(slog.NewTextHandler(lineWriter(said), nil))}
			followed(t, g, account, func() { said <- "loaded" })
			for line := range said {
				switch {
				case line == "loaded" && tt.loads, strings.Contains(line, "run caddy reload --force") && !tt.loads:
					return
				case line == "loaded", strings.Contains(line, "level=WARN"):
					t.Fatal(line)
				}
			}
		})
	}
}

// lineWriter gives lines of a log to a channel, while there is room.
type lineWriter chan string

func (w lineWriter) Write(line []byte) (int, error) {
	select {
	case w <- string(line):
	default:
	}
	return len(line), nil
}

// TestAICNotStored has a storage that is full when the registry assigns an AIC: the configuration is loaded again when
// the AIC is in the storage, and not before.
func TestAICNotStored(t *testing.T) {
	r, account, storage, order := registrant(t)
	aic := r.Process("Echo", "1.0.0", true, "")
	process.Reloaded.Delete(aic) // the test may run again

	stored := make(chan string, 8) // the AIC in the storage when the configuration is loaded again
	storage.faults.Store(2)
	followed(t, &Gateway{PublicURL: order.Partner, log: slog.New(slog.DiscardHandler)}, account, func() {
		record, err := account.Record(t.Context(), order.Partner)
		if err != nil {
			t.Error(err)
		}
		stored <- record.AIC()
	})
	if got := <-stored; got != aic {
		t.Errorf("the configuration is loaded again when the storage has the AIC %q, want %q", got, aic)
	}
}

// TestEntityAtMount: an entity that is registered with its mount point as its endpoint is told from others.
func TestEntityAtMount(t *testing.T) {
	g := &Gateway{PublicURL: "https://agent.example/one/"}
	entry := func(ontology, endpoint string) *registry.Entry {
		return &registry.Entry{AIC: "1.2", Ontology: ontology, ACS: []byte(`{"endPoints":[{"url":"` + endpoint + `"}]}`)}
	}
	for name, tc := range map[string]struct {
		current *registry.Entry
		want    bool
	}{
		"the mount point":    {entry("1", "https://agent.example/one"), true},
		"the endpoint":       {entry("1", "https://agent.example/one/rpc"), false},
		"no entity":          {entry("", "https://agent.example/one"), false},
		"nothing registered": {nil, false},
	} {
		if got := g.entityAtMount(&registry.Record{Current: tc.current}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRegistryInJSON: settings that would do nothing are refused.
func TestRegistryInJSON(t *testing.T) {
	for _, tt := range []struct {
		settings acps.Registry
		err      string
	}{
		{settings: acps.Registry{User: "a", Password: "b"}},
		{settings: acps.Registry{Issuer: "https://login.example"}},
		{settings: acps.Registry{Issuer: "https://login.example", ClientID: "c", ClientSecret: "d"}},
		{acps.Registry{Issuer: "https://login.example", Password: "b"}, "password belongs to user"},
		{acps.Registry{User: "a", Password: "b", ClientID: "c"}, "client_id and client_secret belong to issuer"},
		{acps.Registry{User: "a", Password: "b", ClientSecret: "d"}, "client_id and client_secret belong to issuer"},
	} {
		tt.settings.URL = "https://registry.example"
		for range 2 { // settings are checked, and then used
			_, err := tt.settings.Account(nil)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v: %v, want %q", tt.settings, err, tt.err)
			}
		}
	}
}
