// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/freeport"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// TestExtendedCardIsForKnownCallers: the agent gives its extended card to the gateway, a caller it knows, so the
// gateway gives it to callers it knows. If callers cannot prove their identities, no card mentions one.
func TestExtendedCardIsForKnownCallers(t *testing.T) {
	known := identity.Peer{Proof: identity.ByCertificate, Kind: identity.AICKind, ID: "10001000011K912345E789ABCDEF2353",
		Expires: time.Now().Add(time.Hour)}
	for name, tc := range map[string]struct {
		mode       identity.Mode
		peer       identity.Peer
		says       string
		advertised bool
		asked      int64
	}{
		"required, known":        {identity.Required, known, `"secret skill"`, true, 1},
		"required, a stranger":   {identity.Required, identity.Peer{}, `-32051`, true, 0},
		"optional, known":        {identity.Optional, known, `"secret skill"`, true, 1},
		"optional, a stranger":   {identity.Optional, identity.Peer{}, `-32051`, true, 0},
		"off, although it could": {identity.Off, known, `-32004`, false, 0},
		"off":                    {identity.Off, identity.Peer{}, `-32004`, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				const card = `{"name":"a","description":"d","version":"1","capabilities":{"extendedAgentCard":true},` +
					`"supportedInterfaces":[],"defaultInputModes":[],"defaultOutputModes":[],"skills":[`
				w.Header().Set("Content-Type", "application/json")
				if r.Method == "GET" {
					io.WriteString(w, card+`]}`)
					return
				}
				asked.Add(1)
				body, _ := io.ReadAll(r.Body)
				io.WriteString(w, `{"jsonrpc":"2.0","id":`+gjson.GetBytes(body, "id").Raw+`,"result":`+card+
					`{"id":"s","name":"secret skill","description":"d","tags":[]}]}}`)
			}))
			defer agent.Close()
			g := newGateway(t, func(c *gateway.Config) {
				c.Guard = &identity.Guard{Mode: tc.mode}
				c.Callers = []translate.Server{a2a.V1Server(false)}
				c.Partner.Agent = nil
				c.Agent = gateway.AgentConfig{Dialect: "a2a/1.0", MaxRequests: 8,
					HTTP: httptransport.Config{URL: agent.URL}, Turns: upstream.Config{Logger: c.Log}}
			})
			var r gateway.Request
			defer r.Release()
			r.Body = gateway.NewBody()
			*r.Body = append(*r.Body, `{"jsonrpc":"2.0","id":1,"method":"GetExtendedAgentCard","params":{}}`...)
			if !g.Match(&r, "POST", "") {
				t.Fatal("no dialect has the path")
			}
			if a := g.Dispatch(t.Context(), tc.peer, &r); !strings.Contains(string(a.Reply), tc.says) {
				t.Errorf("the answer is %s, want %s", a.Reply, tc.says)
			}
			if n := asked.Load(); n != tc.asked {
				t.Errorf("the agent was asked %d times", n)
			}
			public, err := g.Document(".well-known/agent-card.json")(t.Context(), "https://gw.example", "1.0")
			if err != nil || strings.Contains(string(public), `"extendedAgentCard":true`) != tc.advertised {
				t.Errorf("the public card is %s, %v", public, err)
			}
		})
	}
}

// TestEveryPartnerHasCards: an agent without a card, or away, has cards made from the configuration, and an agent of
// any dialect may have a configured one.
func TestEveryPartnerHasCards(t *testing.T) {
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	away := fmt.Sprint("http://127.0.0.1:", freeport.Closed(t))
	const card = `{"name":"of the agent","version":"7","url":"http://agent/","capabilities":{},"skills":[{"id":"s",` +
		`"name":"a skill"}]}`
	shows := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, card) }))
	defer shows.Close()
	file := func() ([]byte, error) { return []byte(card), nil }
	for name, tc := range map[string]struct {
		agent gateway.AgentConfig
		own   bool
	}{
		"none, found out":      {gateway.AgentConfig{Dialect: "a2a", HTTP: httptransport.Config{URL: none.URL}}, false},
		"none, pinned":         {gateway.AgentConfig{Dialect: "a2a/0.3", HTTP: httptransport.Config{URL: none.URL}}, false},
		"away":                 {gateway.AgentConfig{Dialect: "a2a/1.0", HTTP: httptransport.Config{URL: away}}, false},
		"its dialect has none": {gateway.AgentConfig{Dialect: "agentapi", HTTP: httptransport.Config{URL: none.URL}}, false},
		"a file that is missing": {gateway.AgentConfig{Dialect: "agentapi", HTTP: httptransport.Config{URL: none.URL},
			ReadCard: func() ([]byte, error) { return nil, io.ErrUnexpectedEOF }}, false},
		"a file": {gateway.AgentConfig{Dialect: "agentapi", HTTP: httptransport.Config{URL: none.URL}, ReadCard: file}, true},
		"a file, of an agent that connects": {gateway.AgentConfig{Dialect: "aun-assignee",
			HTTP: httptransport.Config{URL: "bob.aid.pub"}, ReadCard: file}, true},
		"a URL": {gateway.AgentConfig{Dialect: "a2a/1.0", HTTP: httptransport.Config{URL: none.URL},
			CardURL: shows.URL + "/any"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, func(c *gateway.Config) {
				c.Callers = []translate.Server{a2a.LegacyServer(false), a2a.V03Server(false), a2a.V1Server(false)}
				c.Name, c.Cards.Version, c.Cards.Organization, c.Partner.Agent = "maps", "2", "Maps Ltd", nil
				c.Agent = tc.agent
				c.Agent.MaxRequests, c.Agent.Turns.Logger = 8, c.Log
			})
			for _, path := range []string{".well-known/agent-card.json", ".well-known/agent.json", ".well-known/acs.json"} {
				body, err := g.Document(path)(t.Context(), "https://gw.example", "")
				got := []string{gjson.GetBytes(body, "name").Str, gjson.GetBytes(body, "version").Str,
					gjson.GetBytes(body, "provider.organization").Str, gjson.GetBytes(body, "skills.0.name").Str}
				want := []string{"maps", "2", "Maps Ltd", ""}
				if tc.own {
					want = []string{"of the agent", "7", "", "a skill"}
				}
				if path == ".well-known/acs.json" { // the configured values stand there before the agent's
					want[1], want[2] = "2", "Maps Ltd"
				}
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%s: %v, %s (-want +got):\n%s", path, err, body, diff)
				}
				if strings.Contains(string(body), "127.0.0.1") {
					t.Errorf("%s shows where the agent is: %s", path, body)
				}
			}
		})
	}
}

// TestCardOfAgentAway: while the agent is away, one line says so, however often callers ask for the Partner's cards.
func TestCardOfAgentAway(t *testing.T) {
	away := fmt.Sprint("http://127.0.0.1:", freeport.Closed(t))
	lines := new(bytes.Buffer)
	g := newGateway(t, func(c *gateway.Config) {
		c.Log, c.Partner.Agent = slog.New(slog.NewTextHandler(lines, nil)), nil
		c.Callers = []translate.Server{a2a.V1Server(false)}
		c.Agent = gateway.AgentConfig{Dialect: "a2a/1.0", HTTP: httptransport.Config{URL: away}, MaxRequests: 8}
		c.Agent.Turns.Logger = quiet
	})
	for range 3 {
		for _, path := range []string{".well-known/agent-card.json", ".well-known/acs.json"} {
			if _, err := g.Document(path)(t.Context(), "https://gw.example", "1.0"); err != nil {
				t.Error(err)
			}
		}
	}
	if n := strings.Count(lines.String(), "the agent's card is not available"); n != 1 {
		t.Errorf("%d lines, want 1:\n%s", n, lines)
	}
}
