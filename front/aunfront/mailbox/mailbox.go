// SPDX-License-Identifier: Apache-2.0

// Package mailbox carries the messages of AUN: the methods message.* of clients. A message to a fronted agent starts a
// task, or continues the one of its thread; the agent's answers come back as messages. A message to another client goes
// to its inbox.
//
// Each AID with messages has an inbox, a log of the store. Its metadata has the position of each conversation in the
// log of its task. Both are written together, so a crash neither loses a message nor repeats it.
package mailbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"github.com/aip-gateway/aip-gateway/aun"
	"github.com/aip-gateway/aip-gateway/aun/codes"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
)

// The limits of an inbox. The oldest messages are dropped first.
const (
	keepFor          = 24 * time.Hour   // for a message kept for offline clients
	queueFor         = 5 * time.Minute  // for one to an online client
	maxQueued        = 200              // of those
	maxMessages      = 1000             // of all
	maxBytes         = 16 << 20         // of all
	maxConversations = 200              // conversations of an AID
	maxDevices       = 64               // devices of an AID whose acknowledgements are kept
	recallFor        = 2 * time.Minute  // for recalling a message
	maxMessage       = 900_000          // bytes of one message, to fit into a frame
	maxText          = 256 << 10        // bytes of the text of one message of an agent; a longer text is several messages
	maxSent          = 10_000           // messages of all clients whose senders are remembered
	idleInboxes      = 1024             // unused inboxes in memory
	scanEvery        = 30 * time.Second // the least time between two visits of an inbox
)

// Caller is the connection of a logged-in client.
type Caller struct {
	AID, Device, Slot string
	Peer              identity.Peer
}

// Connections are the connections of clients. Their methods do not wait.
type Connections interface {
	// Notify sends a notification to all connections of an AID, and returns their number.
	Notify(aid, method string, params []byte) int
	// Deliver is Notify for stored content, with one for one connection only. again reads the params again, so they need
	// not be kept for a slow client.
	Deliver(aid string, one bool, method string, params []byte, again func(context.Context) ([]byte, error)) int
	// Online reports whether an AID is connected.
	Online(aid string) bool
}

// Agent is a fronted agent.
type Agent interface {
	// Do executes a call of a peer, as a gateway.Gateway does.
	Do(ctx context.Context, peer identity.Peer, r *gateway.Request, c *gateway.Call) (gateway.Result, error)
	// Online reports whether the agent can be reached now.
	Online() bool
}

// Assignees are the agents with a connection to the gateway and tasks from it.
type Assignees interface {
	Has(agent, taskID string) bool
	// Say hands the agent's call to the turn of a task, and waits until it is stored.
	Say(ctx context.Context, agent, taskID, method string, params gjson.Result) (status string, err error)
}

// Mailbox has the inboxes of the shards owned by this process. Its methods may be called by any number of goroutines at
// once.
type Mailbox struct {
	set         *shard.Set
	homes       *shard.Each[home]
	connections Connections
	assignees   Assignees
	log         *slog.Logger
	owners      *ask.Service[handed, handedBack]
	senders     *ask.Service[sentMessage, sentMessage]

	seq atomic.Int64 // of the last message to an agent; the messages to agents are kept in the logs of tasks

	mu     sync.Mutex
	agents map[string]Agent // by AID
	sent   recent
}

// Open opens the inboxes of the shards owned by this process now and later. Conversations from an earlier process, or
// from the owner before, are continued.
func Open(
	set *shard.Set, connections Connections, assignees Assignees, log *slog.Logger,
) (m *Mailbox, err error) {
	m = &Mailbox{set: set, connections: connections, assignees: assignees, log: log}
	m.seq.Store(time.Now().UnixMilli())
	if m.homes, err = shard.Open(set, m.openHome, (*home).close); err != nil {
		return nil, err
	}
	m.openNodes()
	return m, nil
}

// Close ends all work. Conversations are continued by the next process.
func (m *Mailbox) Close() { m.homes.Close() }

// Set replaces the fronted agents, by their AIDs. The map must not be changed afterwards.
func (m *Mailbox) Set(agents map[string]Agent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.agents = agents
}

// agent returns the agent with an AID; nil for none.
func (m *Mailbox) agent(aid string) Agent { return m.allAgents()[aid] }

// allAgents returns the agents by their AIDs.
func (m *Mailbox) allAgents() map[string]Agent {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.agents
}

// Call answers a method message.* with a result in JSON. Errors are *aun.Error or have a kind.
func (m *Mailbox) Call(ctx context.Context, c Caller, method string, params gjson.Result) ([]byte, error) {
	switch method {
	case "message.send":
		return m.sendAnywhere(ctx, c, params)
	case "message.pull", "message.v2.pull", "message.ack", "message.v2.ack", "message.v2.put_peer_pk",
		"message.v2.bootstrap", "message.e2ee.put_prekey", "message.e2ee.get_prekey":
		return m.callAnywhere(ctx, c, c.AID, method, params)
	}
	return m.callHere(ctx, c, method, params)
}

// callHere is Call in the process with the inbox.
func (m *Mailbox) callHere(ctx context.Context, c Caller, method string, params gjson.Result) ([]byte, error) {
	switch method {
	case "message.send":
		return m.send(ctx, c, params)
	case "message.pull":
		return m.pull(ctx, c, params, pulled)
	case "message.v2.pull":
		return m.pull(ctx, c, params, pulledV2)
	case "message.ack":
		return m.ack(ctx, c, params, "seq")
	case "message.v2.ack":
		return m.ack(ctx, c, params, "up_to_seq")
	case "message.v2.put_peer_pk":
		return m.putKey(ctx, c, params, false)
	case "message.v2.bootstrap":
		return m.bootstrap(ctx, c, params)
	case "message.e2ee.put_prekey":
		return m.putKey(ctx, c, params, true)
	case "message.e2ee.get_prekey":
		return m.prekeys(ctx, c, params)
	case "message.recall":
		return m.recall(ctx, c, params)
	case "message.query_online":
		return m.queryOnline(params)
	}
	return nil, aun.Errorf(codes.MethodNotFound, "Method not found")
}

func invalid(format string, args ...any) error {
	return aun.Errorf(codes.InvalidParams, format, args...)
}

// newID returns a random id of a message.
func newID() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}
