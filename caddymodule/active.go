// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
)

// errInactive refuses calls of a Partner that its registry has disabled, and ends the streams that are open.
var errInactive = task.Errorf(task.AgentUnavailable, "the Partner is not active at its registry")

// inactive returns why the Partner takes no calls: the registry of the option registry has disabled it. While nothing
// is known, what the registry has said last counts, also to a process before. One of which it has never said anything
// is active.
func (g *Gateway) inactive() error {
	if g.app.feed == nil || g.AIC == "" {
		return nil
	}
	s := g.app.feed.Agent(g.AIC)
	if s.Known && !s.Active || !s.Known && g.app.wasDisabled(g.AIC) {
		return errInactive
	}
	return nil
}

// isFollowed reports whether the registry of an app says if the Partner is active: it has only AICs with dots.
func (g *Gateway) isFollowed(by *App) bool { return by.feed != nil && strings.Contains(g.AIC, ".") }

// loadDisabled reads what the registry has said last, before the first call.
func (g *Gateway) loadDisabled(ctx context.Context, app *App) error {
	if !g.isFollowed(app) {
		return nil
	}
	was, err := app.account.WasDisabled(ctx, g.AIC)
	if err != nil {
		return fmt.Errorf("whether the registry has disabled the Partner cannot be read: %w", err)
	}
	app.disabled.Store(g.AIC, was)
	return nil
}

// wasDisabled reports whether the registry has said last of a Partner that it is not active.
func (a *App) wasDisabled(aic string) bool {
	was, _ := a.disabled.Load(aic)
	return was == true
}

// keepDisabled keeps what the registry says, if that is another thing than what is kept.
func (g *Gateway) keepDisabled(ctx context.Context, log *slog.Logger) {
	s := g.app.feed.Agent(g.AIC)
	if !s.Known || s.Active != g.app.wasDisabled(g.AIC) {
		return
	}
	if err := g.app.account.KeepDisabled(ctx, g.AIC, !s.Active); err != nil {
		log.WarnContext(ctx, "what the registry says of a Partner cannot be kept; trying again", "partner", g.name(),
			"error", err)
		return
	}
	g.app.disabled.Store(g.AIC, !s.Active)
}

// startActive begins to follow whether the registry has Partners as active, until the configuration ends. a.mu is held.
func (a *App) startActive() {
	own := make(map[string]*Gateway) // by name
	for _, g := range a.members {
		if g.isFollowed(a) {
			own[g.name()] = g
		}
	}
	if len(own) == 0 {
		return
	}
	a.feed.Start()
	a.configuration.Go(func(ctx context.Context) { a.followActive(ctx, own) })
	a.configuration.Go(func(ctx context.Context) { a.askActive(ctx, maps.Clone(own)) })
}

// followActive ends the streams of Partners that the registry has disabled, and has them leave their groups. Their
// tasks go on.
func (a *App) followActive(ctx context.Context, own map[string]*Gateway) {
	log := logOf("aip")
	ticker := time.NewTicker(recheckEvery) // for groups that could not be left, and what could not be kept
	defer ticker.Stop()
	disabled := make(map[string]bool)
	for {
		changed, some := a.feed.Changed(), false
		for name, g := range own {
			g.keepDisabled(ctx, log)
			now := g.inactive() != nil
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
				a.configuration.Node().Groups.LeaveAllOf(name)
			}
		}
		if some {
			process.CutInactive()
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
	// askAfter is how long is waited for the feed of a registry before it is asked about Partners that the feed lacks.
	askAfter = 10 * time.Second
	// askAgain is when it is asked again after it has not answered.
	askAgain = time.Minute
)

// askActive asks the registry once about each Partner that its feed does not know.
func (a *App) askActive(ctx context.Context, own map[string]*Gateway) {
	if changed := a.feed.Changed(); a.feed.Health().Answered.IsZero() {
		select {
		case <-changed:
		case <-time.After(askAfter):
		case <-ctx.Done():
		}
	}
	for timer := time.NewTimer(0); ; timer.Reset(askAgain) {
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		for name, g := range own {
			if a.feed.Ask(ctx, g.AIC) != nil {
				break
			}
			delete(own, name)
		}
		if len(own) == 0 {
			return
		}
	}
}
