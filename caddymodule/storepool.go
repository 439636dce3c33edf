// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"

	"github.com/aip-gateway/aip-gateway/caddymodule/nodemetrics"
	"github.com/aip-gateway/aip-gateway/node"
	"github.com/aip-gateway/aip-gateway/operator"
)

// openStore is the host's side of a node.
type openStore struct {
	*node.Node

	admin   *operator.Admin
	metrics *nodemetrics.Exporter
}

// openBeside opens the host's side of a node.
func openBeside(n *node.Node) node.Beside {
	return &openStore{Node: n, admin: openAdmin(n), metrics: nodemetrics.NewExporter(context.Background(), logOf("aip"))}
}

// Close implements node.Beside.
func (o *openStore) Close() {
	o.admin.Close()
	o.metrics.Close()
}

// running returns the store of the running configuration; nil if none runs.
func running() *openStore {
	if n := process.Running(); n != nil {
		return n.Beside.(*openStore)
	}
	return nil
}

// newest returns the node's configuration in force; nil if there is none.
func (o *openStore) newest() *App {
	if c := o.InForce(); c != nil {
		return c.Host().(*App)
	}
	return nil
}

// newest returns the last configuration in force; nil before the first one.
func newest() *App {
	if c := process.Newest(); c != nil {
		return c.Host().(*App)
	}
	return nil
}

// members returns the handlers of the configuration in force. The list is not to be changed.
func (o *openStore) members() []*Gateway {
	if app := o.newest(); app != nil {
		return app.members
	}
	return nil
}
