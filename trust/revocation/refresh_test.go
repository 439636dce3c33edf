// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ocsp"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// dayLong makes the answers of a responder count for a day.
func dayLong(r *ocsp.Response) { r.ThisUpdate, r.NextUpdate = time.Now(), time.Now().Add(24*time.Hour) }

// TestOldAnswersDecideNoCall has a certificate revoked while its holder makes no call: the next call asks, and waits,
// even if the current answer counts for long.
//
// Promise: a Leader whose certificate was revoked goes on
func TestOldAnswersDecideNoCall(t *testing.T) {
	query := Source{Kind: OCSP, Location: responderURL}
	for _, test := range []struct {
		name                string
		source              Source
		again, staple, keep bool // it starts again in between; the answer comes as a staple, or is kept on disk
	}{
		{name: "ocsp", source: query},
		{name: "acps", source: Source{Kind: ACPS, Location: "http://localhost"}},
		{name: "kept on disk", source: query, again: true, keep: true},
		{name: "a staple", source: query, staple: true, again: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newPKI(t)
				r := &responder{p: p, delay: time.Second, change: dayLong}
				config := Config{Sources: []Source{test.source}}
				if test.keep {
					config.Dir = t.TempDir()
				}
				c, chain := startAsking(t, r, config), p.leaf(p.first, 7)
				var staple []byte
				if test.staple {
					staple = r.answer(chain[0])
				}
				if got := reason(t, c.Check(t.Context(), chain, staple)); got != "" {
					t.Fatalf("at first: %q", got)
				}
				r.set(func() { r.status = map[int64]int{7: ocsp.Revoked} })
				bubble.Pass(30 * time.Minute)
				if test.again {
					c.Close()
					c = startAsking(t, r, config)
				}
				if err := c.Known(chain); err != nil {
					t.Errorf("a handshake: %v", err)
				}
				gone, cancel := context.WithCancel(t.Context())
				cancel()
				if got := reason(t, c.Check(gone, chain, staple)); got == "" {
					t.Error("a call that does not wait is let in")
				}
				if got := reason(t, c.Check(t.Context(), chain, staple)); got != Revoked {
					t.Errorf("the first call after hours: %q", got)
				}
			})
		})
	}
}

// TestOldAnswersOfWhoIsAway: an answer that has not ended counts if its source was asked again, and does not answer.
func TestOldAnswersOfWhoIsAway(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		r := &responder{p: p, change: dayLong}
		c, chain := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}}), p.leaf(p.first, 7)
		for _, fails := range []int{0, 503, 503} {
			r.set(func() { r.fails = fails })
			if got := reason(t, c.Check(t.Context(), chain, nil)); got != "" {
				t.Errorf("%d: %q", fails, got)
			}
			bubble.Pass(time.Hour)
		}
		if n := r.count(); n != 3 {
			t.Errorf("%d requests, want one for each call", n)
		}
	})
}

// TestCallersInUseDoNotWait has a caller making calls all the time, and a slow responder: the answer is there before
// the one before is too old.
func TestCallersInUseDoNotWait(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		r := &responder{p: p, delay: 2 * time.Second, change: dayLong}
		c, chain := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}}), p.leaf(p.first, 7)
		if err := c.Check(t.Context(), chain, nil); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range 120 {
			bubble.Pass(10 * time.Second)
			if err := c.Check(gone, chain, nil); err != nil {
				t.Fatalf("call %d would have to wait: %v", i, err)
			}
		}
		if n := r.count(); n > 6 {
			t.Errorf("%d requests in 20 minutes", n)
		}
	})
}

// TestRateUsedUp has a source not to be asked now: none behind it is asked in its place. A call waits for its turn if
// the turn comes soon.
//
// Promise: a Leader whose certificate was revoked goes on
func TestRateUsedUp(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		one, two := &responder{p: p, change: dayLong}, &responder{p: p, change: dayLong}
		hosts := transports{"first": one, "second": two}
		sources := []Source{{Kind: OCSP, Location: "http://first"}, {Kind: OCSP, Location: "http://second"}}
		var lines bytes.Buffer
		c := startWith(t, hosts, Config{Sources: sources, Rate: 1})
		c.log = slog.New(slog.NewTextHandler(&lines, nil))
		chain, other := p.leaf(p.first, 7), p.leaf(p.first, 8)
		if got := reason(t, c.Check(t.Context(), chain, nil)); got != "" || c.Health()[0].Err != nil {
			t.Fatalf("at first: %q, %v", got, c.Health()[0].Err)
		}
		for range 3 {
			if got := reason(t, c.Check(t.Context(), other, nil)); got != RateUsedUp {
				t.Errorf("the rate is used up: %q", got)
			}
			if err := c.Known(other); err != nil {
				t.Errorf("a handshake: %v", err)
			}
		}
		h := c.Health()[0]
		if h.Err == nil || !strings.Contains(h.Err.Error(), "rate of 1 a minute is used up") || h.Unasked != 1 {
			t.Errorf("health: %v, %d were not asked", h.Err, h.Unasked)
		}
		if n := strings.Count(lines.String(), "its rate is used up"); n != 1 {
			t.Errorf("it is logged %d times: %s", n, &lines)
		}
		if n := two.count(); n != 0 {
			t.Errorf("the source behind was asked %d times", n)
		}

		bubble.Pass(58 * time.Second)
		if got := reason(t, c.Check(t.Context(), other, nil)); got != "" || one.count() != 2 {
			t.Errorf("its turn comes soon: %q after %d requests", got, one.count())
		}
		one.set(func() { one.status = map[int64]int{7: ocsp.Revoked} })
		bubble.Pass(10 * time.Minute)
		if err := c.Health()[0].Err; err != nil {
			t.Errorf("afterwards: %v", err)
		}
		if got := reason(t, c.Check(t.Context(), other, nil)); got != "" {
			t.Errorf("asked again: %q", got)
		}
		if got := reason(t, c.Check(t.Context(), chain, nil)); got != RateUsedUp {
			t.Errorf("an old answer, and the rate is used up: %q", got)
		}
		bubble.Pass(time.Minute)
		if got := reason(t, c.Check(t.Context(), chain, nil)); got != Revoked || two.count() != 0 {
			t.Errorf("a minute later: %q; the source behind was asked %d times", got, two.count())
		}
	})
}

// TestRateOfWaiting: a call waiting for a turn takes it, so the rate holds in any minute.
func TestRateOfWaiting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		r := &responder{p: p}
		c := startAsking(t, r, Config{Sources: []Source{{Kind: OCSP, Location: responderURL}}, Rate: 1})
		check := func(serial int64) Reason { return reason(t, c.Check(t.Context(), p.leaf(p.first, serial), nil)) }
		check(1)
		bubble.Pass(58 * time.Second)
		done := make(chan Reason)
		go func() { done <- check(2) }()
		bubble.Pass(time.Second)
		if got := check(3); got != RateUsedUp {
			t.Errorf("the turn of another one is taken: %q", got)
		}
		if got := <-done; got != "" || r.count() != 2 {
			t.Errorf("who has waited: %q after %d requests", got, r.count())
		}
	})
}
