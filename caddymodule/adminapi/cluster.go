// SPDX-License-Identifier: Apache-2.0

package adminapi

import "time"

// The routes of the gateways that share a store.
const (
	Cluster   = "/aip/cluster"       // GET: ClusterReport
	MoveShard = "/aip/cluster/move"  // POST ShardMove: ShardMove
	DrainNode = "/aip/cluster/drain" // POST, DELETE NodeName: NodeName
)

// The values of ClusterNode.State.
const (
	NodeUp       = "up"
	NodeDraining = "draining" // it gives its shards to the others, and takes none
	NodeGone     = "gone"     // its heartbeats do not come
)

// ClusterReport is what a gateway knows of those that it shares its store with, itself included.
type ClusterReport struct {
	Partial                // gateways that live, and have not answered for themselves
	Node    string         `json:"node"` // which answers
	Nodes   []ClusterNode  `json:"nodes"`
	Shards  []ClusterShard `json:"shards"`
}

// ClusterNode is a gateway.
type ClusterNode struct {
	Name     string    `json:"name"`
	State    string    `json:"state"`
	Version  string    `json:"version,omitempty"`
	Started  time.Time `json:"started,omitzero"` // this run of it
	Heard    time.Time `json:"heard,omitzero"`   // when its last heartbeat came
	Shards   int       `json:"shards"`           // that it owns
	Partners []string  `json:"partners,omitempty"`
}

// ClusterShard is a part of the tasks, whose logs are in one stream, and are written by one gateway.
type ClusterShard struct {
	Shard    int       `json:"shard"`
	Owner    string    `json:"owner,omitempty"`  // missing while it has none
	Should   string    `json:"should,omitempty"` // who is to own it; missing where that is the owner
	Epoch    uint64    `json:"epoch"`            // how often an owner has begun or ended
	Since    time.Time `json:"since,omitzero"`   // when the owner has begun
	Stream   string    `json:"stream"`
	Leader   string    `json:"leader,omitempty"` // the server that leads the stream; missing while there is none
	Lag      uint64    `json:"lag"`              // writes that the replica has still to make which is furthest behind
	Down     []string  `json:"down,omitempty"`   // servers of replicas that cannot be reached
	Messages uint64    `json:"messages"`         // of the stream
	Bytes    uint64    `json:"bytes"`            // likewise
}

// ShardMove names the gateway that is to own a shard.
type ShardMove struct {
	Shard *int   `json:"shard"`
	To    string `json:"to"`
}

// NodeName names a gateway.
type NodeName struct {
	Node string `json:"node"`
}
