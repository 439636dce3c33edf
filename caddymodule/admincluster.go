// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// reportCluster answers with the gateways that share the store; with none, where it is not shared. With brief=true it
// asks neither them nor the servers.
func reportCluster(o *openStore, r *http.Request) (any, error) {
	if o.Shared == nil {
		return &adminapi.ClusterReport{Nodes: []adminapi.ClusterNode{}, Shards: []adminapi.ClusterShard{}}, nil
	}
	return o.Shared.(reportedStore).Report(r.Context(), r.URL.Query().Get("brief") == "true")
}

// errAlone refuses what needs other gateways.
func errAlone(o *openStore) error {
	return task.Errorf(task.UnsupportedOperation, "this gateway shares its store with no other one: its driver is %s",
		o.Store.Name)
}

// moveShard has another gateway own the shard that the body names.
func moveShard(o *openStore, r *http.Request) (any, error) {
	if o.Shared == nil {
		return nil, errAlone(o)
	}
	var m adminapi.ShardMove
	const form = `{"shard": 7, "to": "a node"}`
	if err := readBody(r, &m, form, &m.To); err != nil {
		return nil, err
	}
	switch n := o.Shared.Count(); {
	case m.Shard == nil:
		return nil, errBody(form)
	case *m.Shard < 0 || *m.Shard >= n:
		return nil, task.Errorf(task.InvalidParams, "there is no shard %d; they are 0 to %d", *m.Shard, n-1).
			WithField("shard")
	}
	if err := o.Shared.Move(r.Context(), *m.Shard, m.To); err != nil {
		return nil, err
	}
	logOf("aip").Info("the operator moves a shard", "shard", *m.Shard, "to", m.To)
	return m, nil
}

// drainNode has the gateway that the body names hand its shards over, or ends that.
func drainNode(o *openStore, r *http.Request) (any, error) {
	if o.Shared == nil {
		return nil, errAlone(o)
	}
	var n adminapi.NodeName
	if err := readBody(r, &n, `{"node": "its name, or empty for the one that is asked"}`); err != nil {
		return nil, err
	}
	err := o.drainOne(r, &n)
	return n, err
}

// drainOne has a gateway hand its shards over, or ends that, and names it.
func (o *openStore) drainOne(r *http.Request, n *adminapi.NodeName) (err error) {
	if n.Node, err = o.Shared.Drain(r.Context(), n.Node, r.Method == http.MethodPost); err != nil {
		return err
	}
	if log := logOf("aip"); r.Method == http.MethodPost {
		log.Info("the operator has a gateway hand its shards over", "node", n.Node)
	} else {
		log.Info("the operator lets a gateway have shards again", "node", n.Node)
	}
	return nil
}
