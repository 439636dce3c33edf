// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// faster is how much faster than in production Prometheus scrapes in these tests, and the windows of its rules pass.
const faster = 30

// prometheus is a real Prometheus with the configuration of contrib, which scrapes gateways.
type prometheus struct {
	t   testing.TB
	url string

	missed int // scrapes that were not answered in time, as far as they were counted

	mu    sync.Mutex
	fired map[string]map[string]bool // by the name of the alert: its labels, and since when it fires
}

// newPrometheus starts Prometheus, which scrapes the admin API of some sites, and sends its alerts to the test.
func newPrometheus(t testing.TB, sites ...*site.Site) *prometheus {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", site.FreePort(t))
	p := &prometheus{t: t, url: "http://" + address, fired: make(map[string]map[string]bool)}
	manager := httptest.NewServer(http.HandlerFunc(p.receive))
	t.Cleanup(manager.Close)
	var targets []string
	for _, s := range sites {
		targets = append(targets, strconv.Quote(s.AdminAddress()))
	}
	dir := t.TempDir()
	config := contribFile(t, "prometheus/prometheus.yml", dir, map[string]string{
		"interval: 15s":              "interval: " + (15 * time.Second / faster).String(),
		`["gateway:9180"]`:           "[" + strings.Join(targets, ", ") + "]",
		`[] # ["alertmanager:9093"]`: "[" + strings.TrimPrefix(manager.URL, "http://") + "]",
	})
	rules := contribFile(t, "prometheus/alerts.yml", dir, map[string]string{"> 3600": "> 20"}) // seconds
	tools := site.Unpacked(t)
	tools.Check(nil, "usr/bin/promtool", "check", "config", config)
	text, err := os.ReadFile(rules)
	site.NoError(t, err)
	text = regexp.MustCompile(`\b\d+m\b`).ReplaceAllFunc(text, func(minutes []byte) []byte {
		d, err := time.ParseDuration(string(minutes))
		site.NoError(t, err)
		return []byte((d / faster).String())
	})
	site.NoError(t, os.WriteFile(rules, text, 0o600))
	site.StartProcess(t, dir, nil, filepath.Join(tools.Root, "usr/bin/prometheus"), "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address,
		"--enable-feature=exemplar-storage", "--log.level=warn").WaitForPort(t, address)
	site.Eventually(t, "Prometheus is ready", func() bool {
		res, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	return p
}

// receive is the API of an Alertmanager.
func (p *prometheus) receive(w http.ResponseWriter, r *http.Request) {
	var alerts []struct {
		Labels   map[string]string `json:"labels"`
		StartsAt time.Time         `json:"startsAt"`
	}
	if err := json.NewDecoder(r.Body).Decode(&alerts); r.URL.Path != "/api/v2/alerts" || err != nil {
		p.t.Errorf("the Alertmanager was sent %s: %v", r.URL.Path, err)
		http.Error(w, "no alerts", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range alerts {
		name := a.Labels["alertname"]
		if p.fired[name] == nil {
			p.fired[name] = make(map[string]bool)
		}
		p.fired[name][fmt.Sprint(a.Labels, a.StartsAt)] = true
	}
}

// countMissed counts the scrapes that were not answered in time so far, as on a machine that is busy. An alert that
// fires ends with each of them, and then fires again.
func (p *prometheus) countMissed() {
	p.t.Helper()
	for _, n := range p.query("count_over_time(up[1h]) - sum_over_time(up[1h])") {
		p.missed += int(n)
	}
	p.t.Logf("%d scrapes were not answered in time", p.missed)
}

// wantFired demands that the alerts have fired once each, but for scrapes that were missed, and no other one has.
func (p *prometheus) wantFired(names ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range names {
		if n := len(p.fired[name]); n < 1 || n > 1+p.missed {
			p.t.Errorf("%s has fired %d times, want once: %v", name, n, p.fired[name])
		}
	}
	if len(p.fired) > len(names) {
		p.t.Errorf("these alerts have fired, want %v:\n%v", names, p.fired)
	}
}

// waitForAlert waits until an alert has fired.
func (p *prometheus) waitForAlert(name string) {
	p.t.Helper()
	site.Eventually(p.t, name+" fires", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.fired[name]) > 0
	})
}

// waitForCalm waits until no alert fires, or is about to.
func (p *prometheus) waitForCalm() {
	p.t.Helper()
	site.Eventually(p.t, "no alert fires", func() bool { return len(p.query("ALERTS")) == 0 })
}

// ask gets a route of Prometheus' API, and decodes the data of the answer.
func (p *prometheus) ask(path string, into any) {
	p.t.Helper()
	res, err := http.Get(p.url + path)
	site.NoError(p.t, err)
	defer res.Body.Close()
	answer := struct {
		Error string `json:"error"`
		Data  any    `json:"data"`
	}{Data: into}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatalf("Prometheus answers %s with %s: %v %s", path, res.Status, err, answer.Error)
	}
}

// query returns the values of an expression; those that are no numbers are left out.
func (p *prometheus) query(expr string) (values []float64) {
	p.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	p.ask("/api/v1/query?query="+url.QueryEscape(expr), &data)
	for _, one := range data.Result {
		text, _ := one.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && v == v {
			values = append(values, v)
		}
	}
	return values
}

// dashboard is what the tests read of contrib/grafana/dashboard.json.
type dashboard struct {
	Panels []struct {
		ID          int
		Title, Type string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr, RefID string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

func readDashboard(t testing.TB) *dashboard {
	t.Helper()
	raw, err := os.ReadFile("../../../contrib/grafana/dashboard.json")
	site.NoError(t, err)
	d := new(dashboard)
	site.NoError(t, json.Unmarshal(raw, d))
	return d
}

// ofCluster is what the metrics begin with that only gateways with a shared store have.
const ofCluster = "aip_cluster_"

// expressions returns what the panels ask Prometheus for, by their titles: of gateways that share a store, or all else.
func (d *dashboard) expressions(cluster bool) map[string]string {
	variables := strings.NewReplacer("$__rate_interval", "10s", "$instance", ".*", "$agent", ".*")
	all := make(map[string]string)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, ofCluster) == cluster {
				all[p.Title+" "+target.RefID] = variables.Replace(target.Expr)
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" && !cluster {
			all["the variable "+v.Name] = regexp.MustCompile(`label_values\((\w+), (\w+)\)`).
				ReplaceAllString(v.Definition, `count by ($2) ($1{$2!=""})`)
		}
	}
	return all
}

// TestContribDashboard drives gateways until every expression of the dashboard has data.
func TestContribDashboard(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	seen := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range d.Panels {
		if seen[p.ID] || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q has no expression, or the id of another", p.Title)
		}
		seen[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok {
					t.Fatalf("the panels %q and %q are at the same place", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
	}

	w := newDriven(t)
	w.fails.broken.Store(true)
	w.receivers.Answers(site.Always(site.Refusal(400)))
	m, _, _ := connectedMember(t, func(*site.Site) {})
	p := newPrometheus(t, w.Site, m.Site)
	for title, expr := range d.expressions(false) {
		site.Eventually(t, fmt.Sprintf("%s has data: %s", title, expr), func() bool { return len(p.query(expr)) > 0 })
	}
}
