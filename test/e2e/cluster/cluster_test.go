// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/task"
	"github.com/aip-gateway/aip-gateway/test/e2e/site"
)

// TestCluster: a task is started at one gateway, read at another, and followed at a third one. The one that works on it
// is killed: another one goes on with it, its stream stays open, and the agent has been told once.
func TestCluster(t *testing.T) {
	t.Parallel()
	_, address := site.SampleAgent(t)
	agent := site.NewFakeAgent(t, site.Forward(address))
	c := site.NewCluster(t, 3, site.GatewayTo(strings.TrimPrefix(agent.URL, "http://")), "")
	leader := string(site.Certificates(t).Leader.AIC)
	owner := c.Owner(agent.URL, leader)
	if owner < 0 {
		t.Fatal("the shard of the Leader has no owner")
	}
	other, third := (owner+1)%3, (owner+2)%3
	at := func(i int) *site.Caller { return site.LeaderOf(t, c.Gateways[i].URL()) }

	began := site.StartCall("t", "slow 6")
	began.Terms.Response = time.Millisecond
	at(other).Send(began)
	if got := at(third).Get("t"); got.Status.State.Settled() {
		t.Errorf("the task is %s at once", got.Status.State)
	}
	stream := &site.Follower{Caller: at(third), ID: "t", Working: make(chan struct{})}
	followed := make(chan error, 1)
	go func() { followed <- stream.FollowTo(site.Within(t, 2*site.Patience), "slow 6", "awaiting-completion") }()
	site.Eventually(t, "the agent works", func() bool { return len(agent.Requests("")) > 0 })

	c.Gateways[owner].Kill()
	killed := time.Now()
	site.Eventually(t, "another gateway works on the task", func() bool {
		now := c.Owner(agent.URL, leader)
		return now >= 0 && now != owner
	})
	t.Logf("after %v another gateway had the shard", time.Since(killed))
	if err := <-followed; err != nil {
		t.Error(err)
	}
	if stream.Cuts > 0 {
		t.Errorf("the stream was cut %d times", stream.Cuts)
	}
	if n := agent.Starts(); n != 1 {
		t.Errorf("the agent was told to start %d times", n)
	}
	if got := at(other).Complete("t"); got.Status.State != task.Completed {
		t.Errorf("the task is %s at the end", got.Status.State)
	}
	site.CheckHistory(t, at(third).Get("t"))
}
