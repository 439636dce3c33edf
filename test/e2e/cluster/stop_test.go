// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestClusterStops: a gateway that is asked to stop hands its tasks over first. Calls that wait for a task which it
// works on are answered, also at another gateway, and the agent is not told again. No call at another one fails.
func TestClusterStops(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	agent := site.NewFakeAgent(t, site.Forward(address))
	// A gateway that is silent for longer than its lease is gone, and has handed nothing over.
	c := site.NewCluster(t, 2, "aip_gateway a2a/legacy "+agent.URL+" {\nagent {\nresend after 40s\n}\n}", "lease 20s")
	leader := string(site.Certificates(t).Leader.AIC)
	owner := c.Owner(agent.URL, leader)
	other := 1 - owner
	at := func(i int) *site.Caller { return site.LeaderOf(t, c.Gateways[i].URL()) }

	var calls, others sync.WaitGroup
	stopped := make(chan struct{})
	for i := range 4 { // Leaders, each with its shard
		aic := string(site.Must(identity.MakeV1(identity.FieldsV1{}))(t))
		of := site.CallerWith(t, c.Gateways[other].URL(), aic, site.Issue(t, aic))
		others.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopped:
					t.Logf("%d calls of another Leader", n)
					return
				default:
				}
				if _, err := of.Try(site.StartCall(fmt.Sprint(i, "-", n), "hello")); err != nil {
					t.Errorf("a start while a gateway stops: %v", site.Explain(err))
					return
				}
			}
		})
	}
	calls.Go(func() {
		got, err := at(other).Try(site.StartCall("t", "slow 4"))
		if err != nil || got.ID != "t" { // with the result, or as it is
			t.Errorf("the call at the other gateway: %v, %v", got, site.Explain(err))
		}
	})
	calls.Go(func() {
		site.Eventually(t, "the agent works", func() bool { return agent.Sent("slow 4") > 0 })
		got, err := at(owner).Try(site.StartCall("t2", "slow 4"))
		if err != nil || got.ID != "t2" { // with the result, or as it is
			t.Errorf("the call at the gateway that stops: %v, %v", got, site.Explain(err))
		}
	})
	site.Eventually(t, "the agent works on both", func() bool { return agent.Sent("slow 4") >= 2 })
	began := time.Now()
	c.Gateways[owner].Stop(t)
	t.Logf("the gateway stopped within %v", time.Since(began))
	close(stopped)
	calls.Wait()
	others.Wait()
	if n := agent.Sent("slow 4"); n != 2 {
		t.Errorf("the agent was told %d times", n)
	}
	for _, id := range []string{"t", "t2"} {
		at(other).Rests(id)
		if got := at(other).Complete(id); got.Status.State != task.Completed {
			t.Errorf("%s is %s at the end", id, got.Status.State)
		}
	}
	if now := c.Owner(agent.URL, leader); now != other {
		t.Errorf("the tasks are owned by %d", now)
	}
}

// TestClusterWithoutServers: a gateway that cannot reach the servers is up, unready and says why; it is ready as soon
// as they are there. Without a quorum nothing is acknowledged, and all is well again when there is one.
func TestClusterWithoutServers(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	c := site.NewCluster(t, 1, site.GatewayTo(address), "")
	s := c.Gateways[0]
	site.LeaderOf(t, s.URL()).Start("before", "hello")
	s.Stop(t)
	for _, server := range c.Servers.Servers {
		server.Kill()
	}
	s.Start(c.Config(0, site.GatewayTo(address), ""))
	site.Eventually(t, "the gateway is unready without servers, and says why", func() bool {
		h := s.Health(t)
		return h.Status == adminapi.Unready &&
			strings.Contains(strings.Join(h.Reasons, " "), "the NATS servers cannot be reached")
	})
	s.WaitFor(t, "the store cannot be used yet; the gateway is unready, and keeps trying")
	if refused := site.LeaderOf(t, s.URL()).Refused(site.CommandCall(task.Get, "before")); refused.Code != -32603 ||
		!strings.Contains(string(refused.Raw), "STORE_UNAVAILABLE") {
		t.Errorf("a get without servers: %s", refused.Raw)
	}
	for _, server := range c.Servers.Servers {
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
	}
	site.Eventually(t, "the gateway is ready", func() bool { return s.Health(t).Status == adminapi.Ready })
	site.LeaderOf(t, s.URL()).Complete("before")

	for _, server := range c.Servers.Servers[1:] {
		server.Kill()
	}
	site.Eventually(t, "the gateway is unready", func() bool { return s.Health(t).Status == adminapi.Unready })
	if refused := site.LeaderOf(t, s.URL()).Refused(site.StartCall("during", "hello")); refused.Code != -32603 {
		t.Errorf("a start without a quorum: %s", refused.Raw)
	}
	for _, server := range c.Servers.Servers[1:] {
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
	}
	site.Eventually(t, "the gateway is ready again", func() bool { return s.Health(t).Status == adminapi.Ready })
	site.LeaderOf(t, s.URL()).Start("after", "hello")
}
