// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"net/http"

	"github.com/aip-gateway/aip-gateway/operator/adminapi"
	"github.com/aip-gateway/aip-gateway/task"
)

// reportCluster answers with the gateways that share the store; with none, where it is not shared. With brief=true it
// asks neither them nor the servers.
func reportCluster(a *Admin, r *http.Request) (any, error) {
	if a.Shared == nil {
		return &adminapi.ClusterReport{Nodes: []adminapi.ClusterNode{}, Shards: []adminapi.ClusterShard{}}, nil
	}
	return a.Shared.(Reporter).Report(r.Context(), r.URL.Query().Get("brief") == "true")
}

// errAlone refuses what needs other gateways.
func errAlone(a *Admin) error {
	return task.Errorf(task.UnsupportedOperation, "this gateway shares its store with no other one: its driver is %s",
		a.Store.Name)
}

// moveShard has another gateway own the shard that the body names.
func moveShard(a *Admin, r *http.Request) (any, error) {
	if a.Shared == nil {
		return nil, errAlone(a)
	}
	var m adminapi.ShardMove
	const form = `{"shard": 7, "to": "a node"}`
	if err := readBody(r, &m, form, &m.To); err != nil {
		return nil, err
	}
	switch n := a.Shared.Count(); {
	case m.Shard == nil:
		return nil, errBody(form)
	case *m.Shard < 0 || *m.Shard >= n:
		return nil, task.Errorf(task.InvalidParams, "there is no shard %d; they are 0 to %d", *m.Shard, n-1).
			WithField("shard")
	}
	if err := a.Shared.Move(r.Context(), *m.Shard, m.To); err != nil {
		return nil, err
	}
	a.log.Info("the operator moves a shard", "shard", *m.Shard, "to", m.To)
	return m, nil
}

// drainNode has the gateway that the body names hand its shards over, or ends that.
func drainNode(a *Admin, r *http.Request) (any, error) {
	if a.Shared == nil {
		return nil, errAlone(a)
	}
	var n adminapi.NodeName
	if err := readBody(r, &n, `{"node": "its name, or empty for the one that is asked"}`); err != nil {
		return nil, err
	}
	err := a.drainOne(r, &n)
	return n, err
}

// drainOne has a gateway hand its shards over, or ends that, and names it.
func (a *Admin) drainOne(r *http.Request, n *adminapi.NodeName) (err error) {
	if n.Node, err = a.Shared.Drain(r.Context(), n.Node, r.Method == http.MethodPost); err != nil {
		return err
	}
	if log := a.log; r.Method == http.MethodPost {
		log.Info("the operator has a gateway hand its shards over", "node", n.Node)
	} else {
		log.Info("the operator lets a gateway have shards again", "node", n.Node)
	}
	return nil
}
