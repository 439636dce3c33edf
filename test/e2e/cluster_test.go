// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/logname"
	"github.com/aip-gateway/aip-gateway/task"
)

// cluster is gateways that share a store on NATS servers. A gateway is known by its place.
type cluster struct {
	t        *testing.T
	servers  *natstest.Cluster
	gateways []*site
}

// newCluster starts three servers, and gateways with the directives of a site. Only what is in settings differs from
// the defaults of the store.
func newCluster(t *testing.T, gateways int, handle, settings string) *cluster {
	t.Helper()
	servers, err := natstest.Start(3, natstest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	c := &cluster{t: t, servers: servers}
	for i := range gateways {
		s := newSite(t)
		c.gateways = append(c.gateways, s)
		s.start(c.config(i, handle, settings))
	}
	c.allOwned(gateways)
	return c
}

func nodeOf(gateway int) string { return fmt.Sprint("gateway-", gateway) }

// config is the configuration of a gateway.
func (c *cluster) config(gateway int, handle, settings string) config {
	return config{handle: handle, store: fmt.Sprintf("store jetstream %s {\nnode %s\n%s\n}",
		strings.ReplaceAll(c.servers.URL(), ",", " "), nodeOf(gateway), settings)}
}

// report returns what a gateway knows of all.
func (c *cluster) report(gateway int) (r adminapi.ClusterReport, err error) {
	res, err := http.Get(c.gateways[gateway].adminURL() + adminapi.Cluster)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return r, fmt.Errorf("the admin API answers %s", res.Status)
	}
	return r, json.NewDecoder(res.Body).Decode(&r)
}

// allOwned waits until each shard is owned by the gateway that should, and each of a number of gateways owns some.
func (c *cluster) allOwned(gateways int) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%d gateways own all shards", gateways), func() bool {
		for i, s := range c.gateways {
			if s.hasEnded() {
				continue
			}
			r, err := c.report(i)
			if err != nil {
				return false
			}
			owners := make(map[string]bool)
			for _, shard := range r.Shards {
				if shard.Owner == "" || shard.Should != "" {
					return false
				}
				owners[shard.Owner] = true
			}
			if len(owners) != gateways {
				return false
			}
		}
		return true
	})
}

// owner returns the gateway that owns the tasks of a Leader at a Partner; -1 for none at the moment.
func (c *cluster) owner(partner, leader string) int {
	c.t.Helper()
	for i, s := range c.gateways {
		if s.hasEnded() {
			continue
		}
		var r adminapi.ClusterReport
		eventually(c.t, "a gateway reports on the cluster", func() bool { // which it does not while servers elect
			var err error
			r, err = c.report(i)
			return err == nil
		})
		name := r.Shards[logname.Shard(len(r.Shards), partner, leader)].Owner
		return slices.IndexFunc(c.gateways, func(s *site) bool { return nodeOf(slices.Index(c.gateways, s)) == name })
	}
	c.t.Fatal("no gateway runs")
	return -1
}

// starts returns how often an agent was told to begin.
func (a *fakeAgent) starts() int {
	return len(a.requests("tasks/send")) + len(a.requests("tasks/sendSubscribe"))
}

// TestCluster: a task is started at one gateway, read at another, and followed at a third one. The one that works on it
// is killed: another one goes on with it, its stream stays open, and the agent has been told once.
func TestCluster(t *testing.T) {
	t.Parallel()
	_, address := sampleAgent(t)
	agent := newFakeAgent(t, forward(address))
	c := newCluster(t, 3, gatewayTo(strings.TrimPrefix(agent.url, "http://")), "")
	leader := string(certificates(t).Leader.AIC)
	owner := c.owner(agent.url, leader)
	if owner < 0 {
		t.Fatal("the shard of the Leader has no owner")
	}
	other, third := (owner+1)%3, (owner+2)%3
	at := func(i int) *caller { return leaderOf(t, c.gateways[i].url()) }

	began := startCall("t", "slow 6")
	began.Terms.Response = time.Millisecond
	at(other).do(began)
	if got := at(third).get("t"); got.Status.State.Settled() {
		t.Errorf("the task is %s at once", got.Status.State)
	}
	stream := &follower{caller: at(third), id: "t", working: make(chan struct{})}
	followed := make(chan error, 1)
	go func() { followed <- stream.follow(within(t, 2*patience), "slow 6", "awaiting-completion") }()
	eventually(t, "the agent works", func() bool { return len(agent.requests("")) > 0 })

	c.gateways[owner].kill()
	killed := time.Now()
	eventually(t, "another gateway works on the task", func() bool {
		now := c.owner(agent.url, leader)
		return now >= 0 && now != owner
	})
	t.Logf("after %v another gateway had the shard", time.Since(killed))
	if err := <-followed; err != nil {
		t.Error(err)
	}
	if stream.cuts > 0 {
		t.Errorf("the stream was cut %d times", stream.cuts)
	}
	if n := agent.starts(); n != 1 {
		t.Errorf("the agent was told to start %d times", n)
	}
	if got := at(other).complete("t"); got.Status.State != task.Completed {
		t.Errorf("the task is %s at the end", got.Status.State)
	}
	checkHistory(t, at(third).get("t"))
}
