// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"net/url"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestWebhookGuard sets webhooks that must not be.
func TestWebhookGuard(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	s := site.Serve(t, site.Config{Store: "store memory", Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	for _, bad := range []site.Hook{
		{URL: "http://127.0.0.1:9/hook"},
		{URL: "https://127.0.0.1/hook"},
		{URL: "https://127.1/hook"},
		{URL: "https://2130706433/hook"},
		{URL: "https://0x7f000001/hook"},
		{URL: "https://localhost/hook"},
		{URL: "https://LOCALHOST./hook"},
		{URL: "https://hooks.internal/hook"},
		{URL: "https://[::1]/hook"},
		{URL: "https://[::ffff:127.0.0.1]/hook"},
		{URL: "https://169.254.169.254/latest/meta-data"},
		{URL: "https://10.0.0.1/hook"},
		{URL: "https://[fd00::1]/hook"},
		{URL: "https://0.0.0.0/hook"},
		{URL: "http://example.com/hook"},
		{URL: "ftp://example.com/hook"},
		{URL: "https://user:pw@example.com/hook"},
		{URL: "https://example.com:0/hook"},
		{URL: "https://example.com/hook#part"},
		{URL: "https://example.com/ho\r\nok"},
		{URL: "https://example.com/ho ok"},
		{URL: "https://exämple.com/hook"},
		{URL: "//example.com/hook"},
		{URL: "example.com/hook"},
		{URL: "/hook"},
		{URL: "https://example.com/" + strings.Repeat("x", 2048)},
		{URL: "https://example.com/hook", Token: "a\r\nX-Other: b"},
		{URL: "https://example.com/hook", Token: "a\x00b"},
		{URL: "https://example.com/hook", Token: strings.Repeat("x", 4097)},
	} {
		if bad.TaskID = "a"; bad.Token == "" {
			bad.Token = "t"
		}
		members := leader.Denied(-32602, "set", bad)
		if details, _ := members["details"].(string); strings.Contains(details, "pw@") ||
			strings.Contains(details, "X-Other") {
			t.Errorf("%q: the answer repeats a secret: %v", bad.URL, members)
		}
	}
	if got := leader.Hooks("a", ""); len(got) != 0 {
		t.Errorf("what was refused is there: %+v", got)
	}
	leader.SetHook(site.Hook{URL: "https://hooks.example.com:8443/hook?x=%20", Token: "t", TaskID: "a"})
}

// TestWebhookGuardAtDial proves that a name is judged by what it stands for, at the time of the attempt.
//
// Promise: a Leader makes the gateway call addresses in your network (SSRF)
func TestWebhookGuardAtDial(t *testing.T) {
	t.Parallel()
	agent, to := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.Serve(
		t,
		site.Config{
			Store:  "store memory",
			Notify: "allow_networks 10.9.8.0/24\nattempts 1",
			Handle: "aip_gateway a2a/legacy " + agent.URL,
		},
	)
	leader := site.LeaderOf(t, s.URL())
	port := to.Address[len("127.0.0.1"):]
	leader.Denied(-32602, "set", site.Hook{URL: "http://127.0.0.1" + port + "/x", Token: "t", TaskID: "a"})
	history := site.BeginWithWebhook(leader, "a", "http://localhost"+port+"/x")
	for _, d := range s.Dead(len(history)) {
		if d.LastError == "" || strings.Contains(d.LastError, "127.0.0.1") {
			t.Errorf("the last error is %q", d.LastError)
		}
	}
	if n := len(to.Arrived("")); n != 0 {
		t.Errorf("%d notifications went where the operator does not allow it", n)
	}
}

// TestWebhookGuardOfOwnServers: a Leader reaches neither the admin API, nor an agent, nor a site of the gateway by a
// webhook, whatever networks are allowed and whatever name the address has. Another server on the machine is reached.
//
// Promise: a Leader has the gateway act for it where only the gateway may
func TestWebhookGuardOfOwnServers(t *testing.T) {
	t.Parallel()
	agent, to := site.NewFakeAgent(t, nil), site.NewSink(t)
	s := site.Serve(t, site.Config{Store: "store memory", Notify: site.AllowHere,
		Handle: "aip_gateway a2a/legacy " + agent.URL})
	leader := site.LeaderOf(t, s.URL())
	for _, own := range []string{s.AdminURL(), agent.URL, s.URL()} {
		u, err := url.Parse(own)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"127.0.0.1", "127.0.0.2", "localhost", "LOCALHOST."} {
			leader.Denied(-32602, "set", site.Hook{URL: "http://" + host + ":" + u.Port() + "/stop", Token: "t", TaskID: "a"})
		}
	}
	if got := leader.Hooks("a", ""); len(got) != 0 {
		t.Errorf("what was refused is there: %+v", got)
	}
	to.WaitForChanges("/x", site.BeginWithWebhook(leader, "a", to.Origin()+"/x"))
}
