// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
)

// opa is a server of Open Policy Agent.
type opa struct {
	t   testing.TB
	url string
}

// startOPA starts a server with a policy.
func startOPA(t testing.TB, policy string) *opa {
	t.Helper()
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	p := startProcess(t, t.TempDir(), nil, sdkBinary(t, "opa"), "run", "--server", "--addr", addr, "--log-level", "error",
		"--skip-version-check")
	p.waitForPort(t, addr)
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
	agent := newFakeAgent(t, nil)
	p := certificates(t)
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
	cached, redirects := freePort(t), freePort(t)
	documents := map[string]string{
		"allow": o.url + "/v1/data/aip/allow", "verdict": o.url + "/v1/data/aip/verdict",
		"undefined": o.url + "/v1/data/aip/none", "conflict": o.url + "/v1/data/aip/conflict",
		"obliged": o.url + "/v1/data/aip/obliged", "missing": o.url + "/v2/data/aip/allow",
		"silent":   "http://" + silent.Addr().String() + "/v1/data/aip/allow",
		"redirect": fmt.Sprintf("http://127.0.0.1:%d/v1/data/aip/allow", redirects),
		"cached":   fmt.Sprintf("http://127.0.0.1:%d/v1/data/aip/allow", cached),
	}
	c := config{otherSites: fmt.Sprintf("http://127.0.0.1:%d {\n\theader Cache-Control max-age=3600\n"+
		"\treverse_proxy %s\n}\nhttp://127.0.0.1:%d {\n\tredir %s{uri} 307\n}\n", cached, o.url, redirects, o.url)}
	for name, url := range documents {
		c.handle += fmt.Sprintf("aip_gateway /%s/* a2a/legacy %s {\n\t\tpolicy {\n\t\t\tdecide %s\n\t\t}\n\t}\n\t", name,
			agent.url, url)
	}
	s := serve(t, c)
	at := func(name string) *caller { return leaderOf(t, s.url()+"/"+name) }
	denied := func(c *caller, call *task.Call, reason string) {
		t.Helper()
		e := c.refused(call)
		if e.Code != -32009 || strings.Contains(string(e.Raw), "library") {
			t.Errorf("answered %s", e.Raw)
		}
		s.waitFor(t, `a caller was refused.*`+reason)
	}

	at("allow").start("t1", "hello")
	at("verdict").start("t2", "hello")
	for name, reason := range map[string]string{
		"undefined": "the document is undefined", "conflict": "has the status 500", "missing": "has the status 404",
		"obliged": "this gateway knows none", "redirect": "has the status 307", "silent": "has not decided.*deadline",
	} {
		denied(at(name), startCall("never-"+name, "hello"), reason)
	}
	denied(at("allow"), commandCall(task.Get, "t1"), "the document is undefined")
	denied(at("allow"), commandCall(task.Get, "none"), "the document is undefined")
	denied(at("verdict"), commandCall(task.Get, "t2"), "the library is closed")
	other := callerWith(t, s.url()+"/verdict", string(p.LeaderV1.AIC), keyPair(t, p.LeaderV1))
	denied(other, startCall("o1", "hello"), "the library is closed")

	// What a proxy before it lets be used again is not asked for again, and nothing else is.
	at("cached").start("t3", "hello")
	o.put(policy(string(p.LeaderV1.AIC)))
	at("cached").start("t4", "hello")
	denied(at("verdict"), startCall("t5", "hello"), "the library is closed")
	other.start("o2", "hello")
	if n := len(agent.requests("")); n != 5 {
		t.Errorf("the agent has %d requests", n)
	}
}
