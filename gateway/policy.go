// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/trust/policy"
)

// Policy decides about calls of a known Leader, before anything is done for them: no task, queue or store has seen
// them. Its methods may be called by any number of goroutines at once.
type Policy interface {
	// Decide decides whether a call is carried out. The error is a *task.Error, which refuses the call, or the error of
	// ctx. The call's use of quotas is counted by the Use.
	Decide(ctx context.Context, c *policy.Call, u *policy.Use) error
	// Denies returns the error of a call denied by the rules; nil if they do not deny it. It counts nothing.
	Denies(c *policy.Call) error
}

// AAC checks the access tokens beside the certificates of callers (AAC v02.02). Its methods may be called by any number
// of goroutines at once.
type AAC interface {
	// Check returns the claims of a call's token; nil if the call has none and needs none. authorization are the values of
	// its header Authorization. The error is a *task.Error, which refuses the call, or the error of ctx.
	Check(ctx context.Context, c *policy.Call, authorization []string) (*identity.Claims, error)
}

// authorize checks the access token of the call, and then asks the policy about it.
func (x *exchange) authorize() (err error) {
	tokens, p := x.g.config.AAC, x.g.config.Policy
	if tokens == nil && p == nil {
		return nil
	}
	x.describe(&x.policed)
	if tokens != nil {
		if x.token, err = tokens.Check(x.ctx, &x.policed, x.in.Authorization); err != nil {
			return err
		}
		if x.token != nil {
			x.peer.Claims = x.token
			// It may be a person, and is stored with the task: only if the gateway names it to the agent.
			s := x.token.Subject
			if x.g.config.Agent.HTTP.Introducer != nil && s != "agent:"+x.call.Leader {
				x.call.Subject = s
			}
		}
		if err = x.checkSkill(); err != nil {
			return err
		}
	}
	if p == nil {
		return nil
	}
	if err = p.Decide(x.ctx, &x.policed, &x.use); err == nil && x.startsOrContinues() {
		again := x.policed
		again.Command = string(task.Continue)
		x.noMore = p.Denies(&again)
		x.call.Bounds.NoContinue = x.noMore != nil
	}
	return err
}

// startsOrContinues reports whether the call is a start, and continues the task if there is one.
func (x *exchange) startsOrContinues() bool {
	return x.call.Op == translate.Command && x.call.Message.Command == task.Start && x.call.Continues()
}

// checkSkill refuses a call for a skill the agent does not have, by its card (AAC v02.02 §12). A card without the
// names of all skills refuses none.
func (x *exchange) checkSkill() error {
	named, err := x.policed.Skill()
	switch {
	case err != nil:
		return policy.Denied(err)
	case named == "":
		return nil
	}
	card, _, err := x.g.cards.ofAgent(x.ctx)
	if err != nil {
		return policy.Denied(fmt.Errorf("whether the agent has the skill %.100q is not known: %w", named, err))
	}
	if len(card.Skills) == 0 || card.Extended ||
		slices.ContainsFunc(card.Skills, func(s translate.Skill) bool { return s.ID == named }) {
		return nil
	}
	return policy.Denied(fmt.Errorf("the agent has no skill %.100q", named))
}

// Denies returns the error of a call denied by the rules of the policy; nil if they do not deny it, or there are none.
// It counts nothing. It is for a front looking a task up before it knows the task's Partner.
func (g *Gateway) Denies(c *policy.Call) error {
	if g.config.Policy == nil {
		return nil
	}
	c.Mount = g.config.Base
	return g.config.Policy.Denies(c)
}

// describe describes the call to a policy.
func (x *exchange) describe(c *policy.Call) {
	*c = policy.Call{
		Peer: x.caller(), Leader: x.call.Leader, Mount: x.g.config.Base, Dialect: x.call.Dialect,
		Command: methodNames[methodOf(&x.call.Call)], Method: x.method(), Message: &x.call.Message, Stream: x.call.Stream,
	}
	switch w := x.call.Webhook; {
	case x.call.Op == translate.Command:
		c.Webhook = w != nil && w.URL != ""
		if c.Message.Command != task.Start || x.call.Continues() { // for another start, it is new
			c.Task = c.Message.TaskID
		}
	case w != nil:
		c.Task = w.TaskID
	}
	if in := x.call.Invitation; in != nil {
		for i := range in.Group.Partners {
			if one := &in.Group.Partners[i]; x.g.config.AIC != "" && identity.AIC(x.g.config.AIC).Is(one.AIC) {
				c.Skills = append(c.Skills, one.Skills...)
			}
		}
	}
	if caller := x.in.Caller; caller != nil {
		c.Leader = caller.Leader()
	}
}

// caller returns the caller: it is not always the task's own Leader.
func (x *exchange) caller() *identity.Peer {
	if x.in.Caller != nil {
		return x.in.Caller
	}
	return &x.peer
}

// method returns the dialect's own name of the operation; empty if it has none.
func (x *exchange) method() string {
	switch {
	case x.req.Method != "":
		return x.req.Method
	case x.route.Method != "":
		return x.route.Method
	}
	return x.call.Method
}

// isRepeated reports whether a start is known to start no task, because there is one.
func (x *exchange) isRepeated() bool {
	if x.call.BySession {
		return false
	}
	_, err := x.g.Head(x.ctx, x.g.LogOf(x.call.Leader, x.call.Message.TaskID))
	return err == nil
}

// carryOut has the Gateway execute the call, within its quotas.
func (x *exchange) carryOut() (r Result, err error) {
	c, u := &x.call, &x.use
	if !u.Any() {
		r, err = x.g.Execute(x.ctx, c, x.reserve)
		if _, ok := errors.AsType[*partner.BoundError](err); ok {
			err = x.noMore
		}
		return r, err
	}
	command := c.Message.Command
	starts := c.Op == translate.Command && command == task.Start
	counts := starts && u.CountsStarts()
	counted := counts && u.StartKept() // a repeated start, too; it is taken back
	var full *task.Error
	if counts && !counted && !x.isRepeated() {
		if full, err = u.Start(x.ctx); err != nil {
			return r, err
		}
		counted, c.Bounds.NoStart = true, full != nil
	}
	if starts {
		c.Bounds.OfLeader, c.Bounds.OfAll = u.Tasks()
	}
	r, err = x.g.Execute(x.ctx, c, x.reserve)
	if counted {
		u.Started(r.New)
	}
	if r.New && u.TriesTasks() {
		if o := x.g.in(c.Leader); o != nil {
			u.Unfinished(o.partner.Unfinished(c.Leader))
		}
	}
	if err == nil {
		if r.New || c.Op == translate.Command && command == task.Continue {
			u.Sent(c.Message.Size())
		}
		return r, nil
	}
	switch bound, ok := errors.AsType[*partner.BoundError](err); {
	case !ok:
	case bound.NoContinue:
		err = x.noMore
	case bound.NoStart:
		err = u.Refuse(full)
	default:
		err = u.TooManyTasks(bound.OfAll)
	}
	return r, err
}
