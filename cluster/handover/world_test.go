// SPDX-License-Identifier: Apache-2.0

package handover_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/cluster/clustertest"
	"github.com/aip-gateway/aip-gateway/cluster/handover"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

const (
	partnerName = "P"
	shardCount  = 4
	lease       = 3 * time.Second
	patience    = 20 * time.Second // of calls waiting for memory
)

var quiet = slog.New(slog.DiscardHandler)

func init() { lockorder.Checked = true }

// world is two nodes before one agent.
type world struct {
	*testing.T
	*clustertest.World
	agent *worker
	nodes [2]*node
	text  string // of messages
}

// memory bounds the memory of one Leader at a node, in bytes.
const memory = 1 << 20

type node struct {
	w       *world
	state   gateway.Process
	link    *clustertest.Link
	cluster *cluster.Cluster
	tasks   *gateway.Tasks
	gateway *gateway.Gateway

	mu      sync.Mutex
	missing bool // the node has no such Partner
}

func inBubble(t *testing.T, f func(w *world)) {
	bubble.Test(t, func(t *testing.T) {
		w := &world{T: t, World: clustertest.New(shardCount), agent: &worker{tasks: make(map[string]*job)}, text: "hello"}
		for i := range w.nodes {
			w.nodes[i] = w.start(fmt.Sprintf("node-%d", i))
		}
		bubble.Pass(20 * time.Second)
		f(w)
	})
}

func (w *world) start(name string) *node {
	n := &node{w: w, link: w.Link()}
	var err error
	n.cluster, err = cluster.Open(cluster.Config{Name: name, Streams: n.link, Registry: n.link, Network: n.link,
		Lease: lease, Log: quiet, Busy: n.busy, Clock: func() time.Duration { return time.Duration(time.Now().UnixNano()) }})
	if err == nil {
		err = n.cluster.Joined(w.Context())
	}
	if err != nil {
		w.Fatal(err)
	}
	tasks, err := gateway.OpenTasks(shard.Join(n.cluster, quiet), nil, quiet)
	if err != nil {
		w.Fatal(err)
	}
	n.mu.Lock()
	n.tasks = tasks
	n.mu.Unlock()
	n.tasks.Configure(notify.Config{Dialects: gateway.Wire})
	n.tasks.HandOver(handover.New(n.cluster, n.find))
	n.gateway, err = gateway.New(gateway.Config{
		Process: &n.state, Callers: []translate.Server{aip.Server()}, Guard: new(identity.Guard),
		Partner: partner.Config{Name: partnerName, Agent: w.agent, MaxEvents: 1000, MaxBytes: 1 << 20, MaxTasks: 4,
			Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour}},
		Limits: jsonrpc.Limits{Bytes: 256 << 10, Depth: 16},
		Memory: limit.Limits{Total: 4 * memory, PerLeader: memory}, MemoryPatience: patience,
		Streaming: gateway.Streaming{Max: 1000, MaxPerLeader: 1000, Drain: w.Context()},
		Log:       quiet,
	})
	if err != nil {
		w.Fatal(err)
	}
	n.gateway.Register(n.tasks)
	return n
}

func (n *node) find(name string) *gateway.Gateway {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name != partnerName || n.missing {
		return nil
	}
	return n.gateway
}

func (n *node) busy(shard int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tasks == nil {
		return ""
	}
	return n.tasks.Stays(shard)
}

func (n *node) setMissing(missing bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.missing = missing
}

// leader returns a Leader, but for some, with its shard owned by a node.
func (w *world) leader(of *node, not ...string) string {
	for i := range 1000 {
		name := fmt.Sprintf("leader-%d", i)
		if slices.Contains(not, name) {
			continue
		}
		if w.Owner(logname.Shard(shardCount, partnerName, peerOf(name).Leader())).Node == of.cluster.Name() {
			return name
		}
	}
	w.Fatal("the node owns nothing")
	return ""
}

// end ends a node as SIGTERM does.
func (n *node) end() {
	n.gateway.Unregister()
	if err := n.tasks.Close(); err != nil {
		n.w.Error(err)
	}
	n.cluster.Close()
	n.gateway.Close()
}

// die ends a node without a word.
func (n *node) die() {
	n.link.Kill()
	go func() {
		n.tasks.Close() // it cannot release
		n.cluster.Close()
		n.gateway.Close()
	}()
}

func (w *world) end(nodes ...*node) {
	w.Helper()
	for _, n := range nodes {
		n.end()
		if held := n.state.Streams.Total() + n.state.Memory.Total(); held != 0 {
			w.Errorf("%d streams and bytes of memory are still counted", held)
		}
	}
}

// reply is the answer to a call.
type reply struct {
	Result struct {
		ID     string
		Status struct{ State task.State }
	}
	Error *struct {
		Code    int
		Message string
		Data    struct{ Reason, Node, Limit string }
	}
}

// send sends a command to the node. extra follows the message among the members of params.
func (n *node) send(ctx context.Context, leader, command, taskID, message, extra string) (r reply, body []byte) {
	n.w.Helper()
	var in gateway.Request
	defer in.Release()
	if !n.gateway.Match(&in, "POST", "") {
		n.w.Fatal("no dialect has the request")
	}
	in.Body = gateway.NewBody()
	*in.Body = fmt.Appendf(*in.Body, `{"jsonrpc":"2.0","id":1,"method":"rpc","params":{"message":{"type":"message",`+
		`"id":%q,"senderRole":"leader","senderId":%q,"command":%q,"taskId":%q,"dataItems":[{"type":"text",`+
		`"text":%q}]%s}}}`, message, leader, command, taskID, n.w.text, extra)
	a := n.gateway.Dispatch(ctx, peerOf(leader), &in)
	if err := json.Unmarshal(a.Reply, &r); err != nil {
		n.w.Errorf("%q: %v", a.Reply, err)
	}
	return r, append([]byte(nil), a.Reply...)
}

func peerOf(leader string) identity.Peer {
	return identity.Peer{Proof: identity.ByBroker, Kind: "test", ID: leader}
}

// worker is an agent. It works on a message until it is released.
type worker struct {
	mu    sync.Mutex
	tasks map[string]*job // by task and message
	slow  bool

	forgets bool // it cannot resume a turn
}

// find returns a copy of a job.
func (a *worker) find(key string) job {
	a.mu.Lock()
	defer a.mu.Unlock()
	return *a.tasks[key]
}

type job struct {
	sent    int // number of times
	resumed int
	done    chan struct{}
}

// CanResume implements partner.Resumer.
func (a *worker) CanResume() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.forgets
}

// setSlow has the agent work until it is released.
func (a *worker) setSlow() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slow = true
}

// of returns the job of a turn.
func (a *worker) of(t *agent.Turn, sent, resumed int) *job {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := t.Message.TaskID + " " + t.Message.ID
	j := a.tasks[key]
	if j == nil {
		j = &job{done: make(chan struct{})}
		a.tasks[key] = j
		if !a.slow {
			close(j.done)
		}
	}
	j.sent += sent
	j.resumed += resumed
	return j
}

// Run implements partner.Agent.
func (a *worker) Run(ctx context.Context, t *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return a.work(ctx, t, 1, 0)
}

// Resume implements partner.Agent.
func (a *worker) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return a.work(ctx, t, 0, 1)
}

func (a *worker) work(ctx context.Context, t *agent.Turn, sent, resumed int) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		if t.MayAct(ctx) != nil {
			return
		}
		j := a.of(t, sent, resumed)
		if !yield(agent.Report{State: task.Working, Revision: "working " + t.Message.ID}, nil) {
			return
		}
		select {
		case <-j.done:
			yield(agent.Report{State: task.AwaitingCompletion, Revision: "ended " + t.Message.ID, Full: true,
				Products: []task.Product{{ID: "p", DataItems: []task.DataItem{task.Text(t.Message.ID)}}}}, nil)
		case <-ctx.Done():
		}
	}
}

// Cancel implements partner.Agent.
func (a *worker) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	return agent.Report{State: task.Canceled}, nil
}

// Complete implements partner.Agent.
func (*worker) Complete(context.Context, *agent.Turn) error { return nil }
