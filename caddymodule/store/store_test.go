// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric/metrictest"
	"github.com/aip-gateway/aip-gateway/caddymodule/store"
	"github.com/aip-gateway/aip-gateway/caddymodule/storememory"
	"github.com/aip-gateway/aip-gateway/caddymodule/storepebble"
	"github.com/aip-gateway/aip-gateway/node"
)

// TestDrivers: a driver is found by its name, and for an unknown one the known ones are named.
func TestDrivers(t *testing.T) {
	if diff := cmp.Diff([]string{"memory", "pebble"}, store.Names()); diff != "" {
		t.Errorf("the drivers (-want +got):\n%s", diff)
	}
	if name := store.NameOf(new(storepebble.Store)); name != "pebble" {
		t.Errorf("the driver is called %s", name)
	}
	if err := store.Check("pebble"); err != nil {
		t.Error(err)
	}
	if err := store.Check("disk"); err == nil || err.Error() != `there is no driver "disk"; use memory or pebble` {
		t.Errorf("of an unknown driver, the error is %v", err)
	}
}

// TestLimits: the defaults, and the values that are refused. A check of what is written changes nothing.
func TestLimits(t *testing.T) {
	for _, tt := range []struct {
		limits store.Limits
		err    string
	}{
		{limits: store.Limits{}},
		{limits: store.Limits{MaxBytes: 64 << 10, MaxSize: 64 << 10}},
		{limits: store.Limits{MaxBytes: 64<<10 - 1}, err: "store: max_bytes is 65535, but must be at least 64KiB"},
		{limits: store.Limits{MaxSize: 1 << 20}, err: "store: max_size (1048576 bytes) is less than max_bytes (67108864)"},
		{limits: store.Limits{MaxSize: -1}, err: "store: max_size is -1, but must not be negative"},
		{limits: store.Limits{Retention: -1}, err: "store: retention is -1ns, but must not be negative"},
		{limits: store.Limits{KeepUnread: -1}, err: "store: keep_unread is -1ns, but must not be negative"},
	} {
		before := tt.limits
		err := tt.limits.CheckWritten()
		if (err != nil) != (tt.err != "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
			t.Errorf("%+v: %v, want %q", tt.limits, err, tt.err)
		}
		if tt.limits != before {
			t.Errorf("the check has changed %+v to %+v", before, tt.limits)
		}
	}
	var l store.Limits
	if err := l.Provision(caddy.Context{}); err != nil {
		t.Fatal(err)
	}
	const day = caddy.Duration(24 * time.Hour)
	if want := (store.Limits{Retention: day, KeepUnread: 7 * day, MaxBytes: 64 << 20}); l != want {
		t.Errorf("the defaults are %+v, want %+v", l, want)
	}
}

// TestCollector: the metrics of all drivers are described, and those of the open store are collected until it closes.
func TestCollector(t *testing.T) {
	c := node.NewProcess(node.Host{}).NewConfiguration()
	collector := store.NewCollector(c)
	described := make(chan *prometheus.Desc, 100)
	collector.Describe(described)
	var all strings.Builder
	for range len(described) {
		all.WriteString((<-described).String())
	}
	for _, name := range []string{`"aip_store_writable"`, `"aip_store_appends_total"`} {
		if !strings.Contains(all.String(), name) {
			t.Errorf("%s is not described, among %s", name, all.String())
		}
	}
	collects := func(want map[string]float64) {
		t.Helper()
		if diff := cmp.Diff(want, metrictest.Gather(t, collector)); diff != "" {
			t.Errorf("the metrics (-want +got):\n%s", diff)
		}
	}
	collects(map[string]float64{})
	if err := c.Open(node.Store{Driver: new(storememory.Store), Name: "memory"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(node.Settings{}); err != nil {
		t.Fatal(err)
	}
	collects(map[string]float64{"aip_store_writable": 1})
	c.Stop()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	collects(map[string]float64{})
}
