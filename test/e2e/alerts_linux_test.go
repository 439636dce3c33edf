// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"
)

// TestContribAlerts does one kind of harm after the other to gateways under load, and mends it. Each alert fires once,
// when it should, and no other one does.
func TestContribAlerts(t *testing.T) {
	t.Parallel()
	d := newDriven(t)
	small := mountsDisks(t)
	second, cut, connect := connectedMember(t, func(s *site) {
		if small {
			s.onSmallDisk()
		}
	})
	leader, receiver, held := leaderOf(t, second.url()), newSink(t), newSink(t)
	p := newPrometheus(t, d.site, second.site)
	eventually(t, "the load is seen", func() bool {
		return len(p.query(`sum by (agent) (rate(aip_calls_total[10s])) > 0`)) == 4
	})
	p.wantFired()

	// An agent that is down, one that fails, one that has no free run, a Leader at its limit, webhooks that become dead
	// letters, an endpoint that is down, one that is disabled, a broker that cannot be reached, and a certificate that is
	// not renewed in time.
	d.fails.broken.Store(true)
	d.busy.holds.Store(true)
	d.down.stop(t)
	for i := range 2 * smallRuns {
		call := startCall(fmt.Sprint("busy-", i), "hello")
		call.Terms.Response = time.Millisecond
		leaderOf(t, d.url()+"/busy").do(call)
	}
	for i := range smallLimit {
		eventually(t, "the Leader has one more task that does not end", func() bool { // beside that of the load
			_, err := d.limited.Do(t.Context(), startCall(fmt.Sprint("unfinished-", i), "hello"))
			return err == nil
		})
	}
	d.receivers.answers(always(refusal(400)))
	cut()
	receiver.down()
	second.identifyFor(10 * time.Minute)
	d.turn("disable", held.origin())
	lead(leaderOf(t, d.url()+"/good"), "held", held.origin()+"/hook")
	for i := range 10 {
		id := fmt.Sprint("notified-", i)
		leader.setHook(hook{URL: receiver.origin() + "/hook", Token: "t", TaskID: id})
		leader.start(id, "hello")
	}
	expected := []string{"AIPAgentDown", "AIPAgentFails", "AIPAgentSaturated", "AIPCallsRefused", "AIPWebhooksDead",
		"AIPWebhookBreakersOpen", "AIPWebhooksLate", "AIPGroupDisconnected", "AIPCertificateEndsSoon"}
	for _, name := range expected {
		p.waitForAlert(name)
	}
	d.fails.broken.Store(false)
	close(d.busy.free)
	runSampleAgent(t, d.downAt)
	for i := range smallLimit {
		d.limited.Do(t.Context(), commandCall("complete", fmt.Sprint("unfinished-", i)))
	}
	d.receivers.answers(always(taken()))
	receiver.up()
	second.enable(receiver.origin())
	d.enable(held.origin())
	connect()
	second.identify()

	// A disk that is nearly full, and then full.
	if small {
		second.fill(diskMinFree * 3 / 2)
		p.waitForAlert("AIPStoreDiskNearlyFull")
		expected = append(expected, "AIPStoreDiskNearlyFull")
		second.fill(0)
	} else {
		second.growFiles(false)
		leader.Do(t.Context(), startCall("full", "hello"))
	}
	p.waitForAlert("AIPStoreUnwritable")
	if small {
		second.empty()
	} else {
		second.growFiles(true)
	}
	p.waitForCalm()

	p.countMissed()
	second.stop(t)
	p.waitForAlert("AIPGatewayDown")
	p.wantFired(append(expected, "AIPStoreUnwritable", "AIPGatewayDown")...)
}
