// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/caddymodule/agents"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/caddymodule/storejetstream"
	"github.com/aip-gateway/aip-gateway/caddymodule/storememory"
	"github.com/aip-gateway/aip-gateway/caddymodule/storepebble"
	"github.com/aip-gateway/aip-gateway/replay"
)

// TestStoreInJSON holds what a configuration in JSON says about its store, which may leave the driver out.
func TestStoreInJSON(t *testing.T) {
	dir := filepath.Join(caddy.AppDataDir(), "aip")
	const day, size = 24 * time.Hour, 64 << 20
	limits := store.Limits{Retention: caddy.Duration(day), KeepUnread: caddy.Duration(7 * day), MaxBytes: size}
	defaults := replay.Settings{Retention: day, PinFor: 7 * day}
	hour := limits
	hour.Retention = caddy.Duration(time.Hour)
	large := limits
	large.MaxSize = 1 << 30
	for _, tt := range []struct {
		config   string
		want     store.Driver
		settings replay.Settings
		err      string
	}{
		{config: "", want: &storepebble.Store{Dir: dir, Limits: limits}, settings: defaults},
		{config: "null", want: &storepebble.Store{Dir: dir, Limits: limits}, settings: defaults},
		{config: "{}", want: &storepebble.Store{Dir: dir, Limits: limits}, settings: defaults},
		{config: `{"driver": "", "retention": 3600000000000, "sync": "always", "dir": "/s"}`,
			want:     &storepebble.Store{Dir: "/s", Sync: "always", Limits: hour},
			settings: replay.Settings{Sync: replay.SyncAlways, Retention: time.Hour, PinFor: 7 * day}},
		{config: `{"driver": "pebble", "dir": "/s"}`,
			want: &storepebble.Store{Dir: "/s", Limits: limits}, settings: defaults},
		{config: `{"driver": "memory", "retention": "1h"}`, want: &storememory.Store{Limits: hour},
			settings: replay.Settings{Retention: time.Hour, PinFor: 7 * day, Capacity: replay.DefaultCapacity}},
		{config: `{"driver": "memory", "max_size": 1073741824}`, want: &storememory.Store{Limits: large},
			settings: replay.Settings{Retention: day, PinFor: 7 * day, MaxSize: 1 << 30, Capacity: 1 << 30}},
		{config: `{"driver": "memory"}`, want: &storememory.Store{Limits: limits},
			settings: replay.Settings{Retention: day, PinFor: 7 * day, Capacity: replay.DefaultCapacity}},
		{config: `{"driver": "sqlite"}`, err: `store: there is no driver "sqlite"; use jetstream, memory or pebble`},
		{config: `{"driver": 5}`, err: `store: there is no driver "5"; use jetstream, memory or pebble`},
		{config: `[]`, err: "store: json: cannot unmarshal array"},
		{config: `{"driver": "memory", "dir": "/s"}`, err: `aip.stores.memory: json: unknown field "dir"`},
		{config: `{"driver": "pebble", "capacity": 1}`, err: `aip.stores.pebble: json: unknown field "capacity"`},
		{config: `{"driver": "memory", "max_size": 1}`, err: "store: max_size (1 bytes) is less than max_bytes"},
		{config: `{"max_size": -1}`, err: "store: max_size is -1, but must not be negative"},
	} {
		ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
		app := &App{StoreRaw: json.RawMessage(tt.config)}
		err := app.loadStore(ctx)
		cancel()
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v, want %s", tt.config, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.config, err)
			continue
		}
		if diff := cmp.Diff(tt.want, app.store); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.config, diff)
		}
		if diff := cmp.Diff(tt.settings, app.store.Settings()); diff != "" {
			t.Errorf("%s: settings (-want +got):\n%s", tt.config, diff)
		}
		if n, bytes := app.store.TaskLimits(); n != 10_000 || bytes != size {
			t.Errorf("%s: limits of a task %d, %d", tt.config, n, bytes)
		}
	}
}

// TestLeastResend holds that no message is sent again while a gateway that owned its task before may still send it.
func TestLeastResend(t *testing.T) {
	const lease = 3 * time.Second
	for _, tt := range []struct {
		store store.Driver
		after time.Duration
		never bool
		err   string
	}{
		{store: &storejetstream.Store{Lease: caddy.Duration(lease)}, after: 2 * lease},
		{store: &storejetstream.Store{Lease: caddy.Duration(lease)}, never: true},
		{store: new(storepebble.Store)},
		{store: &storejetstream.Store{Lease: caddy.Duration(lease)}, after: 2*lease - 1,
			err: "agent: resend after is 5.999999999s, but must be at least 6s, twice the lease of the store"},
	} {
		g := &Gateway{Agent: agents.Config{Resend: agents.Resend{After: new(caddy.Duration(tt.after)), Never: tt.never}}}
		err := (&App{store: tt.store}).checkShared(g)
		if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%T, after %s, never %v: %v, want %q", tt.store, tt.after, tt.never, err, tt.err)
		}
	}
}
