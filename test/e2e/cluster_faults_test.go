// SPDX-License-Identifier: Apache-2.0

package e2e

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

	"github.com/aip-gateway/aip-gateway/cli/leader"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// faults is a cluster to which harm is done, one thing after the other. Each gateway reaches the servers by proxies of
// its own.
type faults struct {
	*cluster
	ways    [3][]*natstest.Proxy
	configs [3]config
	aic     string     // of the Partner that takes part in groups
	grouped *fakeAgent // its agent
	open    *fakeAgent // the agents of the Partners /open, /again and /never
	again   *fakeAgent // forgets the first message
	never   *fakeAgent // likewise
}

// forgetful returns an agent that never answers its first message, and does not know its task later.
func forgetful(t testing.TB) *fakeAgent {
	var told atomic.Int32
	return newFakeAgent(t, func(w http.ResponseWriter, r *http.Request, h heard) {
		switch {
		case !strings.HasPrefix(h.Method, "tasks/send"):
			writeError(w, h, -32001, "Task not found")
		case told.Add(1) == 1:
			<-r.Context().Done()
		default:
			writeTask(w, h, "completed", "done")
		}
	})
}

func newFaults(t *testing.T) *faults {
	t.Helper()
	_, address := sampleAgent(t)
	servers, err := natstest.Start(3, natstest.Config{Hidden: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	f := &faults{cluster: &cluster{t: t, servers: servers}, aic: string(must(identity.MakeV1(identity.FieldsV1{}))(t)),
		grouped: newFakeAgent(t, forward(address)), open: newFakeAgent(t, forward(address)),
		again: forgetful(t), never: forgetful(t)}
	for i := range 3 {
		c := f.config(i, fmt.Sprintf(`
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
	}`, f.open.url, f.again.url, f.never.url, f.grouped.url, f.aic, tokenKey), "")
		c.notify = here
		for _, s := range servers.Servers {
			way := must(natstest.NewProxy(s))(t)
			t.Cleanup(way.Close)
			f.ways[i] = append(f.ways[i], way)
			c.store = strings.Replace(c.store, s.URL(), way.URL(), 1)
		}
		f.configs[i] = c
		s := newSite(t)
		f.gateways = append(f.gateways, s)
		s.start(c)
	}
	f.allOwned(3)
	return f
}

// someLeader is a Leader with a certificate of its own.
type someLeader struct {
	aic  string
	pair tls.Certificate
}

// leaderWhere returns a Leader whose tasks at a Partner are in a shard that ok accepts.
func (f *faults) leaderWhere(partner string, ok func(adminapi.ClusterShard) bool) someLeader {
	f.t.Helper()
	r := must(f.report(0))(f.t)
	for {
		aic := string(must(identity.MakeV1(identity.FieldsV1{}))(f.t))
		if ok(r.Shards[logname.Shard(len(r.Shards), partner, aic)]) {
			return someLeader{aic, issue(f.t, aic)}
		}
	}
}

// leaderOf returns a Leader whose tasks at a Partner a gateway owns.
func (f *faults) leaderOf(gateway int, partner string) someLeader {
	f.t.Helper()
	return f.leaderWhere(partner, func(s adminapi.ClusterShard) bool { return s.Owner == nodeOf(gateway) })
}

// at returns the Leader as a caller of a Partner at a gateway.
func (f *faults) at(gateway int, path string, l someLeader) *caller {
	f.t.Helper()
	return callerWith(f.t, f.gateways[gateway].url()+path, l.aic, l.pair)
}

// begin starts a task without waiting for its agent.
func (c *caller) begin(id, text string) {
	c.t.Helper()
	call := startCall(id, text)
	call.Terms.Response = time.Millisecond
	c.do(call)
}

// insists sends a command, and again where the shard had no owner that can write for as long as a call waits.
func (c *caller) insists(call *task.Call) error {
	call.Message.ID = leader.NewID("msg")
	for giveUp := time.Now().Add(patience); ; {
		_, err := c.try(call)
		if err == nil || !strings.Contains(explain(err).Error(), "STORE_UNAVAILABLE") || time.Now().After(giveUp) {
			return err
		}
	}
}

// sent returns how often an agent was sent a message with a text.
func (a *fakeAgent) sent(text string) (n int) {
	for _, h := range a.requests("") {
		if strings.HasPrefix(h.Method, "tasks/send") && len(h.Params.Message.Parts) > 0 &&
			h.Params.Message.Parts[0].Text == text {
			n++
		}
	}
	return n
}

// waitForSent waits until an agent was sent a message with a text.
func (a *fakeAgent) waitForSent(t testing.TB, text string) {
	t.Helper()
	eventually(t, "the agent is sent "+text, func() bool { return a.sent(text) > 0 })
}

// another waits until the tasks of a Leader at a Partner have another owner.
func (f *faults) another(than int, partner string, l someLeader) {
	f.t.Helper()
	began := time.Now()
	eventually(f.t, "another gateway owns the shard", func() bool {
		r, err := f.report((than + 1) % 3)
		if err != nil {
			return false
		}
		owner := r.Shards[logname.Shard(len(r.Shards), partner, l.aic)].Owner
		return owner != "" && owner != nodeOf(than)
	})
	f.t.Logf("after %v another gateway owned the shard", time.Since(began).Round(10*time.Millisecond))
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
		f.allOwned(3)
	}
}

// dies kills a gateway with a group, a turn, a webhook and a deadline, and with messages of which it is not known
// whether their agents have them.
func (f *faults) dies(t *testing.T) {
	b := sharedBroker(t)
	g := newGroup(t, b, "several", certificates(t).LeaderV1)
	victim := f.owner(f.grouped.url, g.aic())
	next, other := (victim+1)%3, (victim+2)%3
	m := &member{site: f.gateways[next], aic: f.aic}
	joined := g.join(m)
	if again := g.join(&member{site: f.gateways[other], aic: f.aic}); *again != *joined {
		t.Errorf("an invitation is answered %+v, and at another gateway %+v", joined, again)
	}
	if got := connectionsOf(t, b, joined.ConnectionName); got != 1 {
		t.Errorf("there are %d connections to the broker", got)
	}

	working := f.leaderOf(victim, f.open.url)
	f.at(next, "/open", working).begin("turn", "slow 6")
	f.open.waitForSent(t, "slow 6")
	sent, unsure := f.leaderOf(victim, f.again.url), f.leaderOf(victim, f.never.url)
	f.at(next, "/again", sent).begin("again", "hello")
	f.again.waitForSent(t, "hello")
	f.at(next, "/never", unsure).begin("never", "hello")
	f.never.waitForSent(t, "hello")
	var alive atomic.Bool
	up := newSink(t)
	up.answers(func(*notice) response {
		if alive.Load() {
			return taken()
		}
		return hangs()
	})
	f.at(next, "/open", working).setHook(hook{URL: up.origin() + "/hooked", Token: "t", TaskID: "hooked"})
	f.at(next, "/open", working).start("hooked", "echo hooked")
	eventually(t, "the webhook is notified", func() bool { return len(up.arrived("/hooked")) > 0 })

	g.endures(m, 120, func(part string) {
		if part == "complete" {
			f.gateways[victim].start(f.configs[victim])
			return
		}
		late := startCall("late", "echo late")
		late.Terms.AwaitingCompletion = 4 * time.Second
		f.at(next, "/open", working).do(late)
		f.gateways[victim].kill()
		alive.Store(true)
		f.another(victim, f.open.url, working)
	})
	told := make(map[string]int)
	for _, h := range f.grouped.requests("") {
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
	if got := at.rests("turn"); got.Status.State != task.AwaitingCompletion || f.open.sent("slow 6") != 1 {
		t.Errorf("the turn is %s, and was sent to the agent %d times", got.Status.State, f.open.sent("slow 6"))
	}
	eventually(t, "the deadline has passed", func() bool { return at.get("late").Status.State == task.Completed })
	checkHistory(t, at.get("late"))
	at.complete("hooked")
	up.waitForChanges("/hooked", at.get("hooked").StatusHistory)
	up.inOrder("/hooked")
	if got := f.at(other, "/again", sent).rests("again"); got.Status.State != task.AwaitingCompletion ||
		f.again.sent("hello") != 2 {
		t.Errorf("what may be sent again is %s, and was sent %d times", got.Status.State, f.again.sent("hello"))
	}
	if got := f.at(other, "/never", unsure).rests("never"); got.Status.State != task.Failed || f.never.sent("hello") != 1 {
		t.Errorf("what may not be sent again is %s, and was sent %d times", got.Status.State, f.never.sent("hello"))
	}
}

// losesLeader kills the server that leads most streams. Calls wait for the next one, or are told to come again.
func (f *faults) losesLeader(t *testing.T) {
	leads := make(map[string]int)
	most := ""
	for _, s := range must(f.report(0))(t).Shards {
		if leads[s.Leader]++; leads[s.Leader] > leads[most] {
			most = s.Leader
		}
	}
	var leaders []someLeader
	for range 6 {
		leaders = append(leaders, f.leaderWhere(f.open.url, func(s adminapi.ClusterShard) bool { return s.Leader == most }))
	}
	f.servers.Named(most).Kill()
	began := time.Now()
	var calls sync.WaitGroup
	for i, l := range leaders {
		at := f.at(i%3, "/open", l)
		calls.Go(func() {
			if err := at.insists(startCall("elected", "echo "+l.aic)); err != nil {
				t.Errorf("a start without a leader of its stream: %v", explain(err))
			}
			t.Logf("a start was answered after %v", time.Since(began).Round(10*time.Millisecond))
		})
	}
	calls.Wait()
	for _, l := range leaders {
		// Where an append took too long, the start is found to be stored, and the agent is asked before it is sent.
		f.open.waitForSent(t, "echo "+l.aic)
		if n := f.open.sent("echo " + l.aic); n != 1 {
			t.Errorf("a start was sent to the agent %d times", n)
		}
	}
	noError(t, f.servers.Named(most).Run(), f.servers.Ready())
}

// isCutOff has a gateway reach no server, without its connections being closed.
func (f *faults) isCutOff(t *testing.T) {
	const cut = 1
	l := f.leaderOf(cut, f.open.url)
	at, elsewhere := f.at(cut, "/open", l), f.at(2, "/open", l)
	at.start("ended", "echo ended")
	at.complete("ended")
	at.start("rests", "echo rests")
	at.begin("works", "slow 5")
	f.open.waitForSent(t, "slow 5")
	for _, way := range f.ways[cut] {
		way.Mute(true)
		way.Deaf(true)
	}
	s := f.gateways[cut]
	eventually(t, "the gateway is unready", func() bool { return s.health(t).Status == adminapi.Unready })
	f.another(cut, f.open.url, l)
	if got := at.get("ended"); got.Status.State != task.Completed {
		t.Errorf("a task that has ended is %s at the gateway that is cut off", got.Status.State)
	}
	var calls sync.WaitGroup
	for command, id := range map[string]string{"get": "rests", "cancel": "works", "start": "new", "complete": "rests"} {
		calls.Go(func() {
			text := ""
			if command == "start" {
				text = "echo new"
			}
			res, body := at.post("/rpc", rpcBody(l.aic, command, id, text))
			if !strings.Contains(string(body), "STORE_UNAVAILABLE") || !strings.Contains(string(body), "-32603") ||
				res.Header.Get("Retry-After") == "" {
				t.Errorf("%s of %s is answered %s, Retry-After %q", command, id, body, res.Header.Get("Retry-After"))
			}
		})
	}
	if got := elsewhere.complete("rests"); got.Status.State != task.Completed {
		t.Errorf("a task is %s elsewhere", got.Status.State)
	}
	if got := elsewhere.rests("works"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("a task that was at work is %s elsewhere", got.Status.State)
	}
	calls.Wait()
	for _, way := range f.ways[cut] {
		way.Reset()
	}
	eventually(t, "the gateway is ready", func() bool { return s.health(t).Status == adminapi.Ready })
	for _, id := range []string{"rests", "works"} {
		checkHistory(t, at.get(id))
	}
	if got := at.get("rests"); got.Status.State != task.Completed {
		t.Errorf("the task is %s where it was cut off", got.Status.State)
	}
	if a, b := f.open.sent("slow 5"), f.open.sent("echo new"); a != 1 || b != 0 {
		t.Errorf("the agent was sent %d and %d messages, want 1 and 0", a, b)
	}
}

// standsStill stops a gateway for three times its lease, as a machine that is suspended.
func (f *faults) standsStill(t *testing.T) {
	const still, lease = 2, 3 * time.Second
	l := f.leaderOf(still, f.open.url)
	at, elsewhere := f.at(still, "/open", l), f.at(0, "/open", l)
	at.begin("in flight", "slow 2")
	f.open.waitForSent(t, "slow 2")
	process := f.gateways[still].cmd.Process
	noError(t, process.Signal(syscall.SIGSTOP))
	defer process.Signal(syscall.SIGCONT)
	over := time.NewTimer(3 * lease)
	waits := make(chan error, 1)
	go func() { // its owner does not answer
		waits <- elsewhere.insists(startCall("waits", "echo waits"))
	}()
	f.another(still, f.open.url, l)
	if got := elsewhere.rests("in flight"); got.Status.State != task.AwaitingCompletion {
		t.Errorf("the task is %s", got.Status.State)
	}
	if err := <-waits; err != nil {
		t.Errorf("a call that waited for the gateway: %v", explain(err))
	}
	<-over.C
	noError(t, process.Signal(syscall.SIGCONT))
	noError(t, elsewhere.insists(commandCall(task.Continue, "in flight", "echo more"))) // its shard may move back now
	f.allOwned(3)
	for _, id := range []string{"in flight", "waits"} {
		got := at.rests(id) // its shard moved back, and perhaps in the middle of the turn
		checkHistory(t, got)
		if got.Status.State != task.AwaitingCompletion {
			t.Errorf("%s is %s where it stood still", id, got.Status.State)
		}
	}
	for _, text := range []string{"slow 2", "echo waits", "echo more"} {
		if n := f.open.sent(text); n != 1 {
			t.Errorf("%q was sent to the agent %d times", text, n)
		}
	}
	if _, metrics := f.gateways[still].asked("GET", "/metrics", ""); strings.Contains(string(metrics),
		"\naip_cluster_lease_lapses_total 0\n") {
		t.Error("the gateway has not noticed that its lease had lapsed")
	}
}

// lacksPartner changes the configuration of one gateway after the other.
func (f *faults) lacksPartner(t *testing.T) {
	agent := newFakeAgent(t, nil)
	change := func(i int) {
		f.configs[i].handle = "aip_gateway /added* a2a/legacy " + agent.url + f.configs[i].handle
		if said := f.gateways[i].reload(f.configs[i]); said != "" {
			t.Errorf("a reload: %s", said)
		}
	}
	change(0)
	l := f.leaderOf(1, agent.url)
	at := f.at(0, "/added", l)
	hurried := startCall("hurried", "hello")
	hurried.Terms.Response = time.Second
	if got := at.refused(hurried); got.Code != -32603 || !strings.Contains(string(got.Raw), nodeOf(1)) {
		t.Errorf("a call whose owner does not have the Partner: %s", got.Raw)
	}
	status, listed, stderr := f.gateways[2].caddy("aip", "cluster", "--address",
		strings.TrimPrefix(f.gateways[2].adminURL(), "http://"))
	has := make(map[string]bool)
	for line := range strings.Lines(listed) {
		name, _, _ := strings.Cut(line, " ")
		has[name] = has[name] || strings.Contains(line, agent.url)
	}
	if status != 0 || !has[nodeOf(0)] || has[nodeOf(1)] {
		t.Errorf("caddy aip cluster prints %s%s", listed, stderr)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := at.try(startCall("waits", "hello"))
		waits <- err
	}()
	change(1)
	if err := <-waits; err != nil {
		t.Errorf("a call that waited for the Partner: %v", explain(err))
	}
	change(2)
}
