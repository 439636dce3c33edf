// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

func init() { lockorder.Checked = true }

const (
	partnerName = "P"
	shardCount  = 8
	maxTasks    = 4 // unfinished ones of a Leader
)

// world is two processes over the same shards, before the same agent.
type world struct {
	*testing.T
	shards    *replaytest.Shards
	agent     *worker
	receiver  *receiver
	processes [2]*process
}

// process is the state of one process.
type process struct {
	state   gateway.Process
	node    *replaytest.Node
	tasks   *gateway.Tasks
	gateway *gateway.Gateway
	guard   identity.Guard
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, shards: replaytest.NewShards(shardCount), agent: newWorker(), receiver: newReceiver()}
	for i := range w.processes {
		w.processes[i] = w.newProcess()
	}
	for i, p := range w.processes {
		p.tasks.HandOver(owner{w.processes[1-i]})
		p.gateway.Register(p.tasks)
	}
	return w
}

func (w *world) newProcess() *process {
	p := &process{node: w.shards.Node()}
	var err error
	if p.tasks, err = gateway.OpenTasks(shard.Join(p.node, quiet), nil, quiet); err != nil {
		w.Fatal(err)
	}
	p.tasks.Configure(notify.Config{Dialects: gateway.Wire,
		Egress: &egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}})
	p.gateway, err = gateway.New(gateway.Config{
		Process: &p.state, Callers: []translate.Server{aip.Server()}, Guard: &p.guard,
		Partner: partner.Config{Name: partnerName, Agent: hand{w.agent, p.node}, MaxEvents: 1000, MaxBytes: 1 << 20,
			MaxTasks: maxTasks,
			Terms:    task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour}},
		Limits:    jsonrpc.Limits{Bytes: 16 << 10, Depth: 16},
		Memory:    limit.Limits{Total: 1 << 20, PerLeader: 1 << 20},
		Streaming: gateway.Streaming{Max: 1000, MaxPerLeader: 1000, Drain: w.Context()},
		Log:       quiet,
	})
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// owner is the other process; calls are handed to it.
type owner struct{ *process }

func (o owner) Execute(
	ctx context.Context, _ int, _ string, c *gateway.Call, reserve replay.Reserve,
) (gateway.Result, error) {
	return o.gateway.ExecuteHere(ctx, c, reserve)
}

func (w *world) close() {
	defer w.receiver.Close()
	for _, p := range w.processes {
		p.gateway.Unregister()
		if err := p.tasks.Close(); err != nil {
			w.Error(err)
		}
		p.gateway.Close()
		if n := p.state.Streams.Total() + p.state.Memory.Total(); n != 0 {
			w.Errorf("%d streams and bytes of memory are still counted", n)
		}
	}
}

// reply is the answer to a call.
type reply struct {
	Result struct {
		ID     string
		Status struct {
			State     task.State
			DataItems []struct{ Text string }
		}
	}
	Error *struct {
		Code    int
		Message string
		Data    struct{ Reason, Limit string }
	}
}

// send sends a command to the process.
func (p *process) send(
	ctx context.Context, leader, method, command, taskID, message string,
) (reply, *gateway.Stream, error) {
	return p.post(ctx, leader, method, fmt.Sprintf(`{"message":{"type":"message","id":%q,`+
		`"senderRole":"leader","senderId":%q,"command":%q,"taskId":%q,"dataItems":[{"type":"text","text":"hello"}]}}`,
		message, leader, command, taskID))
}

// post sends a request of a Leader to the process.
func (p *process) post(
	ctx context.Context, leader, method, params string,
) (r reply, s *gateway.Stream, err error) {
	var in gateway.Request
	defer in.Release()
	if !p.gateway.Match(&in, "POST", "") {
		return r, nil, fmt.Errorf("no dialect has the request")
	}
	in.Body = gateway.NewBody()
	*in.Body = fmt.Appendf(*in.Body, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
	a := p.gateway.Dispatch(ctx, peerOf(leader), &in)
	if a.Reply != nil {
		err = json.Unmarshal(a.Reply, &r)
	}
	return r, a.Stream, err
}

// peerOf returns the peer of a Leader.
func peerOf(leader string) identity.Peer {
	return identity.Peer{Proof: identity.ByBroker, Kind: "test", ID: leader}
}

// shardOf returns the shard of a Leader, by its name in logs.
func shardOf(name string) int { return logname.Shard(shardCount, partnerName, name) }

// receiver is sent webhooks.
type receiver struct {
	*httptest.Server

	mu   sync.Mutex
	ids  map[string]bool
	got  map[string][]task.State // by the token of the webhook: each notification once
	more map[string]int          // repeated notifications
}

func newReceiver() *receiver {
	r := &receiver{ids: make(map[string]bool), got: make(map[string][]task.State), more: make(map[string]int)}
	r.Server = httptest.NewServer(r)
	return r
}

func (r *receiver) ServeHTTP(_ http.ResponseWriter, in *http.Request) {
	var body struct{ Status struct{ State task.State } }
	err := json.NewDecoder(in.Body).Decode(&body)
	r.mu.Lock()
	defer r.mu.Unlock()
	id, token := in.Header.Get("webhook-id"), in.Header.Get("X-ACPS-AIP-Notification-Token")
	if r.ids[id] || err != nil {
		r.more[token]++
		return
	}
	r.ids[id] = true
	r.got[token] = append(r.got[token], body.Status.State)
}

// states returns the states a webhook was notified of.
func (r *receiver) states(token string) []task.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got[token])
}

// worker is an agent. It keeps its messages, so a turn can be resumed after the loss of its connection.
type worker struct {
	mu    sync.Mutex
	tasks map[string]map[string]*job // by task and message
	twice int                        // repeated messages
	asked int                        // number of times it was asked for a message it has
	slow  bool                       // it works until the task is canceled
}

func newWorker() *worker { return &worker{tasks: make(map[string]map[string]*job)} }

// job is the work of the worker for one message.
type job struct {
	ended chan struct{}
	once  sync.Once
	state task.State // when it has ended
}

func (j *job) end(s task.State) {
	j.once.Do(func() {
		j.state = s
		close(j.ended)
	})
}

// begin begins the job of a message.
func (a *worker) begin(taskID, message string) *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	jobs := a.tasks[taskID]
	if jobs == nil {
		jobs = make(map[string]*job)
		a.tasks[taskID] = jobs
	}
	if jobs[message] != nil {
		a.twice++
		return jobs[message]
	}
	j := &job{ended: make(chan struct{})}
	jobs[message] = j
	if a.slow {
		return j
	}
	time.AfterFunc(time.Duration(len(jobs))*7*time.Millisecond, func() { j.end(task.AwaitingCompletion) })
	return j
}

// find returns the job of a message; nil for none.
func (a *worker) find(taskID, message string) *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	j := a.tasks[taskID][message]
	if j != nil {
		a.asked++
	}
	return j
}

// hand is the worker as one process asks it. It sends a message only while the process owns the shard.
type hand struct {
	*worker
	node *replaytest.Node
}

// Run implements partner.Agent.
func (h hand) Run(ctx context.Context, t *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		var j *job
		if !h.node.Act(shardOf(t.Leader), func() { j = h.begin(t.Ref.Task, t.Message.ID) }) {
			<-ctx.Done()
			return
		}
		if yield(agent.Report{State: task.Working, Revision: "working " + t.Message.ID}, nil) {
			j.follow(ctx, t, yield)
		}
	}
}

// Resume implements partner.Agent. A start without any report of the worker is sent again if the worker does not have
// it: a shard may move twice before a message is sent. A continue is taken with the question for it.
func (h hand) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		j := h.find(t.Ref.Task, t.Message.ID)
		if j == nil && t.Message.Command == task.Start {
			kind := task.TaskNotFound
			if t.Unreported {
				kind = task.AgentUnavailable
			}
			yield(agent.Report{}, task.Errorf(kind, "the worker does not have the message"))
			return
		}
		if j == nil && !h.node.Act(shardOf(t.Leader), func() { j = h.begin(t.Ref.Task, t.Message.ID) }) {
			<-ctx.Done()
			return
		}
		j.follow(ctx, t, yield)
	}
}

// follow yields the end of the job.
func (j *job) follow(ctx context.Context, t *agent.Turn, yield func(agent.Report, error) bool) {
	select {
	case <-j.ended:
		yield(agent.Report{State: j.state, Revision: "ended " + t.Message.ID, Full: true,
			Products: []task.Product{{ID: "p", DataItems: []task.DataItem{task.Text(t.Message.ID)}}}}, nil)
	case <-ctx.Done():
	}
}

// Cancel implements partner.Agent.
func (h hand) Cancel(_ context.Context, t *agent.Turn) (agent.Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, j := range h.tasks[t.Ref.Task] {
		j.end(task.Canceled)
	}
	return agent.Report{State: task.Canceled}, nil
}

// Complete implements partner.Agent.
func (hand) Complete(context.Context, *agent.Turn) error { return nil }
