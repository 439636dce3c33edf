// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
	"github.com/aip-gateway/aip-gateway/trust/token/tokentest"
	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
)

// TestCallerIsHandedOn tells an agent who calls: by fields and tokens that it verifies by the keys that the gateway
// serves, whatever the caller says about itself, and after a crash, when nobody calls, too.
//
// Promise: a caller forges [what the agent is told](#what-the-agent-learns) about it
func TestCallerIsHandedOn(t *testing.T) {
	t.Parallel()
	var done atomic.Bool
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		if done.Load() {
			site.WriteTask(w, h, "completed", "done")
			return
		}
		site.WriteTask(w, h, "working", "")
	})
	pki := site.Certificates(t)
	leader := string(pki.Leader.AIC)
	s := site.New(t)
	keys := site.FreePort(t)
	settings := func(first, second string) site.Config {
		return site.Config{
			Store: "store pebble " + s.InDir("store") + "\n\t\tissuer https://gateway.example {\n\t\t\tkeys " +
				first + " " + second + "\n\t\t}",
			Handle: "aip_gateway {\n\t\tagent a2a/legacy " + agent.URL + " {\n\t\t\tcaller {\n\t\t\t\theaders\n" +
				"\t\t\t\tjwt {\n\t\t\t\t\taudience the-agent\n\t\t\t\t\theader Authorization\n\t\t\t\t}\n" +
				"\t\t\t}\n\t\t}\n\t\taic " + string(pki.Server.AIC) + "\n\t}",
			OtherSites: fmt.Sprintf("http://localhost:%d {\n\thandle /jwks.json {\n\t\taip_jwks\n\t}\n}", keys),
		}
	}
	s.Start(settings(pki.Leader.Key, pki.Server.Key))

	// The caller forges all that the agent could take for the gateway's word.
	body := site.AIPBody("rpc", leader, "start", "t1", "hello", `"commandParams":{"responseTimeout":100},`)
	_, answer := site.LeaderOf(t, s.URL()).Post("/rpc", body, "Aip-Leader", "mallory", "Aip-Proof", "host", "Aip-Task",
		"x",
		"Aip-Session", "x", "Authorization", "Bearer x", "Baggage", "aip.leader=mallory",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if !bytes.Contains(answer, []byte(`"working"`)) {
		t.Fatalf("start answered %s", answer)
	}
	site.Eventually(t, "the agent has been asked", func() bool { return len(agent.Requests("")) > 0 })
	before := len(agent.Requests(""))

	s.Kill()
	s.Start(settings(pki.Server.Key, pki.Leader.Key))
	site.Eventually(t, "the agent is asked again", func() bool { return len(agent.Requests("")) > before })
	done.Store(true)
	c := site.LeaderOf(t, s.URL())
	site.Eventually(t, "the task is done", func() bool { return c.Get("t1").Status.State == task.AwaitingCompletion })

	var set jose.JSONWebKeySet
	served, err := http.Get(fmt.Sprintf("http://localhost:%d/jwks.json", keys))
	if err != nil {
		t.Fatal(err)
	}
	defer served.Body.Close()
	if err := json.NewDecoder(served.Body).Decode(&set); err != nil || len(set.Keys) != 2 ||
		served.Header.Get("Content-Type") != "application/jwk-set+json" {
		t.Fatalf("%d keys, %v, %v", len(set.Keys), err, served.Header)
	}
	signers := make(map[string]bool)
	for n, h := range agent.Requests("") {
		if h.Method == "" {
			continue // the card
		}
		value := h.Header.Get("Authorization")
		parsed, err := jose.ParseSigned(strings.TrimPrefix(value, "Bearer "), []jose.SignatureAlgorithm{jose.ES256})
		if err != nil || !strings.HasPrefix(value, "Bearer ") {
			t.Fatalf("request %d has the Authorization %q: %v", n, value, err)
		}
		signers[parsed.Signatures[0].Header.KeyID] = true
		payload, err := parsed.Verify(&set)
		if err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
		var claims struct {
			Iss, Sub, Aud, Proof, Task, Session string
			Act                                 struct{ Sub string }
		}
		if err := json.Unmarshal(payload, &claims); err != nil {
			t.Fatal(err)
		}
		got := []string{claims.Iss, claims.Sub, claims.Aud, claims.Proof, claims.Act.Sub, claims.Task,
			h.Header.Get("Aip-Leader"), h.Header.Get("Aip-Proof"), h.Header.Get("Aip-Task"), h.Header.Get("Aip-Session")}
		want := []string{"https://gateway.example", "agent:" + leader, "the-agent", "certificate",
			"agent:" + string(pki.Server.AIC), h.Params.ID, leader, "certificate", h.Params.ID, claims.Session}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("request %d, %s (-want +got):\n%s", n, h.Method, diff)
		}
		if b := h.Header.Get("Baggage"); strings.Contains(b, "mallory") {
			t.Errorf("request %d has the baggage %q", n, b)
		}
	}
	if len(signers) != 2 {
		t.Errorf("%d keys have signed, before and after the change", len(signers))
	}
}

// TestSubjectIsHandedOn tells an agent for whom a Leader acts, by its access token, and after a crash, when nobody
// calls, too.
func TestSubjectIsHandedOn(t *testing.T) {
	t.Parallel()
	var done atomic.Bool
	agent := site.NewFakeAgent(t, func(w http.ResponseWriter, _ *http.Request, h site.Heard) {
		state := "working"
		if done.Load() {
			state = "completed"
		}
		site.WriteTask(w, h, state, "done")
	})
	issuer, s, aic := tokentest.New(t), site.New(t), string(site.Certificates(t).Leader.AIC)
	c := site.Config{Store: "store pebble " + s.InDir("store"), Handle: `aip_gateway {
		agent a2a/legacy ` + agent.URL + ` {
			caller {
				headers
			}
		}
		aic ` + protected + `
		aac {
			issuer ` + issuer.URL + `
			allow_networks 127.0.0.0/8 ::1/128
		}
	}`}
	s.Start(c)
	a := &aacSite{Site: s, aic: aic}
	leader := site.LeaderOf(t, s.URL())
	body := site.AIPBody("rpc", aic, "start", "t1", "hello", `"commandParams":{"responseTimeout":100},`)
	if _, code, answer := post(t, leader, "/rpc", string(body), issuer.Sign(t, a.claims("one", nil))); code != 0 {
		t.Fatalf("start answered %s", answer)
	}
	before := len(agent.Requests(""))
	s.Kill()
	s.Start(c)
	site.Eventually(t, "the agent is asked again", func() bool { return len(agent.Requests("")) > before })
	done.Store(true)
	leader = site.LeaderOf(t, s.URL())
	site.Eventually(t, "the task is done", func() bool { return leader.Get("t1").Status.State == task.AwaitingCompletion })
	for n, h := range agent.Requests("") {
		if got := h.Header.Get("Aip-Subject"); h.Method != "" && got != "the-person-behind" {
			t.Errorf("request %d, %s, is for %q", n, h.Method, got)
		}
	}
}
