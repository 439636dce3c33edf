// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestProtocol: nodes of two successive versions share the shards, and a rolling upgrade goes from one to the next. A
// node of any other version does not join while a node it cannot work with lives.
func TestProtocol(t *testing.T) {
	inBubble(t, func(w *world) {
		a, b := w.start("a"), w.start("b")
		bubble.Pass(20 * time.Second)
		w.speak = cluster.Protocol + 2
		c := w.open("c")
		bubble.Pass(time.Minute)
		refused, ok := errors.AsType[*cluster.ProtocolError](c.Ready())
		if !ok || refused.Theirs != cluster.Protocol || refused.Ours != cluster.Protocol+2 {
			t.Errorf("a node two versions later is ready: %v", c.Ready())
		}
		w.shares("a", "b")
		w.speak = cluster.Protocol + 1
		for i, n := range []**node{&a, &b} { // they are upgraded one by one
			(*n).end()
			*n = w.start((*n).name)
			if got := (*n).link.Spoken(); got != cluster.Protocol+i {
				t.Errorf("beside %d nodes with protocol %d, it writes for protocol %d", 1-i, cluster.Protocol, got)
			}
			bubble.Pass(20 * time.Second)
		}
		if got := a.link.Spoken(); got != cluster.Protocol+1 {
			t.Errorf("when all have the next protocol, the first one writes for protocol %d", got)
		}
		bubble.Pass(20 * time.Second)
		if err := c.Ready(); err != nil {
			t.Errorf("it has not joined when it may: %v", err)
		}
		w.shares("a", "b", "c")
		w.alone()
		for _, n := range c.Nodes() {
			if want := cluster.Protocol + 1; n.Name != "c" && n.Protocol != want {
				t.Errorf("%s has protocol %d, want %d", n.Name, n.Protocol, want)
			}
		}
		w.end(a, b, c)
	})
}

// TestSpoken: a node writes what one of the version before can read from its first record on, also when that one has
// left and may come back, and no more when it is forgotten.
func TestSpoken(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		link, revision := w.Link(), uint64(0)
		for _, left := range []bool{false, true} {
			older, err := json.Marshal(map[string]any{"incarnation": "0123", "protocol": cluster.Protocol - 1,
				"lease": int64(lease), "left": left, "started": time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			if revision, err = link.Write(t.Context(), "older", older, revision); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := a.link.Spoken(); got != cluster.Protocol-1 {
				t.Errorf("beside an older node, left: %t, it writes for protocol %d", left, got)
			}
		}
		bubble.Pass(50 * time.Minute)
		if got := a.link.Spoken(); got != cluster.Protocol-1 {
			t.Errorf("the older node may come back, and it writes for protocol %d", got)
		}
		bubble.Pass(20 * time.Minute)
		if got := a.link.Spoken(); got != cluster.Protocol {
			t.Errorf("the older node is forgotten, and it writes for protocol %d", got)
		}
		w.end(a)
	})
}

// TestProtocolOfTheDead: a node whose lease is over cannot keep another one from joining.
func TestProtocolOfTheDead(t *testing.T) {
	inBubble(t, func(w *world) {
		w.speak = cluster.Protocol + 5
		a := w.start("a")
		bubble.Pass(lease)
		a.die()
		w.speak = 0
		b := w.open("b")
		bubble.Pass(2 * lease)
		if err := b.Ready(); err != nil {
			t.Error(err)
		}
		w.end(b)
	})
}

// TestProtocolsAtOnce: of two nodes that do not work together one joins at most, also if both look before either has
// written its record.
func TestProtocolsAtOnce(t *testing.T) {
	const tick = 10 * time.Millisecond
	for name, c := range map[string]struct{ a, b, later time.Duration }{
		"at once":                   {5 * tick, 5 * tick, 0},
		"the first is slow":         {20 * tick, 5 * tick, 0},
		"the second is slow":        {5 * tick, 20 * tick, 0},
		"the second begins later":   {20 * tick, 5 * tick, 10 * tick},
		"while the first looks":     {5 * tick, 5 * tick, 7 * tick},
		"the first is slower still": {60 * tick, 5 * tick, 3 * tick},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				link := func(slow time.Duration, speak int) func(string) *node {
					return func(name string) *node {
						w.slow, w.speak = slow, speak
						return w.open(name)
					}
				}
				a := link(c.a, cluster.Protocol)("a")
				bubble.Pass(c.later)
				b := link(c.b, cluster.Protocol+2)("b")
				both := time.Duration(0)
				for range 1000 {
					bubble.Pass(tick)
					if a.Ready() == nil && b.Ready() == nil && both == 0 {
						both = w.at()
					}
				}
				if both != 0 {
					t.Errorf("both have joined at %v", both)
				} else if (a.Ready() == nil) == (b.Ready() == nil) {
					t.Errorf("none or both have joined: %v, %v", a.Ready(), b.Ready())
				}
				w.end(a, b)
			})
		})
	}
}

// TestProtocolAfterALapse: a node taken for dead, and back while a node it does not work together with lives, joins
// only when that one has left.
func TestProtocolAfterALapse(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		bubble.Pass(lease)
		a.link.Cut(true)
		w.speak = cluster.Protocol + 2
		b := w.open("b")
		bubble.Pass(3 * lease)
		if err := b.Ready(); err != nil {
			t.Error(err)
		}
		a.link.Cut(false)
		bubble.Pass(lease)
		if _, refused := errors.AsType[*cluster.ProtocolError](a.Ready()); !refused {
			t.Errorf("it has joined again: %v", a.Ready())
		}
		bubble.Pass(2 * lease) // it was seen to live for a moment
		w.shares("b")
		w.end(b)
		bubble.Pass(20 * time.Second)
		w.shares("a")
		w.alone()
		w.end(a)
	})
}

// TestNewerRecord: a node with members in its record unknown to this version is a node like any other.
func TestNewerRecord(t *testing.T) {
	inBubble(t, func(w *world) {
		a := w.start("a")
		newer, err := json.Marshal(map[string]any{"incarnation": "0123", "protocol": cluster.Protocol, "version": "v9",
			"lease": int64(lease), "mood": map[string]any{"good": true}, "started": time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Link().Write(t.Context(), "newer", newer, 0); err != nil {
			t.Fatal(err)
		}
		bubble.Pass(time.Second)
		if n := a.Nodes(); len(n) != 2 || n[1].Version != "v9" || !n[1].Living {
			t.Errorf("the nodes are %+v", n)
		}
		w.end(a)
	})
}

// TestUnknownMessage: a message of a kind unknown to this version changes nothing, and is logged once a minute.
func TestUnknownMessage(t *testing.T) {
	inBubble(t, func(w *world) {
		var lines bytes.Buffer
		w.log = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
		a := w.start("a")
		for range 10 {
			for _, data := range [][]byte{{200, 1, 2}, {}} {
				err := w.Link().Send(cluster.Message{From: "newer", To: a.Nodes()[0].Incarnation, ID: 1, Data: data})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		bubble.Pass(time.Second)
		if err := a.Ready(); err != nil {
			t.Error(err)
		}
		w.end(a)
		synctest.Wait()
		if n := strings.Count(lines.String(), "cannot be read"); n != 1 || !strings.Contains(lines.String(), "newer") {
			t.Errorf("there are %d lines: %s", n, lines.String())
		}
	})
}
