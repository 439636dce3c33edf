// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/acps/amp"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// idle is an agent without turns.
type idle struct{}

func (idle) Run(context.Context, *agent.Turn, bool) iter.Seq2[agent.Report, error] {
	return func(func(agent.Report, error) bool) {}
}
func (i idle) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return i.Run(ctx, t, false)
}
func (idle) Cancel(context.Context, *agent.Turn) (agent.Report, error) { return agent.Report{}, nil }
func (idle) Complete(context.Context, *agent.Turn) error               { return nil }

// fronted returns the gateway of a Partner with an agent.
func fronted(t *testing.T, p *Process, name string) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(gateway.Config{
		Process: &p.Process, Callers: []translate.Server{aip.Server()}, Guard: new(identity.Guard),
		Partner: partner.Config{Name: name, Agent: idle{}, MaxEvents: 100, MaxBytes: 1 << 20,
			Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour}},
		Limits: jsonrpc.Limits{Bytes: 16 << 10, Depth: 16}, Memory: limit.Limits{Total: 1 << 20, PerLeader: 1 << 20},
		Streaming: gateway.Streaming{Max: 10, MaxPerLeader: 10, Drain: t.Context()}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// TestCatalog: a Partner is once in the catalogue, by its first mount, with the AID of the mount for AUN, and the ACS
// of one with a public URL.
func TestCatalog(t *testing.T) {
	type entry struct {
		Name, AIC, AID string
		ACS            bool
	}
	var got []entry
	for _, a := range (Partners{{Name: "a", AIC: "a"}, {Name: "b", PublicURL: "https://b"},
		{Name: "a", AIC: "a", AID: "a.aid.test", PublicURL: "https://a"}}).catalog() {
		got = append(got, entry{a.Name, a.AIC, a.AID, a.ACS != nil})
	}
	if diff := cmp.Diff([]entry{{"a", "a", "a.aid.test", true}, {"b", "", "", false}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPartnersAtWork: a configuration shows its Partners while it is in force, and reports of them until its last call
// has ended. They are alive until it is drained.
func TestPartnersAtWork(t *testing.T) {
	p, dir := NewProcess(Host{}), filepath.Join(t.TempDir(), "records")
	g := fronted(t, p, "1.2.3")
	c := start(t, p, at("a"), Settings{
		Partners: Partners{{Name: "1.2.3", AIC: "1.2.3", Gateway: g, MaxRuns: 3}},
		Monitoring: &Monitoring{Heartbeats: time.Hour,
			Config: amp.Config{Dir: dir, Name: "test", Types: []amp.Type{amp.Access}}},
	})
	var names []string
	for _, e := range p.Agents.Entries(t.Context()) {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"1.2.3"}, names); diff != "" || len(p.Gateways("1.2.3")) != 1 ||
		c.Node().Gateway("1.2.3") != g || c.Node().Gateway("other") != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"1.2.3"}, c.Node().PartnerNames()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	first := c.Partners()[0]
	if _, _, most := first.load(); most != 3 || !c.isAlive(first) {
		t.Error("the Partner is not alive")
	}
	if c.Discoverer == nil || c.Front != nil {
		t.Error("there is a front of AUN, or no server for queries")
	}
	c.Enter()
	call := new(gateway.Answered)
	call.Dialect, call.Command, call.Address = "aip", "get", "127.0.0.1:1"
	c.Report("1.2.3", call)
	c.Stop()
	if c.isAlive(first) {
		t.Error("a Partner of a drained configuration is alive")
	}
	c.Leave()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("the files of records are %v: %v", files, err)
	}
	if n, lost := p.Reported.Of(amp.Access); n != 1 || lost != 0 {
		t.Errorf("%d records are counted, and %d that were lost", n, lost)
	}
}

// TestAlive: an agent that connects by AUN is alive while it is connected.
func TestAlive(t *testing.T) {
	p := NewProcess(Host{})
	c := start(t, p, at("a"), Settings{})
	defer end(t, c)
	if c.isAlive(&Partner{Assignee: "worker.aid.test"}) {
		t.Error("an agent that is not connected is alive")
	}
}
