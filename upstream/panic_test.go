// SPDX-License-Identifier: Apache-2.0

package upstream_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/task/agent"
	"github.com/aip-gateway/aip-gateway/translate"
	"github.com/aip-gateway/aip-gateway/translate/a2a"
	"github.com/aip-gateway/aip-gateway/upstream"
	"github.com/aip-gateway/aip-gateway/upstream/callback"
	"github.com/aip-gateway/aip-gateway/upstream/discovery"
)

// buggy is a codec with a bug in its reader of answers.
type buggy struct{ translate.Client }

func (b buggy) For(translate.Query) translate.Client { return b }

func (buggy) Reply([]byte, []task.Product) (agent.Report, error) {
	var none []int
	return agent.Report{}, fmt.Errorf("%d", none[len(none)])
}

// buggyWatch is a codec with a bug in its request for a new stream.
type buggyWatch struct {
	translate.Client
	translate.Getter
}

func (b buggyWatch) For(translate.Query) translate.Client { return b }

func (buggyWatch) AppendResubscribe([]byte, agent.Ref) []byte { panic("a stream") }

// buggyFinder has a bug in its reader of cards.
type buggyFinder struct{ translate.Finder }

func (buggyFinder) Card([]byte) (*translate.Card, error) { panic("a card") }

// TestPanicReachesTheRun: a bug ends in the goroutine of its own run, and stops no other run.
func TestPanicReachesTheRun(t *testing.T) {
	panics := func(f func()) (why string) {
		defer func() { why = fmt.Sprint(recover()) }()
		f()
		return ""
	}
	inboxes := listenAt(new(callback.Server))
	pushed := func(c *settings) { c.Codec, c.Listener = buggy{a2a.Legacy()}, inboxes }
	withAgent(t, script{"send": says(is("completed"))}.handler(), pushed,
		func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
			for range 2 {
				if why := panics(func() { show(carryOut(t.Context(), h, turn("x"), false)) }); !strings.Contains(why,
					"upstream_test.buggy.Reply") {
					t.Errorf("a run that is pushed to panics with %q", why)
				}
			}
			if inboxes.open.Load() != 0 {
				t.Error("a run that is over can still be pushed to")
			}
		})

	working := script{"get": says(is("working"), is("working"), is("completed"))}
	withAgent(t, working.handler(),
		func(c *settings) { c.Codec = buggyWatch{a2a.Legacy(), a2a.Legacy().(translate.Getter)} },
		func(t *testing.T, h *upstream.Agent, _ *agentUnderTest) {
			if got := show(h.Resume(t.Context(), turn("x"))); got[len(got)-1] != "completed" {
				t.Errorf("a turn that cannot be watched ends with %q", got)
			}
		})

	card := script{"": says(cardOf03)}
	withAgent(t, card.handler(), nil, func(t *testing.T, h *upstream.Agent, m *agentUnderTest) {
		config := resolverConfig("http://agent/", m.Dial)
		config.Discover.Finder = buggyFinder{a2a.Finder()}
		resolver, err := discovery.NewResolver(config)
		if err != nil {
			t.Fatal(err)
		}
		a := upstream.New(upstream.Config{Resolver: resolver})
		a.NumberAll("1")
		for range 2 { // the second one is not kept waiting for the first
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if why := panics(func() { show(carryOut(ctx, a, turn("x"), false)) }); !strings.Contains(why,
				"upstream_test.buggyFinder.Card") {
				t.Errorf("a search panics with %q", why)
			}
		}
	})
}
