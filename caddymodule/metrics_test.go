// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/metrics"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/internal/asynctest"
)

// metricsSite returns a configuration with Caddy's metrics on the site of the Partner.
func (s *site) metricsSite(retention string) []byte {
	s.t.Helper()
	out := adapt(s.t, string(caddyfile.Format(fmt.Appendf(nil, `{
	admin off
	auto_https off
	aip {
		store pebble %s {
			retention %s
		}
		drain 1s
	}
}
http://%s {
	metrics /metrics
	aip_gateway a2a/legacy %s {
		name AGENT
		identity off
	}
}
`, s.dir, retention, s.addr, s.agent))))
	if strings.HasPrefix(out, "error") {
		s.t.Fatal(out)
	}
	return []byte(out)
}

// metrics returns the samples of the gateway, by name and labels.
func (s *site) metrics() map[string]string {
	s.t.Helper()
	res, err := overReload(func() (*http.Response, error) { return http.Get("http://" + s.addr + "/metrics") })
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.t.Fatalf("metrics: %d, %v\n%s", res.StatusCode, err, body)
	}
	all := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^(aip_\S+) (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		all[m[1]] = m[2]
	}
	return all
}

// wantMetrics waits for some samples: a turn may give back its place when its caller is answered already.
func (s *site) wantMetrics(want map[string]string) {
	s.t.Helper()
	got := make(map[string]string)
	defer func() {
		if diff := cmp.Diff(want, got); diff != "" {
			s.t.Errorf("the metrics (-want +got):\n%s", diff)
		}
	}()
	asynctest.Eventually(s.t, "the metrics are as they should be", func() bool {
		all := s.metrics()
		for name := range want {
			got[name] = all[name]
		}
		return maps.Equal(want, got)
	})
}

// TestMetrics drives a few tasks, and has counters continue after a reload.
func TestMetrics(t *testing.T) {
	s := newSite(t)
	s.mustLoad(s.metricsSite("1h"))
	before := s.metrics()
	calls := func(method, kind string) string {
		return fmt.Sprintf(`aip_calls_total{agent="AGENT",dialect="aip",kind=%q,method=%q}`, kind, method)
	}
	s.want("start", "t1", "hello", "awaiting-completion")
	s.want("complete", "t1", "", "completed")
	s.want("start", "t2", "ask", "awaiting-input")
	if _, err := s.call(t.Context(), "get", "none", ""); err == nil {
		t.Error("a task that does not exist was found")
	}
	want := map[string]string{
		calls("start", "ok"):           "2",
		calls("complete", "ok"):        "1",
		calls("get", "task_not_found"): "1",
		`aip_call_duration_seconds_count{agent="AGENT",dialect="aip",method="start"}`: "2",
		`aip_task_states_total{agent="AGENT",state="accepted"}`:                       "2",
		`aip_task_states_total{agent="AGENT",state="completed"}`:                      "1",
		`aip_task_states_total{agent="AGENT",state="awaiting-input"}`:                 "1",
		`aip_task_first_report_seconds_count{agent="AGENT"}`:                          "2",
		`aip_task_settled_seconds_count{agent="AGENT"}`:                               "2",
		`aip_agent_requests_total{agent="AGENT",outcome="ok"}`:                        "2",
		`aip_agent_up{agent="AGENT"}`:                                                 "1",
		`aip_agent_runs{agent="AGENT"}`:                                               "0",
		"aip_tasks_unfinished":                                                        "1",
		`aip_tasks{state="awaiting-input"}`:                                           "1",
		`aip_tasks{state="awaiting-completion"}`:                                      "0",
		`aip_tasks{state="pending"}`:                                                  "0",
		"aip_streams_open":                                                            "0",
		"aip_store_writable":                                                          "1",
		"aip_store_failures_total":                                                    "0",
		`aip_notify_attempts_total{result="delivered"}`:                               "0",
		"aip_notify_pending":                                                          "0",
		"aip_notify_oldest_seconds":                                                   "0",
	}
	s.wantMetrics(want)
	after := s.metrics()
	for _, name := range []string{
		"aip_store_appends_total", "aip_store_journal_bytes_total", "aip_store_sync_seconds_count",
	} {
		if after[name] == before[name] {
			t.Errorf("%s has stayed %q", name, after[name])
		}
	}
	s.mustLoad(s.metricsSite("2h"))
	s.wantMetrics(want)
	s.want("start", "t3", "hello", "awaiting-completion")
	s.wantMetrics(map[string]string{calls("start", "ok"): "3", "aip_tasks_unfinished": "2",
		`aip_tasks{state="awaiting-completion"}`: "1"})
}

// TestRecordMetrics holds the names, the labels and the help of all metrics, as docs/record_test.go does for what else
// operators have.
func TestRecordMetrics(t *testing.T) {
	out := make(chan *prometheus.Desc)
	go func() {
		defer close(out)
		for _, c := range new(App).collectors() {
			c.Describe(out)
		}
	}()
	var all []string
	for d := range out {
		all = append(all, d.String()+"\n")
	}
	slices.Sort(all)
	got, file := strings.Join(all, ""), "testdata/metrics.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the metrics are not what they were (-before +now); if that is meant, run go test ./caddymodule "+
			"-run Record -update:\n%s", diff)
	}
}
