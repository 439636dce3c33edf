// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/aip-gateway/aip-gateway/dialect"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/logname"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/quota"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Say executes a start or a continue that no dialect has decoded, such as a message of a conversation. It does not wait
// for the agent: it returns the name of the task's log, which shows what the agent does. A task that it starts is
// completed as soon as the agent has finished. The agent knows it by its id, so no other task may have that.
func (g *Gateway) Say(ctx context.Context, peer identity.Peer, m task.Message) (log string, err error) {
	peer, err = g.config.Guard.Check(peer)
	if err != nil {
		return "", err
	}
	leader, err := g.config.Guard.Anonymous(peer)
	if err != nil {
		return "", err
	}
	o, err := g.readyFor(ctx, leader)
	if err != nil {
		return "", err
	}
	m.SenderID = leader
	memory := g.memory.Lease(leader)
	defer memory.Release()
	_, err = o.partner.Do(ctx, leader, &partner.Request{
		Call:      task.Call{Message: m, Terms: task.Terms{Response: task.NoWait}},
		Policy:    dialect.Policy{Strict: true, AutoComplete: true, Tentative: true},
		AgentTask: m.TaskID,
		Reserve: func(ctx context.Context, n int64) error {
			if n == 0 {
				memory.Release()
			}
			if n <= quota.Free {
				return nil
			}
			return g.wait(ctx, &memory, n, g.memory.Patience)
		},
	})
	return logname.New(o.partner.Name, leader, m.TaskID), err
}

// Card returns the public card of the agent, and when it has changed. It may wait for the agent.
func (g *Gateway) Card(ctx context.Context) (*translate.Card, time.Time, error) {
	return g.cards.public(ctx)
}
