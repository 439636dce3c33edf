// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/agent"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
)

// buggy is a codec with a bug in what reads answers.
type buggy struct{ translate.Client }

func (buggy) Reply([]byte, []task.Product) (agent.Report, error) {
	var none []int
	return agent.Report{}, fmt.Errorf("%d", none[len(none)])
}

// buggyWatch is a codec with a bug in what asks for a stream again.
type buggyWatch struct {
	translate.Client
	translate.Getter
}

func (buggyWatch) AppendResubscribe([]byte, agent.Ref) []byte { panic("a stream") }

// buggyFinder has a bug in what reads cards.
type buggyFinder struct{ translate.Finder }

func (buggyFinder) Card([]byte) (*translate.Card, error) { panic("a card") }

// TestPanicReachesTheRun holds that a bug ends in the goroutine of the run that it is of, and holds up nobody else.
func TestPanicReachesTheRun(t *testing.T) {
	panics := func(f func()) (why string) {
		defer func() { why = fmt.Sprint(recover()) }()
		f()
		return ""
	}
	var callbacks Callbacks
	settings := func(c *Config) {
		c.Codec = buggy{a2a.Legacy()}
		c.Callbacks, c.CallbackURL = &callbacks, "http://gateway.example/callback/"
		c.Pushes = func(context.Context) bool { return true }
	}
	withAgent(t, script{"send": says(is("completed"))}.handler(), settings, func(t *testing.T, h *HTTP, _ *memory) {
		for range 2 {
			if why := panics(func() { show(h.Run(t.Context(), turn("x"), false)) }); !strings.Contains(why, "upstream.buggy.Reply") {
				t.Errorf("a run that is pushed to panics with %q", why)
			}
		}
		if len(callbacks.open) != 0 {
			t.Error("a run that is over can still be pushed to")
		}
	})

	working := script{"get": says(is("working"), is("working"), is("completed"))}
	withAgent(t, working.handler(), func(c *Config) { c.Codec = buggyWatch{a2a.Legacy(), a2a.Legacy().(translate.Getter)} }, func(t *testing.T, h *HTTP, _ *memory) {
		if got := show(h.Resume(t.Context(), turn("x"))); got[len(got)-1] != "completed" {
			t.Errorf("a turn that cannot be watched ends with %q", got)
		}
	})

	card := script{"": says(cardOf03)}
	withAgent(t, card.handler(), nil, func(t *testing.T, h *HTTP, m *memory) {
		a := &FoundAgent{log: h.log, config: FoundConfig{Discover: DiscoverConfig{URL: "http://agent/", Finder: buggyFinder{a2a.Finder()}, Dial: m.dial}}}
		for range 2 { // the second one is not kept waiting for the first
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if why := panics(func() { show(a.Run(ctx, turn("x"), false)) }); why != "a card" {
				t.Errorf("a search panics with %q", why)
			}
		}
	})
}
