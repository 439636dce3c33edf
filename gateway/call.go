// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Call is a decoded and admitted call of a Leader. It is data, and holds everything that its execution needs, so the
// process with the tasks of its Leader can execute it.
type Call struct {
	translate.Call
	Leader  string // the owner of the call, as the Guard has it
	Reader  string // the Leader charged for streams and memory, if it is another one; see Request.Reader
	Dialect string // the name of the caller's dialect
	Proof   string // the caller's proof, as identity.Proof names it; empty for none
	Subject string // the subject the caller acts for, as its access token says; empty for itself

	// AgentTask is a new task's name for its agent; see partner.Request.
	AgentTask string
	// Adopt gives a new task the webhooks set for it while its Leader was not known.
	Adopt bool
	// Commit is the time after which a start published in a group is accepted; 0 for the Partner's own time.
	Commit time.Duration
	// Entry is the front's own entry about a new task; see partner.Extras.
	Entry []byte
	// Bounds are those of the call's quotas.
	Bounds partner.Bounds
	// Waited is the call's time of waiting for an owner of its shard; see partner.Request.
	Waited time.Duration
}

// ReadBy returns the Leader charged for the streams and the memory of the call.
func (c *Call) ReadBy() string { return cmp.Or(c.Reader, c.Leader) }

// Result is the result of executing a Call. It is data, too. The Op of the Call selects the valid fields.
type Result struct {
	// Result is the result of a Command. The events of a stream are not a part of it: the front of the Call reads them
	// from the log.
	partner.Result

	Webhooks   []task.Webhook
	Page       task.Page
	Membership task.Membership
}

// Execute executes a call in the process with the tasks of its Leader: it is the one way into the life-cycle. It
// neither checks the peer, nor encodes anything; Dispatch and Do do. reserve is called in this process before memory is
// held for the call, as that of a partner.Request; nil if the memory of the call is not counted.
func (g *Gateway) Execute(ctx context.Context, c *Call, reserve replay.Reserve) (r Result, err error) {
	if err := g.ready(ctx); err != nil {
		return r, err
	}
	if g.tasks.owners != nil {
		return g.handOver(ctx, c, reserve)
	}
	return g.executeHere(ctx, c, reserve)
}

// ExecuteHere is Execute if this process owns the shard of the Leader; otherwise the error is partner.Moved's.
func (g *Gateway) ExecuteHere(ctx context.Context, c *Call, reserve replay.Reserve) (r Result, err error) {
	if err := g.ready(ctx); err != nil {
		return r, err
	}
	return g.executeHere(ctx, c, reserve)
}

func (g *Gateway) executeHere(ctx context.Context, c *Call, reserve replay.Reserve) (r Result, err error) {
	o, err := g.owner(c.Leader)
	if err != nil {
		return r, NotBegun(err)
	}
	reads := c.reads()
	if !reads { // it would wait under the lock of its task
		if err := o.mayAct(); err != nil {
			return r, NotBegun(err)
		}
	}
	r, err = g.executeBy(ctx, o, c, reserve)
	open := err == nil && !r.Task.Status.State.Terminal()
	if !open && task.KindOf(err) != task.TaskNotFound {
		return r, err
	}
	unsure := o.mayAct()
	if unsure == nil { // else another process may have gone on with the task, or have begun it
		return r, err
	}
	if reads {
		unsure = NotBegun(unsure)
	}
	return Result{Result: partner.Result{New: r.New}}, unsure
}

// mayAct returns an error of a caller unless this process certainly owns the shard now. It is a replay.ErrClosed: to
// the call, the shard has no owner.
func (o *owned) mayAct() error {
	if o.held == nil {
		return nil
	}
	if err := o.held(); err != nil {
		return partner.StoreError(fmt.Errorf("%w: %w", err, replay.ErrFenced), "")
	}
	return nil
}

// reads reports whether the call changes nothing.
func (c *Call) reads() bool {
	switch c.Op {
	case translate.Command:
		return c.Message.Command == task.Get || c.Message.Command == task.ReStream
	case translate.GetWebhooks, translate.ListTasks:
		return true
	}
	return false
}

// executeBy executes a call in its shard.
func (g *Gateway) executeBy(ctx context.Context, o *owned, c *Call, reserve replay.Reserve) (r Result, err error) {
	p := o.partner
	switch c.Op {
	case translate.SetWebhook, translate.GetWebhooks, translate.DeleteWebhooks:
		if r.Webhooks, err = o.changeWebhooks(ctx, c); err == nil && c.Subscribe {
			r.Result, err = o.shown(ctx, c, reserve)
		}
	case translate.ListTasks:
		list := p.List
		if c.Tentative {
			list = p.ListTentative
		}
		r.Page, err = list(ctx, c.Leader, c.List, reserve)
	case translate.JoinGroup:
		r.Membership, err = g.groups.Join(ctx, c.Leader, c.Invitation)
	case translate.Command:
		if err := g.checkGroup(c); err != nil {
			return r, err
		}
		q := requests.Get().(*partner.Request)
		defer func() {
			*q = partner.Request{}
			requests.Put(q)
		}()
		g.setRequest(q, c)
		q.Reserve = reserve
		if c.Stream {
			r.Result, err = p.Stream(ctx, c.Leader, q)
		} else {
			r.Result, err = p.Do(ctx, c.Leader, q)
		}
	default:
		err = task.Errorf(task.Internal, "the operation %d cannot be executed", c.Op)
	}
	return r, err
}

// requests are those of Execute, used again: they are large.
var requests = sync.Pool{New: func() any { return new(partner.Request) }}

// setRequest makes the request of a call to the life-cycle.
func (g *Gateway) setRequest(r *partner.Request, c *Call) {
	r.Call, r.Policy, r.AgentTask, r.Bounds = c.Call.Call, c.Policy, c.AgentTask, c.Bounds
	r.Proof, r.Subject, r.Waited = c.Proof, c.Subject, c.Waited
	r.AutoComplete = r.AutoComplete || c.Direct && g.config.AutoComplete
	r.Histories = c.History != 0 && !c.Stream
	r.Snapshot = r.Snapshot || c.Stream && c.Reply
	r.Webhook, r.Adopt, r.Entry = c.Webhook, c.Adopt, c.Entry
	if g.startsInGroup(c) {
		r.Group, r.Dialect, r.Commit = c.Message.GroupID, c.Dialect, c.Commit
	}
}

// changeWebhooks carries out an operation on the webhooks of a task. They belong to the task's Leader, also before
// there is a task.
func (o *owned) changeWebhooks(ctx context.Context, c *Call) (hooks []task.Webhook, err error) {
	w, p, engine := c.Webhook, o.partner, o.webhooks
	if c.TaskExists {
		if _, err = partner.ReadHead(ctx, o.logs, p.LogOf(c.Leader, w.TaskID)); err != nil {
			return nil, err
		}
	}
	switch c.Op {
	case translate.SetWebhook:
		err = p.Watch(ctx, c.Leader, w.TaskID, func(log string, at task.Position) error {
			set, now := engine.Set, notify.At{Seq: at.Seq, Ended: at.Ended, Named: !c.Strict}
			if c.Subscribe {
				set = engine.Narrow
			}
			hook, err := set(ctx, log, *w, now)
			hooks = []task.Webhook{hook}
			return err
		})
	case translate.GetWebhooks:
		hooks, err = engine.Get(ctx, p.LogOf(c.Leader, w.TaskID), w.ID)
	case translate.DeleteWebhooks:
		err = engine.Delete(ctx, p.LogOf(c.Leader, w.TaskID), w.ID)
		if c.TaskExists && task.KindOf(err) == task.TaskNotFound {
			err = nil // it was deleted before (A2A 1.0 §3.1.10)
		}
	}
	return hooks, err
}

// shown returns the task of a webhook, without its histories; the zero Result if there is none yet.
func (o *owned) shown(ctx context.Context, c *Call, reserve replay.Reserve) (partner.Result, error) {
	q := partner.Request{Reserve: reserve}
	q.Message = task.Message{Command: task.Get, TaskID: c.Webhook.TaskID}
	r, err := o.partner.Do(ctx, c.Leader, &q)
	if task.KindOf(err) == task.TaskNotFound {
		return partner.Result{}, nil
	}
	r.Task.MessageHistory, r.Task.StatusHistory = nil, nil
	return r, err
}

// leaderOf returns the Leader of a task by its id alone, for callers without an identity. The owners of all shards are
// asked, since a task started a moment ago may be at any of them.
func (g *Gateway) leaderOf(ctx context.Context, taskID string) (string, error) {
	q := idOfTask{g.config.Partner.Name, taskID}
	all := make([]int, g.owned.Count())
	for i := range all {
		all[i] = i
	}
	return shard.First(all, partner.Anyone, func(i int) (string, error) { return g.tasks.leaders.Of(ctx, i, q) })
}

// idOfTask is the id of a task at a Partner.
type idOfTask struct{ Partner, Task string }

// leaderIn returns the Leader of a task in a shard owned by this process; Anyone for none.
func (t *Tasks) leaderIn(ctx context.Context, shard int, q idOfTask) (string, error) {
	e := t.engines.Of(shard)
	if e == nil {
		return "", partner.Moved()
	}
	return partner.LeaderOf(ctx, e.logs, q.Partner, q.Task, identity.Claimable)
}
