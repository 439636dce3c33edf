// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/legacyagent"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
	"github.com/aip-gateway/aip-gateway/trust/policy"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/httptransport"
)

// quiet discards.
var quiet = slog.New(slog.DiscardHandler)

// memoryDriver opens a store in memory.
type memoryDriver struct{}

func (memoryDriver) Location() string { return "" }

func (memoryDriver) Open(*slog.Logger) (replay.Store, error) {
	return replay.NewMemory(replay.Settings{}), nil
}

func (memoryDriver) Settings() replay.Settings { return replay.Settings{} }

// aloneGateway is a gateway alone with its store. It has one Partner, P, with the title maps.
type aloneGateway struct {
	*Admin

	t             *testing.T
	handlers      map[string]Handler
	configuration *node.Configuration
	has           Configuration // of its host
	agent         *httptest.Server
}

// newAlone returns a gateway, in force until the test ends, with the settings of change.
func newAlone(t *testing.T, change func(*node.Partner, *gateway.Config)) *aloneGateway {
	t.Helper()
	agent := legacyagent.New(legacyagent.Options{})
	p := &aloneGateway{t: t, agent: httptest.NewServer(agent)}
	t.Cleanup(func() {
		p.agent.Close()
		agent.Close()
	})
	process := node.NewProcess(node.Host{})
	process.Beside = func(n *node.Node) node.Beside {
		p.Admin = Open(n, Config{Log: quiet,
			Of: func(*node.Configuration) *Configuration { return &p.has }})
		return p.Admin
	}
	p.configuration = process.NewConfiguration()
	if err := p.configuration.Open(node.Store{Driver: memoryDriver{}, Name: "memory"}); err != nil {
		t.Fatal(err)
	}
	of := &node.Partner{Name: "P", Title: "maps", AIC: "A.1", Agent: p.agent.URL, URL: "http://localhost/maps"}
	c := gateway.Config{
		Process: &process.Process, Callers: []translate.Server{aip.Server()}, Guard: &identity.Guard{Mode: identity.Off},
		Partner: partner.Config{Name: "P", MaxEvents: 100, MaxBytes: 1 << 20, MaxTasks: 100,
			Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour}},
		Agent: gateway.AgentConfig{Name: p.agent.URL, Dialect: "a2a/legacy", MaxRequests: 8,
			HTTP: httptransport.Config{URL: p.agent.URL}, Turns: upstream.Config{Logger: quiet}},
		Limits: jsonrpc.Limits{Bytes: 16 << 10, Depth: 16}, Memory: limit.Limits{Total: 1 << 20, PerLeader: 1 << 20},
		Streaming: gateway.Streaming{Max: 10, MaxPerLeader: 10, Drain: p.configuration.Draining}, Log: quiet,
	}
	if change != nil {
		change(of, &c)
	}
	var err error
	if of.Gateway, err = gateway.New(c); err != nil {
		t.Fatal(err)
	}
	err = p.configuration.Start(node.Settings{Partners: node.Partners{of}, Host: p,
		Notify: notify.Config{Dialects: gateway.Wire, Egress: new(egress.Policy)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.configuration.Drain()
		p.configuration.Stop()
		if err := p.configuration.Close(); err != nil {
			t.Error(err)
		}
		of.Gateway.Close()
	})
	p.handlers = Handlers(func() (*Admin, error) { return p.Admin, nil })
	return p
}

// partner returns the Partner.
func (p *aloneGateway) partner() *node.Partner { return p.Partners()[0] }

// answer asks a route, and returns the status and the body.
func (p *aloneGateway) answer(method, target, body string) (int, string) {
	p.t.Helper()
	path, _, _ := strings.Cut(target, "?")
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(p.t.Context(), method, target, strings.NewReader(body))
	p.handlers[path].ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// ask asks a route, and decodes its answer.
func (p *aloneGateway) ask(method, target, body string, into any) {
	p.t.Helper()
	status, text := p.answer(method, target, body)
	if err := json.Unmarshal([]byte(text), into); err != nil || status != http.StatusOK {
		p.t.Fatalf("%s %s: %d %s, %v", method, target, status, text, err)
	}
}

// refuses holds that routes refuse requests with a status and a reason: of a method and a target, with a body after a
// space.
func (p *aloneGateway) refuses(want map[string]string) {
	p.t.Helper()
	for request, want := range want {
		method, rest, _ := strings.Cut(request, " ")
		target, body, _ := strings.Cut(rest, " ")
		status, text := p.answer(method, target, body)
		var refused struct{ Error string }
		if err := json.Unmarshal([]byte(text), &refused); err != nil {
			p.t.Errorf("%s: %d %s, %v", request, status, text, err)
			continue
		}
		if got := http.StatusText(status) + ": " + refused.Error; got != want {
			p.t.Errorf("%s is answered with\n%s, want\n%s", request, got, want)
		}
	}
}

// try has the operator start a task, and waits for the agent.
func (p *aloneGateway) try(text string, until task.State) (of adminapi.Task) {
	p.t.Helper()
	p.ask("POST", adminapi.TryPartner, `{"partner":"maps","command":"start","text":"`+text+`"}`, &of)
	return p.await(of.Task, until)
}

// await waits for a state of a task.
func (p *aloneGateway) await(id string, until task.State) (of adminapi.Task) {
	p.t.Helper()
	asynctest.Eventually(p.t, id+" is "+string(until), func() bool {
		var page adminapi.TaskPage
		p.ask("GET", adminapi.Tasks+"?partner=maps&leader=operator:console&task="+id, "", &page)
		if len(page.Tasks) == 1 {
			of = page.Tasks[0]
		}
		return of.State == until
	})
	return of
}

// withPolicy gives the Partner a policy.
func withPolicy(t *testing.T, c policy.Config) func(*node.Partner, *gateway.Config) {
	return func(p *node.Partner, g *gateway.Config) {
		c.Partner, c.Log, c.Meter = p.Name, quiet, new(policy.Meter)
		made, err := policy.New(c)
		if err != nil {
			t.Fatal(err)
		}
		p.Policy, g.Policy = made, made
	}
}
