// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/asynctest"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/sseproxy"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// busy is an agent that works until it is asked to stop.
type busy struct{}

func (busy) Run(ctx context.Context, _ *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if yield(agent.Report{State: task.Working}, nil) {
			<-ctx.Done()
		}
	}
}
func (b busy) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return b.Run(ctx, t, false)
}
func (busy) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	return agent.Report{State: task.Canceled}, nil
}
func (busy) Complete(context.Context, *agent.Turn) error { return nil }

// adminNode is a gateway of several, as far as its admin API goes.
type adminNode struct {
	*Admin
	node    *replaytest.Node
	gateway *gateway.Gateway
}

// adminNodes returns gateways that own the shards in turns.
func adminNodes(t *testing.T, n int) (all []*adminNode) {
	t.Helper()
	shards, quiet := replaytest.NewShards(4), slog.New(slog.DiscardHandler)
	for range n {
		a := &adminNode{node: shards.Node()}
		n := new(node.Node)
		err := n.Open(node.Config{Process: node.NewProcess(node.Host{}), Shards: shard.Join(a.node, quiet),
			Log: func(string) *slog.Logger { return quiet }})
		if err != nil {
			t.Fatal(err)
		}
		n.Tasks.Configure(notify.Config{Dialects: gateway.Wire})
		a.Admin = Open(n, Config{Log: quiet})
		a.gateway, err = gateway.New(gateway.Config{
			Process: &a.Process.Process, Callers: []translate.Server{aip.Server()}, Guard: new(identity.Guard),
			Partner: partner.Config{Name: "P", Agent: busy{}, MaxEvents: 100, MaxBytes: 1 << 20,
				Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour}},
			Limits: jsonrpc.Limits{Bytes: 16 << 10, Depth: 16}, Memory: limit.Limits{Total: 1 << 20, PerLeader: 1 << 20},
			Streaming: gateway.Streaming{Max: 10, MaxPerLeader: 10, Drain: t.Context()}, Log: quiet,
		})
		if err != nil {
			t.Fatal(err)
		}
		a.gateway.Register(a.Tasks)
		all = append(all, a)
		t.Cleanup(func() {
			a.gateway.Unregister()
			a.Close()
			if err := a.Node.Close(); err != nil {
				t.Error(err)
			}
			a.gateway.Close()
		})
	}
	for i := range 4 {
		shards.Assign(i, all[i%n].node, false)
		asynctest.Eventually(t, "the shard is owned", func() bool { return all[i%n].Shards.Owns(i) })
	}
	return all
}

// ask asks a gateway for what a route answers.
func (a *adminNode) ask(t *testing.T, method, path, query, body string, into any) error {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path+"?"+query, strings.NewReader(body))
	out, err := a.routes[path].answer(a.Admin, r)
	if err != nil {
		return err
	}
	data, err := json.Marshal(out)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	return err
}

// start has Leaders start tasks, each at the owner of its shard. Under load a shard may have none for a moment.
func start(t *testing.T, all []*adminNode, leaders int) (names []string) {
	t.Helper()
	for i := range leaders {
		peer := identity.Peer{Proof: identity.ByBroker, Kind: "test", ID: fmt.Sprint("leader-", i)}
		name := peer.Leader()
		asynctest.Eventually(t, "an owner starts the task of "+name, func() bool {
			return slices.ContainsFunc(all, func(a *adminNode) bool {
				call := gateway.Call{Dialect: "aip", Leader: name, Call: translate.Call{Op: translate.Command}}
				call.Message = task.Message{ID: "m", Command: task.Start, SenderRole: task.Leader, SenderID: name,
					TaskID: fmt.Sprint("task-", i), SessionID: "s", DataItems: []task.DataItem{task.Text("hello")}}
				call.Terms.Response = task.NoWait
				_, err := a.gateway.ExecuteHere(t.Context(), &call, nil)
				return err == nil
			})
		})
		names = append(names, name)
	}
	return names
}

// TestSpread: an operator sees at any gateway what all of them have, with their names, in pages; and what is changed is
// changed by the owner.
func TestSpread(t *testing.T) {
	all := adminNodes(t, 3)
	names := start(t, all, 20)
	asynctest.Eventually(t, "the agent works on all tasks", func() bool { // which have changed until then
		var page adminapi.TaskPage
		err := all[0].ask(t, "GET", adminapi.Tasks, "state=working&limit=100", "", &page)
		return err == nil && len(page.Tasks) == len(names)
	})
	for _, a := range all {
		var got []string
		gateways := make(map[string]bool)
		last := ""
		for after, pages := "", 0; ; pages++ {
			var page adminapi.TaskPage
			if err := a.ask(t, "GET", adminapi.Tasks, "limit=3&after="+after, "", &page); err != nil || pages > 20 {
				t.Fatal(err)
			}
			for _, one := range page.Tasks {
				got, gateways[one.Gateway] = append(got, one.Leader), true
				at := cursorOf(&one)
				if last != "" && partner.CompareCursors(last, at) >= 0 {
					t.Errorf("the task of %s, of %s, is not behind the one that has changed before", one.Leader, one.Since)
				}
				last = at
			}
			if len(page.Tasks) > 3 || len(page.Missing) > 0 {
				t.Errorf("a page has %d tasks, and lacks %s", len(page.Tasks), page.Missing)
			}
			if after = page.Next; after == "" {
				break
			}
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(names))
		if diff := cmp.Diff(want, got); diff != "" || len(gateways) != 3 {
			t.Errorf("the tasks at %v (-want +got):\n%s", gateways, diff)
		}
	}
	for i, name := range names[:6] {
		var ended adminapi.Task
		body := fmt.Sprintf(`{"partner":"P","leader":%q,"task":"task-%d"}`, name, i)
		if err := all[i%3].ask(t, "POST", adminapi.CancelTask, "", body, &ended); err != nil || ended.State != task.Canceled {
			t.Errorf("%s is %s: %v", name, ended.State, err)
		}
		var events adminapi.EventPage
		query := fmt.Sprintf("partner=P&leader=%s&task=task-%d", name, i)
		if err := all[(i+1)%3].ask(t, "GET", adminapi.TaskEvents, query, "", &events); err != nil ||
			events.Task.State != task.Canceled || len(events.Events) == 0 {
			t.Errorf("the events of %s: %+v, %v", name, events.Task, err)
		}
	}
	err := all[0].ask(t, "POST", adminapi.CancelTask, "", `{"partner":"P","leader":"nobody","task":"none"}`, nil)
	if task.KindOf(err) != task.TaskNotFound {
		t.Errorf("the cancel of an unknown task: %v", err)
	}
	if err := all[1].ask(t, "GET", adminapi.Tasks, "state=odd", "", nil); task.KindOf(err) != task.InvalidParams {
		t.Errorf("an unknown state: %v", err)
	}
}

// TestSpreadNothing: where no gateway has anything, a list is an empty one, as it is where one is alone.
func TestSpreadNothing(t *testing.T) {
	a := adminNodes(t, 2)[0]
	for path, want := range map[string]string{
		adminapi.Tasks: `{"tasks":[]}`, adminapi.Groups: `{"groups":[]}`, adminapi.Endpoints: `{"endpoints":[]}`,
		adminapi.PolicyRules: `{"rules":[]}`,
	} {
		var got json.RawMessage
		if err := a.ask(t, "GET", path, "", "", &got); err != nil || string(got) != want {
			t.Errorf("%s answers %s, %v, want %s", path, got, err, want)
		}
	}
}

// TestSpreadWhileAShardLeaves: a list at a gateway whose shard leaves while it is read has the rest, and says that the
// shard is missing.
func TestSpreadWhileAShardLeaves(t *testing.T) {
	all := adminNodes(t, 1)
	const path = "/aip/leaving"
	reads := 0
	alone := func(*Admin, *http.Request) (any, error) {
		if reads++; reads == 1 {
			all[0].node.Leave(2)
			asynctest.Eventually(t, "the shard has left", func() bool { return !all[0].Shards.Owns(2) })
			return nil, partner.StoreError(replay.ErrClosed, "the store cannot be read")
		}
		return adminapi.TaskPage{Tasks: make([]adminapi.Task, 1)}, nil
	}
	all[0].routes = map[string]route{path: {alone: alone, several: tasksByGateway}}
	var page adminapi.TaskPage
	if err := all[0].ask(t, "GET", path, "", "", &page); err != nil || len(page.Tasks) != 1 {
		t.Fatalf("the list has %+v, %v", page, err)
	}
	if diff := cmp.Diff([]string{"shard 2"}, page.Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
	reads = 0
	if err := all[0].ask(t, "POST", path, "", "", &page); err == nil || reads != 1 {
		t.Errorf("what may have been changed already is asked for %d times: %v", reads, err)
	}
}

// TestSpreadBroken: what another gateway answers is checked. An answer that cannot be is refused, and numbers that it
// leaves out count as none.
func TestSpreadBroken(t *testing.T) {
	all := adminNodes(t, 2)
	answered := ""
	all[0].node.Handle("admin", func(context.Context, int, []byte) ([]byte, error) {
		return []byte(`{"answer":` + answered + `}`), nil
	})
	for _, tc := range []struct{ path, answer, want string }{
		{adminapi.Tasks, `{"Shards":[4],"Body":{}}`, "node-1 says that it owns shard 4, but they are 0 to 3"},
		{adminapi.Tasks, `{"Shards":[-1],"Body":{}}`, "node-1 says that it owns shard -1, but they are 0 to 3"},
		{adminapi.Tasks, `{"Body":[]}`, "node-1 answers what cannot be read; check its version"},
		{adminapi.OverviewOf, `{"Body":{"now":{}}}`, ""},
	} {
		answered = tc.answer
		var got json.RawMessage
		err := all[1].ask(t, "GET", tc.path, "", "", &got)
		if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("after %s, %s is answered with %s, %v, want %q", tc.answer, tc.path, got, err, tc.want)
		}
	}
}

// TestSpreadEndpoints: an endpoint that an operator disables is disabled at all gateways, or the operator learns that
// it is not.
func TestSpreadEndpoints(t *testing.T) {
	all := adminNodes(t, 2)
	const body = `{"endpoint":"https://example.com"}`
	if err := all[0].ask(t, "POST", adminapi.DisableEndpoint, "", body, new(adminapi.EndpointName)); err != nil {
		t.Fatal(err)
	}
	disabled := func() (n int) {
		var list adminapi.EndpointList
		if err := all[1].ask(t, "GET", adminapi.Endpoints, "", "", &list); err != nil {
			t.Fatal(err)
		}
		for _, e := range list.Endpoints {
			if e.State == "disabled" {
				n++
			}
		}
		return n
	}
	if n := disabled(); n != 2 {
		t.Errorf("it is disabled at %d gateways", n)
	}
	all[1].node.Kill()
	err := all[0].ask(t, "POST", adminapi.EnableEndpoint, "", body, new(adminapi.EndpointName))
	if statusOf(err) != http.StatusServiceUnavailable || !strings.Contains(err.Error(), "shard 1, shard 3") {
		t.Errorf("without one of them: %v", err)
	}
}

// TestTailAll: the changes of tasks at all gateways are seen at any of them.
func TestTailAll(t *testing.T) {
	all := adminNodes(t, 2)
	f, err := all[0].tails.follow(t.Context(), partner.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	names := start(t, all, 8)
	seen := make(map[string]bool)
	asynctest.Eventually(t, "all changes are seen", func() bool {
		changes, _, _ := f.Next()
		for _, c := range changes {
			seen[c.Leader] = true
		}
		return len(seen) == len(names)
	})
}

// TestTailAllGone: a stream says which gateway has gone, since its last changes may not have come.
func TestTailAllGone(t *testing.T) {
	all := adminNodes(t, 2)
	tail, err := all[0].tails.follow(t.Context(), partner.TaskFilter{})
	if err != nil {
		t.Fatal(err)
	}
	f := allFollower{tail, all[0].Admin}
	defer f.Close()
	all[1].node.Kill()
	asynctest.Eventually(t, "the gateway is named", func() bool {
		w := httptest.NewRecorder()
		s := sseproxy.NewWriter(w, sseproxy.Options{Heartbeat: time.Hour, HeartbeatDue: func() {}})
		defer s.Close()
		if _, err := f.gather(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		s.Flush()
		return strings.Contains(w.Body.String(), `{"gateway":"`+all[1].node.Name()+`"}`)
	})
}
