// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/internal/egress"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// Config is the configuration of a Partner taking part in groups.
type Config struct {
	Name    string           // of the Partner, as in the names of its tasks' logs
	AIC     string           // of the Partner, its name in groups
	Gateway *gateway.Gateway // executes the commands of groups

	Brokers []Broker // for the Partner to connect to, beside that of its inbox
	Inbox   *Inbox   // for invitations by Leaders, beside calls; nil for none
	// InboxWithoutUserID has an invitation in the inbox without an AMQP user_id count: as one of the Leader it names.
	InboxWithoutUserID bool
	// Exchanges are names of exchanges by the AIC of the Leader allowed to use them, beside those with its name. A star at
	// the end stands for any rest.
	Exchanges map[string][]string
	Egress    *egress.Policy // the addresses to be reached; default: public ones, by TLS
	TLS       *tls.Config    // roots, and the client certificate for EXTERNAL; default: the system's roots, none
	Key       []byte         // seals access tokens in the store; empty: they stay in memory

	// ExchangeWait is the time for which a membership is kept after its exchange is gone, or not for the agent any more;
	// default 1 h.
	ExchangeWait time.Duration

	MaxGroups          int // memberships at a time; default 1000
	MaxGroupsPerLeader int // of one Leader; default 500
	Prefetch           int // messages of a group in flight from the broker before one is acknowledged; default 64

	Log    *slog.Logger // default: the one given to Open
	Access *slog.Logger // has a line for each command; without it, Log has these lines, at debug level
}

// Defaults of Config.
const (
	DefaultMaxGroups          = 1000
	DefaultMaxGroupsPerLeader = 500
	DefaultPrefetch           = 64
)

// Engine keeps the memberships of all Partners, in the shards owned by this process. There is one for all shards, since
// an exchange belongs to one Leader, whatever the shard, and connections are shared. It outlives configurations:
// Partners are registered and unregistered with theirs, while memberships and their links to brokers stay. Its methods
// may be called by any number of goroutines at once.
type Engine struct {
	log      *slog.Logger
	dial     dialer
	newTasks func(*membership) tasks
	homes    *shard.Each[home]
	set      *shard.Set

	exchanges *ask.Service[wanted, inUse] // at other processes

	deleting chan struct{} // has a place for each membership allowed to delete its queue now

	mu          sync.Mutex            // guards the fields below, and additions to the work of homes
	partners    map[string][]*Partner // by name; the one registered last is the present one
	memberships map[key]*membership
	past        map[string]Traffic // of the ended memberships, by the name of the Partner
	open        map[int]*home      // shards with their memberships here
	inboxes     map[string]*inbox  // those read here, by the name of the Partner
	mail        map[string]*Mail   // brought by inboxes, likewise
}

// key is the name of a membership.
type key struct{ partner, leader, group string }

// Open makes an engine over the shards owned by this process now and later. A membership is connected when its Partner
// is registered. The tracer records the commands of groups and the publications; nil for none.
func Open(set *shard.Set, tracer trace.TracerProvider, log *slog.Logger) (*Engine, error) {
	return open(set, log, newPool(), func(m *membership) tasks {
		return newGroupTasks(m.home.store, m.key, m, tracer)
	})
}

// open is Open with the parts replaced by tests: the brokers, and the tasks of a membership.
func open(set *shard.Set, log *slog.Logger, dial dialer, newTasks func(*membership) tasks) (*Engine, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		log: log, dial: dial, newTasks: newTasks, deleting: make(chan struct{}, parallelDeletes),
		partners: make(map[string][]*Partner), memberships: make(map[key]*membership), past: make(map[string]Traffic),
		inboxes: make(map[string]*inbox), mail: make(map[string]*Mail),
	}
	e.openNodes(set)
	homes, err := shard.Open(set, e.openHome, (*home).close)
	if err != nil {
		return nil, err
	}
	e.homes = homes
	return e, nil
}

// Close closes every link and waits for all work. Queues stay at their brokers, and memberships in the store.
func (e *Engine) Close() {
	e.homes.Close()
	e.dial.Close()
}

// Partner is a Partner taking part in groups, under one configuration. It implements gateway.Groups.
type Partner struct {
	Config
	engine *Engine
	sealer *sealer
	dialer *egress.Dialer // of all its connections, so that they may be shared
}

// Prepare returns a Partner that may take part in groups: Register makes it do so. An error names the fault of the
// configuration.
func (e *Engine) Prepare(c Config) (*Partner, error) {
	if c.MaxGroups <= 0 {
		c.MaxGroups = DefaultMaxGroups
	}
	if c.MaxGroupsPerLeader <= 0 {
		c.MaxGroupsPerLeader = DefaultMaxGroupsPerLeader
	}
	if c.Prefetch <= 0 {
		c.Prefetch = DefaultPrefetch
	}
	if c.ExchangeWait <= 0 {
		c.ExchangeWait = DefaultExchangeWait
	}
	if c.Egress == nil {
		c.Egress = new(egress.Policy)
	}
	if c.Log == nil {
		c.Log = e.log
	}
	if c.AIC == "" {
		return nil, errors.New("group: a Partner without an AIC cannot take part in groups")
	}
	if c.Inbox != nil {
		c.Brokers = append(slices.Clip(c.Brokers), c.Inbox.Broker())
	}
	p := &Partner{Config: c, engine: e, dialer: &egress.Dialer{Policy: *c.Egress, TLS: c.TLS, Timeout: joinLimit}}
	var err error
	if p.sealer, err = newSealer(c.Key); err != nil {
		return nil, err
	}
	if c.Gateway != nil {
		c.Gateway.TakePart(p)
	}
	return p, nil
}

// Register makes the Partner take part in groups. Its memberships are connected, or stay so, under the configuration
// registered last.
func (p *Partner) Register() {
	e := p.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.partners[p.Name] = append(e.partners[p.Name], p)
	e.configured(p.Name)
}

// Unregister ends the use of a configuration. Without another one of the same Partner, its links are closed; its queues
// and memberships stay until it is registered again.
func (p *Partner) Unregister() {
	e := p.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	list := slices.DeleteFunc(e.partners[p.Name], func(q *Partner) bool { return q == p })
	e.partners[p.Name] = list
	if len(list) == 0 {
		delete(e.partners, p.Name)
	}
	e.configured(p.Name)
}

// configured has the supervisors of a Partner's memberships, and the reader of its inbox, look at the present
// configuration. The caller holds e.mu.
func (e *Engine) configured(name string) {
	for k, m := range e.memberships {
		if k.partner == name {
			m.wake()
		}
	}
	e.readInbox(name)
}

// partner returns the present configuration of a Partner; nil if none is registered.
func (e *Engine) partner(name string) *Partner {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.present(name)
}

// present is partner for a caller holding e.mu.
func (e *Engine) present(name string) *Partner {
	if list := e.partners[name]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// membership returns a membership; nil if there is none.
func (e *Engine) membership(k key) *membership {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memberships[k]
}

// Has reports whether the Partner is a member of a Leader's group. It is one as well while it cannot reach the broker,
// and no longer when it has begun to leave.
func (p *Partner) Has(leader, groupID string) bool {
	m := p.engine.membership(key{p.Name, leader, groupID})
	return m != nil && m.isMember()
}

// take returns the membership of a key. It makes one if there is none and the limits allow one more.
func (e *Engine) take(p *Partner, k key) (*membership, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.homes.Of(logname.Shard(e.homes.Count(), k.partner, k.leader))
	switch {
	case h == nil: // before its home closes
		return nil, partner.Moved()
	case h.closed:
		return nil, errStops
	}
	if m := e.memberships[k]; m != nil {
		return m, nil
	}
	all, ofLeader := 0, 0
	for other := range e.memberships {
		if other.partner == k.partner {
			all++
			if limit.Key(other.leader) == limit.Key(k.leader) {
				ofLeader++
			}
		}
	}
	switch {
	case all >= p.MaxGroups:
		return nil, limitExceeded("groups", p.MaxGroups)
	case ofLeader >= p.MaxGroupsPerLeader:
		return nil, limitExceeded("groups_per_leader", p.MaxGroupsPerLeader)
	}
	return h.supervise(&stored{key: k, log: newLog(k)}), nil
}

func limitExceeded(limit string, max int) error {
	return task.Errorf(task.LimitExceeded, "this Partner is a member of as many groups as it may be; have it leave one").
		WithData("limit", limit).WithData("max", max)
}

// forget removes a membership that is over. Its traffic still counts.
func (e *Engine) forget(m *membership) {
	done := m.tasks.traffic()
	done.Unconfirmed, done.Lag, done.Tasks = 0, 0, 0
	e.mu.Lock()
	defer e.mu.Unlock()
	past := e.past[m.partner]
	past.add(done)
	e.past[m.partner] = past
	if e.memberships[m.key] == m {
		delete(e.memberships, m.key)
	}
}
