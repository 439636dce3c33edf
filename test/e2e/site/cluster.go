// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/aip-gateway/aip-gateway/internal/natstest"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/logname"
)

// Cluster is gateways that share a store on NATS servers. A gateway is known by its place.
type Cluster struct {
	T        *testing.T        // of the cluster's test
	Servers  *natstest.Cluster // of the store
	Gateways []*Site           // by their places
}

// NewCluster starts three servers, and gateways with the directives of a site. Only what is in settings differs from
// the defaults of the store.
func NewCluster(t *testing.T, gateways int, handle, settings string) *Cluster {
	t.Helper()
	servers, err := natstest.Start(3, natstest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	c := &Cluster{T: t, Servers: servers}
	for i := range gateways {
		s := New(t)
		c.Gateways = append(c.Gateways, s)
		s.Start(c.Config(i, handle, settings))
	}
	c.AllOwned(gateways)
	return c
}

// NodeOf returns the name of a gateway in the store.
func NodeOf(gateway int) string { return fmt.Sprint("gateway-", gateway) }

// Config is the configuration of a gateway.
func (c *Cluster) Config(gateway int, handle, settings string) Config {
	return Config{Handle: handle, Store: fmt.Sprintf("store jetstream %s {\nnode %s\n%s\n}",
		strings.ReplaceAll(c.Servers.URL(), ",", " "), NodeOf(gateway), settings)}
}

// Report returns what a gateway knows of all.
func (c *Cluster) Report(gateway int) (r adminapi.ClusterReport, err error) {
	res, err := http.Get(c.Gateways[gateway].AdminURL() + adminapi.Cluster)
	if err != nil {
		return r, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return r, fmt.Errorf("the admin API answers %s", res.Status)
	}
	return r, json.NewDecoder(res.Body).Decode(&r)
}

// AllOwned waits until each shard is owned by the gateway that should, and each of a number of gateways owns some.
func (c *Cluster) AllOwned(gateways int) {
	c.T.Helper()
	Eventually(c.T, fmt.Sprintf("%d gateways own all shards", gateways), func() bool {
		for i, s := range c.Gateways {
			if s.HasEnded() {
				continue
			}
			r, err := c.Report(i)
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

// Owner returns the gateway that owns the tasks of a Leader at a Partner; -1 for none at the moment.
func (c *Cluster) Owner(partner, leader string) int {
	c.T.Helper()
	for i, s := range c.Gateways {
		if s.HasEnded() {
			continue
		}
		var r adminapi.ClusterReport
		Eventually(c.T, "a gateway reports on the cluster", func() bool { // which it does not while servers elect
			var err error
			r, err = c.Report(i)
			return err == nil
		})
		name := r.Shards[logname.Shard(len(r.Shards), partner, leader)].Owner
		return slices.IndexFunc(c.Gateways, func(s *Site) bool { return NodeOf(slices.Index(c.Gateways, s)) == name })
	}
	c.T.Fatal("no gateway runs")
	return -1
}
