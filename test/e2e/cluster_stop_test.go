// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/identity"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// health returns whether a gateway is ready.
func (s *site) health(t *testing.T) (h adminapi.Health) {
	t.Helper()
	res, err := http.Get(s.adminURL() + adminapi.HealthReady)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestClusterStops: a gateway that is asked to stop hands its tasks over first. Calls that wait for a task which it
// works on are answered, also at another gateway, and the agent is not told again. No call at another one fails.
func TestClusterStops(t *testing.T) {
	t.Parallel()
	_, address := sampleAgent(t)
	agent := newFakeAgent(t, forward(address))
	// A gateway that is silent for longer than its lease is gone, and has handed nothing over.
	c := newCluster(t, 2, "aip_gateway a2a/legacy "+agent.url+" {\nagent {\nresend after 40s\n}\n}", "lease 20s")
	leader := string(certificates(t).Leader.AIC)
	owner := c.owner(agent.url, leader)
	other := 1 - owner
	at := func(i int) *caller { return leaderOf(t, c.gateways[i].url()) }

	var calls, others sync.WaitGroup
	stopped := make(chan struct{})
	for i := range 4 { // Leaders, each with its shard
		aic := string(must(identity.MakeV1(identity.FieldsV1{}))(t))
		of := callerWith(t, c.gateways[other].url(), aic, issue(t, aic))
		others.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopped:
					t.Logf("%d calls of another Leader", n)
					return
				default:
				}
				if _, err := of.try(startCall(fmt.Sprint(i, "-", n), "hello")); err != nil {
					t.Errorf("a start while a gateway stops: %v", explain(err))
					return
				}
			}
		})
	}
	calls.Go(func() {
		got, err := at(other).try(startCall("t", "slow 4"))
		if err != nil || got.ID != "t" { // with the result, or as it is
			t.Errorf("the call at the other gateway: %v, %v", got, explain(err))
		}
	})
	calls.Go(func() {
		eventually(t, "the agent works", func() bool { return agent.sent("slow 4") > 0 })
		got, err := at(owner).try(startCall("t2", "slow 4"))
		if err != nil || got.ID != "t2" { // with the result, or as it is
			t.Errorf("the call at the gateway that stops: %v, %v", got, explain(err))
		}
	})
	eventually(t, "the agent works on both", func() bool { return agent.sent("slow 4") >= 2 })
	began := time.Now()
	c.gateways[owner].stop(t)
	t.Logf("the gateway stopped within %v", time.Since(began))
	close(stopped)
	calls.Wait()
	others.Wait()
	if n := agent.sent("slow 4"); n != 2 {
		t.Errorf("the agent was told %d times", n)
	}
	for _, id := range []string{"t", "t2"} {
		at(other).rests(id)
		if got := at(other).complete(id); got.Status.State != task.Completed {
			t.Errorf("%s is %s at the end", id, got.Status.State)
		}
	}
	if now := c.owner(agent.url, leader); now != other {
		t.Errorf("the tasks are owned by %d", now)
	}
}

// TestClusterWithoutServers: a gateway that cannot reach the servers is up, unready and says why; it is ready as soon
// as they are there. Without a quorum nothing is acknowledged, and all is well again when there is one.
func TestClusterWithoutServers(t *testing.T) {
	t.Parallel()
	_, address := sampleAgent(t)
	c := newCluster(t, 1, gatewayTo(address), "")
	s := c.gateways[0]
	leaderOf(t, s.url()).start("before", "hello")
	s.stop(t)
	for _, server := range c.servers.Servers {
		server.Kill()
	}
	s.start(c.config(0, gatewayTo(address), ""))
	h := s.health(t)
	if reasons := strings.Join(h.Reasons, " "); h.Status != adminapi.Unready ||
		!strings.Contains(reasons, "the NATS servers cannot be reached") {
		t.Errorf("without servers: %+v", h)
	}
	s.waitFor(t, "the store cannot be used yet; the gateway is unready, and keeps trying")
	if refused := leaderOf(t, s.url()).refused(commandCall(task.Get, "before")); refused.Code != -32603 ||
		!strings.Contains(string(refused.Raw), "STORE_UNAVAILABLE") {
		t.Errorf("a get without servers: %s", refused.Raw)
	}
	for _, server := range c.servers.Servers {
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the gateway is ready", func() bool { return s.health(t).Status == adminapi.Ready })
	leaderOf(t, s.url()).complete("before")

	for _, server := range c.servers.Servers[1:] {
		server.Kill()
	}
	eventually(t, "the gateway is unready", func() bool { return s.health(t).Status == adminapi.Unready })
	if refused := leaderOf(t, s.url()).refused(startCall("during", "hello")); refused.Code != -32603 {
		t.Errorf("a start without a quorum: %s", refused.Raw)
	}
	for _, server := range c.servers.Servers[1:] {
		if err := server.Run(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the gateway is ready again", func() bool { return s.health(t).Status == adminapi.Ready })
	leaderOf(t, s.url()).start("after", "hello")
}
