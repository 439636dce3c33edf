// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// faults is a cluster to which harm is done, one thing after the other. Each gateway reaches the servers by proxies of
// its own.
type faults struct {
	*site.Cluster
	ways    [3][]*natstest.Proxy
	configs [3]site.Config
	aic     string          // of the Partner that takes part in groups
	grouped *site.FakeAgent // its agent
	open    *site.FakeAgent // the agents of the Partners /open, /again and /never
	again   *site.FakeAgent // forgets the first message
	never   *site.FakeAgent // likewise
}

// forgetful returns an agent that never answers its first message, and does not know its task later.
func forgetful(t testing.TB) *site.FakeAgent {
	var told atomic.Int32
	return site.NewFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h site.Heard) {
		switch {
		case !strings.HasPrefix(h.Method, "tasks/send"):
			site.WriteError(w, h, -32001, "Task not found")
		case told.Add(1) == 1:
			<-r.Context().Done()
		default:
			site.WriteTask(w, h, "completed", "done")
		}
	})
}

func newFaults(t *testing.T) *faults {
	t.Helper()
	_, address := site.SampleAgent(t)
	servers, err := natstest.Start(3, natstest.Config{Hidden: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	f := &faults{Cluster: &site.Cluster{T: t, Servers: servers},
		aic:     string(site.Must(identity.MakeV1(identity.FieldsV1{}))(t)),
		grouped: site.NewFakeAgent(t, site.Forward(address)), open: site.NewFakeAgent(t, site.Forward(address)),
		again: forgetful(t), never: forgetful(t)}
	for i := range 3 {
		c := f.Config(i, fmt.Sprintf(`
	aip_gateway /open* a2a/legacy %s
	aip_gateway /again* {
		agent a2a/legacy %s {
			resend always after 6s
		}
	}
	aip_gateway /never* {
		agent a2a/legacy %s {
			resend never after 6s
		}
	}
	aip_gateway {
		agent a2a/legacy %s {
			resend always
		}
		aic %s
		callers aip aip/2
		group {
			allow_brokers localhost
			token_key %s
		}
	}`, f.open.URL, f.again.URL, f.never.URL, f.grouped.URL, f.aic, site.TokenKey), "")
		c.Notify = site.AllowHere
		for _, s := range servers.Servers {
			way := site.Must(natstest.NewProxy(s))(t)
			t.Cleanup(way.Close)
			f.ways[i] = append(f.ways[i], way)
			c.Store = strings.Replace(c.Store, s.URL(), way.URL(), 1)
		}
		f.configs[i] = c
		s := site.New(t)
		f.Gateways = append(f.Gateways, s)
		s.Start(c)
	}
	f.AllOwned(3)
	return f
}

// someLeader is a Leader with a certificate of its own.
type someLeader struct {
	aic  string
	pair tls.Certificate
}

// leaderWhere returns a Leader whose tasks at a Partner are in a shard that ok accepts.
func (f *faults) leaderWhere(partner string, ok func(adminapi.ClusterShard) bool) someLeader {
	f.T.Helper()
	r := site.Must(f.Report(0))(f.T)
	for {
		aic := string(site.Must(identity.MakeV1(identity.FieldsV1{}))(f.T))
		if ok(r.Shards[logname.Shard(len(r.Shards), partner, aic)]) {
			return someLeader{aic, site.Issue(f.T, aic)}
		}
	}
}

// leaderOf returns a Leader whose tasks at a Partner a gateway owns.
func (f *faults) leaderOf(gateway int, partner string) someLeader {
	f.T.Helper()
	return f.leaderWhere(partner, func(s adminapi.ClusterShard) bool { return s.Owner == site.NodeOf(gateway) })
}

// at returns the Leader as a caller of a Partner at a gateway.
func (f *faults) at(gateway int, path string, l someLeader) *site.Caller {
	f.T.Helper()
	return site.CallerWith(f.T, f.Gateways[gateway].URL()+path, l.aic, l.pair)
}

// another waits until the tasks of a Leader at a Partner have another owner.
func (f *faults) another(than int, partner string, l someLeader) {
	f.T.Helper()
	began := time.Now()
	site.Eventually(f.T, "another gateway owns the shard", func() bool {
		r, err := f.Report((than + 1) % 3)
		if err != nil {
			return false
		}
		owner := r.Shards[logname.Shard(len(r.Shards), partner, l.aic)].Owner
		return owner != "" && owner != site.NodeOf(than)
	})
	f.T.Logf("after %v another gateway owned the shard", time.Since(began).Round(10*time.Millisecond))
}

// TestClusterFaults does harm to the gateways and the servers of a cluster while they work.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	f := newFaults(t)
	for _, harm := range []struct {
		name string
		run  func(*testing.T)
	}{

		{"a gateway dies", f.dies}, {"the leader of streams dies", f.losesLeader},
		{"a gateway is cut off", f.isCutOff}, {"a gateway stands still", f.standsStill},
		{"a Partner that the owner does not have", f.lacksPartner},
	} {
		began := time.Now()
		if !t.Run(harm.name, harm.run) {
			return
		}
		t.Logf("%s: %v", harm.name, time.Since(began).Round(time.Millisecond))
		f.AllOwned(3)
	}
}

// dies kills a gateway with a group, a turn, a webhook and a deadline, and with messages of which it is not known
// whether their agents have them.
func (f *faults) dies(t *testing.T) {
	b := site.SharedBroker(t)
	g := site.NewGroup(t, b, "several", site.Certificates(t).LeaderV1)
	victim := f.Owner(f.grouped.URL, g.AIC())
	next, other := (victim+1)%3, (victim+2)%3
	m := &site.Member{Site: f.Gateways[next], AIC: f.aic}
	joined := g.Join(m)
	if again := g.Join(&site.Member{Site: f.Gateways[other], AIC: f.aic}); *again != *joined {
		t.Errorf("an invitation is answered %+v, and at another gateway %+v", joined, again)
	}
	if got := site.ConnectionsOf(t, b, joined.ConnectionName); got != 1 {
		t.Errorf("there are %d connections to the broker", got)
	}

	working := f.leaderOf(victim, f.open.URL)
	f.at(next, "/open", working).Begin("turn", "slow 6")
	f.open.WaitForSent(t, "slow 6")
	sent, unsure := f.leaderOf(victim, f.again.URL), f.leaderOf(victim, f.never.URL)
	f.at(next, "/again", sent).Begin("again", "hello")
	f.again.WaitForSent(t, "hello")
	f.at(next, "/never", unsure).Begin("never", "hello")
	f.never.WaitForSent(t, "hello")
	var alive atomic.Bool
	up := site.NewSink(t)
	up.Answers(func(*site.Notice) site.Response {
		if alive.Load() {
			return site.Taken()
		}
		return site.Hangs()
	})
	f.at(next, "/open", working).SetHook(site.Hook{URL: up.Origin() + "/hooked", Token: "t", TaskID: "hooked"})
	f.at(next, "/open", working).Start("hooked", "echo hooked")
	site.Eventually(t, "the webhook is notified", func() bool { return len(up.Arrived("/hooked")) > 0 })

	g.Endures(m, 120, func(part string) {
		if part == "complete" {
			f.Gateways[victim].Start(f.configs[victim])
			return
		}
		late := site.StartCall("late", "echo late")
		late.Terms.AwaitingCompletion = 4 * time.Second
		f.at(next, "/open", working).Send(late)
		f.Gateways[victim].Kill()
		alive.Store(true)
		f.another(victim, f.open.URL, working)
	})
	told := make(map[string]int)
	for _, h := range f.grouped.Requests("") {
		if strings.HasPrefix(h.Method, "tasks/send") {
			told[h.Params.ID]++
		}
	}
	for id, n := range told {
		if n > 2 { // what was on its way at the kill is sent again: this agent does no work twice
			t.Errorf("the agent of the group was told to start %s %d times", id, n)
		}
	}

	at := f.at(other, "/open", working)
	if got := at.Rests("turn"); got.Status.State != task.AwaitingCompletion || f.open.Sent("slow 6") != 1 {
		t.Errorf("the turn is %s, and was sent to the agent %d times", got.Status.State, f.open.Sent("slow 6"))
	}
	site.Eventually(t, "the deadline has passed", func() bool { return at.Get("late").Status.State == task.Completed })
	site.CheckHistory(t, at.Get("late"))
	at.Complete("hooked")
	up.WaitForChanges("/hooked", at.Get("hooked").StatusHistory)
	up.InOrder("/hooked")
	if got := f.at(other, "/again", sent).Rests("again"); got.Status.State != task.AwaitingCompletion ||
		f.again.Sent("hello") != 2 {
		t.Errorf("what may be sent again is %s, and was sent %d times", got.Status.State, f.again.Sent("hello"))
	}
	if got := f.at(other, "/never", unsure).Rests("never"); got.Status.State != task.Failed || f.never.Sent("hello") != 1 {
		t.Errorf("what may not be sent again is %s, and was sent %d times", got.Status.State, f.never.Sent("hello"))
	}
}

// losesLeader kills the server that leads most streams. Calls wait for the next one, or are told to come again.
func (f *faults) losesLeader(t *testing.T) {
	leads := make(map[string]int)
	most := ""
	for _, s := range site.Must(f.Report(0))(t).Shards {
		if leads[s.Leader]++; leads[s.Leader] > leads[most] {
			most = s.Leader
		}
	}
	var leaders []someLeader
	for range 6 {
		leaders = append(leaders, f.leaderWhere(f.open.URL, func(s adminapi.ClusterShard) bool { return s.Leader == most }))
	}
	f.Servers.Named(most).Kill()
	began := time.Now()
	var calls sync.WaitGroup
	for i, l := range leaders {
		at := f.at(i%3, "/open", l)
		calls.Go(func() {
			if err := at.Insists(site.StartCall("elected", "echo "+l.aic)); err != nil {
				t.Errorf("a start without a leader of its stream: %v", site.Explain(err))
			}
			t.Logf("a start was answered after %v", time.Since(began).Round(10*time.Millisecond))
		})
	}
	calls.Wait()
	for _, l := range leaders {
		// Where an append took too long, the start is found to be stored, and the agent is asked before it is sent.
		f.open.WaitForSent(t, "echo "+l.aic)
		if n := f.open.Sent("echo " + l.aic); n != 1 {
			t.Errorf("a start was sent to the agent %d times", n)
		}
	}
	site.NoError(t, f.Servers.Named(most).Run(), f.Servers.Ready())
}

// isCutOff has a gateway reach no server, without its connections being closed.
func (f *faults) isCutOff(t *testing.T) {
	const cut = 1
	l := f.leaderOf(cut, f.open.URL)
	at, elsewhere := f.at(cut, "/open", l), f.at(2, "/open", l)
	at.Start("ended", "echo ended")
	at.Complete("ended")
	at.Start("rests", "echo rests")
	at.Begin("works", "slow 5")
	f.open.WaitForSent(t, "slow 5")
	for _, way := range f.ways[cut] {
		way.Mute(true)
		way.Deaf(true)
	}
	s := f.Gateways[cut]
	site.Eventually(t, "the gateway is unready", func() bool { return s.Health(t).Status == adminapi.Unready })
	f.another(cut, f.open.URL, l)
	if got := at.Get("ended"); got.Status.State != task.Completed {
		t.Errorf("a task that has ended is %s at the gateway that is cut off", got.Status.State)
	}
	var calls sync.WaitGroup
	for command, id := range map[string]string{"get": "rests", "cancel": "works", "start": "new", "complete": "rests"} {
		calls.Go(func() {
			text := ""
			if command == "start" {
				text = "echo new"
			}
			res, body := at.Post("/rpc", site.RPCBody(l.aic, command, id, text))
			if !strings.Contains(string(body), "STORE_UNAVAILABLE") || !strings.Contains(string(body), "-32603") ||
				res.Header.Get("Retry-After") == "" {
				t.Errorf("%s of %s is answered %s, Retry-After %q", command, id, body, res.Header.Get("Retry-After"))
			}
		})
	}
	if got := elsewhere.Complete("rests"); got.Status.State != task.Completed {
		t.Errorf("a task is %s elsewhere", got.Status.State)
	}
	if got := elsewhere.Rests("works"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("a task that was at work is %s elsewhere", got.Status.State)
	}
	calls.Wait()
	for _, way := range f.ways[cut] {
		way.Reset()
	}
	site.Eventually(t, "the gateway is ready", func() bool { return s.Health(t).Status == adminapi.Ready })
	for _, id := range []string{"rests", "works"} {
		site.CheckHistory(t, at.Get(id))
	}
	if got := at.Get("rests"); got.Status.State != task.Completed {
		t.Errorf("the task is %s where it was cut off", got.Status.State)
	}
	if a, b := f.open.Sent("slow 5"), f.open.Sent("echo new"); a != 1 || b != 0 {
		t.Errorf("the agent was sent %d and %d messages, want 1 and 0", a, b)
	}
}

// standsStill stops a gateway for three times its lease, as a machine that is suspended.
func (f *faults) standsStill(t *testing.T) {
	const still, lease = 2, 3 * time.Second
	l := f.leaderOf(still, f.open.URL)
	at, elsewhere := f.at(still, "/open", l), f.at(0, "/open", l)
	at.Begin("in flight", "slow 2")
	f.open.WaitForSent(t, "slow 2")
	process := f.Gateways[still].Cmd.Process
	site.NoError(t, process.Signal(syscall.SIGSTOP))
	defer process.Signal(syscall.SIGCONT)
	over := time.NewTimer(3 * lease)
	waits := make(chan error, 1)
	go func() { // its owner does not answer
		waits <- elsewhere.Insists(site.StartCall("waits", "echo waits"))
	}()
	f.another(still, f.open.URL, l)
	if got := elsewhere.Rests("in flight"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the task is %s", got.Status.State)
	}
	if err := <-waits; err != nil {
		t.Errorf("a call that waited for the gateway: %v", site.Explain(err))
	}
	<-over.C
	site.NoError(t, process.Signal(syscall.SIGCONT))
	site.NoError(t,
		elsewhere.Insists(site.CommandCall(task.Continue, "in flight", "echo more"))) // its shard may move back now
	f.AllOwned(3)
	for _, id := range []string{"in flight", "waits"} {
		got := at.Rests(id) // its shard moved back, and perhaps in the middle of the turn
		site.CheckHistory(t, got)
		if got.Status.State != task.AwaitingCompletion {
			t.Errorf("%s is %s where it stood still", id, got.Status.State)
		}
	}
	for _, text := range []string{"slow 2", "echo waits", "echo more"} {
		if n := f.open.Sent(text); n != 1 {
			t.Errorf("%q was sent to the agent %d times", text, n)
		}
	}
	if _, metrics := f.Gateways[still].Asked("GET", "/metrics", ""); strings.Contains(string(metrics),
		"\naip_cluster_lease_lapses_total 0\n") {
		t.Error("the gateway has not noticed that its lease had lapsed")
	}
}

// lacksPartner changes the configuration of one gateway after the other.
func (f *faults) lacksPartner(t *testing.T) {
	agent := site.NewFakeAgent(t, nil)
	change := func(i int) {
		f.configs[i].Handle = "aip_gateway /added* a2a/legacy " + agent.URL + f.configs[i].Handle
		if said := f.Gateways[i].Reload(f.configs[i]); said != "" {
			t.Errorf("a reload: %s", said)
		}
	}
	change(0)
	l := f.leaderOf(1, agent.URL)
	at := f.at(0, "/added", l)
	hurried := site.StartCall("hurried", "hello")
	hurried.Terms.Response = time.Second
	if got := at.Refused(hurried); got.Code != -32603 || !strings.Contains(string(got.Raw), site.NodeOf(1)) {
		t.Errorf("a call whose owner does not have the Partner: %s", got.Raw)
	}
	status, listed, stderr := f.Gateways[2].Caddy("aip", "cluster", "--address", f.Gateways[2].AdminAddress())
	has := make(map[string]bool)
	for line := range strings.Lines(listed) {
		name, _, _ := strings.Cut(line, " ")
		has[name] = has[name] || strings.Contains(line, agent.URL)
	}
	if status != 0 || !has[site.NodeOf(0)] || has[site.NodeOf(1)] {
		t.Errorf("caddy aip cluster prints %s%s", listed, stderr)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := at.Try(site.StartCall("waits", "hello"))
		waits <- err
	}()
	change(1)
	if err := <-waits; err != nil {
		t.Errorf("a call that waited for the Partner: %v", site.Explain(err))
	}
	change(2)
}
