// SPDX-License-Identifier: Apache-2.0

package group

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"strings"

	"go.opentelemetry.io/otel/propagation"

	"github.com/aip-gateway/aip-gateway/front/group/broker"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/internal/jsonrpc"
	"github.com/aip-gateway/aip-gateway/internal/limit"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate/aip"
)

// receive implements tasks.
func (t *groupTasks) receive(d *broker.Delivery) {
	t.read(d, d.Header, d.Ack)
}

// outcome is the outcome of a message of the group.
type outcome uint8

const (
	ignored  outcome = iota // it is not for this agent
	poison                  // it cannot be read
	executed                // it is acknowledged when it has been executed
)

// read reads a message and has it handled.
func (t *groupTasks) read(d *broker.Delivery, header func(string) string, ack func()) {
	o := poison // if reading it meets a bug
	ctx := propagation.TraceContext{}.Extract(t.base, carrier(header))
	err := t.guard(ctx, func() (err error) {
		o, err = t.handle(d, header, ack)
		return err
	})
	t.mu.Lock()
	t.counts.Received++
	switch o {
	case ignored:
		t.counts.Ignored++
	case poison:
		t.counts.Poison++
	}
	t.mu.Unlock()
	if o == executed {
		return
	}
	if err != nil { // errors of the codec hold no payload
		level := slog.LevelInfo
		if o == poison {
			level = slog.LevelWarn
		}
		t.logger().Log(ctx, level, "a message of a group is dropped", "reason", err, "message", d.ID)
	}
	ack()
}

// handle has the message executed if it is a command for this agent.
func (t *groupTasks) handle(d *broker.Delivery, header func(string) string, ack func()) (outcome, error) {
	limits := defaultLimits
	if gw := t.member.gateway(); gw != nil {
		limits = gw.Limits()
	}
	if len(d.Body) > limits.Bytes {
		return poison, task.Errorf(task.LimitExceeded, "it has %d bytes, and at most %d are allowed",
			len(d.Body), limits.Bytes)
	}
	m, err := aip.ReadGroupMessage(d.Body, limits)
	agent := t.member.aic()
	switch {
	case err != nil:
		return poison, err
	case strings.EqualFold(m.SenderID, agent), m.Kind == aip.OtherMessage:
		return ignored, nil
	case m.GroupID != "" && m.GroupID != t.group:
		return ignored, task.Errorf(task.InvalidParams, "it names another group")
	case !strings.EqualFold(m.SenderID, t.leaderID()):
		return ignored, task.Errorf(task.AuthorizationFailed, "its sender is not the Leader of the group")
	case !isSender(d.UserID, m.SenderID):
		return ignored, task.Errorf(task.AuthorizationFailed, "its sender is not the user of the broker that has sent it")
	case !m.For(agent):
		return ignored, nil
	case m.Kind == aip.MemberCommand:
		c, err := m.Management()
		if err != nil {
			return poison, err
		}
		t.member.manage(&c, m.Dialect, d)
		return executed, nil
	}
	call, err := m.Command(t.group)
	if err != nil {
		return poison, err
	}
	c := &command{call: gateway.Call{Call: call, Dialect: m.Dialect}, size: len(d.Body), ack: ack}
	c.call.Message.SenderID = t.leaderID()
	c.call.Commit, c.call.Terms.Response = call.Terms.Response, task.NoWait // the lane does not wait for the agent
	c.id = cmp.Or(m.ID, d.ID, rand.Text())
	c.trace = traceHeaders(propagation.TraceContext{}.Extract(context.Background(), carrier(header)))
	t.execute(c)
	return executed, nil
}

// isSender reports whether the user named by a broker may have sent a message. A user without the form of an AIC says
// nothing.
func isSender(userID, sender string) bool {
	if userID == "" || strings.EqualFold(userID, sender) {
		return true
	}
	_, err := identity.ParseAIC(userID)
	return err != nil
}

// defaultLimits hold while the Partner is in no configuration.
var defaultLimits = jsonrpc.Limits{Bytes: 1 << 20, Depth: 32}

// leaderID is the AIC of the Leader, without the mark of one without a proof.
func (t *groupTasks) leaderID() string { return strings.TrimPrefix(t.leader, limit.Unverified) }
