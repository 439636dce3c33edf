// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/task"
)

// TestDisabledPartner disables a Partner at its registry, which the gateway hears by the registry's feed: over every
// transport its open streams end with the reason, and calls are refused; it leaves its group, and says so in its ACS
// and to pollers. A restart knows it although the registry is away, or its snapshot lacks the Partner. When it is
// enabled again, it takes calls, and its tasks are there.
func TestDisabledPartner(t *testing.T) {
	t.Parallel()
	_, agent := sampleAgent(t)
	b, pki, d := sharedBroker(t), certificates(t), newDirectory(t)
	m := makeMember(t)
	m.aic = foundAIC
	d.change(m.url(), true)
	m.config = m.fronting("a2a/legacy http://"+agent, "localhost")
	m.config.handle = strings.Replace(m.config.handle, "callers aip aip/2", "callers aip aip/2 a2a", 1) +
		"\n\taip_health {\n\t\tpublic\n\t}\n\taip_discovery"
	m.config.store = "store pebble " + m.inDir("store") + "\n\t\tregistry " + d.URL + " {\n\t\t\tuser a b\n\t\t}"
	m.start(m.config)
	g := newGroup(t, b, "disabled", pki.Leader)
	g.join(m)
	alice := keyPair(t, pki.Leader)
	streams, calls := openEach(t, m.site, alice)
	c := m.calledBy(pki.Leader)
	c.start("kept", "hello")
	get := func(path string) (int, []byte) {
		res, body := c.request(http.MethodGet, path, nil)
		return res.StatusCode, body
	}
	const why = "the Partner is not active at its registry"

	d.change(m.url(), false)
	for _, o := range streams {
		code := "-32603"
		if o.name == "gRPC" {
			code = "Unavailable"
		}
		if last := o.ended(t, trustLimit); !strings.Contains(last, code) || !strings.Contains(last, why) {
			t.Errorf("%s: the stream ends with %q", o.name, last)
		}
	}
	m.waitFor(t, "the registry has disabled a Partner.*"+foundAIC)
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
		if _, body := get("/agents"); strings.Contains(string(body), m.url()) {
			t.Errorf("%s, the list of agents is %s", when, body)
		}
	}
	refused("while it is disabled")
	g.waitForRemoval(m)
	if _, answer := g.invite(c, g.invitation(m.aic)); answer == nil || !strings.Contains(string(answer.Data), "registry") {
		t.Errorf("an invitation is answered %+v", answer)
	}

	// After a restart it stays disabled, though the registry cannot be asked.
	d.away.Store(true)
	m.kill()
	m.run(filepath.Join(m.dir, "Caddyfile"))
	delete(calls, "HTTP/3") // its connection was not closed
	refused("after a restart without the registry")
	m.waitFor(t, "a registry cannot be followed")

	// The snapshot lacks agents that are disabled.
	d.lacks.Store(true)
	d.away.Store(false)
	m.waitFor(t, "a registry is followed")
	refused("when the registry is back")

	d.change(m.url(), true)
	m.waitFor(t, "the registry has enabled a Partner again")
	if got := c.get("kept"); got.Status.State != task.AwaitingCompletion {
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
	g.join(m)
}
