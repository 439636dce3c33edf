// SPDX-License-Identifier: Apache-2.0

package wild

import (
	"fmt"
	"testing"
	"time"
)

// TestWildBehind has Leaders of AIP by rule lead Partners of AIP by rule, directly and behind the gateway.
func TestWildBehind(t *testing.T) {
	t.Parallel()
	runWild(t, wildBehind)
}

// behindToo makes the row of a Partner that the gateway fronts.
func (r aipRow) behindToo() wildRow {
	r.behind = partnerBy(r.partner)
	return r.row()
}

var wildBehind = []wildRow{
	aipRow{
		name: "answers `accepted` at once, and is polled",
		lead: func(l *wildLeader) error {
			l.web.Timeout = 10 * time.Second // as that of a page which has many commands to send
			r, err := l.rpc("start", "hold", nil)
			if err != nil {
				return err
			}
			l.note("answered before its end: %t", !settled(r.Status.State))
			other := *l
			other.anew()
			if _, err := other.rpc("start", "release", nil); err != nil {
				return err
			}
			if err := l.settledBy(l.poll()); err != nil {
				return err
			}
			return l.settledBy(l.rpc("complete", "", nil))
		},
		want: wildEnd{Settled: completedHello.Settled, Products: []string{"done: hold"},
			Noted: []string{"answered before its end: true"}, Told: []string{"hold", "release"}},
	}.behindToo(),
	aipRow{
		name:    "does the work before it answers a start",
		partner: wildPartnerRule{inStart: true},
		lead:    func(l *wildLeader) error { return l.settledBy(l.rpc("start", "hello", nil)) },
		want:    wildEnd{Settled: awaitsCompletion, Products: helloDone, Told: helloTold},
	}.behindToo(),
	aipRow{
		name:    "completes in the answer to a start, for a Leader that sends no more",
		partner: wildPartnerRule{inStart: true, completes: true},
		lead:    completedByStart,
		want:    wildEnd{Settled: []string{"completed"}, Products: helloDone, Told: helloTold},
	}.behindToo(),
	aipRow{
		name:    "completes its tasks itself, and is polled",
		partner: wildPartnerRule{completes: true},
		lead:    func(l *wildLeader) error { return l.started("hello", nil) },
		want:    wildEnd{Settled: []string{"completed"}, Products: helloDone, Told: helloTold},
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
			if _, err := l.reaches("working", l.state); err != nil { // before, the cancel may come before the Partner is asked
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
	sessionsRow("is led by several sessions with the same HTTP clients, which the end of one closes", "",
		partnerBy(wildPartnerRule{})),
}
