// SPDX-License-Identifier: Apache-2.0

package aunfront

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/limit"
)

// Agent is an agent reached by AUN clients by its AID.
type Agent struct {
	AID     string
	Gateway *gateway.Gateway
	Confirm bool // a finished task asks for input
	// Worker is the AID of the agent's own connection to the gateway, as one of Assignees; empty without one.
	Worker string
}

// A Service has the methods of a namespace, such as search or message, for logged-in clients.
type Service interface {
	// Call returns the result of a method, as JSON. Errors are *aun.Error or *task.Error. Calls of one connection may
	// run at once.
	Call(ctx context.Context, s *Session, method string, params gjson.Result) (result []byte, err error)
}

// An EventService is a Service for notifications of clients, such as event/task.updated of an assignee.
type EventService interface {
	// Event receives a notification. It is called by the reading goroutine of the connection, so it must not wait.
	Event(s *Session, method string, params gjson.Result)
}

// A ThreadService is a Service that knows the tasks of threads of messages.
type ThreadService interface {
	// TaskOf returns the last task of a client's thread with an agent, or, if agent is empty, with the only one having
	// such a thread. It is empty if there is none.
	TaskOf(ctx context.Context, s *Session, agent, thread string) (id string, err error)
}

// Config is the configuration of a Front.
type Config struct {
	Authority *aun.Authority
	Identity  *aun.Identity // of the gateway, in peer mode
	Roots     *aun.Roots    // of the AIDs allowed in peer mode

	Agents      []Agent
	Services    map[string]Service // by namespace
	Assignees   Assignees          // nil for none
	Identities  *identity.Identities
	Index       *Index
	Connections *Connections // of the process

	Limits  Limits
	Memory  limit.Budget // of connections until they log in, and of the bytes sent to clients
	Origins []string     // the hosts of pages with scripts allowed to connect, beside the host of the request
	// Drain is done when another configuration has replaced this one, or the process is about to end. Then each connection
	// is closed at a random time within DrainFor, so clients do not reconnect all at once.
	Drain    context.Context
	DrainFor time.Duration
	Exiting  func() bool // whether the process is about to end
	// Begin is called when a connection begins, and end when it has ended: it outlives its request.
	Begin func() (end func())
	// Address returns the address of a client, with or without a port. nil: the connection's.
	Address func(*http.Request) string
	// AccessLog returns the log for the calls of a connection. nil, or a nil log: they are logged at debug level.
	AccessLog func(*http.Request) *slog.Logger
	Log       *slog.Logger
}

// Limits bound everything clients hold. A zero stands for the default.
type Limits struct {
	Connections       int // of all logged-in clients. Default: 20,000
	ConnectionsPerAID int // default: 64
	Subscriptions     int // of one connection. Default: 256
	Calls             int // of one connection at once. Default: 64
	Logins            int // connections before their login. Default: 500
	LoginsPerAddress  int // of one address. Default: 100
}

func (l Limits) or() Limits {
	for of, otherwise := range map[*int]int{
		&l.Connections: 20_000, &l.ConnectionsPerAID: 64, &l.Subscriptions: 256, &l.Calls: 64,
		&l.Logins: 500, &l.LoginsPerAddress: 100,
	} {
		if *of <= 0 {
			*of = otherwise
		}
	}
	return l
}

// Times of a connection.
const (
	loginTimeout = 30 * time.Second // until a client must be logged in
	heartbeat    = 30 * time.Second // between the pings a client is asked for
	silence      = 3 * heartbeat    // before a client is pinged
	pingTimeout  = 10 * time.Second // for the answer
)

// Front is the front of all agents for AUN. Its methods may be called by any number of goroutines at once.
type Front struct {
	config Config
	agents map[string]*Agent
	aids   []string            // of the agents, in order
	fronts map[string][]string // the fronted AIDs of connecting agents, by the AIDs of their connections
	work   sync.WaitGroup
}

// New returns a front.
func New(c Config) *Front {
	c.Limits = c.Limits.or()
	f := &Front{config: c, agents: make(map[string]*Agent), fronts: make(map[string][]string)}
	for i := range c.Agents {
		f.agents[c.Agents[i].AID] = &c.Agents[i]
		f.aids = append(f.aids, c.Agents[i].AID)
		if w := c.Agents[i].Worker; w != "" {
			f.fronts[w] = append(f.fronts[w], c.Agents[i].AID)
		}
	}
	slices.Sort(f.aids)
	c.Authority.Share(c.Connections.loginElsewhere)
	c.Connections.authority.Store(c.Authority)
	return f
}

// Wait waits until all connections have ended; Drain ends them. ServeHTTP must have returned for all of them.
func (f *Front) Wait() { f.work.Wait() }

// mode is the client's way of logging in.
type mode string

// The modes.
const (
	gatewayMode mode = "gateway" // the gateway sends a challenge first
	peerMode    mode = "peer"
)

// ServeHTTP makes a connection of a request for WebSocket. A path with the end /acp is for peer mode. It returns as
// soon as the connection has begun.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := f.config
	if f.draining() {
		w.Header().Set("Connection", "close")
		http.Error(w, "the gateway is restarting; connect again", http.StatusServiceUnavailable)
		return
	}
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: c.Origins})
	if err != nil { // it has been answered
		c.Log.Debug("a WebSocket was refused", "address", r.RemoteAddr, "error", err)
		return
	}
	m := gatewayMode
	if strings.HasSuffix(strings.TrimSuffix(r.URL.Path, "/"), "/acp") {
		m = peerMode
	}
	s := newSession(f, ws, m, r)
	if !c.Connections.arrive(s) {
		s.conn.Cut(errors.New("the gateway has no memory for another connection"))
		return
	}
	end := c.Begin()
	f.work.Go(func() {
		defer end()
		defer c.Connections.left(s)
		s.serve()
	})
}

// drained returns the reason for which connections end at the end of a configuration.
func (f *Front) drained() error {
	if f.config.Exiting != nil && f.config.Exiting() {
		return errors.New("the gateway is stopping")
	}
	return errors.New("the configuration was replaced")
}

// drainAfter returns a random time within the time to drain.
func (f *Front) drainAfter() time.Duration { return rand.N(f.config.DrainFor + 1) }

// draining reports whether connections are being closed.
func (f *Front) draining() bool { return f.config.Drain.Err() != nil }
