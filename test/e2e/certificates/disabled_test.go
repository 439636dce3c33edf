// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestDisabledPartner disables a Partner at its registry, which the gateway hears by the registry's feed: over every
// transport its open streams end with the reason, and calls are refused; it leaves its group, and says so in its ACS
// and to pollers. A restart knows it although the registry is away, or its snapshot lacks the Partner. When it is
// enabled again, it takes calls, and its tasks are there.
func TestDisabledPartner(t *testing.T) {
	t.Parallel()
	_, agent := site.SampleAgent(t)
	b, pki, d := site.SharedBroker(t), site.Certificates(t), newDirectory(t)
	m := site.MakeMember(t)
	m.AIC = foundAIC
	d.change(m.URL(), true)
	m.Config = m.Fronting("a2a/legacy http://"+agent, "localhost")
	m.Config.Handle = strings.Replace(m.Config.Handle, "callers aip aip/2", "callers aip aip/2 a2a", 1) +
		"\n\taip_health {\n\t\tpublic\n\t}\n\taip_discovery"
	m.Config.Store = "store pebble " + m.InDir("store") + "\n\t\tregistry " + d.URL + " {\n\t\t\tuser a b\n\t\t}"
	m.Start(m.Config)
	g := site.NewGroup(t, b, "disabled", pki.Leader)
	g.Join(m)
	alice := devpkitest.KeyPair(t, pki.Leader)
	streams, calls := openEach(t, m.Site, alice)
	c := m.CalledBy(pki.Leader)
	c.Start("kept", "hello")
	get := func(path string) (int, []byte) {
		res, body := c.Exchange(http.MethodGet, path, nil)
		return res.StatusCode, body
	}
	const why = "the Partner is not active at its registry"

	d.change(m.URL(), false)
	for _, o := range streams {
		code := "-32603"
		if o.name == "gRPC" {
			code = "Unavailable"
		}
		if last := o.ended(t, trustLimit); !strings.Contains(last, code) || !strings.Contains(last, why) {
			t.Errorf("%s: the stream ends with %q", o.name, last)
		}
	}
	m.WaitFor(t, "the registry has disabled a Partner.*"+foundAIC)
	refused := func(when string) {
		t.Helper()
		for name, call := range calls {
			if got := call(); !strings.Contains(got, "-32603") || !strings.Contains(got, why) {
				t.Errorf("%s, %s: a call brings %q", when, name, got)
			}
		}
		if status, _ := get("/healthz/" + foundAIC); status != http.StatusServiceUnavailable {
			t.Errorf("%s, a poller is answered %d", when, status)
		}
		if _, body := get("/.well-known/acs.json"); gjson.GetBytes(body, "active").Bool() {
			t.Errorf("%s, the ACS is %s", when, body)
		}
		if _, body := get("/agents"); strings.Contains(string(body), m.URL()) {
			t.Errorf("%s, the list of agents is %s", when, body)
		}
	}
	refused("while it is disabled")
	g.WaitForRemoval(m)
	if _, answer := g.Invite(c, g.Invitation(m.AIC)); answer == nil || !strings.Contains(string(answer.Data), "registry") {
		t.Errorf("an invitation is answered %+v", answer)
	}

	// After a restart it stays disabled, though the registry cannot be asked.
	d.away.Store(true)
	m.Kill()
	m.Run(filepath.Join(m.Dir, "Caddyfile"))
	delete(calls, "HTTP/3") // its connection was not closed
	refused("after a restart without the registry")
	m.WaitFor(t, "a registry cannot be followed")

	// The snapshot lacks agents that are disabled.
	d.lacks.Store(true)
	d.away.Store(false)
	m.WaitFor(t, "a registry is followed")
	refused("when the registry is back")

	d.change(m.URL(), true)
	m.WaitFor(t, "the registry has enabled a Partner again")
	if got := c.Get("kept"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the task is %s", got.Status.State)
	}
	for name, call := range calls {
		if got := call(); !strings.Contains(got, `"result"`) {
			t.Errorf("enabled, %s: a call brings %s", name, got)
		}
	}
	if _, body := get("/.well-known/acs.json"); !gjson.GetBytes(body, "active").Bool() {
		t.Errorf("the ACS is %s", body)
	}
	g.Join(m)
}
