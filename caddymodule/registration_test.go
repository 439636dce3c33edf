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

	"github.com/aip-gateway/aip-gateway/registry"
	"github.com/aip-gateway/aip-gateway/registry/registrytest"
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
				Agent: AgentConfig{URL: "https://agent.example/rpc", Dialect: "a2a/1.0"}}
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

// TestAICNotStored has a storage that is full when the registry assigns an AIC: the configuration is loaded again when
// the AIC is in the storage, and not before.
func TestAICNotStored(t *testing.T) {
	r := registrytest.New(t)
	client, err := registry.New(registry.Config{URL: r.URL})
	if err != nil {
		t.Fatal(err)
	}
	storage := &storageWithFaults{FileStorage: &certmagic.FileStorage{Path: t.TempDir()}}
	account := registry.NewAccount(client, &registry.Password{Client: client, User: registrytest.User,
		Secret: func() (string, error) { return registrytest.Password, nil }}, storage)
	const partner = "https://agent.example/{AIC}"
	order := registry.Order{Partner: partner, Differs: func(json.RawMessage) (bool, error) { return false, nil },
		ACS: []byte(`{"aic":"unassigned","name":"Echo","version":"1.0.0","endPoints":[{"url":"` + partner + `"}]}`)}
	if _, err := account.Register(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	aic := r.Process("Echo", "1.0.0", true, "")
	reloaded.Delete(aic) // the test may run again

	stored := make(chan string, 8) // the AIC in the storage when the configuration is loaded again
	admin := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodPost {
			return
		}
		record, err := account.Record(q.Context(), partner)
		if err != nil {
			t.Error(err)
		}
		stored <- record.AIC()
	}))
	t.Cleanup(admin.Close)
	address := admin.Listener.Addr().(*net.TCPAddr)
	storage.faults.Store(2)
	g := &Gateway{PublicURL: partner, registered: true, log: slog.New(slog.DiscardHandler),
		app: &App{account: account, Registry: &Registry{Poll: caddy.Duration(20 * time.Millisecond)},
			admin: adminAPI{host: address.String(), at: caddy.NetworkAddress{Network: "tcp", Host: address.IP.String(),
				StartPort: uint(address.Port), EndPort: uint(address.Port)}}}}
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		g.followRegistration(ctx)
	}()
	defer func() { <-over }()
	defer cancel()
	if got := <-stored; got != aic {
		t.Errorf("the configuration is loaded again when the storage has the AIC %q, want %q", got, aic)
	}
}

// TestRegistryInJSON: settings that would do nothing are refused.
func TestRegistryInJSON(t *testing.T) {
	for _, tt := range []struct {
		settings Registry
		err      string
	}{
		{settings: Registry{User: "a", Password: "b"}},
		{settings: Registry{Issuer: "https://login.example"}},
		{settings: Registry{Issuer: "https://login.example", ClientID: "c", ClientSecret: "d"}},
		{Registry{Issuer: "https://login.example", Password: "b"}, "password belongs to user"},
		{Registry{User: "a", Password: "b", ClientID: "c"}, "client_id and client_secret belong to issuer"},
		{Registry{User: "a", Password: "b", ClientSecret: "d"}, "client_id and client_secret belong to issuer"},
	} {
		tt.settings.URL = "https://registry.example"
		for range 2 { // settings are checked, and then used
			_, err := tt.settings.account(nil)
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%+v: %v, want %q", tt.settings, err, tt.err)
			}
		}
	}
}
