// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// Active knows which Partners their registry has as active. The registry has only AICs with dots. A nil Active, of no
// registry, has all of them as active.
type Active struct {
	feed    *Feed
	account Account
	was     sync.Map // whether the registry has said last that a Partner is not active, by its AIC
}

// Account keeps the last word of a registry about Partners. A *registry.Account is one.
type Account interface {
	WasDisabled(ctx context.Context, aic string) (bool, error)
	KeepDisabled(ctx context.Context, aic string, disabled bool) error
}

// NewActive returns an Active of the feed of a registry. The caller leaves the feed.
func NewActive(feed *Feed, account Account) *Active { return &Active{feed: feed, account: account} }

// errInactive refuses calls of a disabled Partner, and ends its open streams.
var errInactive = task.Errorf(task.AgentUnavailable, "the Partner is not active at its registry")

// follows reports whether the registry says if a Partner is active.
func (a *Active) follows(aic string) bool { return a != nil && strings.Contains(aic, ".") }

// Load reads the last word of the registry about a Partner, before its first call.
func (a *Active) Load(ctx context.Context, aic string) error {
	if !a.follows(aic) {
		return nil
	}
	was, err := a.account.WasDisabled(ctx, aic)
	if err != nil {
		return fmt.Errorf("whether the registry has disabled the Partner cannot be read: %w", err)
	}
	a.was.Store(aic, was)
	return nil
}

// Check returns an error if the registry has disabled a Partner. While nothing is known, the last word of the registry
// counts, also to a process before. Without any, a Partner is active.
func (a *Active) Check(aic string) error {
	if a == nil || aic == "" {
		return nil
	}
	s := a.feed.Agent(aic)
	if s.Known && !s.Active || !s.Known && a.wasDisabled(aic) {
		return errInactive
	}
	return nil
}

func (a *Active) wasDisabled(aic string) bool {
	was, _ := a.was.Load(aic)
	return was == true
}

// keep keeps the word of the registry, if it is new.
func (a *Active) keep(ctx context.Context, aic string) error {
	s := a.feed.Agent(aic)
	if !s.Known || s.Active != a.wasDisabled(aic) {
		return nil
	}
	err := a.account.KeepDisabled(ctx, aic, !s.Active)
	if err == nil {
		a.was.Store(aic, !s.Active)
	}
	return err
}

// followActive begins to follow whether the registry has the Partners as active, until the configuration is drained.
func (c *Configuration) followActive(a *Active) {
	own := make(map[string]string) // AICs, by the names of Partners
	for _, p := range c.settings.Partners {
		if a.follows(p.AIC) {
			own[p.Name] = p.AIC
		}
	}
	if len(own) == 0 {
		return
	}
	a.feed.Start()
	c.Go(func(ctx context.Context) { c.endInactive(ctx, a, own) })
	c.Go(func(ctx context.Context) { a.ask(ctx, own) })
}

// endInactive ends the streams of disabled Partners, and has them leave their groups. Their tasks go on.
func (c *Configuration) endInactive(ctx context.Context, a *Active, own map[string]string) {
	log := c.process.log("aip")
	ticker := time.NewTicker(recheckEvery) // for groups that could not be left, and what could not be kept
	defer ticker.Stop()
	disabled := make(map[string]bool)
	for {
		changed, some := a.feed.Changed(), false
		for name, aic := range own {
			if err := a.keep(ctx, aic); err != nil {
				log.WarnContext(ctx, "what the registry says of a Partner cannot be kept; trying again", "partner", name,
					"error", err)
			}
			now := a.Check(aic) != nil
			switch {
			case now && !disabled[name]:
				// What to do: see docs/discovery.md#disabled.
				log.Warn("the registry has disabled a Partner: its calls are refused, its streams end, and its groups are left",
					"partner", name)
			case !now && disabled[name]:
				log.Info("the registry has enabled a Partner again: it takes calls", "partner", name)
			}
			if disabled[name] = now; now {
				some = true
				c.Node().Groups.LeaveAllOf(name)
			}
		}
		if some {
			c.process.CutInactive()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-ticker.C:
		}
	}
}

const (
	// askAfter is the time for the feed of a registry to begin, before the registry is asked about missing Partners.
	askAfter = 10 * time.Second
	// askAgain is the time until the registry is asked again after no answer.
	askAgain = time.Minute
)

// ask asks the registry once about each Partner that its feed does not know.
func (a *Active) ask(ctx context.Context, own map[string]string) {
	if changed := a.feed.Changed(); a.feed.Health().Answered.IsZero() {
		select {
		case <-changed:
		case <-time.After(askAfter):
		case <-ctx.Done():
		}
	}
	asked := make(map[string]bool)
	for timer := time.NewTimer(0); ; timer.Reset(askAgain) {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		for name, aic := range own {
			if asked[name] {
				continue
			}
			if a.feed.Ask(ctx, aic) != nil {
				break
			}
			asked[name] = true
		}
		if len(asked) == len(own) {
			return
		}
	}
}
