// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/aip-gateway/aip-gateway/notify"
	"github.com/aip-gateway/aip-gateway/partner"
	"github.com/aip-gateway/aip-gateway/replay"
	"github.com/aip-gateway/aip-gateway/replay/shard/ask"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
)

// Owners hands calls to the owners of shards not owned by this process. Its methods may be called by any number of
// goroutines at once.
type Owners interface {
	// Execute has the owner of a shard execute a call of a Partner, by Gateway.ExecuteHere. The error is a
	// replay.ErrClosed if the shard has no owner now, or another one, and also if the owner may yet be able to execute it.
	// It is ErrNotBegun, too, if the owner has certainly not begun. reserve is called in this process.
	Execute(ctx context.Context, shard int, partner string, c *Call, reserve replay.Reserve) (Result, error)
}

// ErrNotBegun is the error of a call not begun by any process.
var ErrNotBegun = errors.New("the call was not begun")

// SilentError is the error of a call that may have begun, with the time of its owner's silence before the call was
// given up.
type SilentError struct{ For time.Duration }

func (e *SilentError) Error() string { return "nothing was heard of the owner for " + e.For.String() }

// leastPatience is the least time for which a lost call waits for the next owner, however much of ask.Patience has
// passed.
const leastPatience = 2 * time.Second

// NotBegun returns an error with ErrNotBegun added.
func NotBegun(err error) error {
	if e, ok := errors.AsType[*task.Error](err); ok {
		again := *e
		again.Err = errors.Join(e.Err, ErrNotBegun)
		return &again
	}
	return errors.Join(err, ErrNotBegun)
}

// HandOver has calls handed to the owners of other shards. It is called before a gateway is registered.
func (t *Tasks) HandOver(to Owners) { t.owners = to }

// handOver executes a call wherever its shard is owned. While a shard moves it has no owner, and while the lease of its
// owner is over it has none for certain: the call is tried again for ask.Patience, less the owners' own time with it.
// The silence before an owner is taken for lost is no such time, but it leaves leastPatience once. A new owner reads
// the tasks under way before it answers.
//
// A command stored by an owner before its loss of the shard is a repeated one for the next owner, which waits on for
// the agent. Only a message without an id that continues a task, or may, is a new one each time, so it is not tried
// again if an owner may have begun with it. A webhook gets its id here, to be the same one each time.
func (g *Gateway) handOver(ctx context.Context, c *Call, reserve replay.Reserve) (r Result, err error) {
	began, m := time.Now(), &c.Message
	unowned, response := began, g.ownTime(c)
	if c.Op == translate.SetWebhook && c.Webhook.ID == "" {
		hook, named := *c.Webhook, *c
		hook.ID = notify.NewID()
		named.Webhook, named.Strict = &hook, false
		c = &named
	}
	started, lost := false, false
	once := m.ID == "" && (m.Command == task.Continue || m.Command == task.Start && c.Continues())
	for tries := (ask.Tries{}); ; {
		tried := time.Now()
		if g.in(c.Leader) != nil {
			r, err = g.executeHere(ctx, c, reserve)
		} else {
			r, err = g.tasks.owners.Execute(ctx, g.shardOf(c.Leader), g.config.Partner.Name, c, reserve)
		}
		r.New = r.New || started // by an owner before
		started = r.New
		unbegun := errors.Is(err, ErrNotBegun) // also by an owner with an ended lease: it, or another one, may have it soon
		if !unbegun && !errors.Is(err, replay.ErrClosed) {
			return r, err
		}
		if !unbegun {
			unowned = unowned.Add(time.Since(tried))
			if e, silent := errors.AsType[*SilentError](err); silent {
				unowned = unowned.Add(-e.For)
				if least := time.Now().Add(leastPatience - ask.Patience); !lost && unowned.Before(least) {
					unowned = least
				}
				lost = true
			}
		}
		left := min(ask.Patience-time.Since(unowned), response-time.Since(began))
		if once && !unbegun || left <= 0 {
			return r, moved(err)
		}
		if err := tries.Wait(ctx, left); err != nil {
			return r, err
		}
		c.Waited = time.Since(began)
	}
}

// moved returns the error of a call not executed by any owner. An owner closing a moving shard answers with the error
// of a closed store.
func moved(err error) error {
	switch {
	case task.KindOf(err) == task.StoreUnavailable:
		return err
	case errors.Is(err, ErrNotBegun):
		return NotBegun(partner.Moved())
	}
	return partner.Moved()
}

// ownTime returns the time for a call to find an answering owner: no longer than its caller waits for the agent.
func (g *Gateway) ownTime(c *Call) time.Duration {
	waits := c.Op == translate.Command && !c.Stream &&
		(c.Message.Command == task.Start || c.Message.Command == task.Continue)
	response := cmp.Or(c.Terms.Response, g.config.Partner.Terms.Response)
	if !waits || response <= 0 {
		return math.MaxInt64
	}
	return response
}
