// SPDX-License-Identifier: Apache-2.0

package storejetstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aip-gateway/aip-gateway/caddymodule/metric"
	"github.com/aip-gateway/aip-gateway/cluster"
	"github.com/aip-gateway/aip-gateway/gateway"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator"
	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/replay/jetstream"
	"github.com/aip-gateway/aip-gateway/task"
)

// clusterMember is this process as a node of a cluster. It implements node.Member.
type clusterMember struct {
	*cluster.Cluster
	gateway.Owners
	host node.SharedHost

	// stream adds what the servers know of the stream of a shard; nothing where it has no leader.
	stream func(context.Context, *adminapi.ClusterShard)
	// counts returns what the streams have counted.
	counts func() jetstream.Counts
	// close ends what the cluster works with.
	close func()
}

// newClusterMember opens the node of this process, and waits until it has joined the others, or, while they cannot be
// reached, until the context is done. It closes nothing else after an error.
func newClusterMember(
	ctx context.Context, c cluster.Config, host node.SharedHost, owners func(*cluster.Cluster) gateway.Owners,
) (*clusterMember, error) {
	c.Busy = host.Busy
	node, err := cluster.Open(c)
	if err != nil {
		return nil, err
	}
	m := &clusterMember{Cluster: node, Owners: owners(node), host: host}
	m.Handle(describeService, m.describe)
	if taken, ok := errors.AsType[*cluster.NameTakenError](m.Joined(ctx)); ok {
		node.Close()
		return nil, fmt.Errorf("%w: see node of store", taken)
	}
	return m, nil
}

// Close implements node.Member.
func (m *clusterMember) Close() error {
	m.Cluster.Close()
	m.close()
	return nil
}

// HandOver implements node.Member.
func (m *clusterMember) HandOver(ctx context.Context) { m.Cluster.Drain(ctx) }

// Drain implements node.Member.
func (m *clusterMember) Drain(ctx context.Context, node string, drain bool) error {
	return nodeError(m.DrainNode(ctx, node, drain))
}

// Move implements node.Member.
func (m *clusterMember) Move(ctx context.Context, shard int, to string) error {
	return nodeError(m.Cluster.Move(ctx, shard, to))
}

// nodeError is the error of an operator for what another node has not done.
func nodeError(err error) error {
	if err == nil {
		return nil
	}
	return task.Errorf(task.InvalidParams, "%v", err)
}

// sample adds what the member has counted.
func (m *clusterMember) sample(out samples) {
	out.cluster(m.Cluster)
	out.streams(m.counts())
}

// describeService has each process say what only it knows of itself.
const describeService = "host/describe"

// description is what a process says of itself.
type description struct {
	// Partners are those that it has in its configuration.
	Partners []string `json:"partners,omitempty"`
	// Since says since when it owns which shards.
	Since map[int]time.Time `json:"since,omitempty"`
}

func (m *clusterMember) describe(context.Context, int, []byte) ([]byte, error) {
	return json.Marshal(description{m.host.PartnerNames(), m.Since()})
}

// Report implements node.Member.
func (m *clusterMember) Report(ctx context.Context, brief bool) (*adminapi.ClusterReport, error) {
	r := &adminapi.ClusterReport{Node: m.Name(), Nodes: []adminapi.ClusterNode{}, Shards: []adminapi.ClusterShard{}}
	if brief {
		m.addNodes(r, nil)
		return r, nil
	}
	said := make(map[string]description)
	asking, done := context.WithTimeout(ctx, node.Patience)
	defer done()
	for a, err := range m.Each(asking, describeService, nil) {
		var d description
		if err == nil && json.Unmarshal(a.Data, &d) == nil {
			said[a.Node] = d
		} else {
			r.Missing = append(r.Missing, a.Node)
		}
	}
	m.addNodes(r, said)
	for _, s := range m.Shards(ctx) {
		out := adminapi.ClusterShard{Shard: s.Number, Owner: s.Owner.Node, Epoch: s.Owner.Epoch,
			Since: said[s.Owner.Node].Since[s.Number]}
		if s.Should != s.Owner.Node {
			out.Should = s.Should
		}
		r.Shards = append(r.Shards, out)
	}
	m.addStreams(ctx, r.Shards)
	return r, nil
}

// addNodes adds the gateways, with what they have said of themselves.
func (m *clusterMember) addNodes(r *adminapi.ClusterReport, said map[string]description) {
	now := time.Now()
	for _, n := range m.Nodes() {
		state := adminapi.NodeUp
		switch {
		case !n.Living:
			state = adminapi.NodeGone
		case n.Draining:
			state = adminapi.NodeDraining
		}
		r.Nodes = append(r.Nodes, adminapi.ClusterNode{Name: n.Name, State: state, Version: n.Version, Protocol: n.Protocol,
			Started: n.Started.UTC(), Heard: now.Add(-n.Silent).UTC(), Shards: n.Owns, Partners: said[n.Name].Partners})
	}
}

// maxAsked is how many streams the servers are asked for at a time.
const maxAsked = 16

// addStreams adds what the servers know of the streams of shards.
func (m *clusterMember) addStreams(ctx context.Context, shards []adminapi.ClusterShard) {
	ctx, cancel := context.WithTimeout(ctx, monitorTimeout)
	defer cancel()
	var work sync.WaitGroup
	defer work.Wait()
	free := make(chan struct{}, maxAsked)
	for i := range shards {
		free <- struct{}{}
		work.Go(func() {
			m.stream(ctx, &shards[i])
			<-free
		})
	}
}

// joinedStore is a store of a clusterMember.
type joinedStore struct{ *node.Joining }

// Report implements operator.Reporter.
func (s joinedStore) Report(ctx context.Context, brief bool) (*adminapi.ClusterReport, error) {
	m, err := s.Member()
	if err != nil {
		return nil, err
	}
	return m.(*clusterMember).Report(ctx, brief)
}

// Describe implements prometheus.Collector.
func (joinedStore) Describe(out chan<- *prometheus.Desc) { metrics.Describe(out) }

// Collect implements prometheus.Collector.
func (s joinedStore) Collect(out chan<- prometheus.Metric) {
	if m, err := s.Member(); err == nil {
		m.(*clusterMember).sample(samples{metric.Samples{Out: out}})
	}
}

// Interface guards.
var (
	_ node.SharedStore     = joinedStore{}
	_ operator.Reporter    = joinedStore{}
	_ prometheus.Collector = joinedStore{}
	_ node.Member          = (*clusterMember)(nil)
)
