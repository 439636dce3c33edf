// SPDX-License-Identifier: Apache-2.0

package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
)

// An exchange belongs to one Leader of all, and the memberships of another one may be at another process. So a process
// claims an exchange, and then asks all whether it is theirs: of two claiming it at a time, both see the other one.
// While the memberships of some shard are at no process, no new exchange is given away, since it may be theirs.

// wanted is the exchange and the user a membership is about to use.
type wanted struct {
	Leader string
	Claim  wantedExchange
	// User is the user of the login to the broker by a token: a digest; empty for none.
	User     string
	Password bool
}

// wantedExchange is a claim as it travels.
type wantedExchange struct {
	Host        string
	Port        int
	Node        string
	VHost, Name string
	ByName      bool
}

func (c claim) wanted() wantedExchange {
	return wantedExchange{c.host, c.port, c.node, c.vhost, c.name, c.byName}
}

func (w *wantedExchange) claim() claim {
	return claim{w.Host, w.Port, w.Node, w.VHost, w.Name, w.ByName}
}

// inUse is a process's answer about it.
type inUse struct {
	Meets  bool  // a membership of another Leader uses the exchange
	Serves bool  // the user serves another Leader
	Shards []int // with their memberships at the process
}

// userOf returns a digest of the user of a token, and whether the token is a name and a password.
func userOf(token string) (user string, isPassword bool) {
	name, _, isPassword := strings.Cut(token, ":")
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:]), isPassword
}

// openNodes has the engine answer other processes.
func (e *Engine) openNodes(set *shard.Set) {
	e.set, e.open = set, make(map[int]*home)
	e.exchanges = ask.New(set, "group.exchanges", func(_ context.Context, _ int, w wanted) (a inUse, _ error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		a.Shards = slices.Collect(maps.Keys(e.open))
		k := key{leader: w.Leader}
		a.Meets = e.isFreeLocked(k, w.Claim.claim()) != nil
		for other, m := range e.memberships {
			a.Serves = a.Serves || w.User != "" && other.leader != w.Leader && m.isUser(&w)
		}
		return a, nil
	})
}

// isUser reports whether the membership logs in to a broker as a user.
func (m *membership) isUser(w *wanted) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.isStored || !m.record.HasToken || !m.knowsToken ||
		normaliseHost(m.record.Host) != w.Claim.Host || m.record.Port != w.Claim.Port {
		return false
	}
	user, isPassword := userOf(m.token)
	return user == w.User && isPassword == w.Password
}

// nodePatience is the time of other processes to answer.
const nodePatience = 3 * time.Second

// askOthers asks all processes about an exchange, and about the user of the login. After an error not all have
// answered. Without other processes, nothing is known.
func (e *Engine) askOthers(leader string, r *record, token string) (all inUse, err error) {
	if e.set.Peers() == nil {
		return all, nil
	}
	w := wanted{Leader: leader, Claim: claimOf(r).wanted()}
	if r.HasToken && token != "" {
		w.User, w.Password = userOf(token)
	}
	ctx, done := context.WithTimeout(context.Background(), nodePatience)
	defer done()
	covered := make(map[int]bool)
	for answer, err := range e.exchanges.All(ctx, w) {
		if err != nil {
			continue // its shards are missing
		}
		all.Meets, all.Serves = all.Meets || answer.Value.Meets, all.Serves || answer.Value.Serves
		for _, i := range answer.Value.Shards {
			covered[i] = true
		}
	}
	if len(covered) < e.set.Count() {
		err = task.Errorf(task.StoreUnavailable,
			"it is not known now whether a group of another Leader uses the exchange; try again later").
			WithData("reason", "STORE_UNAVAILABLE")
	}
	return all, err
}

// errExchangeTaken is the error of an exchange in use by a membership of another Leader.
func errExchangeTaken() error {
	return task.Errorf(task.InvitationRejected, "a group of another Leader uses this exchange; use one of your own").
		WithField("params.amqp.exchange")
}
