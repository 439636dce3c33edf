// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestReload holds that the configuration is loaded again whatever its admin API demands of requests.
func TestReload(t *testing.T) {
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	for name, admin := range map[string]string{
		"an address":                 `"listen": %q`,
		"an origin is needed":        `"listen": %q, "enforce_origin": true`,
		"another host":               `"listen": %q, "origins": ["admin.example"]`,
		"another host, as an origin": `"listen": %q, "origins": ["https://a.example:2019/"], "enforce_origin": true`,
		"another loopback address":   `"listen": %q`,
		"all addresses":              `"listen": %q, "enforce_origin": true`,
		"a socket":                   `"listen": %q`,
		"a socket with permissions":  `"listen": %q`,
		"a socket, of an origin":     `"listen": %q, "origins": ["http://admin.example"], "enforce_origin": true`,
	} {
		t.Run(name, func(t *testing.T) {
			listen := freeAddr(t)
			switch name {
			case "another loopback address":
				listen = "127.0.0.2" + listen[len("127.0.0.1"):]
			case "all addresses":
				listen = listen[len("127.0.0.1"):]
			case "a socket", "a socket, of an origin":
				listen = "unix/" + filepath.Join(t.TempDir(), "s")
			case "a socket with permissions":
				listen = "unix/" + filepath.Join(t.TempDir(), "s") + "|0200"
			}
			config := fmt.Appendf(nil, `{"admin": {`+admin+`, "config": {"persist": false}}}`, listen)
			if err := caddy.Load(config, true); err != nil {
				t.Fatal(err)
			}
			before := caddy.ActiveContext()
			api, err := adminOf(before)
			if err != nil {
				t.Fatal(err)
			}
			if err := reload(t.Context(), api); err != nil {
				t.Fatal(err)
			}
			if caddy.ActiveContext().Context == before.Context {
				t.Error("the configuration is not loaded again")
			}
		})
	}
}

// TestOtherAppFails holds that the reason is given when an app that this one needs cannot be set up.
func TestOtherAppFails(t *testing.T) {
	config := &caddy.Config{Admin: &caddy.AdminConfig{Disabled: true}}
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}
	config.AppsRaw = caddy.ModuleMap{"events": []byte(`{"subscriptions": [{"handlers": [{"handler": "none"}]}]}`)}
	if _, err := ctx.LoadModuleByID("aip", nil); err == nil || !strings.Contains(err.Error(), "events.handlers.none") {
		t.Errorf("the app says %v", err)
	}
}

// TestStopEndsWaiting: while the process exits, Caddy waits for the calls of a server that it stops, before it cleans
// up. So calls that wait for their configuration are refused then, since that does not come in force any more.
func TestStopEndsWaiting(t *testing.T) {
	s := newSite(t)
	config := new(caddy.Config)
	if err := json.Unmarshal(s.config("", ""), config); err != nil {
		t.Fatal(err)
	}
	ctx, err := caddy.ProvisionContext(config)
	if err != nil {
		t.Fatal(err)
	}
	servers, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("aip")
	if err != nil {
		t.Fatal(err)
	}
	defer app.(*App).Cleanup()
	if err := servers.(*caddyhttp.App).Start(); err != nil {
		t.Fatal(err)
	}
	if err := servers.(*caddyhttp.App).Stop(); err != nil {
		t.Fatal(err)
	}
	<-app.(*App).configuration.Draining.Done()
}
