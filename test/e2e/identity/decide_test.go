// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/cli/devpki/devpkitest"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// opa is a server of Open Policy Agent.
type opa struct {
	t   testing.TB
	url string
}

// startOPA starts a server with a policy.
func startOPA(t testing.TB, policy string) *opa {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", site.FreePort(t))
	p := site.StartProcess(t, t.TempDir(), nil, site.SDKBinary(t, "opa"), "run", "--server", "--addr", addr,
		"--log-level", "error",
		"--skip-version-check")
	p.WaitForPort(t, addr)
	o := &opa{t, "http://" + addr}
	o.put(policy)
	return o
}

// put sets the policy.
func (o *opa) put(policy string) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodPut, o.url+"/v1/policies/policy.rego",
		strings.NewReader(policy))
	if err != nil {
		o.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		o.t.Fatalf("the policy is not taken: %s", res.Status)
	}
}

// TestDecisionPoint: Open Policy Agent decides about calls by who makes them and for what. Whatever it does not allow
// is denied, and an answer is used again only as long as Cache-Control says.
//
// Promise: a Leader does what it is not meant to do
func TestDecisionPoint(t *testing.T) {
	t.Parallel()
	agent := site.NewFakeAgent(t, nil)
	p := site.Certificates(t)
	aic := string(p.Leader.AIC)
	// policy lets a Leader start, and others never. It is not defined for get.
	policy := func(leader string) string {
		return `package aip

allow if {
	input.primarySubject.id == "agent:` + leader + `"
	input.actor.immediateActor.type == "agent"
	input.action == "task.start"
	input.environment.transport == "aip.direct"
}

verdict := {"allow": allow, "reason": "by the book"} if allow

verdict := {"allow": false, "reason": "the library is closed"} if not allow

conflict := 1 if input.action

conflict := 2 if input.action

obliged := {"allow": true, "obligations": ["redact"]}
`
	}
	o := startOPA(t, policy(aic))
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the system accepts, and no program answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cached, redirects := site.FreePort(t), site.FreePort(t)
	documents := map[string]string{
		"allow": o.url + "/v1/data/aip/allow", "verdict": o.url + "/v1/data/aip/verdict",
		"undefined": o.url + "/v1/data/aip/none", "conflict": o.url + "/v1/data/aip/conflict",
		"obliged": o.url + "/v1/data/aip/obliged", "missing": o.url + "/v2/data/aip/allow",
		"silent":   "http://" + silent.Addr().String() + "/v1/data/aip/allow",
		"redirect": fmt.Sprintf("http://127.0.0.1:%d/v1/data/aip/allow", redirects),
		"cached":   fmt.Sprintf("http://127.0.0.1:%d/v1/data/aip/allow", cached),
	}
	c := site.Config{OtherSites: fmt.Sprintf("http://127.0.0.1:%d {\n\theader Cache-Control max-age=3600\n"+
		"\treverse_proxy %s\n}\nhttp://127.0.0.1:%d {\n\tredir %s{uri} 307\n}\n", cached, o.url, redirects, o.url)}
	for name, url := range documents {
		c.Handle += fmt.Sprintf("aip_gateway /%s/* a2a/legacy %s {\n\t\tpolicy {\n\t\t\tdecide %s\n\t\t}\n\t}\n\t", name,
			agent.URL, url)
	}
	s := site.Serve(t, c)
	at := func(name string) *site.Caller { return site.LeaderOf(t, s.URL()+"/"+name) }
	denied := func(c *site.Caller, call *task.Call, reason string) {
		t.Helper()
		e := c.Refused(call)
		if e.Code != -32009 || strings.Contains(string(e.Raw), "library") {
			t.Errorf("answered %s", e.Raw)
		}
		s.WaitFor(t, `a caller was refused.*`+reason)
	}

	at("allow").Start("t1", "hello")
	at("verdict").Start("t2", "hello")
	for name, reason := range map[string]string{
		"undefined": "the document is undefined", "conflict": "has the status 500", "missing": "has the status 404",
		"obliged": "this gateway knows none", "redirect": "has the status 307", "silent": "has not decided.*deadline",
	} {
		denied(at(name), site.StartCall("never-"+name, "hello"), reason)
	}
	denied(at("allow"), site.CommandCall(task.Get, "t1"), "the document is undefined")
	denied(at("allow"), site.CommandCall(task.Get, "none"), "the document is undefined")
	denied(at("verdict"), site.CommandCall(task.Get, "t2"), "the library is closed")
	other := site.CallerWith(t, s.URL()+"/verdict", string(p.LeaderV1.AIC), devpkitest.KeyPair(t, p.LeaderV1))
	denied(other, site.StartCall("o1", "hello"), "the library is closed")

	// What a proxy before it lets be used again is not asked for again, and nothing else is.
	at("cached").Start("t3", "hello")
	o.put(policy(string(p.LeaderV1.AIC)))
	at("cached").Start("t4", "hello")
	denied(at("verdict"), site.StartCall("t5", "hello"), "the library is closed")
	other.Start("o2", "hello")
	if n := len(agent.Requests("")); n != 5 {
		t.Errorf("the agent has %d requests", n)
	}
}
