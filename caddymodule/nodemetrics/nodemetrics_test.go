// SPDX-License-Identifier: Apache-2.0

package nodemetrics

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/caddymodule/metric/metrictest"
	"github.com/aip-gateway/aip-gateway/caddymodule/storememory"
	"github.com/aip-gateway/aip-gateway/front/group"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/notify"
)

// names returns the names of metrics, without their labels.
func names(all map[string]float64) []string {
	found := make(map[string]bool)
	for name := range all {
		name, _, _ = strings.Cut(name, "{")
		found[strings.TrimPrefix(name, "aip_")] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// TestCollectors: the process's metrics are always there, and those of the node while the configuration keeps it open.
func TestCollectors(t *testing.T) {
	p := node.NewProcess(node.Host{})
	c := p.NewConfiguration()
	all := Collectors(p, c, []string{string(amp.Heartbeat)})
	ofProcess := []string{"amp_records_total", "aun_connections", "aun_frames_total", "build_info", "callbacks_open",
		"callbacks_total", "memory_bytes", "streams_open"}
	hasProcess := func(when string) {
		t.Helper()
		if diff := cmp.Diff(ofProcess, names(metrictest.Gather(t, all...))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	hasProcess("before the start")
	if err := c.Open(node.Store{Driver: new(storememory.Store), Name: "memory"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(node.Settings{}); err != nil {
		t.Fatal(err)
	}
	c.Node().Tasks.Process().Drain()
	got := metrictest.Gather(t, all...)
	want := append(slices.Clone(ofProcess), "draining", "notify_attempts_total", "notify_breakers_open",
		"notify_dead_total", "notify_in_flight", "notify_oldest_seconds", "notify_pending", "notify_ready", "tasks",
		"tasks_unfinished")
	slices.Sort(want)
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("after the start (-want +got):\n%s", diff)
	}
	if got["aip_draining"] != 1 || got["aip_tasks_unfinished"] != 0 || got[`aip_tasks{state="pending"}`] != 0 {
		t.Errorf("of a node that drains: %v", got)
	}
	c.Stop()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	hasProcess("after the end")
}

// gathered returns what a collector of a set collects.
func gathered(t *testing.T, of *metric.Set, collect func(samples)) map[string]float64 {
	t.Helper()
	return metrictest.Gather(t, of.Collector(func(s metric.Samples) { collect(samples{s}) }))
}

// TestGroups: Partners with one title are counted together, one that is in no configuration has its own name, and one
// that has had no inbox has no metrics of it.
func TestGroups(t *testing.T) {
	counts := map[string]*group.Counts{
		"aic-1": {ByState: map[group.State]int{group.Joined: 2}, Traffic: group.Traffic{Received: 3},
			Mail: group.Mail{Open: true, Messages: map[group.Result]int{group.Accepted: 4}}},
		"aic-2": {ByState: map[group.State]int{group.Joined: 1}, Traffic: group.Traffic{Received: 5}},
		"gone":  {Traffic: group.Traffic{Poison: 6}},
	}
	partners := node.Partners{{Name: "aic-1", Title: "planner"}, {Name: "aic-2", Title: "planner"}}
	got := gathered(t, &ofGroups, func(s samples) { s.groups(partners, counts) })
	for name, want := range map[string]float64{
		`aip_group_memberships{agent="planner",state="joined"}`:       3,
		`aip_group_received_total{agent="planner"}`:                   8,
		`aip_group_inbox_total{agent="planner",result="accepted"}`:    4,
		`aip_group_inbox_connected{agent="planner"}`:                  0,
		`aip_group_dropped_total{agent="gone",reason="unreadable"}`:   6,
		`aip_group_dropped_total{agent="planner",reason="ignored"}`:   0,
		`aip_group_memberships{agent="gone",state="joined"}`:          0,
		`aip_group_memberships{agent="planner",state="reconnecting"}`: 0,
	} {
		if n, ok := got[name]; !ok || n != want {
			t.Errorf("%s is %v, want %v", name, n, want)
		}
	}
	inbox := regexp.MustCompile(`^aip_group_inbox_.*"gone"`)
	for name := range got {
		if inbox.MatchString(name) {
			t.Errorf("there is %s of a Partner without an inbox", name)
		}
	}
}

// TestWebhooks: each count has a metric of its own.
func TestWebhooks(t *testing.T) {
	got := gathered(t, &ofWebhooks, func(s samples) {
		s.webhooks(notify.Counts{Delivered: 1, Failed: 2, Dead: 3, Pending: 4, Oldest: 5e9, InFlight: 6, Ready: 7, Open: 8})
	})
	want := map[string]float64{`aip_notify_attempts_total{result="delivered"}`: 1,
		`aip_notify_attempts_total{result="failed"}`: 2, "aip_notify_dead_total": 3, "aip_notify_pending": 4,
		"aip_notify_oldest_seconds": 5, "aip_notify_in_flight": 6, "aip_notify_ready": 7, "aip_notify_breakers_open": 8}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestLabelValue: labels are as Prometheus has them, whatever the names of states and kinds.
func TestLabelValue(t *testing.T) {
	for name, want := range map[string]string{"Task Not-Found": "task_not_found", "ok": "ok"} {
		if got := labelValue(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
