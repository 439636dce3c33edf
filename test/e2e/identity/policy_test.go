// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestPolicy: a Leader does what its rule allows, within its quota, also after a crash and a reload. The operator
// learns which rule has decided, and the caller does not.
//
// Promise: a Leader does what it is not meant to do
// Promise: a Leader uses more than its share
func TestPolicy(t *testing.T) {
	t.Parallel()
	site.WithinADay()
	agent := site.NewFakeAgent(t, nil)
	p := site.Certificates(t)
	aic, other := string(p.Leader.AIC), string(p.LeaderV1.AIC)
	with := func(more string) site.Config {
		return site.Config{Handle: `
	metrics /metrics
	aip_gateway a2a/legacy ` + agent.URL + ` {
		policy {
			allow starters aic ` + aic + `
			allow guests {
				vendor ` + other[:10] + `
				command start
			}
			` + more + `
		}
		quota daily {
			starts 3/day
		}
	}`}
	}
	s := site.Serve(t, with(""))
	one := site.LeaderOf(t, s.URL())
	guest := site.CallerWith(t, s.URL(), other, devpkitest.KeyPair(t, p.LeaderV1))
	if got := one.Start("t1", "hello"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the task is %s", got.Status.State)
	}
	guest.Start("g1", "hello")
	for _, id := range []string{"g1", "t1", "none"} {
		if e := guest.Refused(site.CommandCall(task.Get, id)); e.Code != -32009 || strings.Contains(string(e.Raw), "guests") {
			t.Errorf("a get of %s: %s", id, e.Raw)
		}
	}
	s.WaitFor(t, `a caller was refused.*\(no rule\)`)
	one.Start("t2", "hello")
	for range 3 {
		one.Start("t2", "hello") // is no start
	}

	s.Kill()
	s.Start(with("dry_run"))
	one.Start("t3", "hello")
	e := one.Refused(site.StartCall("t4", "hello"))
	if more := site.Data(t, e.Data); e.Code != -32050 || more["limit"] != "daily.starts" || more["max"] != 3.0 {
		t.Errorf("the fourth start of the day: %s", e.Raw)
	}
	one.Start("t1", "hello") // the same start again
	if got := guest.Get("g1"); got.ID != "g1" {
		t.Errorf("in a dry run: %+v", got)
	}
	s.WaitFor(t, "a policy that is tried would deny a call")

	if complaint := s.Reload(with("")); complaint != "" {
		t.Fatal(complaint)
	}
	one.HTTP.CloseIdleConnections() // Caddy closes those of HTTP/1.1, perhaps while a call is on its way
	guest.HTTP.CloseIdleConnections()
	if e := one.Refused(site.StartCall("t5", "hello")); e.Code != -32050 {
		t.Errorf("after a reload: %s", e.Raw)
	}
	if e := guest.Refused(site.CommandCall(task.Get, "g1")); e.Code != -32009 {
		t.Errorf("after a reload: %s", e.Raw)
	}
	res, body := one.Exchange(http.MethodGet, "/metrics", nil)
	for _, want := range []string{`aip_policy_calls_total{decision="deny",partner="` + agent.URL + `",rule="(no rule)"} 1`,
		`aip_quota_refusals_total{dry_run="false",partner="` + agent.URL + `",quota="daily"} 2`} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the metrics (%s) lack %s", res.Status, want)
		}
	}
	for command, want := range map[string]string{
		"list":   `(?m)^\(no rule\) +deny +0 +1 +1 +` + strings.TrimPrefix(agent.URL, "http://") + `$`,
		"quotas": `(?m)^daily +\d{4}-\d\d-\d\d +3 +0 +` + aic + `$`,
	} {
		status, out, stderr := s.Caddy("aip", "policy", command, "--address", s.AdminAddress())
		if status != 0 || !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s: status %d: %s%s", command, status, out, stderr)
		}
	}
	status, out, _ := s.Caddy("aip", "policy", "test", "--config", "Caddyfile", "--as", other, "--method", "get")
	if want := "denied by the rule (no rule)\n"; status != 2 || out != want {
		t.Errorf("status %d: %s", status, out)
	}
	status, out, _ = s.Caddy("aip", "policy", "test", "--config", "Caddyfile", "--certificate", p.Leader.Cert,
		"--method", "get")
	if want := "allowed by the rule starters; counted by daily\n"; status != 0 || out != want {
		t.Errorf("status %d: %s", status, out)
	}
}
