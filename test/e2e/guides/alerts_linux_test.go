// SPDX-License-Identifier: Apache-2.0

package guides

import (
	"fmt"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestContribAlerts does one kind of harm after the other to gateways under load, and mends it. Each alert fires once,
// when it should, and no other one does.
func TestContribAlerts(t *testing.T) {
	t.Parallel()
	d := newDriven(t)
	small := site.MountsDisks(t)
	second, cut, connect := connectedMember(t, func(s *site.Site) {
		if small {
			s.OnSmallDisk()
		}
	})
	leader, receiver, held := site.LeaderOf(t, second.URL()), site.NewSink(t), site.NewSink(t)
	p := newPrometheus(t, d.Site, second.Site)
	site.Eventually(t, "the load is seen", func() bool {
		return len(p.query(`sum by (agent) (rate(aip_calls_total[10s])) > 0`)) == 4
	})
	p.wantFired()

	// An agent that is down, one that fails, one that has no free run, a Leader at its limit, webhooks that become dead
	// letters, an endpoint that is down, one that is disabled, a broker that cannot be reached, and a certificate that is
	// not renewed in time.
	d.fails.broken.Store(true)
	d.busy.holds.Store(true)
	d.down.Stop(t)
	for i := range 2 * smallRuns {
		call := site.StartCall(fmt.Sprint("busy-", i), "hello")
		call.Terms.Response = time.Millisecond
		site.LeaderOf(t, d.URL()+"/busy").Send(call)
	}
	for i := range smallLimit {
		site.Eventually(t, "the Leader has one more task that does not end", func() bool { // beside that of the load
			_, err := d.limited.Do(t.Context(), site.StartCall(fmt.Sprint("unfinished-", i), "hello"))
			return err == nil
		})
	}
	d.receivers.Answers(site.Always(site.Refusal(400)))
	cut()
	receiver.Down()
	second.IdentifyFor(10 * time.Minute)
	d.Turn("disable", held.Origin())
	site.LeadWithWebhook(site.LeaderOf(t, d.URL()+"/good"), "held", held.Origin()+"/hook")
	for i := range 10 {
		id := fmt.Sprint("notified-", i)
		leader.SetHook(site.Hook{URL: receiver.Origin() + "/hook", Token: "t", TaskID: id})
		leader.Start(id, "hello")
	}
	expected := []string{"AIPAgentDown", "AIPAgentFails", "AIPAgentSaturated", "AIPCallsRefused", "AIPWebhooksDead",
		"AIPWebhookBreakersOpen", "AIPWebhooksLate", "AIPGroupDisconnected", "AIPCertificateEndsSoon"}
	for _, name := range expected {
		p.waitForAlert(name)
	}
	d.fails.broken.Store(false)
	close(d.busy.free)
	site.RunSampleAgent(t, d.downAt)
	for i := range smallLimit {
		d.limited.Do(t.Context(), site.CommandCall("complete", fmt.Sprint("unfinished-", i)))
	}
	d.receivers.Answers(site.Always(site.Taken()))
	receiver.Up()
	second.Enable(receiver.Origin())
	d.Enable(held.Origin())
	connect()
	second.Identify()

	// A disk that is nearly full, and then full.
	if small {
		second.Fill(site.DiskMinFree * 3 / 2)
		p.waitForAlert("AIPStoreDiskNearlyFull")
		expected = append(expected, "AIPStoreDiskNearlyFull")
		second.Fill(0)
	} else {
		second.GrowFiles(false)
		leader.Do(t.Context(), site.StartCall("full", "hello"))
	}
	p.waitForAlert("AIPStoreUnwritable")
	if small {
		second.Empty()
	} else {
		second.GrowFiles(true)
	}
	p.waitForCalm()

	p.countMissed()
	second.Stop(t)
	p.waitForAlert("AIPGatewayDown")
	p.wantFired(append(expected, "AIPStoreUnwritable", "AIPGatewayDown")...)
}
