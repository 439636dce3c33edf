// SPDX-License-Identifier: Apache-2.0

package aipgateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/replay"
)

func init() { caddy.RegisterModule(new(shelf)) }

// shelf is a driver of another project.
type shelf struct {
	store.Limits

	Name string `json:"name,omitempty"`
}

// shelves counts what happens to the stores of all shelves.
var shelves struct {
	opened, closed atomic.Int32
	retention      atomic.Int64 // as last configured
}

func (*shelf) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "aip.stores.shelf", New: func() caddy.Module { return new(shelf) }}
}

func (s *shelf) Location() string { return s.Name }

func (s *shelf) Open(*slog.Logger) (replay.Store, error) {
	shelves.opened.Add(1)
	return shelfStore{replay.NewMemory(s.Settings())}, nil
}

func (s *shelf) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if !d.Args(&s.Name) {
		return d.ArgErr()
	}
	for d.NextBlock(0) {
		if d.Val() != "retention" || !d.NextArg() {
			return d.ArgErr()
		}
		kept, err := caddy.ParseDuration(d.Val())
		if err != nil {
			return d.WrapErr(err)
		}
		s.Retention = caddy.Duration(kept)
	}
	return nil
}

// shelfStore is a store with the methods of replay.Store, and no others.
type shelfStore struct{ replay.Store }

func (s shelfStore) Configure(settings replay.Settings) {
	shelves.retention.Store(int64(settings.Retention))
	s.Store.Configure(settings)
}

func (s shelfStore) Close() error {
	shelves.closed.Add(1)
	return s.Store.Close()
}

// TestDriverOfAnotherProject: a module of aip.stores is all that a driver needs, and its store outlives configurations.
func TestDriverOfAnotherProject(t *testing.T) {
	agent := legacyagent.New(legacyagent.Options{})
	defer agent.Close()
	at := httptest.NewServer(agent)
	defer at.Close()
	port, err := freeport.Take()
	if err != nil {
		t.Fatal(err)
	}
	here := fmt.Sprint("http://127.0.0.1:", port)
	load := func(store string) error {
		config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(fmt.Appendf(nil, `{
	admin off
	aip {
		store %s
		drain 1s
	}
}
%s {
	metrics /metrics
	aip_health
	aip_gateway a2a/legacy %s {
		identity off
	}
}
`, store, here, at.URL), map[string]any{"filename": "Caddyfile"})
		if err != nil {
			return err
		}
		err = caddy.Load(config, true)
		// Caddy may close the listener of the configuration before when the load has returned.
		asynctest.Eventually(t, "one server listens", func() bool {
			return caddy.ListenerUsage("tcp", fmt.Sprint(":", port)) <= 1
		})
		return err
	}
	ask := func(path, body string) string {
		t.Helper()
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		var res *http.Response
		for tries := 0; res == nil; tries++ {
			req, err := http.NewRequestWithContext(t.Context(), method, here+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Close = true
			req.Header.Set("Content-Type", "application/json")
			res, err = http.DefaultClient.Do(req)
			// A reload may end a connection before its request is read.
			ended := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)
			if err != nil && (!ended || tries == 10) {
				t.Fatal(err)
			}
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	command := func(command string) string {
		return ask("/", `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"id":"`+command+`","senderId":"l",`+
			`"command":"`+command+`","taskId":"t","dataItems":[{"type":"text","text":"hello"}]}}}`)
	}
	const none = `there is no driver "shelve"; use jetstream, memory, pebble or shelf`
	if err := load("shelve"); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("an unknown driver: %v, want %s", err, none)
	}
	for i, retention := range []time.Duration{time.Hour, 2 * time.Hour} {
		if err := load(fmt.Sprintf("shelf attic {\nretention %s\n}", retention)); err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(shelves.retention.Load()); got != retention {
			t.Errorf("configuration %d: retention %s, want %s", i, got, retention)
		}
		if got := command([]string{"start", "get"}[i]); !strings.Contains(got, `"awaiting-completion"`) {
			t.Errorf("configuration %d: %s", i, got)
		}
		if n, closed := shelves.opened.Load(), shelves.closed.Load(); n != 1 || closed != 0 {
			t.Errorf("configuration %d: the store was opened %d times, and closed %d times", i, n, closed)
		}
	}
	var health struct {
		Store struct {
			Driver   string `json:"driver"`
			Writable bool   `json:"writable"`
		} `json:"store"`
	}
	err = json.Unmarshal([]byte(ask("/aip/health/ready", "")), &health)
	if err != nil || health.Store.Driver != "shelf" || !health.Store.Writable {
		t.Errorf("health %+v, %v", health, err)
	}
	got := ask("/metrics", "")
	if !strings.Contains(got, "aip_store_writable 1") || strings.Contains(got, "aip_store_disk") {
		t.Errorf("metrics: %s", got)
	}
	if err := caddy.Stop(); err != nil {
		t.Error(err)
	}
	asynctest.Eventually(t, "the store is closed", func() bool { return shelves.closed.Load() == 1 })
}
