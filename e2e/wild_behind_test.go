// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
)

// TestWildBehind has Leaders of AIP by rule lead Partners of AIP by rule, directly and behind the gateway.
func TestWildBehind(t *testing.T) {
	t.Parallel()
	runWild(t, wildBehind)
}

// behind makes the row of a Partner that the gateway fronts.
func (r aipRow) behindToo() wildRow {
	r.behind = partnerBy(r.partner)
	return r.row()
}

var wildBehind = []wildRow{
	aipRow{
		name:    "does the work before it answers a start",
		partner: wildPartnerRule{inStart: true},
		lead:    func(l *wildLeader) error { return l.settledBy(l.rpc("start", "hello", nil)) },
		want:    wildEnd{Settled: awaitsCompletion, Products: helloDone, Told: helloTold},
	}.behindToo(),
	aipRow{
		name:    "writes null for all that is optional",
		partner: wildPartnerRule{nulls: true},
		lead:    func(l *wildLeader) error { return l.polled("hello") },
		want:    completedHello,
	}.behindToo(),
	aipRow{
		name: "asks, and is answered",
		lead: func(l *wildLeader) error {
			if err := l.started("ask", nil); err != nil {
				return err
			}
			if _, err := l.rpc("continue", "blue", nil); err != nil {
				return err
			}
			if err := l.settledBy(l.poll()); err != nil {
				return err
			}
			return l.settledBy(l.rpc("complete", "", nil))
		},
		want: askedColour,
	}.behindToo(),
	aipRow{
		name: "fails",
		lead: func(l *wildLeader) error { return l.started("fail", nil) },
		want: wildEnd{Settled: []string{"failed"}, Said: []string{"the oven is broken"}, Told: []string{"fail"}},
	}.behindToo(),
	aipRow{
		name: "rejects in the answer to a start",
		lead: func(l *wildLeader) error { return l.started("reject", nil) },
		want: wildEnd{Settled: []string{"rejected"}, Said: []string{"this is no work for me"}, Told: []string{"reject"}},
	}.behindToo(),
	aipRow{
		name:    "rejects after it has accepted, which the gateway shows as failed",
		partner: wildPartnerRule{late: true},
		lead: func(l *wildLeader) error {
			if _, err := l.rpc("start", "reject", nil); err != nil {
				return err
			}
			r, err := l.poll()
			if err == nil {
				l.note("refused: %t, as it says: %s", r.Status.State == "rejected" || r.Status.State == "failed",
					textOf(r.Status.DataItems))
			}
			return err
		},
		want: wildEnd{Noted: []string{"refused: true, as it says: this is no work for me"}, Told: []string{"reject"}},
	}.behindToo(),
	aipRow{
		name:    "says `working` for ever, until it is canceled",
		partner: wildPartnerRule{forever: true},
		lead: func(l *wildLeader) error {
			if _, err := l.rpc("start", "hello", nil); err != nil {
				return err
			}
			for range 3 {
				if r, err := l.rpc("get", "", nil); err != nil || settled(r.Status.State) {
					return fmt.Errorf("get is answered by %+v, %w", r, err)
				}
			}
			return l.settledBy(l.rpc("cancel", "", nil))
		},
		want: wildEnd{Settled: []string{"canceled"}, Told: helloTold},
	}.behindToo(),
	aipRow{
		name: "publishes whole results in a stream",
		lead: func(l *wildLeader) error {
			r, err := l.stream("start", "hello", nil)
			if err := l.settledBy(r, err); err != nil {
				return err
			}
			return l.settledBy(l.rpc("complete", "", nil))
		},
		want: completedHello,
	}.behindToo(),
}
