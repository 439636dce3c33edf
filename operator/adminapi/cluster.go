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
	Protocol int       `json:"protocol"`         // versions whose numbers differ by more than 1 do not work together
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

// clusterRoutes are the routes of gateways that share a store, and their commands.
var clusterRoutes = []Route{
	{
		Path: Cluster, Method: "GET", Console: MayRead, Query: []string{"brief"},
		Commands: []Command{{
			Name:  "cluster",
			Short: "Shows the gateways that share a store, and which of them works on what",
			Long: `
Shows the gateways that share a store, and which of them works on which shard of the
tasks. SHOULD is the gateway to which a shard is about to move. LAG is how many writes
the slowest replica of a shard has still to make. It uses Caddy's admin API, and any
gateway answers for all.
`,
			Example: `  $ caddy aip cluster
  $ caddy aip cluster --json`,
		}},
	},
	{
		Path: MoveShard, Method: "POST",
		Commands: []Command{{
			Name:  "cluster move",
			Args:  "<shard> --to <node>",
			Short: "Moves a shard to another gateway",
			Long: `
Moves a shard to another gateway, which works on its tasks from then on. It stays there
until that gateway leaves. Calls of these tasks wait meanwhile, a second or less, and no
task is interrupted.
`,
			Example: `  $ caddy aip cluster move 7 --to east-2`,
			Flags:   []Flag{{"to", "the name of the gateway", false}},
		}},
	},
	{
		Path: DrainNode, Method: "POST, DELETE",
		Commands: []Command{{
			Name:  "cluster drain",
			Args:  "[<node>] [--end]",
			Short: "Has a gateway hand its shards to the others, before it is stopped",
			Long: `
Has a gateway, or the one that is asked, hand its shards to the others, one by one. It
takes calls meanwhile and after that, which the others execute, and gets no shard until
--end, or until it is started again. A gateway that is stopped does this by itself.
`,
			Example: `  $ caddy aip cluster drain east-2
  $ caddy aip cluster drain east-2 --end`,
		}},
	},
}
