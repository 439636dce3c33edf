// SPDX-License-Identifier: Apache-2.0

package revocation

import (
	"crypto/x509"
	"fmt"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/bubble"
)

// TestPassed: a chain found good a moment ago is judged again once more is known, and after passFor without anything
// more.
func TestPassed(t *testing.T) {
	known := func(c *Checker, chain []*x509.Certificate) error { return c.Known(chain) }
	check := func(c *Checker, chain []*x509.Certificate) error { return c.Check(t.Context(), chain, nil) }
	for name, judge := range map[string]func(*Checker, []*x509.Certificate) error{"known": known, "check": check} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				p := newPKI(t)
				list := write(t, "list", p.crl(p.first, 1, []int64{9}))
				c := start(t, Config{Sources: lists(list)})
				chain := p.leaf(p.first, 8)
				wants := func(what string, want Reason) {
					t.Helper()
					if got := reason(t, judge(c, chain)); got != want {
						t.Errorf("%s: %q, want %q", what, got, want)
					}
				}
				wants("at first", "")
				wants("again", "")
				bubble.Pass(time.Hour) // the list ends
				wants("at its end", Stale)
				write(t, list, p.crl(p.first, 2, nil, times(0, time.Hour)))
				<-c.Changed()
				wants("a new list", "")
				write(t, list, p.crl(p.first, 3, []int64{8}, times(0, time.Hour)))
				for changed := c.Changed(); ; bubble.Pass(passFor / 4) {
					select {
					case <-changed:
					default:
						wants("before it is revoked", "")
						continue
					}
					break
				}
				wants("as soon as it is revoked", Revoked)
			})
		})
	}
}

// TestPassedEnds: the end of a list is noticed within passFor by callers asking all the time.
func TestPassedEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPKI(t)
		c := start(t, Config{Sources: lists(write(t, "list", p.crl(p.first, 1, nil)))})
		chain := p.leaf(p.first, 8)
		if err := c.Known(chain); err != nil { // makes the issuer known
			t.Fatal(err)
		}
		until := c.locations[0].current[0].until
		bubble.Pass(time.Until(until) - time.Minute)
		for left := time.Until(until); left > -2*passFor; left = time.Until(until) {
			got := reason(t, c.Known(chain))
			if left > 0 && got != "" || left <= -passFor && got != Stale {
				t.Errorf("%v before the end: %q", left, got)
			}
			bubble.Pass(passFor / 4)
		}
	})
}

// TestPassedOfOthers: a chain of other certificates is judged for itself, though it may have the same place.
func TestPassedOfOthers(t *testing.T) {
	var p passed
	now := time.Now()
	one, again := &x509.Certificate{Raw: []byte("1....")}, &x509.Certificate{Raw: []byte("1....")}
	two, root := &x509.Certificate{Raw: []byte("2....")}, &x509.Certificate{Raw: []byte("root.")}
	p.add([]*x509.Certificate{one, root}, 1, now)
	for _, c := range []struct {
		chain      []*x509.Certificate
		generation uint64
		after      time.Duration
		want       bool
	}{
		{[]*x509.Certificate{one, root}, 1, 0, true},
		{[]*x509.Certificate{again, root}, 1, 0, true},
		{[]*x509.Certificate{one, root}, 1, passFor - 1, true},
		{[]*x509.Certificate{one, root}, 1, passFor, false},
		{[]*x509.Certificate{one, root}, 2, 0, false},
		{[]*x509.Certificate{two, root}, 1, 0, false},
		{[]*x509.Certificate{one, two}, 1, 0, false},
		{[]*x509.Certificate{one}, 1, 0, false},
	} {
		if got := p.has(c.chain, c.generation, now.Add(c.after)); got != c.want {
			t.Errorf("%s: %v, want %v", fmt.Sprint(c.generation, c.after), got, c.want)
		}
	}
}
