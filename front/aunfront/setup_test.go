// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/auntest"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/internal/lockorder"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/replaytest"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
)

func init() { lockorder.Checked = true }

// scripted is an agent with turns played by a test: it yields the reports sent to the channel of its task.
type scripted struct {
	partner.Agent
	mu    sync.Mutex
	turns map[string]chan agent.Report
	refs  []string // the names of the begun tasks
}

func (a *scripted) turn(id string) chan agent.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turns[id] == nil {
		a.turns[id] = make(chan agent.Report, 1000)
	}
	return a.turns[id]
}

func (a *scripted) Run(ctx context.Context, t *agent.Turn, _ bool) iter.Seq2[agent.Report, error] {
	return func(yield func(agent.Report, error) bool) {
		a.mu.Lock()
		a.refs = append(a.refs, t.Ref.Task)
		a.mu.Unlock()
		for {
			select {
			case rep := <-a.turn(t.Message.TaskID):
				if !yield(rep, nil) || rep.EndsTurn() {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (a *scripted) Resume(ctx context.Context, t *agent.Turn) iter.Seq2[agent.Report, error] {
	return a.Run(ctx, t, true)
}

func (a *scripted) Cancel(context.Context, *agent.Turn) (agent.Report, error) {
	return agent.Report{State: task.Canceled}, nil
}

func (a *scripted) Complete(context.Context, *agent.Turn) error { return nil }

const (
	host       = "gateway.aid.test"
	reviewer   = "reviewer.aid.test"
	translator = "translator.aid.test"
)

// world is a front with two agents, in a network in memory.
type world struct {
	t       *testing.T
	pki     *auntest.PKI
	own     *aun.Identity // of the gateway
	net     *auntest.Network
	store   replay.Store
	agent   *scripted
	front   *Front
	drain   context.CancelFunc
	process *gateway.Process
	open    *Connections
	stop    func()
	config  Config // of the next start
	host    string
	node    *replaytest.Node // of the shards; nil for a store of its own
	other   *world           // the owner of the other shards; nil for none
	works   Assignees        // of this process

	agents   func() []Agent              // makes agents over the same store, with the policy as it is
	gateways map[string]*gateway.Gateway // by the AID of their agents

	maxTasks int          // of a Leader; 0 for 1000
	memory   limit.Limits // zero for 64 MiB
	streams  int          // of a Leader; 0 for 1000
	policy   gateway.Policy
	allow    []identity.AIC // the Leaders with the right to call the reviewer; empty for all
	worker   string         // the AID of both agents' connections; empty if they do not connect
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, pki: auntest.NewPKI(t), net: auntest.NewNetwork(t), store: replay.NewMemory(replay.Settings{}),
		agent: &scripted{turns: make(map[string]chan agent.Report)}, process: new(gateway.Process), open: new(Connections),
		host: host}
	w.own = w.pki.Identity(host)
	w.start()
	t.Cleanup(func() {
		w.stop()
		_ = w.store.Close()
	})
	return w
}

// keeps is a store outliving its tasks.
type keeps struct{ replay.Store }

func (keeps) Close() error { return nil }

// start starts the front, with the store as it is.
func (w *world) start() {
	t := w.t
	log := slog.New(slog.DiscardHandler)
	authority, err := aun.NewAuthority(aun.AuthorityConfig{Identity: w.own, Roots: w.pki.Roots()})
	if err != nil {
		t.Fatal(err)
	}
	set, indexed := shard.One(keeps{w.store}), shard.One(w.store)
	if w.node != nil {
		set = shard.Join(w.node, log)
		indexed = set
	}
	tasks, err := gateway.OpenTasks(set, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, drain := context.WithCancel(context.Background())
	w.drain = drain
	index := OpenIndex(indexed, log)
	unshare := w.open.Share(set, log)
	tasks.Process().AddAcceptor(index)
	c := w.config
	c.Authority, c.Identity, c.Roots = authority, w.own, w.pki.Roots()
	c.Identities = cmp.Or(c.Identities, new(identity.Identities))
	c.Index, c.Connections, c.Drain, c.Log = index, w.open, ctx, cmp.Or(c.Log, log)
	c.Begin = func() func() { return func() {} }
	memory := cmp.Or(w.memory, limit.Limits{Total: 64 << 20, PerLeader: 64 << 20})
	if c.Memory.Counter == nil {
		c.Memory = limit.Budget{Counter: &w.process.Memory, Limits: memory}
	}
	if w.node != nil {
		tasks.HandOver(w)
		c.Assignees = ShareAssignees(set, w.works)
	}
	w.gateways = make(map[string]*gateway.Gateway)
	var gateways []*gateway.Gateway
	w.agents = func() (agents []Agent) {
		for _, aid := range []string{reviewer, translator} {
			guard := new(identity.Guard)
			if aid == reviewer {
				guard.Allow = w.allow
			}
			g, err := gateway.New(gateway.Config{
				Process: w.process, Guard: guard, Policy: w.policy,
				Partner: partner.Config{
					Name: aid, Agent: w.agent, MaxEvents: 10000, MaxBytes: 8 << 20, MaxTasks: cmp.Or(w.maxTasks, 1000),
					Terms: task.Terms{Response: time.Minute, AwaitingInput: time.Hour, AwaitingCompletion: time.Hour},
				},
				Limits:         jsonrpc.Limits{Bytes: 1 << 20, Depth: 16},
				Memory:         memory,
				MemoryPatience: time.Second,
				Streaming: gateway.Streaming{Max: 1000, MaxPerLeader: cmp.Or(w.streams, 1000), Drain: ctx,
					Patience: time.Second},
				Log: log,
			})
			if err != nil {
				t.Fatal(err)
			}
			w.gateways[aid] = g
			g.Register(tasks)
			gateways = append(gateways, g)
			agents = append(agents, Agent{AID: aid, Gateway: g, Worker: w.worker})
		}
		return agents
	}
	c.Agents = w.agents()
	w.front = New(c)
	w.open.Serve(w.front)
	front, arriving := w.front, new(sync.RWMutex)
	takeOff := w.net.Serve(w.host, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		arriving.RLock()
		defer arriving.RUnlock()
		front.ServeHTTP(rw, r)
	}))
	w.stop = sync.OnceFunc(func() {
		drain()
		await(arriving) // from now on, the front refuses connections
		front.Wait()
		takeOff()
		for _, g := range gateways {
			g.Unregister()
			g.Close()
		}
		unshare()
		index.Close()
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		if n := w.process.Streams.Total() + w.process.Memory.Total(); n != 0 {
			t.Errorf("%d streams and bytes of memory are still counted", n)
		}
	})
}

// await returns when all holders of the lock for reading have given it back.
func await(readers *sync.RWMutex) {
	readers.Lock()
	defer readers.Unlock()
}

// Execute implements gateway.Owners: the other process executes the call.
func (w *world) Execute(
	ctx context.Context, _ int, partner string, c *gateway.Call, reserve replay.Reserve,
) (gateway.Result, error) {
	return w.other.gateways[partner].ExecuteHere(ctx, c, reserve)
}

// client is a client of AUN.
type client struct {
	w      *world
	t      *testing.T
	conn   *aun.Conn
	events chan event
	served chan struct{}
	reads  atomic.Pointer[chan struct{}] // nothing is read before it is closed; nil if all is
}

type event struct {
	method string
	params gjson.Result
}

// name returns the short name of an event of a task, with its status or its text.
func (e event) String() string {
	s := strings.TrimPrefix(e.method, "event/task.")
	if st := e.params.Get("status").String(); st != "" {
		return s + " " + st
	}
	return s + " " + e.params.Get("artifact.content").String()
}

func (*client) Request(context.Context, *aun.Request) {}

func (c *client) Event(_ *aun.Conn, method string, params gjson.Result) {
	if reads := c.reads.Load(); reads != nil {
		<-*reads
	}
	c.events <- event{method, params}
}

// open opens a connection.
func (w *world) dial(path string) *client {
	w.t.Helper()
	return w.dialWith(path, nil)
}

// dialWith opens a connection by a request with a header.
func (w *world) dialWith(path string, header http.Header) *client {
	w.t.Helper()
	ws, _, err := websocket.Dial(context.Background(), "ws://"+w.host+path,
		&websocket.DialOptions{HTTPClient: w.net.Client(), HTTPHeader: header})
	if err != nil {
		w.t.Fatal(err)
	}
	c := &client{w: w, t: w.t, events: make(chan event, 10000), served: make(chan struct{})}
	c.conn = aun.NewConn(ws, c, aun.Limits{}, slog.New(slog.DiscardHandler))
	go func() {
		defer close(c.served)
		c.conn.Serve(context.Background())
	}()
	w.t.Cleanup(c.cut)
	return c
}

// cut breaks the connection.
func (c *client) cut() {
	c.conn.Cut(http.ErrAbortHandler)
	<-c.served
}

// next returns the next event.
func (c *client) next() event {
	c.t.Helper()
	select {
	case e := <-c.events:
		return e
	case <-c.served:
		if len(c.events) > 0 {
			return <-c.events
		}
		c.t.Fatalf("the connection has ended: %v", c.conn.Err())
	case <-time.After(time.Minute):
		c.t.Fatal("no event")
	}
	return event{}
}

// call calls a method, and returns its result or the code of its error.
func (c *client) call(method, params string) (gjson.Result, int) {
	c.t.Helper()
	result, err := c.conn.Call(context.Background(), method, []byte(params))
	if e, ok := err.(*aun.Error); ok {
		return gjson.ParseBytes(e.Data), int(e.Code)
	}
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return result, 0
}

// must is call for a successful method.
func (c *client) must(method, params string) gjson.Result {
	c.t.Helper()
	result, code := c.call(method, params)
	if code != 0 {
		c.t.Fatalf("%s %s: %d %s", method, params, code, result.Raw)
	}
	return result
}

// connect returns a logged-in client.
func (w *world) connect(aid, device string) *client {
	w.t.Helper()
	c := w.dial("/aun")
	nonce := c.next().params.Get("nonce").String()
	id := w.pki.Identity(aid)
	tokens, err := aun.Login(context.Background(), c.conn, id, w.pki.Roots(), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := aun.Connect(context.Background(), c.conn, nonce, tokens, device, ""); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// create creates a task, and returns its id.
func (c *client) create(to, more string) string {
	c.t.Helper()
	return c.must("task.create", `{"to":"`+to+`","input":{"type":"text","content":"go"}`+more+`}`).Get("task_id").String()
}

func params(id string) string {
	b, _ := json.Marshal(map[string]string{"task_id": id})
	return string(b)
}

// say has the agent report of a task.
func (w *world) say(id string, reports ...agent.Report) {
	for _, rep := range reports {
		w.agent.turn(id) <- rep
	}
}

func piece(text string, last bool) agent.Report {
	return agent.Report{State: task.Working, Chunks: []task.Chunk{{
		Product: task.Product{ID: "p1", DataItems: []task.DataItem{task.Text(text)}}, Append: text != "0", Last: last}}}
}

var (
	working  = agent.Report{State: task.Working}
	asks     = agent.Report{State: task.AwaitingInput, Items: []task.DataItem{task.Text("which?")}, Revision: "1"}
	finished = agent.Report{State: task.AwaitingCompletion, Items: []task.DataItem{task.Text("done")}, Revision: "2"}
)
